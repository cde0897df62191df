/* Packed matrices read whole. */
#include "driver/pack/packed.h"

#include <inttypes.h>

#include "proto/base/mem.h"
#include "proto/base/size.h"

static int no_memory(const struct brig_tensor *t, struct brig_fail *fail)
{
    return brig_fail_set(fail, BRIG_ENOMEM, "no memory for tensor '%.*s'", (int)t->own_name.len,
                         t->own_name.ptr);
}

/* The words and all sides, one behind the other. */
static int read_bytes(struct brig_pack_packed *p, const struct brig_model *m, const struct brig_tensor *t,
                      const uint8_t *at[BRIG_SIDE_COUNT], struct brig_fail *fail)
{
    uint64_t all;
    if (!brig_add_u64(t->bytes, brig_sides_bytes(&t->sides), &all) || all > SIZE_MAX ||
        (p->bytes = brig_alloc((size_t)all, 1)) == NULL)
        return no_memory(t, fail);
    int r = brig_model_read(m, t->file, p->bytes, (size_t)t->bytes, t->offset, fail);
    uint8_t *next = p->bytes + t->bytes;
    for (unsigned i = 0; i < BRIG_SIDE_COUNT && r == 0; i++) {
        const struct brig_side *side = &t->sides.side[i];
        at[i] = next;
        if (side->bytes > 0)
            r = brig_model_read(m, side->file, next, (size_t)side->bytes, side->offset, fail);
        next += side->bytes;
    }
    return r;
}

static int sort(struct brig_pack_packed *p, const struct brig_tensor *t, const uint8_t *groups,
                struct brig_fail *fail)
{
    uint32_t n_cols = (uint32_t)t->dims[0], n = p->matrix.n_groups;
    p->order = brig_alloc(n_cols, sizeof *p->order);
    p->starts = brig_alloc((size_t)n + 1, sizeof *p->starts);
    if (p->order == NULL || p->starts == NULL)
        return no_memory(t, fail);
    int64_t bad = brig_packed_sort(groups, n_cols, n, p->order, p->starts);
    if (bad >= 0)
        return brig_fail_set(fail, BRIG_EFORMAT,
                             "tensor '%.*s': column %" PRId64 " is in a group that there is not",
                             (int)t->own_name.len, t->own_name.ptr, bad);
    p->matrix.order = p->order;
    p->matrix.starts = p->starts;
    return 0;
}

int brig_pack_packed_open(struct brig_pack_packed *p, const struct brig_model *m, const struct brig_tensor *t,
                          struct brig_fail *fail)
{
    const uint8_t *at[BRIG_SIDE_COUNT];
    const struct brig_sides *s = &t->sides;
    *p = (struct brig_pack_packed){0};
    int r = brig_sides_check(s, t->type, t->dims[1], t->dims[0], fail);
    if (r < 0 || (r = read_bytes(p, m, t, at, fail)) < 0)
        return r;
    p->matrix = (struct brig_packed){.packing = t->type->packing,
                                     .scale_type = s->scale_type,
                                     .words = p->bytes,
                                     .scales = at[BRIG_SIDE_SCALES],
                                     .zeros = at[BRIG_SIDE_ZEROS],
                                     .rows = t->dims[1],
                                     .cols = t->dims[0],
                                     .group_cols = s->group_cols,
                                     .zero_bias = s->zero_bias,
                                     .n_groups = (uint32_t)brig_packed_groups(t->dims[0], s->group_cols)};
    p->visits = brig_alloc(t->dims[0], sizeof *p->visits);
    p->row = brig_alloc(t->dims[0], sizeof *p->row);
    if (p->visits == NULL || p->row == NULL)
        return no_memory(t, fail);
    return s->side[BRIG_SIDE_GROUPS].bytes != 0 ? sort(p, t, at[BRIG_SIDE_GROUPS], fail) : 0;
}

void brig_pack_packed_release(struct brig_pack_packed *p)
{
    brig_free(p->bytes);
    brig_free(p->order);
    brig_free(p->starts);
    brig_free(p->visits);
    brig_free(p->row);
    *p = (struct brig_pack_packed){0};
}

const float *brig_pack_packed_row(struct brig_pack_packed *p, uint64_t r)
{
    size_t n = (size_t)p->matrix.cols;
    brig_packed_dequant(&p->matrix, r, 0, n, p->visits);
    if (p->order == NULL)
        return p->visits;
    for (size_t v = 0; v < n; v++)
        p->row[p->order[v]] = p->visits[v];
    return p->row;
}
