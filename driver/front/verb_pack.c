/* brigade pack: a model as a bundle, one file a slice. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "driver/front/interrupt.h"
#include "driver/front/progress.h"
#include "driver/front/verb.h"
#include "driver/pack/pack.h"
#include "proto/stat/stat.h"

#define MIB 1048576.0

struct view {
    struct brig_progress bar;
    bool quiet;
};

static void progress(void *arg, uint64_t done, uint64_t total)
{
    struct view *v = arg;
    brig_progress_update(&v->bar, (size_t)(done >> 20), (size_t)(total >> 20) + 1);
}

static void part(void *arg, const struct brig_pack_plan *p, unsigned i, uint64_t bytes, bool was_there)
{
    struct view *v = arg;
    char name[40], what[64] = "metadata, tokenizer, token table";
    if (v->quiet)
        return;
    brig_pack_name(i, p->n_parts, name);
    if (i > 0) {
        struct brig_cells c = p->cells[i - 1];
        uint32_t n = p->request.model->desc.n_layers;
        bool head = brig_cells_has_head(c, n);
        if (c.first == n)
            snprintf(what, sizeof what, "head");
        else
            snprintf(what, sizeof what, "layers %u:%u%s", c.first, c.last - head, head ? ", head" : "");
    }
    brig_progress_wipe(&v->bar);
    fprintf(stderr, "brigade: %s, %.1f MiB: %s%s\n", name, (double)bytes / MIB, what,
            was_there ? " (was there already)" : "");
}

static void note_kept(const struct brig_pack_plan *p)
{
    if (p->n_kept > 0)
        fprintf(stderr,
                "brigade: %u matrices stay as they are, their rows are no whole blocks: %.*s (%" PRIu64
                " columns, %s)%s\n",
                p->n_kept, (int)p->kept->name.len, p->kept->name.ptr, p->kept->dims[0], p->kept->type->name,
                p->n_kept > 1 ? " and others" : "");
}

static void note_native(const struct brig_pack_plan *p)
{
    if (p->n_native > 0)
        fprintf(
            stderr,
            "brigade: %u matrices keep the native layout (r16 takes Q8_0, Q4_0 and Q4_1 with rows by the 16, "
            "and no token table): %.*s (%" PRIu64 " rows, %s)%s\n",
            p->n_native, (int)p->native->from->name.len, p->native->from->name.ptr, p->native->from->dims[1],
            p->native->type->name, p->n_native > 1 ? " and others" : "");
}

static int pack(const struct brig_settings *s, const struct brig_model *m, struct brig_fail *fail)
{
    struct view v = {.quiet = s->quiet};
    struct brig_pack_plan p;
    uint64_t bytes = 0;
    struct brig_pack_request request = {
        .model = m,
        .n_slices = s->shards == BRIG_SHARDS_ALL ? m->desc.n_layers + 1 : (unsigned)s->shards,
        .quant = s->quant,
        .head_quant = s->head_quant,
        .interleave = s->interleave,
        .requantize = s->requantize,
    };
    int r = brig_pack_plan(&p, &request, fail);
    if (r < 0)
        return r;
    if (!s->quiet) {
        note_kept(&p);
        note_native(&p);
    }
    brig_progress_init(&v.bar, "packing, MiB", s->quiet);
    const struct brig_pack_watch watch = {progress, part, &v, brig_interrupt_flag()};
    r = brig_pack(&p, s->second, &watch, &bytes, fail);
    brig_progress_wipe(&v.bar);
    if (r == 0)
        printf("%s: %u files, %" PRIu64 " bytes, from %" PRIu64 " bytes of weights; peak memory %.1f MiB\n",
               s->second, p.n_parts, bytes, m->weights_bytes, (double)brig_peak_rss_bytes() / MIB);
    brig_pack_plan_release(&p);
    return r;
}

static int run(const struct brig_settings *s, struct brig_fail *fail)
{
    struct brig_model *m = NULL;
    int r = brig_model_open(&m, s->operand, fail);
    if (r == 0)
        r = pack(s, m, fail);
    if (r == 0 && fflush(stdout) != 0)
        r = brig_fail_errno(fail, BRIG_EIO, "standard output");
    brig_model_close(m);
    return r;
}

const struct brig_verb brig_verb_pack = {
    .name = "pack",
    .help = "a model as a bundle: one file a slice, with hashes; also in other types",
    .usage = "MODEL OUT [--shards N] [--quant TYPE] [--head-quant TYPE] [--layout native|r16] [OPTION]...",
    .about =
        "Writes the folder OUT: a GGUF file with metadata, tokenizer and token table, one for each slice of "
        "the\n"
        "line, and manifest.json. OUT is then a MODEL for every verb, cut into as many shards as one likes.\n"
        "--quant makes matrices of floats smaller; norms, biases and routers stay as they are. --layout r16\n"
        "interleaves 16 rows of Q8_0, Q4_0 and Q4_1, which is read faster; the numbers and the answers are "
        "the\n"
        "same, and packing it again without that option brings the native layout back. A pack that was\n"
        "interrupted goes on where it stopped when the same command is given again. The same model and "
        "options\n"
        "give the same bytes everywhere.\n"
        "\n"
        "examples:\n"
        "  brigade pack MODEL OUT --shards 4\n"
        "  brigade pack MODEL OUT --quant Q4_0 --head-quant Q8_0\n"
        "  brigade pack MODEL OUT --quant Q4_0 --layout r16\n",
    .operand = "MODEL",
    .operand_needed = true,
    .second = "OUT",
    .run = run,
};
