/* The llama family: Llama, Mistral, SmolLM and others that GGUF files call "llama": RMSNorm, grouped-query
 * attention, rotary pairs, SwiGLU, no biases, no experts. */
#include "proto/model/family.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "proto/model/private.h"

static const struct brig_role_name names[] = {
    {"attn_norm.weight", BRIG_ROLE_ATTN_NORM},     {"attn_q.weight", BRIG_ROLE_ATTN_Q},
    {"attn_k.weight", BRIG_ROLE_ATTN_K},           {"attn_v.weight", BRIG_ROLE_ATTN_V},
    {"attn_output.weight", BRIG_ROLE_ATTN_OUT},    {"ffn_norm.weight", BRIG_ROLE_FFN_NORM},
    {"ffn_gate.weight", BRIG_ROLE_FFN_GATE},       {"ffn_up.weight", BRIG_ROLE_FFN_UP},
    {"ffn_down.weight", BRIG_ROLE_FFN_DOWN},       {"token_embd.weight", BRIG_ROLE_TOKEN_TABLE},
    {"rope_freqs.weight", BRIG_ROLE_ROPE_FACTORS}, {"output_norm.weight", BRIG_ROLE_OUTPUT_NORM},
    {"output.weight", BRIG_ROLE_OUTPUT},
};

/* How a key is looked for: its absence is an error, or *ret then keeps what it was set to before. */
enum presence { OPTIONAL, REQUIRED };

static int wrong_kind(const struct brig_meta *meta, const char *key, const char *wanted,
                      struct brig_fail *fail)
{
    const char *kind = brig_meta_kind(meta, key);
    if (kind == NULL)
        return brig_fail_set(fail, BRIG_EFORMAT, "the metadata key %s is missing", key);
    return brig_fail_set(fail, BRIG_EUNSUPPORTED, "the metadata key %s is %s, %s is wanted", key, kind,
                         wanted);
}

static int get_u32(const struct brig_meta *meta, const char *key, enum presence presence, uint32_t *ret,
                   struct brig_fail *fail)
{
    uint64_t v;
    if (brig_meta_kind(meta, key) == NULL && presence == OPTIONAL)
        return 0;
    if (!brig_meta_u64(meta, key, &v))
        return wrong_kind(meta, key, "one number from 0 for all layers", fail);
    if (v > UINT32_MAX)
        return brig_fail_set(fail, BRIG_EFORMAT, "the metadata key %s is %llu: too large", key,
                             (unsigned long long)v);
    *ret = (uint32_t)v;
    return 0;
}

static int get_f32(const struct brig_meta *meta, const char *key, enum presence presence, float *ret,
                   struct brig_fail *fail)
{
    double v;
    if (brig_meta_kind(meta, key) == NULL && presence == OPTIONAL)
        return 0;
    if (!brig_meta_f64(meta, key, &v))
        return wrong_kind(meta, key, "a number", fail);
    *ret = (float)v;
    return 0;
}

static int read_sizes(struct brig_desc *d, const struct brig_meta *meta, struct brig_fail *fail)
{
    int r;
    if ((r = get_u32(meta, "llama.block_count", REQUIRED, &d->n_layers, fail)) < 0 ||
        (r = get_u32(meta, "llama.embedding_length", REQUIRED, &d->hidden, fail)) < 0 ||
        (r = get_u32(meta, "llama.feed_forward_length", REQUIRED, &d->ffn, fail)) < 0 ||
        (r = get_u32(meta, "llama.context_length", REQUIRED, &d->ctx_trained, fail)) < 0 ||
        (r = get_f32(meta, "llama.attention.layer_norm_rms_epsilon", REQUIRED, &d->norm_eps, fail)) < 0)
        return r;
    return 0;
}

