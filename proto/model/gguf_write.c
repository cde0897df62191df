/* Writing the head of a GGUF file. */
#include "proto/model/gguf_write.h"

#include <string.h>

#include "proto/base/size.h"
#include "proto/model/gguf.h"
#include "proto/model/private.h"

void brig_gguf_writer_release(struct brig_gguf_writer *w)
{
    brig_buf_release(&w->keys);
    brig_buf_release(&w->table);
    *w = (struct brig_gguf_writer){0};
}

static void add(struct brig_gguf_writer *w, struct brig_buf *b, const void *bytes, size_t n)
{
    if (w->err == 0)
        w->err = brig_buf_add(b, bytes, n);
}

static void add_u32(struct brig_gguf_writer *w, struct brig_buf *b, uint32_t v)
{
    add(w, b, &v, sizeof v);
}

static void add_u64(struct brig_gguf_writer *w, struct brig_buf *b, uint64_t v)
{
    add(w, b, &v, sizeof v);
}

static void add_str(struct brig_gguf_writer *w, struct brig_buf *b, struct brig_str s)
{
    add_u64(w, b, s.len);
    add(w, b, s.ptr, s.len);
}

static void add_key(struct brig_gguf_writer *w, struct brig_str key, enum brig_gguf_kind kind)
{
    add_str(w, &w->keys, key);
    add_u32(w, &w->keys, (uint32_t)kind);
    w->n_keys++;
}

/* A key and a value of n bytes. */
static void put(struct brig_gguf_writer *w, struct brig_str key, enum brig_gguf_kind kind, const void *v,
                size_t n)
{
    add_key(w, key, kind);
    add(w, &w->keys, v, n);
}

static struct brig_str str(const char *s)
{
    return (struct brig_str){s, strlen(s)};
}

void brig_gguf_put_u16(struct brig_gguf_writer *w, const char *key, uint16_t v)
{
    put(w, str(key), BRIG_GGUF_U16, &v, sizeof v);
}

void brig_gguf_put_i32(struct brig_gguf_writer *w, const char *key, int32_t v)
{
    put(w, str(key), BRIG_GGUF_I32, &v, sizeof v);
}

void brig_gguf_put_u32(struct brig_gguf_writer *w, const char *key, uint32_t v)
{
    put(w, str(key), BRIG_GGUF_U32, &v, sizeof v);
}

uint64_t brig_gguf_put_str(struct brig_gguf_writer *w, const char *key, struct brig_str v)
{
    add_key(w, str(key), BRIG_GGUF_STRING);
    add_str(w, &w->keys, v);
    return BRIG_GGUF_HEAD_START + w->keys.len - v.len;
}

static void put_whole(struct brig_gguf_writer *w, const struct brig_meta_entry *e)
{
    uint32_t u32 = (uint32_t)e->u64; /* both members have 64 bits: either may be read */
    int32_t i32 = (int32_t)e->i64;
    if (e->kind == BRIG_META_U64 && e->u64 == u32)
        put(w, e->key, BRIG_GGUF_U32, &u32, sizeof u32);
    else if (e->kind == BRIG_META_U64)
        put(w, e->key, BRIG_GGUF_U64, &e->u64, sizeof e->u64);
    else if (e->i64 == i32)
        put(w, e->key, BRIG_GGUF_I32, &i32, sizeof i32);
    else
        put(w, e->key, BRIG_GGUF_I64, &e->i64, sizeof e->i64);
}

static void put_entry(struct brig_gguf_writer *w, const struct brig_meta_entry *e)
{
    float f32;
    uint8_t b;
    switch (e->kind) {
    case BRIG_META_F32:
        f32 = (float)e->f64;
        put(w, e->key, BRIG_GGUF_F32, &f32, sizeof f32);
        break;
    case BRIG_META_F64:
        put(w, e->key, BRIG_GGUF_F64, &e->f64, sizeof e->f64);
        break;
    case BRIG_META_BOOL:
        b = e->b;
        put(w, e->key, BRIG_GGUF_BOOL, &b, sizeof b);
        break;
    case BRIG_META_STR:
        add_key(w, e->key, BRIG_GGUF_STRING);
        add_str(w, &w->keys, e->str);
        break;
    case BRIG_META_ARRAY:
        add_key(w, e->key, BRIG_GGUF_ARRAY);
        add_u32(w, &w->keys, e->array.elem);
        add_u64(w, &w->keys, e->array.n);
        add(w, &w->keys, e->array.bytes.ptr, e->array.bytes.len);
        break;
    default:
        put_whole(w, e);
        break;
    }
}

void brig_gguf_put_meta(struct brig_gguf_writer *w, const struct brig_model *m,
                        bool (*skip)(struct brig_str key, const void *arg), const void *arg)
{
    const struct brig_meta *meta = brig_model_metadata(m);
    for (unsigned i = 0; i < meta->n; i++)
        if (!skip(meta->entries[i].key, arg))
            put_entry(w, &meta->entries[i]);
}

uint64_t brig_gguf_put_tensor(struct brig_gguf_writer *w, struct brig_str name, const struct brig_type *type,
                              unsigned n_dims, const uint64_t *dims, uint64_t bytes)
{
    uint64_t at = w->data_bytes;
    add_str(w, &w->table, name);
    add_u32(w, &w->table, n_dims);
    for (unsigned i = 0; i < n_dims; i++)
        add_u64(w, &w->table, dims[i]);
    add_u32(w, &w->table, type->gguf_id);
    add_u64(w, &w->table, at);
    w->n_tensors++;
    w->data_bytes += brig_align_up(bytes, BRIG_GGUF_ALIGNMENT); /* tensors lie in files: far from the top */
    return at;
}

int brig_gguf_head(const struct brig_gguf_writer *w, struct brig_buf *out, struct brig_fail *fail)
{
    static const char zeros[BRIG_GGUF_ALIGNMENT];
    const uint32_t version = 3;
    int r = w->err;
    r = r < 0 ? r : brig_buf_add(out, "GGUF", 4);
    r = r < 0 ? r : brig_buf_add(out, &version, sizeof version);
    r = r < 0 ? r : brig_buf_add(out, &w->n_tensors, sizeof w->n_tensors);
    r = r < 0 ? r : brig_buf_add(out, &w->n_keys, sizeof w->n_keys);
    r = r < 0 ? r : brig_buf_add(out, w->keys.data, w->keys.len);
    if (r == 0 && w->table.len > 0)
        r = brig_buf_add(out, w->table.data, w->table.len);
    if (r == 0)
        r = brig_buf_add(out, zeros, (size_t)(brig_align_up(out->len, BRIG_GGUF_ALIGNMENT) - out->len));
    if (r == -BRIG_ELIMIT)
        return brig_fail_set(fail, BRIG_ELIMIT, "its metadata are larger than %zu bytes", BRIG_BUF_MAX);
    return r < 0 ? brig_fail_set(fail, BRIG_ENOMEM, "no memory for the head of a file") : 0;
}
