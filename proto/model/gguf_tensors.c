/* GGUF: the tensor table. Each tensor's size follows from its type and shape, and lies inside the file. */
#include "proto/model/gguf.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base/mem.h"
#include "proto/base/size.h"

#define DEFAULT_ALIGNMENT 32u
#define MAX_ALIGNMENT     (1u << 20)

static int bad(const struct brig_tensor *t, struct brig_fail *fail, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

static int bad(const struct brig_tensor *t, struct brig_fail *fail, const char *fmt, ...)
{
    char text[256];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    return brig_fail_set(fail, BRIG_EFORMAT, "tensor '%.*s' %s", (int)t->name.len, t->name.ptr, text);
}

static int read_dims(struct brig_tensor *t, struct brig_gguf_reader *r)
{
    int e = brig_gguf_u32(r, &t->n_dims);
    if (e < 0)
        return e;
    if (t->n_dims < 1 || t->n_dims > 4)
        return bad(t, r->fail, "has %u dimensions (1 to 4)", t->n_dims);
    for (unsigned i = 0; i < 4; i++) {
        t->dims[i] = 1;
        if (i < t->n_dims && (e = brig_gguf_u64(r, &t->dims[i])) < 0)
            return e;
        if (t->dims[i] == 0)
            return bad(t, r->fail, "has a dimension of zero");
    }
    return 0;
}

static int read_type(struct brig_tensor *t, struct brig_gguf_reader *r)
{
    uint32_t id;
    int e = brig_gguf_u32(r, &id);
    if (e < 0)
        return e;
    t->type = brig_type_by_gguf(id);
    if (t->type != NULL && t->type->packing == NULL) /* GGUF has no scales beside a tensor */
        return 0;
    const char *name = brig_type_gguf_name(id);
    return brig_fail_set(
        r->fail, BRIG_EUNSUPPORTED,
        "tensor '%.*s' has type %s (number %u), which is not supported ('brigade list types' "
        "shows those that are)",
        (int)t->name.len, t->name.ptr, name != NULL ? name : "unknown", id);
}

static int set_bytes(struct brig_tensor *t, struct brig_fail *fail)
{
    uint64_t bytes = brig_type_row_bytes(t->type, t->dims[0]);
    if (t->dims[0] % t->type->block_elems != 0)
        return bad(t, fail, "has rows of %" PRIu64 " columns, %s needs a multiple of %u", t->dims[0],
                   t->type->name, t->type->block_elems);
    if (t->dims[1] % brig_type_panel_rows(t->type) != 0)
        return bad(t, fail, "has %" PRIu64 " rows, %s needs a multiple of %u", t->dims[1], t->type->name,
                   brig_type_panel_rows(t->type));
    for (unsigned i = 1; i < 4 && bytes != 0; i++)
        if (!brig_mul_u64(bytes, t->dims[i], &bytes))
            bytes = 0;
    if (bytes == 0)
        return bad(t, fail, "is larger than any file can be");
    t->bytes = bytes;
    return 0;
}

static int read_tensor(struct brig_tensor *t, struct brig_gguf_reader *r)
{
    int e = brig_gguf_string(r, &t->name);
    if (e < 0)
        return e;
    r->what = t->own_name = t->name;
    t->role = BRIG_ROLE_COUNT;
    if ((e = read_dims(t, r)) < 0 || (e = read_type(t, r)) < 0 || (e = set_bytes(t, r->fail)) < 0)
        return e;
    return brig_gguf_u64(r, &t->offset); /* from the start of the data; made absolute once that is known */
}

static int read_alignment(struct brig_gguf *g, struct brig_fail *fail)
{
    uint64_t a = DEFAULT_ALIGNMENT;
    const char *kind = brig_meta_kind(&g->meta, "general.alignment");
    if (kind != NULL && !brig_meta_u64(&g->meta, "general.alignment", &a))
        return brig_fail_set(fail, BRIG_EFORMAT, "general.alignment is %s, a positive integer is wanted",
                             kind);
    if (a == 0 || (a & (a - 1)) != 0 || a > MAX_ALIGNMENT)
        return brig_fail_set(fail, BRIG_EFORMAT,
                             "general.alignment is %" PRIu64 ", a power of two up to %u is wanted", a,
                             MAX_ALIGNMENT);
    g->alignment = a;
    return 0;
}

static int place(const struct brig_gguf *g, struct brig_tensor *t, uint64_t file_bytes,
                 struct brig_fail *fail)
{
    uint64_t data = brig_align_up(g->head.len, g->alignment), start;
    if (t->offset % g->alignment != 0)
        return bad(t, fail, "has an offset of %" PRIu64 ", no multiple of the alignment %" PRIu64, t->offset,
                   g->alignment);
    if (!brig_add_u64(data, t->offset, &start) || !brig_range_ok(start, t->bytes, file_bytes))
        return bad(t, fail,
                   "goes past the end of the file: %" PRIu64 " bytes at %" PRIu64 " + %" PRIu64
                   " of a file of %" PRIu64 " bytes (truncated?)",
                   t->bytes, data, t->offset, file_bytes);
    t->offset = start;
    return 0;
}

static int by_name(const void *a, const void *b)
{
    const struct brig_tensor *const *x = a, *const *y = b;
    return brig_str_order((*x)->name, (*y)->name);
}

static int by_offset(const void *a, const void *b)
{
    const struct brig_tensor *const *x = a, *const *y = b;
    if ((*x)->file != (*y)->file)
        return (*x)->file < (*y)->file ? -1 : 1;
    return ((*x)->offset > (*y)->offset) - ((*x)->offset < (*y)->offset);
}

static int twice(const struct brig_model *m, const struct brig_tensor *a, const struct brig_tensor *b,
                 struct brig_fail *fail)
{
    if (a->file == b->file)
        return bad(b, fail, "comes twice");
    return bad(b, fail, "comes twice, in %s and in %s", brig_gguf_file_name(m->files[a->file].path),
               brig_gguf_file_name(m->files[b->file].path));
}

/* No name twice, and no byte in two tensors. */
static int check_pairs(const struct brig_model *m, struct brig_fail *fail)
{
    const struct brig_tensor **sorted = brig_alloc(m->n_tensors, sizeof *sorted);
    if (sorted == NULL)
        return brig_fail_set(fail, BRIG_ENOMEM, "no memory for %u tensors", m->n_tensors);
    int e = 0;
    for (unsigned i = 0; i < m->n_tensors; i++)
        sorted[i] = &m->tensors[i];
    qsort(sorted, m->n_tensors, sizeof *sorted, by_name);
    for (unsigned i = 1; i < m->n_tensors && e == 0; i++)
        if (by_name(&sorted[i - 1], &sorted[i]) == 0)
            e = twice(m, sorted[i - 1], sorted[i], fail);
    qsort(sorted, m->n_tensors, sizeof *sorted, by_offset);
    for (unsigned i = 1; i < m->n_tensors && e == 0; i++)
        if (sorted[i]->file == sorted[i - 1]->file &&
            sorted[i]->offset - sorted[i - 1]->offset < sorted[i - 1]->bytes)
            e = bad(sorted[i], fail, "overlaps tensor '%.*s'", (int)sorted[i - 1]->name.len,
                    sorted[i - 1]->name.ptr);
    brig_free(sorted);
    return e;
}

static int read_table(struct brig_gguf *g, struct brig_model *m, unsigned file, struct brig_fail *fail)
{
    struct brig_gguf_reader r = {m->files[file].fd, m->files[file].bytes,     &g->head,
                                 g->table,          {"the tensor table", 16}, fail};
    int e = read_alignment(g, fail);
    for (uint64_t i = 0; i < g->n_tensors && e == 0; i++) {
        struct brig_tensor *t = &m->tensors[m->n_tensors];
        if ((e = read_tensor(t, &r)) < 0 || (e = place(g, t, r.file_bytes, fail)) < 0)
            break;
        t->file = file;
        m->n_tensors++;
    }
    if (e < 0 && m->n_files > 1)
        brig_fail_prefix(fail, "%s", brig_gguf_file_name(m->files[file].path));
    return e;
}

int brig_gguf_read_tensors(struct brig_gguf *parts, struct brig_model *m, struct brig_fail *fail)
{
    uint64_t n = 0;
    int e = 0;
    for (unsigned i = 0; i < m->n_files; i++)
        n += parts[i].n_tensors; /* each is at most MAX_TENSORS of gguf_read.c */
    if (n > UINT32_MAX)
        return brig_fail_set(fail, BRIG_ELIMIT, "it has more tensors than can be");
    m->tensors = brig_alloc(n, sizeof *m->tensors);
    if (m->tensors == NULL)
        return brig_fail_set(fail, BRIG_ENOMEM, "no memory for %u tensors", (unsigned)n);
    for (unsigned i = 0; i < m->n_files && e == 0; i++)
        e = read_table(&parts[i], m, i, fail);
    return e < 0 ? e : check_pairs(m, fail);
}
