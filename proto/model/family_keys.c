/* Numbers by the keys that GGUF gives them: the architecture's name, a dot, and a name that all families
 * share. What GGUF has no key for stands under keys of ours, "brigade." and a name.
 */
#include "proto/model/private.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define KEY_BYTES 96u /* the longest architecture's name and the longest key */

struct keys {
    struct brig_desc *d;
    const struct brig_meta *meta;
    struct brig_fail *fail;
};

static const char *full_key(char out[KEY_BYTES], const struct brig_desc *d, const char *key)
{
    bool ours = strncmp(key, "brigade.", 8) == 0;
    snprintf(out, KEY_BYTES, "%s%s%s", ours ? "" : d->arch, ours ? "" : ".", key);
    return out;
}

static int wrong_kind(const struct brig_meta *meta, const char *key, const char *wanted,
                      struct brig_fail *fail)
{
    const char *kind = brig_meta_kind(meta, key);
    if (kind == NULL)
        return brig_fail_set(fail, BRIG_EFORMAT, "the metadata key %s is missing", key);
    return brig_fail_set(fail, BRIG_EUNSUPPORTED, "the metadata key %s is %s, %s is wanted", key, kind,
                         wanted);
}

int brig_family_u32(const struct brig_desc *d, const struct brig_meta *meta, const char *name,
                    enum brig_presence presence, uint32_t *ret, struct brig_fail *fail)
{
    uint64_t v;
    char key[KEY_BYTES];
    full_key(key, d, name);
    if (brig_meta_kind(meta, key) == NULL && presence == BRIG_OPTIONAL)
        return 0;
    if (!brig_meta_u64(meta, key, &v))
        return wrong_kind(meta, key, "one number from 0 for all layers", fail);
    if (v > UINT32_MAX)
        return brig_fail_set(fail, BRIG_EFORMAT, "the metadata key %s is %llu: too large", key,
                             (unsigned long long)v);
    *ret = (uint32_t)v;
    return 0;
}

int brig_family_f32(const struct brig_desc *d, const struct brig_meta *meta, const char *name,
                    enum brig_presence presence, float *ret, struct brig_fail *fail)
{
    double v;
    char key[KEY_BYTES];
    full_key(key, d, name);
    if (brig_meta_kind(meta, key) == NULL && presence == BRIG_OPTIONAL)
        return 0;
    if (!brig_meta_f64(meta, key, &v))
        return wrong_kind(meta, key, "a number", fail);
    *ret = (float)v;
    return 0;
}

int brig_family_bool(const struct brig_desc *d, const struct brig_meta *meta, const char *name,
                     enum brig_presence presence, bool *ret, struct brig_fail *fail)
{
    bool v;
    char key[KEY_BYTES];
    full_key(key, d, name);
    if (brig_meta_kind(meta, key) == NULL && presence == BRIG_OPTIONAL)
        return 0;
    if (!brig_meta_bool(meta, key, &v))
        return wrong_kind(meta, key, "true or false", fail);
    *ret = v;
    return 0;
}

int brig_family_str(const struct brig_desc *d, const struct brig_meta *meta, const char *name,
                    enum brig_presence presence, struct brig_str *ret, struct brig_fail *fail)
{
    struct brig_str v;
    char key[KEY_BYTES];
    full_key(key, d, name);
    if (brig_meta_kind(meta, key) == NULL && presence == BRIG_OPTIONAL)
        return 0;
    if (!brig_meta_str(meta, key, &v))
        return wrong_kind(meta, key, "a string", fail);
    *ret = v;
    return 0;
}

bool brig_family_stated(const struct brig_desc *d, const struct brig_meta *meta, const char *key)
{
    char full[KEY_BYTES];
    return brig_meta_kind(meta, full_key(full, d, key)) != NULL;
}

static int get_u32(const struct keys *k, const char *key, enum brig_presence presence, uint32_t *ret)
{
    return brig_family_u32(k->d, k->meta, key, presence, ret, k->fail);
}

static int get_f32(const struct keys *k, const char *key, enum brig_presence presence, float *ret)
{
    return brig_family_f32(k->d, k->meta, key, presence, ret, k->fail);
}

static int read_sizes(const struct keys *k)
{
    struct brig_desc *d = k->d;
    int r;
    if ((r = get_u32(k, "block_count", BRIG_REQUIRED, &d->n_layers)) < 0 ||
        (r = get_u32(k, "embedding_length", BRIG_REQUIRED, &d->hidden)) < 0 ||
        (r = get_u32(k, "feed_forward_length", BRIG_REQUIRED, &d->ffn)) < 0 ||
        (r = get_u32(k, "context_length", BRIG_REQUIRED, &d->ctx_trained)) < 0)
        return r;
    const char *eps =
        d->norm == BRIG_NORM_LAYER ? "attention.layer_norm_epsilon" : "attention.layer_norm_rms_epsilon";
    return get_f32(k, eps, BRIG_REQUIRED, &d->norm_eps);
}

