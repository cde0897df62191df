/* Choices of experts as JSON lines. Opened and closed by the front, filled by the line. */
#include "driver/run/routes.h"

#include <inttypes.h>
#include <string.h>

#include "driver/run/json.h"
#include "proto/base/mem.h"
#include "proto/base/outfile.h"

struct brig_routes {
    const struct brig_desc *desc;
    struct brig_outfile out;
};

static bool has_experts(const struct brig_desc *d, uint32_t layer)
{
    return brig_desc_count(d, BRIG_ROLE_ROUTER, layer) > 0;
}

static void write_head(struct brig_routes *r, const struct brig_model *m)
{
    const struct brig_desc *d = r->desc;
    json_t *name = brig_json_text(m->path, strlen(m->path));
    const char *sep = "";
    fputs("{\"schema\": 1, \"model\": ", r->out.stream);
    json_dumpf(name, r->out.stream, JSON_ENCODE_ANY);
    fputs(", \"layers\": [", r->out.stream);
    for (uint32_t layer = 0; layer < d->n_layers; layer++)
        if (has_experts(d, layer)) {
            fprintf(r->out.stream, "%s%" PRIu32, sep, layer);
            sep = ", ";
        }
    fprintf(r->out.stream, "], \"experts\": %" PRIu32 ", \"used\": %" PRIu32 "}\n", d->n_experts,
            d->n_experts_used);
    json_decref(name);
}

int brig_routes_open(struct brig_routes **ret, const char *path, const struct brig_model *model,
                     struct brig_fail *fail)
{
    const struct brig_desc *d = &model->desc;
    if (d->n_experts == 0)
        return brig_fail_set(fail, BRIG_EUSAGE, "--trace-routing: %s has no experts", model->path);
    if (brig_desc_choices(d) > BRIG_FRAME_MAX_CHOICES)
        return brig_fail_set(fail, BRIG_ELIMIT,
                             "--trace-routing: a row chooses %" PRIu64 " experts, a frame has room for %u",
                             brig_desc_choices(d), BRIG_FRAME_MAX_CHOICES);
    struct brig_routes *r = brig_alloc(1, sizeof *r);
    if (r == NULL)
        return brig_fail_set(fail, BRIG_ENOMEM, "%s: out of memory", path);
    r->desc = d;
    int failed = brig_outfile_open(&r->out, path, fail);
    if (failed < 0) {
        brig_free(r);
        return failed;
    }
    write_head(r, model);
    *ret = r;
    return 0;
}

static int write_layer(struct brig_routes *r, const uint8_t *p, uint32_t layer, const char *sep,
                       struct brig_fail *fail)
{
    const struct brig_desc *d = r->desc;
    fprintf(r->out.stream, "%s[", sep);
    for (uint32_t k = 0; k < d->n_experts_used; k++, p += 2) {
        uint32_t expert = p[0] | (uint32_t)p[1] << 8;
        if (expert >= d->n_experts)
            return brig_fail_set(fail, BRIG_EPROTO,
                                 "a row chose expert %" PRIu32 " of %" PRIu32 " in layer %" PRIu32, expert,
                                 d->n_experts, layer);
        fprintf(r->out.stream, "%s%" PRIu32, k > 0 ? ", " : "", expert);
    }
    fputc(']', r->out.stream);
    return 0;
}

/* p: the choices of this row. */
static int write_row(struct brig_routes *r, uint64_t frame_id, uint32_t slot, uint32_t pos, const uint8_t *p,
                     struct brig_fail *fail)
{
    const struct brig_desc *d = r->desc;
    const char *sep = "";
    int failed = 0;
    fprintf(r->out.stream,
            "{\"frame\": %" PRIu64 ", \"slot\": %" PRIu32 ", \"position\": %" PRIu32 ", \"experts\": [",
            frame_id, slot, pos);
    for (uint32_t layer = 0; failed == 0 && layer < d->n_layers;
         layer++, p += 2 * (size_t)d->n_experts_used) {
        if (!has_experts(d, layer))
            continue;
        failed = write_layer(r, p, layer, sep, fail);
        sep = ", ";
    }
    fputs("]}\n", r->out.stream);
    return failed;
}

int brig_routes_add(struct brig_routes *r, const struct brig_frame *sent, const struct brig_frame *got,
                    const void *msg, struct brig_fail *fail)
{
    if (got->n_choices != sent->n_choices || got->n_rows != sent->n_rows)
        return brig_fail_set(fail, BRIG_EPROTO, "an answer with choices of experts of %u rows, %u were sent",
                             got->n_choices > 0 ? got->n_rows : 0, sent->n_rows);
    const uint8_t *p = (const uint8_t *)msg + got->choices_offset;
    for (unsigned i = 0; i < sent->n_runs; i++)
        for (uint32_t k = 0; k < sent->runs[i].count; k++, p += 2 * (size_t)got->n_choices) {
            const struct brig_run *run = &sent->runs[i];
            int failed = write_row(r, sent->frame_id, run->slot, run->pos + k, p, fail);
            if (failed < 0)
                return failed;
        }
    return 0;
}

int brig_routes_close(struct brig_routes *r, struct brig_fail *fail)
{
    if (r == NULL)
        return 0;
    int failed = brig_outfile_commit(&r->out, fail);
    brig_outfile_abandon(&r->out);
    brig_free(r);
    return failed;
}
