/*
 * Mapping of a slice's byte ranges. Made once by the program's start, read by the block.
 */
#include "shard/weights/weights.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proto/base/mem.h"
#include "proto/base/size.h"

#define PREFETCH_STEP_BYTES ((uint64_t)1 << 20)

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#endif

struct mapping {
    struct brig_range range;
    uint8_t *map; /* NULL: not mapped yet */
};

/* Matrices by layer and role, so that a lookup is an index. */
struct entry {
    struct brig_matrix matrix; /* type NULL: the slice has none */
    float *vector;             /* rows 1 only: its numbers as f32 */
    struct brig_packed packed; /* what matrix.packed points at */
    uint32_t *order, *starts;  /* that packed borrows */
};

struct brig_weights {
    struct brig_cells cells;
    uint32_t n_layers; /* of the model */
    unsigned n_mappings;
    struct mapping *mappings;
    uint64_t mapped_bytes;
    size_t n_entries;
    const struct brig_desc *desc; /* the slice's, which lives longer */
    struct entry *entries;        /* [layers of the slice, brig_desc_places], then the whole-model roles */
    unsigned prefetch_number;     /* mapping and offset that the next step of prefetching begins at */
    uint64_t prefetch_offset;
};

static uint32_t layer_count(const struct brig_weights *w)
{
    uint32_t last = w->cells.last < w->n_layers ? w->cells.last : w->n_layers;
    return last > w->cells.first ? last - w->cells.first : 0;
}

static struct entry *find(const struct brig_weights *w, enum brig_role role, uint32_t layer, uint32_t expert)
{
    uint64_t at, places = brig_desc_places(w->desc);
    if (role < BRIG_ROLE_LAYER_COUNT) {
        if (layer < w->cells.first || layer - w->cells.first >= layer_count(w))
            return NULL;
        at = (layer - w->cells.first) * places + brig_desc_place(w->desc, role, expert);
    } else {
        at = layer_count(w) * places + (role - BRIG_ROLE_LAYER_COUNT);
    }
    return role < BRIG_ROLE_COUNT ? &w->entries[at] : NULL;
}

static int check_files(const struct brig_slice *slice, const int *fds, unsigned n, struct brig_fail *fail)
{
    struct stat st;
    if (n != slice->n_files)
        return brig_fail_set(fail, BRIG_EMISMATCH, "the slice lies in %u files, %u were given",
                             slice->n_files, n);
    for (unsigned i = 0; i < n; i++) {
        if (fstat(fds[i], &st) < 0)
            return brig_fail_errno(fail, BRIG_EIO, "file %u of the model", i);
        if ((uint64_t)st.st_size != slice->file_bytes[i])
            return brig_fail_set(fail, BRIG_EMISMATCH,
                                 "file %u of the model has %llu bytes, it had %llu when it was described", i,
                                 (unsigned long long)st.st_size, (unsigned long long)slice->file_bytes[i]);
    }
    return 0;
}

static int map_ranges(struct brig_weights *w, const struct brig_slice *slice, const int *fds,
                      struct brig_fail *fail)
{
    struct brig_range *ranges = NULL;
    unsigned n = 0;
    int r = brig_slice_ranges(slice, (uint64_t)sysconf(_SC_PAGESIZE), &ranges, &n);
    if (r < 0)
        return brig_fail_set(fail, (enum brig_err) - r, "the byte ranges of the slice do not fit");
    w->mappings = brig_alloc(n, sizeof *w->mappings);
    if (w->mappings == NULL)
        r = brig_fail_set(fail, BRIG_ENOMEM, "out of memory for %u mappings", n);
    for (unsigned i = 0; r == 0 && i < n; i++) {
        void *p =
            mmap(NULL, ranges[i].bytes, PROT_READ, MAP_PRIVATE, fds[ranges[i].file], (off_t)ranges[i].offset);
        if (p == MAP_FAILED) {
            r = brig_fail_errno(fail, BRIG_ENOMEM, "%llu bytes of file %u cannot be mapped",
                                (unsigned long long)ranges[i].bytes, ranges[i].file);
            break;
        }
        w->mappings[i] = (struct mapping){ranges[i], p};
        w->n_mappings = i + 1;
        w->mapped_bytes += ranges[i].bytes;
    }
    brig_free(ranges);
    return r;
}

static const uint8_t *address(const struct brig_weights *w, uint32_t file, uint64_t offset, uint64_t bytes)
{
    for (unsigned i = 0; i < w->n_mappings; i++) {
        const struct brig_range *r = &w->mappings[i].range;
        if (file == r->file && offset >= r->offset && brig_range_ok(offset - r->offset, bytes, r->bytes))
            return w->mappings[i].map + (offset - r->offset);
    }
    return NULL;
}

static const uint8_t *side_address(const struct brig_weights *w, const struct brig_slice_tensor *t,
                                   enum brig_side_id id)
{
    const struct brig_side *side = &t->sides.side[id];
    return address(w, side->file, side->offset, side->bytes);
}

