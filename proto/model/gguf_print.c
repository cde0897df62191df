/* Metadata as text for people: always valid UTF-8 without control characters, long values shortened. */
#include "proto/model/gguf.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define MAX_SHOWN_BYTES 240u
#define MAX_SHOWN_ELEMS 8u

/* Bytes of the UTF-8 character at p, 0 when there is no valid one. */
static unsigned utf8_bytes(const unsigned char *p, size_t left)
{
    uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    unsigned n = p[0] < 0x80                   ? 1
                 : p[0] >= 0xf0 && p[0] < 0xf8 ? 4
                 : p[0] >= 0xe0 && p[0] < 0xf0 ? 3
                 : p[0] >= 0xc0 && p[0] < 0xe0 ? 2
                                               : 0;
    if (n <= 1 || n > left)
        return n == 1;
    uint32_t c = p[0] & (0x7fu >> n);
    for (unsigned i = 1; i < n; i++) {
        if ((p[i] & 0xc0) != 0x80)
            return 0;
        c = c << 6 | (p[i] & 0x3fu);
    }
    return c < least[n] || c > 0x10ffff || (c >= 0xd800 && c < 0xe000) ? 0 : n;
}

static int add_string(struct brig_buf *out, struct brig_str s)
{
    int r = 0;
    size_t i = 0;
    while (i < s.len && i < MAX_SHOWN_BYTES && r == 0) {
        const unsigned char *p = (const unsigned char *)s.ptr + i;
        unsigned n = utf8_bytes(p, s.len - i);
        if (*p == '\n')
            r = brig_buf_add(out, "\\n", 2);
        else if (*p < 0x20 || *p == 0x7f || n == 0)
            r = brig_buf_printf(out, "\\x%02x", *p);
        else
            r = brig_buf_add(out, p, n);
        i += n == 0 ? 1 : n;
    }
    if (r == 0 && i < s.len)
        r = brig_buf_printf(out, "... (%zu bytes)", s.len);
    return r;
}

/* The fewest digits that give the same float back. */
static int add_float(struct brig_buf *out, double v, bool is_f32)
{
    char text[40];
    for (int digits = 6; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, v);
        double back = strtod(text, NULL);
        if (is_f32 ? (float)back == (float)v : back == v)
            break;
    }
    return brig_buf_printf(out, "%s", text);
}

static int add_array(struct brig_buf *out, const struct brig_meta_entry *e);

static int add_scalar(struct brig_buf *out, const struct brig_meta_entry *e)
{
    switch (e->kind) {
    case BRIG_META_U64:
        return brig_buf_printf(out, "%" PRIu64, e->u64);
    case BRIG_META_I64:
        return brig_buf_printf(out, "%" PRId64, e->i64);
    case BRIG_META_F32:
    case BRIG_META_F64:
        return add_float(out, e->f64, e->kind == BRIG_META_F32);
    case BRIG_META_BOOL:
        return brig_buf_printf(out, "%s", e->b ? "true" : "false");
    case BRIG_META_STR:
        return add_string(out, e->str);
    default:
        return add_array(out, e);
    }
}

static int add_array(struct brig_buf *out, const struct brig_meta_entry *e)
{
    struct brig_buf bytes = {.data = (char *)(uintptr_t)e->array.bytes.ptr, .len = e->array.bytes.len};
    struct brig_gguf_reader r = {-1, bytes.len, &bytes, 0, {"an array", 8}, NULL};
    int err = brig_buf_add(out, "[", 1);
    for (uint64_t i = 0; i < e->array.n && i < MAX_SHOWN_ELEMS && err == 0; i++) {
        struct brig_meta_entry elem = {.key = {"element", 7}};
        if (i > 0 && (err = brig_buf_add(out, ", ", 2)) < 0)
            return err;
        if (e->array.elem == BRIG_GGUF_ARRAY) /* arrays inside arrays: their place is shown, not their text */
            err = brig_buf_printf(out, "[...]");
        else if (brig_gguf_value(&elem, e->array.elem, &r) < 0)
            err = brig_buf_printf(out, "?"); /* a bool that is neither 0 nor 1 */
        else
            err = add_scalar(out, &elem);
    }
    if (err == 0 && e->array.n > MAX_SHOWN_ELEMS)
        err = brig_buf_printf(out, ", ... (%" PRIu64 ")", e->array.n);
    return err == 0 ? brig_buf_add(out, "]", 1) : err;
}

bool brig_meta_text(const struct brig_meta *meta, unsigned index, struct brig_buf *key,
                    struct brig_buf *value)
{
    if (index >= meta->n)
        return false;
    brig_buf_clear(key);
    brig_buf_clear(value);
    return add_string(key, meta->entries[index].key) == 0 && brig_buf_add(value, "", 0) == 0 &&
           add_scalar(value, &meta->entries[index]) == 0;
}

bool brig_gguf_meta_at(const struct brig_model *m, unsigned index, const char **key, const char **value)
{
    struct brig_gguf *g = m->priv;
    if (g == NULL || !brig_meta_text(&g->meta, index, &g->key_text, &g->value_text))
        return false;
    *key = g->key_text.data;
    *value = g->value_text.data;
    return true;
}
