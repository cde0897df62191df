/* Metadata by key, with conversions that lose nothing. */
#include "proto/model/gguf.h"

#include <stdlib.h>
#include <string.h>

static const char *const kind_names[BRIG_META_KIND_COUNT] = {
    [BRIG_META_U64] = "an integer", [BRIG_META_I64] = "an integer", [BRIG_META_F32] = "a float",
    [BRIG_META_F64] = "a float",    [BRIG_META_BOOL] = "a bool",    [BRIG_META_STR] = "a string",
    [BRIG_META_ARRAY] = "an array",
};

int brig_str_order(struct brig_str a, struct brig_str b)
{
    int r = memcmp(a.ptr, b.ptr, a.len < b.len ? a.len : b.len);
    if (r != 0)
        return r;
    return (a.len > b.len) - (a.len < b.len);
}

static int order(const void *a, const void *b)
{
    const struct brig_meta_entry *const *x = a, *const *y = b;
    return brig_str_order((*x)->key, (*y)->key);
}

int brig_meta_index(struct brig_meta *meta, struct brig_fail *fail)
{
    for (unsigned i = 0; i < meta->n; i++)
        meta->by_key[i] = &meta->entries[i];
    qsort(meta->by_key, meta->n, sizeof *meta->by_key, order);
    for (unsigned i = 1; i < meta->n; i++)
        if (order(&meta->by_key[i - 1], &meta->by_key[i]) == 0)
            return brig_fail_set(fail, BRIG_EFORMAT, "the metadata key '%.*s' comes twice",
                                 (int)meta->by_key[i]->key.len, meta->by_key[i]->key.ptr);
    return 0;
}

const struct brig_meta_entry *brig_meta_find(const struct brig_meta *meta, const char *key)
{
    struct brig_meta_entry wanted = {.key = {key, strlen(key)}};
    const struct brig_meta_entry *p = &wanted;
    const struct brig_meta_entry **hit = bsearch(&p, meta->by_key, meta->n, sizeof *meta->by_key, order);
    return hit != NULL ? *hit : NULL;
}

const char *brig_meta_kind(const struct brig_meta *meta, const char *key)
{
    const struct brig_meta_entry *e = brig_meta_find(meta, key);
    return e != NULL ? kind_names[e->kind] : NULL;
}

bool brig_meta_u64(const struct brig_meta *meta, const char *key, uint64_t *ret)
{
    const struct brig_meta_entry *e = brig_meta_find(meta, key);
    if (e == NULL)
        return false;
    if (e->kind == BRIG_META_U64)
        *ret = e->u64;
    else if (e->kind == BRIG_META_I64 && e->i64 >= 0)
        *ret = (uint64_t)e->i64;
    else
        return false;
    return true;
}

bool brig_meta_f64(const struct brig_meta *meta, const char *key, double *ret)
{
    const uint64_t exact = (uint64_t)1 << 53;
    const struct brig_meta_entry *e = brig_meta_find(meta, key);
    if (e == NULL)
        return false;
    if (e->kind == BRIG_META_F32 || e->kind == BRIG_META_F64)
        *ret = e->f64;
    else if (e->kind == BRIG_META_U64 && e->u64 <= exact)
        *ret = (double)e->u64;
    else if (e->kind == BRIG_META_I64 && e->i64 <= (int64_t)exact && e->i64 >= -(int64_t)exact)
        *ret = (double)e->i64;
    else
        return false;
    return true;
}

bool brig_meta_bool(const struct brig_meta *meta, const char *key, bool *ret)
{
    const struct brig_meta_entry *e = brig_meta_find(meta, key);
    if (e == NULL || e->kind != BRIG_META_BOOL)
        return false;
    *ret = e->b;
    return true;
}

bool brig_meta_f32s(const struct brig_meta *meta, const char *key, float *ret, uint32_t n)
{
    const struct brig_meta_entry *e = brig_meta_find(meta, key);
    if (e == NULL || e->kind != BRIG_META_ARRAY || e->array.elem != BRIG_GGUF_F32 || e->array.n != n ||
        e->array.bytes.len != (uint64_t)n * sizeof *ret)
        return false;
    memcpy(ret, e->array.bytes.ptr, e->array.bytes.len);
    return true;
}

bool brig_meta_str(const struct brig_meta *meta, const char *key, struct brig_str *ret)
{
    const struct brig_meta_entry *e = brig_meta_find(meta, key);
    if (e == NULL || e->kind != BRIG_META_STR)
        return false;
    *ret = e->str;
    return true;
}
