/* The header of a safetensors file. Everything that it states is checked before it is believed: types,
 * shapes, and that each tensor's bytes are its own and inside the file. */
#include "proto/model/safetensors.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base/mem.h"
#include "proto/base/size.h"
#include "proto/model/json.h"
#include "proto/model/private.h"

#define LENGTH_BYTES 8u
#define MAX_TENSORS  (1u << 20)

static const struct brig_st_dtype dtypes[] = {
    {"F32", 4},     {"F16", 2},     {"BF16", 2}, {"F64", 8}, {"I64", 8},     {"I32", 4},
    {"I16", 2},     {"I8", 1},      {"U64", 8},  {"U32", 4}, {"U16", 2},     {"U8", 1},
    {"F8_E4M3", 1}, {"F8_E5M2", 1}, {"BOOL", 1}, {"C64", 8}, {"F8_E8M0", 1},
};

struct header {
    struct brig_st *s;
    uint32_t file;
    uint64_t data_start, data_bytes;
    struct brig_fail *fail;
};

static int bad(const struct header *h, const char *name, const char *reason)
{
    return brig_fail_set(h->fail, BRIG_EFORMAT, "tensor '%.200s' %s", name, reason);
}

static int read_dtype(const struct header *h, const json_t *entry, struct brig_st_tensor *t)
{
    struct brig_str name;
    int r = brig_json_str(entry, "dtype", &name, h->fail);
    if (r == 0)
        return bad(h, t->name, "has no dtype");
    if (r < 0)
        return brig_fail_prefix(h->fail, "tensor '%.200s'", t->name);
    for (unsigned i = 0; i < sizeof dtypes / sizeof dtypes[0]; i++)
        if (brig_str_eq(name, dtypes[i].name)) {
            t->dtype = &dtypes[i];
            return 0;
        }
    return brig_fail_set(h->fail, BRIG_EFORMAT, "tensor '%.200s' has the unknown dtype '%.*s'", t->name,
                         (int)(name.len < 32 ? name.len : 32), name.ptr);
}

/* Shape, and the number of bytes that follows from it and the dtype. */
static int read_shape(const struct header *h, const json_t *entry, struct brig_st_tensor *t)
{
    const json_t *shape = NULL, *dim;
    size_t i;
    int r = brig_json_array(entry, "shape", &shape, h->fail);
    if (r == 0)
        return bad(h, t->name, "has no shape");
    if (r < 0)
        return brig_fail_prefix(h->fail, "tensor '%.200s'", t->name);
    if (json_array_size(shape) > BRIG_ST_MAX_DIMS)
        return bad(h, t->name, "has more than 8 dimensions");
    t->n_dims = (uint32_t)json_array_size(shape);
    t->bytes = t->dtype->bytes;
    json_array_foreach(shape, i, dim)
    {
        if (brig_json_as_u64(dim, "a dimension", &t->dims[i], h->fail) < 0)
            return brig_fail_prefix(h->fail, "tensor '%.200s'", t->name);
        if (!brig_mul_u64(t->bytes, t->dims[i], &t->bytes))
            return bad(h, t->name, "has a shape that is larger than any file can be");
    }
    return 0;
}

static int read_range(const struct header *h, const json_t *entry, struct brig_st_tensor *t)
{
    const json_t *range = NULL;
    uint64_t from, to;
    int r = brig_json_array(entry, "data_offsets", &range, h->fail);
    if (r == 0 || (r > 0 && json_array_size(range) != 2))
        return bad(h, t->name, "has no data_offsets of two numbers");
    if (r < 0 || brig_json_as_u64(json_array_get(range, 0), "data_offsets", &from, h->fail) < 0 ||
        brig_json_as_u64(json_array_get(range, 1), "data_offsets", &to, h->fail) < 0)
        return brig_fail_prefix(h->fail, "tensor '%.200s'", t->name);
    if (to < from || to > h->data_bytes)
        return brig_fail_set(h->fail, BRIG_EFORMAT,
                             "truncated or malformed: tensor '%.200s' lies at bytes %" PRIu64 " to %" PRIu64
                             " of the data, the file has %" PRIu64,
                             t->name, from, to, h->data_bytes);
    if (to - from != t->bytes)
        return brig_fail_set(h->fail, BRIG_EFORMAT,
                             "tensor '%.200s' has %" PRIu64 " bytes, its shape and %s need %" PRIu64, t->name,
                             to - from, t->dtype->name, t->bytes);
    t->offset = h->data_start + from;
    t->file = h->file;
    return 0;
}

/* Names go into messages and into other formats: printable ASCII, as everywhere. */
static int check_name(const struct header *h, const char *name)
{
    size_t n = strlen(name);
    bool plain = n >= 1 && n <= 512;
    for (size_t i = 0; plain && i < n; i++)
        plain = name[i] >= 0x20 && name[i] <= 0x7e;
    if (plain)
        return 0;
    return brig_fail_set(h->fail, BRIG_EFORMAT,
                         "a tensor's name of %zu bytes is not printable ASCII of 1 to 512 bytes", n);
}

static int make_room(const struct header *h)
{
    struct brig_st *s = h->s;
    if (s->n < s->room)
        return 0;
    if (s->n >= MAX_TENSORS)
        return brig_fail_set(h->fail, BRIG_EFORMAT, "there are more than %u tensors", MAX_TENSORS);
    unsigned room = s->room == 0 ? 256 : 2 * s->room;
    struct brig_st_tensor *more = brig_alloc(room, sizeof *more);
    if (more == NULL)
        return brig_fail_set(h->fail, BRIG_ENOMEM, "no memory for %u tensors", room);
    if (s->n > 0)
        memcpy(more, s->tensors, s->n * sizeof *more);
    brig_free(s->tensors);
    s->tensors = more;
    s->room = room;
    return 0;
}

