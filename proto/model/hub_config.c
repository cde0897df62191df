/* config.json into metadata: sizes, heads, norms, and what must not be there. */
#include "proto/model/hub.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "proto/model/json.h"

int brig_hub_u32(const json_t *config, const char *key, uint32_t absent, uint32_t *ret,
                 struct brig_fail *fail)
{
    uint64_t v = json_object_get(config, key) == NULL ? absent : 0;
    int r = brig_json_u64(config, key, &v, fail);
    if (r < 0)
        return r;
    if (v > UINT32_MAX)
        return brig_fail_set(fail, BRIG_EFORMAT, "%s is %" PRIu64 ": too large", key, v);
    *ret = (uint32_t)v;
    return 0;
}

/* The first of two spellings that is there; absent 0: one of them must be. */
static int either_u32(const json_t *config, const char *key, const char *other, uint32_t absent,
                      uint32_t *ret, struct brig_fail *fail)
{
    if (json_object_get(config, key) == NULL && json_object_get(config, other) != NULL)
        key = other;
    int r = brig_hub_u32(config, key, absent, ret, fail);
    if (r == 0 && *ret == 0)
        return brig_fail_set(fail, BRIG_EFORMAT, "%s is %s", key,
                             json_object_get(config, key) == NULL ? "missing" : "0, or null");
    return r;
}

static int read_sizes(struct brig_hub_config *c, const json_t *config, struct brig_fail *fail)
{
    uint32_t ffn = 0, ctx;
    int r;
    if ((r = either_u32(config, "num_hidden_layers", "num_layers", 0, &c->n_layers, fail)) < 0 ||
        (r = either_u32(config, "hidden_size", "hidden_size", 0, &c->hidden, fail)) < 0 ||
        (r = brig_hub_u32(config, "intermediate_size", 0, &ffn, fail)) < 0 ||
        (r = brig_hub_u32(config, "max_position_embeddings", c->arch->ctx, &ctx, fail)) < 0 ||
        (r = brig_hub_u32(config, "vocab_size", 0, &c->vocab, fail)) < 0)
        return r;
    if (c->n_layers > BRIG_MAX_LAYERS || c->hidden > BRIG_MAX_HIDDEN)
        return brig_fail_set(fail, BRIG_EFORMAT, "%u layers of %u columns: more than %u of %u", c->n_layers,
                             c->hidden, BRIG_MAX_LAYERS, BRIG_MAX_HIDDEN);
    if (ffn == 0)
        ffn = c->arch->ffn_factor * c->hidden;
    if (ffn == 0)
        return brig_fail_set(fail, BRIG_EFORMAT, "intermediate_size is missing, null, or 0");
    brig_meta_put_u64(&c->make, ".block_count", c->n_layers);
    brig_meta_put_u64(&c->make, ".context_length", ctx);
    brig_meta_put_u64(&c->make, ".embedding_length", c->hidden);
    brig_meta_put_u64(&c->make, ".feed_forward_length", ffn);
    if (c->vocab > 0)
        brig_meta_put_u64(&c->make, ".vocab_size", c->vocab);
    return 0;
}

static int read_heads(struct brig_hub_config *c, const json_t *config, struct brig_fail *fail)
{
    const struct brig_hub_arch *a = c->arch;
    uint32_t kv;
    int r;
    if ((r = either_u32(config, "num_attention_heads", "num_heads", a->n_heads, &c->n_heads, fail)) < 0 ||
        (r = brig_hub_u32(config, "num_key_value_heads", a->n_kv_heads, &kv, fail)) < 0 ||
        (r = brig_hub_u32(config, "head_dim", a->head_dim, &c->head_dim, fail)) < 0)
        return r;
    if (c->head_dim == 0 && c->hidden % c->n_heads != 0)
        return brig_fail_set(
            fail, BRIG_EFORMAT,
            "hidden_size %u does not divide among %u attention heads, and there is no head_dim", c->hidden,
            c->n_heads);
    if (c->head_dim == 0)
        c->head_dim = c->hidden / c->n_heads;
    brig_meta_put_u64(&c->make, ".attention.head_count", c->n_heads);
    brig_meta_put_u64(&c->make, ".attention.head_count_kv", kv != 0 ? kv : c->n_heads);
    brig_meta_put_u64(&c->make, ".attention.key_length", c->head_dim);
    brig_meta_put_u64(&c->make, ".attention.value_length", c->head_dim);
    return 0;
}

static int read_norm(struct brig_hub_config *c, const json_t *config, struct brig_fail *fail)
{
    bool layer_norm = c->arch->layer_norm;
    double eps = c->arch->norm_eps;
    int r = brig_json_f64(config, layer_norm ? "layer_norm_epsilon" : "rms_norm_eps", &eps, fail);
    if (r < 0)
        return r;
    brig_meta_put_f32(
        &c->make, layer_norm ? ".attention.layer_norm_epsilon" : ".attention.layer_norm_rms_epsilon", eps);
    return 0;
}

/* gelu_new and gelu_pytorch_tanh are two names of one function. */
static bool is_activation(struct brig_str name, const char *wanted)
{
    return brig_str_eq(name, wanted) ||
           (brig_str_eq(name, "gelu_new") && strcmp(wanted, "gelu_pytorch_tanh") == 0);
}