static int read_heads(const struct keys *k)
{
    struct brig_desc *d = k->d;
    int r = get_u32(k, "attention.head_count", BRIG_REQUIRED, &d->n_heads);
    if (r < 0)
        return r;
    if (d->n_heads == 0)
        return brig_fail_set(k->fail, BRIG_EFORMAT, "%s.attention.head_count is 0", d->arch);
    d->n_kv_heads = d->n_heads;
    if ((r = get_u32(k, "attention.head_count_kv", BRIG_OPTIONAL, &d->n_kv_heads)) < 0)
        return r;
    uint32_t key_length = 0, value_length;
    if ((r = get_u32(k, "attention.key_length", BRIG_OPTIONAL, &key_length)) < 0)
        return r;
    if (!brig_family_stated(d, k->meta, "attention.key_length")) {
        if (d->hidden % d->n_heads != 0)
            return brig_fail_set(k->fail, BRIG_EFORMAT, "%u columns do not divide among %u attention heads",
                                 d->hidden, d->n_heads);
        key_length = d->hidden / d->n_heads;
    }
    d->head_dim = value_length = key_length;
    if ((r = get_u32(k, "attention.value_length", BRIG_OPTIONAL, &value_length)) < 0)
        return r;
    if (value_length != key_length)
        return brig_fail_set(k->fail, BRIG_EUNSUPPORTED,
                             "keys of %u columns and values of %u: they must be equally wide", key_length,
                             value_length);
    d->attn_scale = 1.0f / sqrtf((float)d->head_dim);
    return get_f32(k, "brigade.attn_scale", BRIG_OPTIONAL, &d->attn_scale);
}

/* Which layers are windowed: one letter a layer, or all of them. */
static int read_windows(const struct keys *k)
{
    struct brig_desc *d = k->d;
    struct brig_str kinds = {NULL, 0};
    const char *key = "brigade.layer_types";
    int r = get_u32(k, "attention.sliding_window", BRIG_OPTIONAL, &d->window);
    if (r < 0 || d->n_layers > BRIG_MAX_LAYERS) /* refused later, with its number */
        return r;
    bool stated = brig_family_stated(d, k->meta, key);
    if ((r = brig_family_str(d, k->meta, key, BRIG_OPTIONAL, &kinds, k->fail)) < 0)
        return r;
    if (stated && kinds.len != d->n_layers)
        return brig_fail_set(k->fail, BRIG_EFORMAT, "%s has %zu letters for %u layers", key, kinds.len,
                             d->n_layers);
    for (uint32_t i = 0; i < d->n_layers; i++) {
        char kind = stated ? kinds.ptr[i] : d->window > 0 ? 'w' : 'g';
        if ((kind != 'w' && kind != 'g') || (kind == 'w' && d->window == 0))
            return brig_fail_set(k->fail, BRIG_EFORMAT,
                                 "%s: layer %u is neither 'g' nor, with a sliding window, 'w'", key, i);
        if (kind == 'w')
            d->layer_flags[i] |= BRIG_LAYER_WINDOWED;
    }
    return 0;
}

static int read_rope(const struct keys *k)
{
    struct brig_desc *d = k->d;
    int r;
    d->rope = BRIG_ROPE_HALVES;
    d->rope_base = 10000.0f;
    d->rope_dims = d->head_dim;
    if ((r = get_f32(k, "rope.freq_base", BRIG_OPTIONAL, &d->rope_base)) < 0 ||
        (r = get_u32(k, "rope.dimension_count", BRIG_OPTIONAL, &d->rope_dims)) < 0)
        return r;
    if (d->rope_dims == 0)
        return brig_fail_set(k->fail, BRIG_EFORMAT, "0 rotary dimensions (%s.rope.dimension_count)", d->arch);
    return 0;
}

int brig_family_common(struct brig_model *m, const struct brig_meta *meta, struct brig_fail *fail)
{
    struct brig_desc *d = &m->desc;
    const struct keys k = {d, meta, fail};
    int r;
    d->embed_scale = 1.0f;
    if ((r = read_sizes(&k)) < 0 || (r = read_heads(&k)) < 0 || (r = read_windows(&k)) < 0 ||
        (r = read_rope(&k)) < 0)
        return r;
    return brig_family_rope_scaling(m, meta, fail);
}