static int read_tensor(const struct header *h, const char *name, const json_t *entry)
{
    int r = check_name(h, name);
    if (r < 0 || (r = make_room(h)) < 0)
        return r;
    if (!json_is_object(entry))
        return brig_fail_set(h->fail, BRIG_EFORMAT, "tensor '%.200s' is %s, an object is wanted", name,
                             brig_json_kind(entry));
    struct brig_st_tensor *t = &h->s->tensors[h->s->n];
    *t = (struct brig_st_tensor){.name = brig_strndup(name, strlen(name))};
    if (t->name == NULL)
        return brig_fail_set(h->fail, BRIG_ENOMEM, "no memory");
    h->s->n++;
    if ((r = read_dtype(h, entry, t)) < 0 || (r = read_shape(h, entry, t)) < 0)
        return r;
    return read_range(h, entry, t);
}

static int by_offset(const void *a, const void *b)
{
    const struct brig_st_tensor *x = a, *y = b;
    if (x->offset != y->offset)
        return x->offset < y->offset ? -1 : 1;
    return (x->bytes > y->bytes) - (x->bytes < y->bytes);
}

/* Tensors without bytes share nothing. Bytes that belong to no tensor do no harm. */
static int check_overlaps(const struct header *h, struct brig_st_tensor *t, unsigned n)
{
    const struct brig_st_tensor *last = NULL;
    qsort(t, n, sizeof *t, by_offset);
    for (unsigned i = 0; i < n; i++) {
        if (t[i].bytes == 0)
            continue;
        if (last != NULL && t[i].offset < last->offset + last->bytes)
            return brig_fail_set(h->fail, BRIG_EFORMAT, "tensors '%.150s' and '%.150s' overlap", last->name,
                                 t[i].name);
        last = &t[i];
    }
    return 0;
}

static int read_entries(const struct header *h, json_t *root)
{
    unsigned first = h->s->n;
    const char *name;
    json_t *entry;
    int r = 0;
    json_object_foreach(root, name, entry)
    {
        if (strcmp(name, "__metadata__") == 0)
            r = json_is_object(entry) ? 0 : bad(h, name, "is no object");
        else
            r = read_tensor(h, name, entry);
        if (r < 0)
            return r;
    }
    return h->s->n == first ? 0 : check_overlaps(h, h->s->tensors + first, h->s->n - first);
}

bool brig_st_probe(const uint8_t *head, size_t n)
{
    return n > LENGTH_BYTES && head[LENGTH_BYTES] == '{';
}

int brig_st_read_header(struct brig_st *s, const struct brig_model *m, uint32_t file, struct brig_fail *fail)
{
    const struct brig_model_file *f = &m->files[file];
    uint8_t length[LENGTH_BYTES];
    uint64_t n = 0;
    int r;
    if (f->bytes < sizeof length)
        return brig_fail_set(fail, BRIG_EFORMAT, "truncated: it has %" PRIu64 " bytes", f->bytes);
    if ((r = brig_model_file_read(f->fd, length, sizeof length, 0, fail)) < 0)
        return r;
    for (unsigned i = 0; i < sizeof length; i++)
        n |= (uint64_t)length[i] << (8 * i);
    if (n > f->bytes - sizeof length || n > BRIG_ST_MAX_HEADER)
        return brig_fail_set(fail, BRIG_EFORMAT,
                             "truncated or malformed: its header has %" PRIu64 " bytes, the file %" PRIu64
                             " (and a header at most %u)",
                             n, f->bytes, BRIG_ST_MAX_HEADER);
    if (brig_buf_reserve(&s->head, n) < 0)
        return brig_fail_set(fail, BRIG_ENOMEM, "no memory for a header of %" PRIu64 " bytes", n);
    char *text = s->head.data + s->head.len;
    if ((r = brig_model_file_read(f->fd, text, (size_t)n, sizeof length, fail)) < 0)
        return r;
    s->head.len += (size_t)n;
    json_t *root;
    if (n == 0 || text[0] != '{')
        return brig_fail_set(fail, BRIG_EFORMAT, "its header does not begin with '{'");
    if ((r = brig_json_parse(&root, text, (size_t)n, fail)) < 0)
        return brig_fail_prefix(fail, "its header");
    struct header h = {s, file, sizeof length + n, f->bytes - sizeof length - n, fail};
    r = read_entries(&h, root);
    json_decref(root);
    return r;
}

static int by_name(const void *a, const void *b)
{
    const struct brig_st_tensor *x = a, *y = b;
    return strcmp(x->name, y->name);
}

int brig_st_sort(struct brig_st *s, const struct brig_model *m, struct brig_fail *fail)
{
    if (s->n > 0)
        qsort(s->tensors, s->n, sizeof *s->tensors, by_name);
    for (unsigned i = 1; i < s->n; i++)
        if (by_name(&s->tensors[i - 1], &s->tensors[i]) == 0)
            return brig_fail_set(fail, BRIG_EFORMAT, "tensor '%.200s' is both in %s and in %s",
                                 s->tensors[i].name, brig_st_base_name(m->files[s->tensors[i - 1].file].path),
                                 brig_st_base_name(m->files[s->tensors[i].file].path));
    return 0;
}

const struct brig_st_tensor *brig_st_find(const struct brig_st *s, const char *name)
{
    const struct brig_st_tensor wanted = {.name = (char *)(uintptr_t)name};
    return s->n > 0 ? bsearch(&wanted, s->tensors, s->n, sizeof *s->tensors, by_name) : NULL;
}
