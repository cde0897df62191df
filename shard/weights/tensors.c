/*
 * What becomes of a tensor of the slice: a matrix that lies somewhere or is taken piece by piece, or a vector
 * that is converted once. Called by brig_weights_open.
 */
#include "shard/weights/parts.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "proto/base/mem.h"

/* The columns of one chain of additions (docs/arithmetic.md, Unit). */
static uint32_t unit_cols(const struct brig_desc *d, const struct brig_slice_tensor *t)
{
    if (t->role != BRIG_ROLE_ATTN_OUT || t->sides.side[BRIG_SIDE_GROUPS].bytes != 0)
        return t->cols < BRIG_UNIT_COLS ? (uint32_t)t->cols : BRIG_UNIT_COLS;
    /* The query heads of one KV head, joined with neighbours up to whole blocks and activation groups. */
    uint64_t group = (uint64_t)(d->n_heads / d->n_kv_heads) * d->head_dim;
    uint64_t grain =
        t->type->group != 0 && t->type->block_elems < BRIG_ACT_GROUP ? BRIG_ACT_GROUP : t->type->block_elems;
    uint64_t width = group;
    while (width % grain != 0 && width < t->cols)
        width += group;
    return (uint32_t)(width < t->cols ? width : t->cols);
}

/* The order of visits is kept apart from the file, which may change under us. */
static int sort_columns(struct brig_entry *e, const struct brig_slice_tensor *t, const uint8_t *groups,
                        struct brig_fail *fail)
{
    uint32_t n_groups = e->packed.n_groups;
    e->order = brig_alloc(t->cols, sizeof *e->order);
    e->starts = brig_alloc((size_t)n_groups + 1, sizeof *e->starts);
    if (e->order == NULL || e->starts == NULL)
        return brig_fail_set(fail, BRIG_ENOMEM, "out of memory for the order of columns");
    int64_t bad = brig_packed_sort(groups, (uint32_t)t->cols, n_groups, e->order, e->starts);
    if (bad >= 0)
        return brig_fail_set(fail, BRIG_EFORMAT, "the group of column %lld is not one of the %u",
                             (long long)bad, n_groups);
    e->packed.order = e->order;
    e->packed.starts = e->starts;
    return 0;
}

/* A private copy of a small range. It leaves nothing in the page cache that was not there. */
static int read_copy(int fd, uint64_t offset, uint64_t bytes, uint8_t **ret, struct brig_fail *fail)
{
    uint8_t *p = brig_alloc(bytes, 1);
    uint64_t at = 0;
    if (p == NULL)
        return brig_fail_set(fail, BRIG_ENOMEM, "out of memory for %llu bytes", (unsigned long long)bytes);
    while (at < bytes) {
        ssize_t n = pread(fd, p + at, bytes - at, (off_t)(offset + at));
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            int r = n < 0 ? brig_fail_errno(fail, BRIG_EIO, "cannot be read")
                          : brig_fail_set(fail, BRIG_EIO, "the file has become shorter");
            brig_free(p);
            return r;
        }
        at += (uint64_t)n;
    }
    *ret = p;
    return 0;
}

/* Where a range lies for good; *own: it was read for this and is the caller's. */
static int find_range(const struct brig_weights *w, uint32_t tensor, const struct brig_side *at,
                      const uint8_t **ret, uint8_t **own, struct brig_fail *fail)
{
    enum brig_hold hold = w->slice->tensors[tensor].hold;
    const struct brig_hold_ops *ops = brig_hold_ops_at(hold);
    *own = NULL;
    if (ops->take != NULL) {
        int r = read_copy(w->fds[at->file], at->offset, at->bytes, own, fail);
        *ret = *own;
        return r;
    }
    *ret = ops->address(w->states[hold], tensor, at);
    return *ret != NULL ? 0 : brig_fail_set(fail, BRIG_EFORMAT, "does not belong to this slice");
}

/* What a packed matrix has beside it. */
static int find_side(struct brig_weights *w, const struct brig_entry *e, enum brig_side_id id,
                     const uint8_t **ret, struct brig_fail *fail)
{
    const struct brig_side *side = &w->slice->tensors[e->tensor].sides.side[id];
    uint8_t *own;
    int r = find_range(w, e->tensor, side, ret, &own, fail);
    if (r < 0)
        return brig_fail_prefix(fail, "what lies beside it");
    if (own != NULL) {
        w->beside[w->n_beside++] = own;
        w->beside_bytes += side->bytes;
    }
    return 0;
}