static int check_activation(const struct brig_hub_config *c, const json_t *config, struct brig_fail *fail)
{
    static const char *const keys[] = {"hidden_activation", "hidden_act", "activation_function"};
    for (unsigned i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        struct brig_str name;
        int r = brig_json_str(config, keys[i], &name, fail);
        if (r < 0)
            return r;
        if (r == 1 && !is_activation(name, c->arch->activation))
            return brig_fail_set(fail, BRIG_EUNSUPPORTED, "%s '%.*s' is not supported for this model (%s is)",
                                 keys[i], (int)(name.len < 64 ? name.len : 64), name.ptr,
                                 c->arch->activation);
        if (r == 1)
            return 0;
    }
    return 0;
}

/* Keys that change the numbers in a way that nothing here computes. */
static int check_others(const json_t *config, struct brig_fail *fail)
{
    static const char *const keys[] = {"attn_logit_softcapping", "final_logit_softcapping",
                                       "use_bidirectional_attention"};
    for (unsigned i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        const json_t *v = json_object_get(config, keys[i]);
        if (v != NULL && !json_is_null(v) && !json_is_false(v))
            return brig_fail_set(fail, BRIG_EUNSUPPORTED, "%s is %s: that is not supported", keys[i],
                                 brig_json_kind(v));
    }
    return 0;
}

static int read_quant(struct brig_hub_config *c, const json_t *top, struct brig_fail *fail)
{
    static const char *const key = "quantization_config";
    const json_t *q = NULL;
    int r = brig_json_object(top, key, &q, fail);
    if (r == 1 && (r = brig_hub_quant_read(&c->quant, q, BRIG_HUB_FLOATS, fail)) < 0)
        return brig_fail_prefix(fail, "%s", key);
    return r;
}

static int read_said(const json_t *config, const char *key, int *ret, struct brig_fail *fail)
{
    bool b = false;
    int r = brig_json_bool(config, key, &b, fail);
    *ret = r == 1 ? b : -1;
    return r < 0 ? r : 0;
}

/* Output table and biases: what config.json says about tensors, to be compared with those that are there. */
static int read_presence(struct brig_hub_config *c, const json_t *top, const json_t *config,
                         struct brig_fail *fail)
{
    int tied, r;
    if ((r = read_said(config, "tie_word_embeddings", &tied, fail)) == 0 && tied < 0)
        r = read_said(top, "tie_word_embeddings", &tied, fail);
    if (r < 0)
        return r;
    c->tied = tied < 0 ? c->arch->tied : tied == 1;
    c->untied = tied == 0;
    if ((r = read_said(config, "attention_bias", &c->attn_bias, fail)) < 0)
        return r;
    return read_said(config, "mlp_bias", &c->mlp_bias, fail);
}

static int read_extras(struct brig_hub_config *c, const json_t *config, struct brig_fail *fail)
{
    double clip, scalar = c->arch->query_scalar;
    int r = 0;
    if (scalar != 0.0 && (r = brig_json_f64(config, "query_pre_attn_scalar", &scalar, fail)) < 0)
        return r;
    if (!(scalar >= 0.0))
        return brig_fail_set(fail, BRIG_EFORMAT, "query_pre_attn_scalar is %g, it must be above 0", scalar);
    if (scalar != 0.0)
        brig_meta_put_f32(&c->make, "brigade.attn_scale", 1.0 / sqrt(scalar));
    if ((r = brig_json_f64(config, "clip_qkv", &clip, fail)) < 0)
        return r;
    if (r == 1)
        brig_meta_put_f32(&c->make, "brigade.clip_qkv", clip);
    return 0;
}

/* Models that see pictures too keep the keys of their text model in an object of their own. */
static int find_text(const json_t *top, const json_t **ret, struct brig_str *type, struct brig_fail *fail)
{
    int r = brig_json_str(top, "model_type", type, fail);
    if (r < 0)
        return r;
    if (r == 0)
        return brig_fail_set(fail, BRIG_EFORMAT, "model_type is missing");
    *ret = top;
    if (!brig_str_eq(*type, "gemma3"))
        return 0;
    if ((r = brig_json_object(top, "text_config", ret, fail)) < 0)
        return r;
    if (r == 0)
        return brig_fail_set(fail, BRIG_EFORMAT, "text_config is missing");
    *type = (struct brig_str){"gemma3_text", 11};
    r = brig_json_str(*ret, "model_type", type, fail);
    return r < 0 ? r : 0;
}

int brig_hub_config_read(struct brig_hub_config *c, const json_t *top, struct brig_fail *fail)
{
    const json_t *config;
    struct brig_str type;
    int r = find_text(top, &config, &type, fail);
    if (r < 0)
        return r;
    c->arch = brig_hub_arch_of(type);
    if (c->arch == NULL)
        return brig_fail_set(fail, BRIG_EUNSUPPORTED, "the model_type '%.*s' is not supported",
                             (int)(type.len < 64 ? type.len : 64), type.ptr);
    c->make.arch = c->arch->arch;
    brig_meta_put_str(&c->make, "general.architecture",
                      (struct brig_str){c->arch->arch, strlen(c->arch->arch)});
    brig_meta_put_bool(&c->make, "brigade.hub_layout", true);
    if ((r = read_quant(c, top, fail)) < 0 || (r = read_sizes(c, config, fail)) < 0 ||
        (r = read_heads(c, config, fail)) < 0 || (r = read_norm(c, config, fail)) < 0 ||
        (r = check_activation(c, config, fail)) < 0 || (r = check_others(config, fail)) < 0 ||
        (r = read_presence(c, top, config, fail)) < 0 || (r = brig_hub_rope(c, config, fail)) < 0 ||
        (r = brig_hub_window(c, config, fail)) < 0 || (r = brig_hub_moe(c, config, fail)) < 0 ||
        (r = read_extras(c, config, fail)) < 0)
        return r;
    return brig_meta_make_done(&c->make, fail);
}
