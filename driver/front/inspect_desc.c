/* brigade inspect: the description of a model in words. What a plain llama has not is named only where it is
 * there. */
#include "driver/front/inspect.h"

#include <stdio.h>

#include "driver/run/json.h"

#define COUNT(a) (sizeof(a) / sizeof(a)[0])

static const char *const norms[] = {"rms", "rms_plus_one", "layer"};
static const char *const mlps[] = {"swiglu", "geglu", "gelu"};
static const char *const qk_norms[] = {"none", "head", "whole"};
static const char *const expert_norms[] = {"as_they_are", "sum_to_one"};

_Static_assert(COUNT(norms) == BRIG_NORM_LAYER + 1 && COUNT(mlps) == BRIG_MLP_GELU + 1 &&
                   COUNT(qk_norms) == BRIG_QK_NORM_WHOLE + 1 &&
                   COUNT(expert_norms) == BRIG_EXPERTS_SUM_TO_ONE + 1,
               "a name for each");

static uint32_t layers_with(const struct brig_desc *d, uint8_t flag)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < d->n_layers; i++)
        n += (d->layer_flags[i] & flag) != 0;
    return n;
}

/* ---- text ---- */

static void print_experts(const struct brig_desc *d)
{
    uint32_t dense = layers_with(d, BRIG_LAYER_DENSE);
    printf("experts          %u in a layer, %u used, ffn %u; weights %s\n", d->n_experts, d->n_experts_used,
           d->expert_ffn,
           d->expert_norm == BRIG_EXPERTS_SUM_TO_ONE ? "sum to one" : "as the softmax over all gives them");
    if (dense > 0)
        printf("dense layers     %u of %u\n", dense, d->n_layers);
}

static void print_attention_words(const struct brig_desc *d)
{
    if (d->qk_norm != BRIG_QK_NORM_NONE)
        printf("q and k norm     %s\n", d->qk_norm == BRIG_QK_NORM_HEAD ? "each head" : "all heads as one");
    if (d->clip_qkv > 0.0f)
        printf("q, k, v clipped  to %g\n", (double)d->clip_qkv);
    if (d->qkv_bias || d->out_bias || d->mlp_bias)
        printf("biases          %s%s%s\n", d->qkv_bias ? " q, k, v" : "", d->out_bias ? " output" : "",
               d->mlp_bias ? " mlp" : "");
    if (d->window > 0)
        printf("window           %u positions in %u of %u layers\n", d->window,
               layers_with(d, BRIG_LAYER_WINDOWED), d->n_layers);
}

static void print_rope(const struct brig_desc *d)
{
    if (d->rope_dims == 0) {
        printf("rotary           none\n");
        return;
    }
    printf("rotary           %u dimensions, %s, base %g, positions divided by %g\n", d->rope_dims,
           d->rope == BRIG_ROPE_PAIRS ? "pairs" : "halves", (double)d->rope_base, (double)d->rope_linear);
    if (d->rope_windowed_base > 0.0f)
        printf("rotary, window   base %g, no scaling\n", (double)d->rope_windowed_base);
    if (d->n_rope_factors > 0)
        printf("rotary factors   %u, magnitude %g\n", d->n_rope_factors, (double)d->rope_mscale);
    if (d->rope_long_from > 0)
        printf("rotary, long     other factors for contexts of more than %u\n", d->rope_long_from);
}

void brig_inspect_desc(const struct brig_desc *d)
{
    printf("architecture     %s\n", d->arch);
    printf("layers           %u and the head\n", d->n_layers);
    printf("hidden           %u\n", d->hidden);
    printf("heads            %u, of %u dimensions; %u for keys and values\n", d->n_heads, d->head_dim,
           d->n_kv_heads);
    printf("ffn              %u\n", d->ffn);
    if (d->n_experts > 0)
        print_experts(d);
    if (d->mlp != BRIG_MLP_SWIGLU)
        printf("mlp              %s\n", mlps[d->mlp]);
    printf("vocabulary       %u, %s\n", d->vocab,
           d->tied ? "output table tied to the token table" : "own output table");
    printf("context          %u\n", d->ctx_trained);
    if (d->norm != BRIG_NORM_RMS || d->post_norms)
        printf("norm             %s%s\n", norms[d->norm], d->post_norms ? ", after each branch too" : "");
    printf("norm epsilon     %g\n", (double)d->norm_eps);
    printf("attention scale  %g\n", (double)d->attn_scale);
    print_attention_words(d);
    print_rope(d);
    if (d->learned_positions)
        printf("positions        learned\n");
    if (d->embed_scale != 1.0f)
        printf("embedding scale  %g\n", (double)d->embed_scale);
}