static int add_packed(struct brig_weights *w, struct brig_entry *e, const struct brig_slice_tensor *t,
                      struct brig_fail *fail)
{
    const uint8_t *scales = NULL, *zeros = NULL, *groups = NULL;
    bool ordered = t->sides.side[BRIG_SIDE_GROUPS].bytes != 0;
    int r = brig_sides_check(&t->sides, t->type, t->rows, t->cols, fail);
    if (r == 0)
        r = find_side(w, e, BRIG_SIDE_SCALES, &scales, fail);
    if (r == 0)
        r = find_side(w, e, BRIG_SIDE_ZEROS, &zeros, fail);
    if (r == 0 && ordered)
        r = find_side(w, e, BRIG_SIDE_GROUPS, &groups, fail);
    if (r < 0)
        return r;
    e->packed = (struct brig_packed){
        .packing = t->type->packing,
        .scale_type = t->sides.scale_type,
        .words = e->matrix.data,
        .scales = scales,
        .zeros = zeros,
        .rows = t->rows,
        .cols = t->cols,
        .group_cols = t->sides.group_cols,
        .zero_bias = t->sides.zero_bias,
        .n_groups = (uint32_t)brig_packed_groups(t->cols, t->sides.group_cols),
    };
    e->matrix.packed = &e->packed;
    return ordered ? sort_columns(e, t, groups, fail) : 0;
}

static bool is_norm(enum brig_role role)
{
    switch (role) {
    case BRIG_ROLE_ATTN_NORM:
    case BRIG_ROLE_FFN_NORM:
    case BRIG_ROLE_ATTN_Q_NORM:
    case BRIG_ROLE_ATTN_K_NORM:
    case BRIG_ROLE_ATTN_POST_NORM:
    case BRIG_ROLE_FFN_POST_NORM:
    case BRIG_ROLE_OUTPUT_NORM:
        return true;
    default:
        return false;
    }
}

static int add_vector(struct brig_weights *w, struct brig_entry *e, const struct brig_slice_tensor *t,
                      struct brig_fail *fail)
{
    const struct brig_side range = {.file = t->file, .offset = t->offset, .bytes = t->bytes};
    const uint8_t *data;
    uint8_t *own;
    int r = find_range(w, e->tensor, &range, &data, &own, fail);
    if (r < 0)
        return r;
    e->vector = brig_alloc(t->cols, sizeof *e->vector);
    if (e->vector != NULL)
        t->type->dequant(data, e->vector, t->cols);
    brig_free(own);
    if (e->vector == NULL)
        return brig_fail_set(fail, BRIG_ENOMEM, "out of memory");
    if (w->desc->norm == BRIG_NORM_RMS_PLUS_ONE && is_norm(t->role))
        for (uint64_t i = 0; i < t->cols; i++)
            e->vector[i] = 1.0f + e->vector[i];
    return 0;
}

static int add_matrix(struct brig_weights *w, struct brig_entry *e, const struct brig_slice_tensor *t,
                      struct brig_fail *fail)
{
    const struct brig_hold_ops *ops = brig_hold_ops_at(t->hold);
    const struct brig_side range = {.file = t->file, .offset = t->offset, .bytes = t->bytes};
    if (ops->address != NULL)
        e->matrix.data = ops->address(w->states[t->hold], e->tensor, &range);
    if (ops->take != NULL)
        e->matrix.loan = (uint32_t)(e - w->entries) + 1;
    else if (e->matrix.data == NULL)
        return brig_fail_set(fail, BRIG_EFORMAT, "does not belong to this slice");
    return t->type->packing != NULL ? add_packed(w, e, t, fail) : 0;
}

int brig_weights_add(struct brig_weights *w, uint32_t tensor, struct brig_fail *fail)
{
    const struct brig_slice_tensor *t = &w->slice->tensors[tensor];
    struct brig_entry *e = brig_weights_entry(w, t->role, t->layer, t->expert);
    if (e == NULL || t->rows == 0 || t->cols == 0 || t->cols > UINT32_MAX || t->file >= w->slice->n_files)
        return brig_fail_set(fail, BRIG_EFORMAT, "tensor %s of layer %u does not belong to this slice",
                             brig_role_name(t->role), t->layer);
    e->hold = t->hold;
    e->tensor = tensor;
    e->matrix = (struct brig_matrix){.type = t->type,
                                     .rows = t->rows,
                                     .cols = t->cols,
                                     .row_bytes = t->bytes / t->rows,
                                     .unit_cols = unit_cols(w->desc, t)};
    int r = t->rows > 1 ? add_matrix(w, e, t, fail) : add_vector(w, e, t, fail);
    return r < 0 ? brig_fail_prefix(fail, "tensor %s of layer %u", brig_role_name(t->role), t->layer) : 0;
}
