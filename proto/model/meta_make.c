/* Metadata that a format makes. */
#include "proto/model/meta_make.h"

#include <stdio.h>
#include <string.h>

#include "proto/base/mem.h"
#include "proto/model/gguf.h"

/* The next entry with its key set; NULL, and failed set, when there is no memory or no place for it. */
static struct brig_meta_entry *add(struct brig_meta_make *k, const char *key)
{
    char full[96];
    int n = snprintf(full, sizeof full, "%s%s", key[0] == '.' ? k->arch : "", key);
    if (k->meta.entries == NULL) {
        k->meta.entries = brig_alloc(BRIG_META_MAKE_MAX, sizeof *k->meta.entries);
        k->meta.by_key = brig_alloc(BRIG_META_MAKE_MAX, sizeof *k->meta.by_key);
    }
    char *copy = n > 0 && (size_t)n < sizeof full ? brig_strndup(full, (size_t)n) : NULL;
    if (k->meta.entries == NULL || k->meta.by_key == NULL || copy == NULL ||
        k->meta.n == BRIG_META_MAKE_MAX) {
        brig_free(copy);
        k->failed = true;
        return NULL;
    }
    struct brig_meta_entry *e = &k->meta.entries[k->meta.n++];
    e->key = (struct brig_str){copy, (size_t)n};
    return e;
}

void brig_meta_put_u64(struct brig_meta_make *k, const char *key, uint64_t value)
{
    struct brig_meta_entry *e = add(k, key);
    if (e == NULL)
        return;
    e->kind = BRIG_META_U64;
    e->u64 = value;
}

void brig_meta_put_f32(struct brig_meta_make *k, const char *key, double value)
{
    struct brig_meta_entry *e = add(k, key);
    if (e == NULL)
        return;
    e->kind = BRIG_META_F32;
    e->f64 = (double)(float)value;
}

void brig_meta_put_bool(struct brig_meta_make *k, const char *key, bool value)
{
    struct brig_meta_entry *e = add(k, key);
    if (e == NULL)
        return;
    e->kind = BRIG_META_BOOL;
    e->b = value;
}

void brig_meta_put_str(struct brig_meta_make *k, const char *key, struct brig_str value)
{
    struct brig_meta_entry *e = add(k, key);
    char *copy = e != NULL ? brig_strndup(value.ptr, value.len) : NULL;
    if (copy == NULL) {
        k->failed = true;
        return;
    }
    e->kind = BRIG_META_STR;
    e->str = (struct brig_str){copy, value.len};
}

void brig_meta_put_f32s(struct brig_meta_make *k, const char *key, const float *values, size_t n)
{
    struct brig_meta_entry *e = add(k, key);
    char *copy = e != NULL ? brig_strndup((const char *)values, n * sizeof *values) : NULL;
    if (copy == NULL) {
        k->failed = true;
        return;
    }
    e->kind = BRIG_META_ARRAY;
    e->array.elem = BRIG_GGUF_F32;
    e->array.n = n;
    e->array.bytes = (struct brig_str){copy, n * sizeof *values};
}

int brig_meta_make_done(struct brig_meta_make *k, struct brig_fail *fail)
{
    if (k->failed)
        return brig_fail_set(fail, BRIG_ENOMEM, "no memory for the metadata");
    return brig_meta_index(&k->meta, fail);
}

static void free_text(struct brig_str s)
{
    brig_free((void *)(uintptr_t)s.ptr);
}

void brig_meta_make_release(struct brig_meta_make *k)
{
    for (unsigned i = 0; i < k->meta.n; i++) {
        struct brig_meta_entry *e = &k->meta.entries[i];
        free_text(e->key);
        if (e->kind == BRIG_META_STR)
            free_text(e->str);
        else if (e->kind == BRIG_META_ARRAY)
            free_text(e->array.bytes);
    }
    brig_free(k->meta.entries);
    brig_free(k->meta.by_key);
    *k = (struct brig_meta_make){0};
}