/* ---- JSON ---- */

static void put_whole(json_t *o, const char *key, uint32_t v)
{
    json_object_set_new(o, key, json_integer((json_int_t)v));
}

static void put_real(json_t *o, const char *key, float v)
{
    json_object_set_new(o, key, json_real((double)v));
}

/* The numbers of layers with a flag. */
static json_t *layer_list(const struct brig_desc *d, uint8_t flag)
{
    json_t *list = json_array();
    for (uint32_t i = 0; i < d->n_layers; i++)
        if ((d->layer_flags[i] & flag) != 0)
            json_array_append_new(list, json_integer((json_int_t)i));
    return list;
}

static json_t *experts_json(const struct brig_desc *d)
{
    if (d->n_experts == 0)
        return json_null();
    json_t *o = json_object();
    put_whole(o, "n_experts", d->n_experts);
    put_whole(o, "n_used", d->n_experts_used);
    put_whole(o, "ffn", d->expert_ffn);
    json_object_set_new(o, "weights", json_string(expert_norms[d->expert_norm]));
    json_object_set_new(o, "dense_layers", layer_list(d, BRIG_LAYER_DENSE));
    return o;
}

static void put_rope(json_t *o, const struct brig_desc *d)
{
    json_object_set_new(o, "rope", json_string(d->rope == BRIG_ROPE_PAIRS ? "pairs" : "halves"));
    put_whole(o, "rope_dims", d->rope_dims);
    put_real(o, "rope_base", d->rope_base);
    put_real(o, "rope_linear", d->rope_linear);
    put_real(o, "rope_windowed_base", d->rope_windowed_base);
    put_real(o, "rope_mscale", d->rope_mscale);
    put_whole(o, "n_rope_factors", d->n_rope_factors);
    put_whole(o, "rope_long_from", d->rope_long_from);
}

json_t *brig_inspect_desc_json(const struct brig_desc *d)
{
    json_t *o = json_object();
    put_whole(o, "n_layers", d->n_layers);
    put_whole(o, "hidden", d->hidden);
    put_whole(o, "n_heads", d->n_heads);
    put_whole(o, "n_kv_heads", d->n_kv_heads);
    put_whole(o, "head_dim", d->head_dim);
    put_whole(o, "ffn", d->ffn);
    json_object_set_new(o, "mlp", json_string(mlps[d->mlp]));
    json_object_set_new(o, "experts", experts_json(d));
    put_whole(o, "vocab", d->vocab);
    put_whole(o, "ctx_trained", d->ctx_trained);
    json_object_set_new(o, "norm", json_string(norms[d->norm]));
    put_real(o, "norm_eps", d->norm_eps);
    json_object_set_new(o, "post_norms", json_boolean(d->post_norms));
    put_real(o, "attn_scale", d->attn_scale);
    json_object_set_new(o, "qk_norm", json_string(qk_norms[d->qk_norm]));
    put_real(o, "clip_qkv", d->clip_qkv);
    json_object_set_new(o, "qkv_bias", json_boolean(d->qkv_bias));
    json_object_set_new(o, "out_bias", json_boolean(d->out_bias));
    json_object_set_new(o, "mlp_bias", json_boolean(d->mlp_bias));
    put_whole(o, "window", d->window);
    json_object_set_new(o, "windowed_layers", layer_list(d, BRIG_LAYER_WINDOWED));
    put_rope(o, d);
    json_object_set_new(o, "learned_positions", json_boolean(d->learned_positions));
    put_real(o, "embed_scale", d->embed_scale);
    json_object_set_new(o, "tied", json_boolean(d->tied));
    return o;
}