/* The columns of one chain of additions (docs/arithmetic.md, Unit). */
static uint32_t unit_cols(const struct brig_slice *slice, const struct brig_slice_tensor *t)
{
    const struct brig_desc *d = &slice->desc;
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
static int sort_columns(struct entry *e, const struct brig_slice_tensor *t, const uint8_t *groups,
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

static int add_packed(const struct brig_weights *w, struct entry *e, const struct brig_slice_tensor *t,
                      struct brig_fail *fail)
{
    int r = brig_sides_check(&t->sides, t->type, t->rows, t->cols, fail);
    if (r < 0)
        return r;
    bool ordered = t->sides.side[BRIG_SIDE_GROUPS].bytes != 0;
    const uint8_t *scales = side_address(w, t, BRIG_SIDE_SCALES),
                  *zeros = side_address(w, t, BRIG_SIDE_ZEROS);
    const uint8_t *groups = ordered ? side_address(w, t, BRIG_SIDE_GROUPS) : NULL;
    if (scales == NULL || zeros == NULL || (ordered && groups == NULL))
        return brig_fail_set(fail, BRIG_EFORMAT, "what lies beside it does not belong to this slice");
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

static int add_tensor(struct brig_weights *w, const struct brig_slice *slice,
                      const struct brig_slice_tensor *t, struct brig_fail *fail)
{
    struct entry *e = find(w, t->role, t->layer, t->expert);
    const uint8_t *data = address(w, t->file, t->offset, t->bytes);
    const char *name = brig_role_name(t->role);
    if (e == NULL || data == NULL || t->rows == 0 || t->cols == 0 || t->cols > UINT32_MAX)
        return brig_fail_set(fail, BRIG_EFORMAT, "tensor %s of layer %u does not belong to this slice", name,
                             t->layer);
    e->matrix = (struct brig_matrix){.type = t->type,
                                     .data = data,
                                     .rows = t->rows,
                                     .cols = t->cols,
                                     .row_bytes = t->bytes / t->rows,
                                     .unit_cols = unit_cols(slice, t)};
    if (t->type->packing != NULL) {
        int r = add_packed(w, e, t, fail);
        return r < 0 ? brig_fail_prefix(fail, "tensor %s of layer %u", name, t->layer) : 0;
    }
    if (t->rows > 1)
        return 0;
    e->vector = brig_alloc(t->cols, sizeof *e->vector);
    if (e->vector == NULL)
        return brig_fail_set(fail, BRIG_ENOMEM, "out of memory for tensor %s of layer %u", name, t->layer);
    t->type->dequant(data, e->vector, t->cols);
    if (slice->desc.norm == BRIG_NORM_RMS_PLUS_ONE && is_norm(t->role))
        for (uint64_t i = 0; i < t->cols; i++)
            e->vector[i] = 1.0f + e->vector[i];
    return 0;
}

int brig_weights_map(struct brig_weights **ret, const struct brig_slice *slice, const int *fds, unsigned n,
                     struct brig_fail *fail)
{
    struct brig_weights *w = brig_alloc(1, sizeof *w);
    if (w == NULL)
        return brig_fail_set(fail, BRIG_ENOMEM, "out of memory for the weights");
    w->cells = slice->cells;
    w->desc = &slice->desc;
    w->n_layers = slice->desc.n_layers;
    int r = check_files(slice, fds, n, fail);
    if (r == 0)
        r = map_ranges(w, slice, fds, fail);
    if (r == 0) {
        w->n_entries =
            (size_t)layer_count(w) * brig_desc_places(w->desc) + (BRIG_ROLE_COUNT - BRIG_ROLE_LAYER_COUNT);
        w->entries = brig_alloc(w->n_entries, sizeof *w->entries);
        if (w->entries == NULL) {
            w->n_entries = 0;
            r = brig_fail_set(fail, BRIG_ENOMEM, "out of memory for the table of weights");
        }
    }
    for (unsigned i = 0; r == 0 && i < slice->n_tensors; i++)
        r = add_tensor(w, slice, &slice->tensors[i], fail);
    if (r < 0) {
        brig_weights_unmap(w);
        return r;
    }
    *ret = w;
    return 0;
}

void brig_weights_unmap(struct brig_weights *w)
{
    if (w == NULL)
        return;
    for (unsigned i = 0; i < w->n_mappings; i++)
        munmap(w->mappings[i].map, w->mappings[i].range.bytes);
    for (size_t i = 0; i < w->n_entries; i++) {
        brig_free(w->entries[i].vector);
        brig_free(w->entries[i].order);
        brig_free(w->entries[i].starts);
    }
    brig_free(w->mappings);
    brig_free(w->entries);
    brig_free(w);
}

bool brig_weights_matrix(const struct brig_weights *w, enum brig_role role, uint32_t layer,
                         struct brig_matrix *ret)
{
    return brig_weights_expert(w, role, layer, 0, ret);
}

bool brig_weights_expert(const struct brig_weights *w, enum brig_role role, uint32_t layer, uint32_t expert,
                         struct brig_matrix *ret)
{
    const struct entry *e = find(w, role, layer, expert);
    if (e == NULL || e->matrix.type == NULL)
        return false;
    *ret = e->matrix;
    return true;
}

const float *brig_weights_vector(const struct brig_weights *w, enum brig_role role, uint32_t layer)
{
    const struct entry *e = find(w, role, layer, 0);
    return e != NULL ? e->vector : NULL;
}

uint64_t brig_weights_mapped_bytes(const struct brig_weights *w)
{
    return w->mapped_bytes;
}

bool brig_weights_prefetch(struct brig_weights *w)
{
    if (w->prefetch_number == w->n_mappings)
        return false;
    struct mapping *m = &w->mappings[w->prefetch_number];
    uint64_t left = m->range.bytes - w->prefetch_offset;
    uint64_t bytes = left < PREFETCH_STEP_BYTES ? left : PREFETCH_STEP_BYTES;
    uint8_t *p = m->map + w->prefetch_offset;
    /* Older kernels cannot fill page tables: they read ahead only. Neither is needed for a right result. */
    if (madvise(p, bytes, MADV_POPULATE_READ) < 0 && errno == EINVAL)
        madvise(p, bytes, MADV_WILLNEED);
    w->prefetch_offset += bytes;
    if (w->prefetch_offset == m->range.bytes) {
        w->prefetch_number++;
        w->prefetch_offset = 0;
    }
    return true;
}
