/* Numbers by the keys that GGUF gives them: the architecture's name, a dot, and a name that all families
 * share.
 */
#include "proto/model/private.h"

#include <math.h>
#include <stdio.h>

#define KEY_BYTES 96u /* the longest architecture's name and the longest key */

struct keys {
    struct brig_desc *d;
    const struct brig_meta *meta;
    struct brig_fail *fail;
};

static const char *full_key(char out[KEY_BYTES], const struct brig_desc *d, const char *key)
{
    snprintf(out, KEY_BYTES, "%s.%s", d->arch, key);
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

static int get_u32(const struct keys *k, const char *key, enum brig_presence presence, uint32_t *ret)
{
    return brig_family_u32(k->d, k->meta, key, presence, ret, k->fail);
}

static int get_f32(const struct keys *k, const char *key, enum brig_presence presence, float *ret)
{
    return brig_family_f32(k->d, k->meta, key, presence, ret, k->fail);
}

static bool has(const struct keys *k, const char *key)
{
    char full[KEY_BYTES];
    return brig_meta_kind(k->meta, full_key(full, k->d, key)) != NULL;
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
    return get_f32(k, "attention.layer_norm_rms_epsilon", BRIG_REQUIRED, &d->norm_eps);
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
    if (!has(k, "attention.key_length")) {
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
    return 0;
}

static int read_rope_scaling(const struct keys *k)
{
    struct brig_desc *d = k->d;
    struct brig_str type = {"linear", 6}; /* older files state a factor alone */
    float factor = 0.0f;                  /* as the format does: 0 is no scaling */
    char key[KEY_BYTES];
    int r;
    full_key(key, d, "rope.scaling.type");
    if (brig_meta_kind(k->meta, key) != NULL && !brig_meta_str(k->meta, key, &type))
        return wrong_kind(k->meta, key, "a string", k->fail);
    if ((r = get_f32(k, "rope.scale_linear", BRIG_OPTIONAL, &factor)) < 0 ||
        (r = get_f32(k, "rope.scaling.factor", BRIG_OPTIONAL, &factor)) < 0)
        return r;
    d->rope_linear = 1.0f;
    if (brig_str_eq(type, "none"))
        return 0;
    if (!brig_str_eq(type, "linear"))
        return brig_fail_set(k->fail, BRIG_EUNSUPPORTED, "%s '%.*s' is not supported (none and linear are)",
                             key, (int)(type.len < 64 ? type.len : 64), type.ptr);
    if (factor != 0.0f)
        d->rope_linear = factor;
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
    return read_rope_scaling(k);
}

int brig_family_common(struct brig_desc *d, const struct brig_meta *meta, struct brig_fail *fail)
{
    const struct keys k = {d, meta, fail};
    int r;
    d->embed_scale = d->rope_mscale = 1.0f;
    if ((r = read_sizes(&k)) < 0 || (r = read_heads(&k)) < 0)
        return r;
    return read_rope(&k);
}