static int read_heads(struct brig_desc *d, const struct brig_meta *meta, struct brig_fail *fail)
{
    int r = get_u32(meta, "llama.attention.head_count", REQUIRED, &d->n_heads, fail);
    if (r < 0)
        return r;
    if (d->n_heads == 0)
        return brig_fail_set(fail, BRIG_EFORMAT, "llama.attention.head_count is 0");
    d->n_kv_heads = d->n_heads;
    if ((r = get_u32(meta, "llama.attention.head_count_kv", OPTIONAL, &d->n_kv_heads, fail)) < 0)
        return r;
    uint32_t key_length = 0, value_length;
    if ((r = get_u32(meta, "llama.attention.key_length", OPTIONAL, &key_length, fail)) < 0)
        return r;
    if (brig_meta_kind(meta, "llama.attention.key_length") == NULL) {
        if (d->hidden % d->n_heads != 0)
            return brig_fail_set(fail, BRIG_EFORMAT, "%u columns do not divide among %u attention heads",
                                 d->hidden, d->n_heads);
        key_length = d->hidden / d->n_heads;
    }
    d->head_dim = value_length = key_length;
    if ((r = get_u32(meta, "llama.attention.value_length", OPTIONAL, &value_length, fail)) < 0)
        return r;
    if (value_length != key_length)
        return brig_fail_set(fail, BRIG_EUNSUPPORTED,
                             "keys of %u columns and values of %u: they must be equally wide", key_length,
                             value_length);
    d->attn_scale = 1.0f / sqrtf((float)d->head_dim);
    return 0;
}

static int read_rope_scaling(struct brig_desc *d, const struct brig_meta *meta, struct brig_fail *fail)
{
    struct brig_str type = {"linear", 6}; /* older files state a factor alone */
    float factor = 0.0f;                  /* as the format does: 0 is no scaling */
    int r;
    if (brig_meta_kind(meta, "llama.rope.scaling.type") != NULL &&
        !brig_meta_str(meta, "llama.rope.scaling.type", &type))
        return wrong_kind(meta, "llama.rope.scaling.type", "a string", fail);
    if ((r = get_f32(meta, "llama.rope.scale_linear", OPTIONAL, &factor, fail)) < 0 ||
        (r = get_f32(meta, "llama.rope.scaling.factor", OPTIONAL, &factor, fail)) < 0)
        return r;
    d->rope_linear = 1.0f;
    if (brig_str_eq(type, "none"))
        return 0;
    if (!brig_str_eq(type, "linear"))
        return brig_fail_set(fail, BRIG_EUNSUPPORTED,
                             "llama.rope.scaling.type '%.*s' is not supported (none and linear are)",
                             (int)(type.len < 64 ? type.len : 64), type.ptr);
    if (factor != 0.0f)
        d->rope_linear = factor;
    return 0;
}

static int read_rope(struct brig_desc *d, const struct brig_meta *meta, struct brig_fail *fail)
{
    int r;
    d->rope = BRIG_ROPE_PAIRS;
    d->rope_base = 10000.0f;
    d->rope_dims = d->head_dim;
    if ((r = get_f32(meta, "llama.rope.freq_base", OPTIONAL, &d->rope_base, fail)) < 0 ||
        (r = get_u32(meta, "llama.rope.dimension_count", OPTIONAL, &d->rope_dims, fail)) < 0)
        return r;
    return read_rope_scaling(d, meta, fail);
}

/* What some files of this architecture have and this family does not compute. */
static int refuse_others(const struct brig_desc *d, const struct brig_meta *meta, struct brig_fail *fail)
{
    uint32_t experts = 0, window = 0;
    int r;
    if ((r = get_u32(meta, "llama.expert_count", OPTIONAL, &experts, fail)) < 0 ||
        (r = get_u32(meta, "llama.attention.sliding_window", OPTIONAL, &window, fail)) < 0)
        return r;
    if (experts > 0)
        return brig_fail_set(fail, BRIG_EUNSUPPORTED,
                             "a mixture of experts (llama.expert_count is %u) is not supported", experts);
    if (window > 0 && window < d->ctx_trained)
        return brig_fail_set(fail, BRIG_EUNSUPPORTED,
                             "a sliding window (llama.attention.sliding_window is %u) is not supported",
                             window);
    return 0;
}

static int describe(struct brig_model *m, const struct brig_meta *meta, struct brig_fail *fail)
{
    struct brig_desc *d = &m->desc;
    int r;
    d->vocab = 1; /* until the token table says it: the other numbers are checked before shapes are */
    if ((r = read_sizes(d, meta, fail)) < 0 || (r = read_heads(d, meta, fail)) < 0 ||
        (r = read_rope(d, meta, fail)) < 0 || (r = brig_desc_check(d, fail)) < 0 ||
        (r = refuse_others(d, meta, fail)) < 0 ||
        (r = brig_family_place(m, names, sizeof names / sizeof names[0], fail)) < 0)
        return r;
    return brig_family_check_vocab(m, fail);
}

const struct brig_family brig_family_llama = {
    .name = "llama",
    .help = "Llama, Mistral, SmolLM and other files that say llama; no experts",
    .describe = describe,
};
