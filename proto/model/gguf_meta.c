/* GGUF: metadata into the form that families ask. */
#include "proto/model/gguf.h"

#include <string.h>

#include "proto/base/mem.h"

static uint64_t load_unsigned(const char *p, unsigned bytes)
{
    uint64_t v = 0;
    memcpy(&v, p, bytes);
    return v;
}

static int64_t load_signed(const char *p, unsigned bytes)
{
    uint64_t v = load_unsigned(p, bytes) << (64 - 8 * bytes);
    return (int64_t)v >> (64 - 8 * bytes);
}

static int read_bool(struct brig_meta_entry *e, char byte, struct brig_fail *fail)
{
    if (byte != 0 && byte != 1)
        return brig_fail_set(fail, BRIG_EFORMAT, "the metadata key '%.*s' is a bool and holds %u",
                             (int)e->key.len, e->key.ptr, (unsigned char)byte);
    e->kind = BRIG_META_BOOL;
    e->b = byte == 1;
    return 0;
}

static int read_scalar(struct brig_meta_entry *e, uint32_t kind, const char *p, struct brig_fail *fail)
{
    unsigned bytes = brig_gguf_kind_bytes(kind);
    float f;
    switch (kind) {
    case BRIG_GGUF_I8:
    case BRIG_GGUF_I16:
    case BRIG_GGUF_I32:
    case BRIG_GGUF_I64:
        e->kind = BRIG_META_I64;
        e->i64 = load_signed(p, bytes);
        return 0;
    case BRIG_GGUF_F32:
        e->kind = BRIG_META_F32;
        memcpy(&f, p, sizeof f);
        e->f64 = (double)f;
        return 0;
    case BRIG_GGUF_F64:
        e->kind = BRIG_META_F64;
        memcpy(&e->f64, p, sizeof e->f64);
        return 0;
    case BRIG_GGUF_BOOL:
        return read_bool(e, *p, fail);
    default:
        e->kind = BRIG_META_U64;
        e->u64 = load_unsigned(p, bytes);
        return 0;
    }
}

static int read_array(struct brig_meta_entry *e, struct brig_gguf_reader *r)
{
    uint64_t start = r->pos;
    e->kind = BRIG_META_ARRAY;
    int err = brig_gguf_array(r, &e->array.elem, &e->array.n);
    if (err < 0)
        return err;
    uint64_t first = r->pos;
    r->pos = start;
    if ((err = brig_gguf_skip(r, BRIG_GGUF_ARRAY)) < 0)
        return err;
    e->array.bytes = (struct brig_str){r->head->data + first, (size_t)(r->pos - first)};
    return 0;
}

int brig_gguf_value(struct brig_meta_entry *e, uint32_t kind, struct brig_gguf_reader *r)
{
    struct brig_str bytes;
    if (kind == BRIG_GGUF_ARRAY)
        return read_array(e, r);
    if (kind == BRIG_GGUF_STRING) {
        e->kind = BRIG_META_STR;
        return brig_gguf_string(r, &e->str);
    }
    int err = brig_gguf_bytes(r, brig_gguf_kind_bytes(kind), &bytes);
    return err < 0 ? err : read_scalar(e, kind, bytes.ptr, r->fail);
}

static int read_entry(struct brig_meta_entry *e, struct brig_gguf_reader *r)
{
    uint32_t kind;
    int err = brig_gguf_string(r, &e->key);
    if (err < 0 || (err = brig_gguf_u32(r, &kind)) < 0)
        return err;
    r->what = e->key;
    return brig_gguf_value(e, kind, r);
}

int brig_gguf_read_meta(struct brig_gguf *g, struct brig_gguf_reader *r)
{
    g->meta.entries = brig_alloc(g->n_keys, sizeof *g->meta.entries);
    g->meta.by_key = brig_alloc(g->n_keys, sizeof *g->meta.by_key);
    if (g->meta.entries == NULL || g->meta.by_key == NULL)
        return brig_fail_set(r->fail, BRIG_ENOMEM, "no memory for %u metadata keys", (unsigned)g->n_keys);
    for (; g->meta.n < g->n_keys; g->meta.n++) {
        int err = read_entry(&g->meta.entries[g->meta.n], r);
        if (err < 0)
            return err;
    }
    g->table = r->pos;
    return brig_meta_index(&g->meta, r->fail);
}
