/* The checks that a description must pass before anything is computed with it. */
#include "proto/model/private.h"

#include <math.h>
#include <string.h>

static int check_count(const char *what, uint64_t value, uint64_t most, struct brig_fail *fail)
{
    if (value >= 1 && value <= most)
        return 0;
    return brig_fail_set(fail, BRIG_EFORMAT, "%s is %llu, it must be from 1 to %llu", what,
                         (unsigned long long)value, (unsigned long long)most);
}

static int check_heads(const struct brig_desc *d, struct brig_fail *fail)
{
    if (d->n_heads % d->n_kv_heads != 0)
        return brig_fail_set(fail, BRIG_EFORMAT, "%u attention heads do not divide among %u KV heads",
                             d->n_heads, d->n_kv_heads);
    if (d->head_dim % 2 != 0)
        return brig_fail_set(fail, BRIG_EFORMAT, "the width of a head is %u, it must be even", d->head_dim);
    if ((uint64_t)d->n_heads * d->head_dim > BRIG_MAX_HIDDEN)
        return brig_fail_set(fail, BRIG_EFORMAT, "%u heads of %u columns are more than %u columns",
                             d->n_heads, d->head_dim, BRIG_MAX_HIDDEN);
    if (d->rope_dims % 2 != 0 || d->rope_dims > d->head_dim)
        return brig_fail_set(fail, BRIG_EFORMAT,
                             "%u rotary dimensions do not fit a head of %u: an even number is wanted",
                             d->rope_dims, d->head_dim);
    return 0;
}

static int check_experts(const struct brig_desc *d, struct brig_fail *fail)
{
    int r;
    if (d->n_experts == 0 && d->n_experts_used == 0 && d->expert_ffn == 0)
        return 0;
    if ((r = check_count("the number of experts", d->n_experts, BRIG_MAX_EXPERTS, fail)) < 0 ||
        (r = check_count("the number of experts that a token uses", d->n_experts_used, d->n_experts, fail)) <
            0)
        return r;
    if (d->mlp == BRIG_MLP_GELU)
        return brig_fail_set(fail, BRIG_EUNSUPPORTED, "experts without a gate are not supported");
    return check_count("the size of an expert", d->expert_ffn, BRIG_MAX_HIDDEN, fail);
}

/* Numbers of enumerations: they may come from a peer. */
static int check_kinds(const struct brig_desc *d, struct brig_fail *fail)
{
    const struct {
        const char *what;
        unsigned value, last;
    } kinds[] = {
        {"rotary embedding", d->rope, BRIG_ROPE_HALVES},
        {"norm of queries and keys", d->qk_norm, BRIG_QK_NORM_WHOLE},
        {"norm", d->norm, BRIG_NORM_LAYER},
        {"MLP", d->mlp, BRIG_MLP_GELU},
        {"weights of experts", d->expert_norm, BRIG_EXPERTS_SUM_TO_ONE},
    };
    for (unsigned i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (kinds[i].value > kinds[i].last)
            return brig_fail_set(fail, BRIG_EFORMAT, "an unknown kind of %s: %u", kinds[i].what,
                                 kinds[i].value);
    return 0;
}

static int check_factors(const struct brig_desc *d, struct brig_fail *fail)
{
    if (d->n_rope_factors == 0 && d->rope_long_from == 0)
        return 0;
    if (d->n_rope_factors != d->rope_dims / 2 || d->n_rope_factors > BRIG_MAX_ROPE_PAIRS)
        return brig_fail_set(fail, BRIG_EFORMAT, "%u rotary factors for %u pairs (at most %u)",
                             d->n_rope_factors, d->rope_dims / 2, BRIG_MAX_ROPE_PAIRS);
    for (uint32_t i = 0; i < d->n_rope_factors; i++) {
        float wide = d->rope_long_from != 0 ? d->rope_long_factors[i] : 1.0f;
        if (!(isfinite(d->rope_factors[i]) && d->rope_factors[i] > 0.0f && isfinite(wide) && wide > 0.0f))
            return brig_fail_set(fail, BRIG_EFORMAT, "rotary factor %u is %g, it must be above 0", i,
                                 (double)(wide > 0.0f ? d->rope_factors[i] : wide));
    }
    return 0;
}

static int check_floats(const struct brig_desc *d, struct brig_fail *fail)
{
    const struct {
        const char *what;
        float value;
    } above[] = {
        {"the attention scale", d->attn_scale},
        {"the embedding's scale", d->embed_scale},
        {"the rotary scaling factor", d->rope_linear},
        {"the rotary magnitude", d->rope_mscale},
    };
    for (unsigned i = 0; i < sizeof above / sizeof above[0]; i++)
        if (!(isfinite(above[i].value) && above[i].value > 0.0f))
            return brig_fail_set(fail, BRIG_EFORMAT, "%s is %g, it must be above 0", above[i].what,
                                 (double)above[i].value);
    if (!(d->norm_eps >= 0.0f && d->norm_eps <= 1.0f))
        return brig_fail_set(fail, BRIG_EFORMAT, "the norm's epsilon is %g, it must be from 0 to 1",
                             (double)d->norm_eps);
    if (!(isfinite(d->rope_base) && d->rope_base >= 1.0f))
        return brig_fail_set(fail, BRIG_EFORMAT, "the rotary base is %g, it must be at least 1",
                             (double)d->rope_base);
    if (!(isfinite(d->rope_windowed_base) &&
          (d->rope_windowed_base == 0.0f || d->rope_windowed_base >= 1.0f)))
        return brig_fail_set(fail, BRIG_EFORMAT,
                             "the rotary base of windowed layers is %g, it must be at least 1",
                             (double)d->rope_windowed_base);
    if (!(isfinite(d->clip_qkv) && d->clip_qkv >= 0.0f))
        return brig_fail_set(fail, BRIG_EFORMAT, "the clip of queries, keys and values is %g",
                             (double)d->clip_qkv);
    return 0;
}

static int check_layers(const struct brig_desc *d, struct brig_fail *fail)
{
    for (uint32_t i = 0; i < d->n_layers; i++) {
        unsigned flags = d->layer_flags[i];
        if ((flags & ~(BRIG_LAYER_WINDOWED | BRIG_LAYER_DENSE)) != 0)
            return brig_fail_set(fail, BRIG_EFORMAT, "layer %u is of an unknown kind: %u", i, flags);
        if ((flags & BRIG_LAYER_WINDOWED) != 0 && d->window == 0)
            return brig_fail_set(fail, BRIG_EFORMAT, "layer %u has a sliding window of 0 positions", i);
    }
    return 0;
}

int brig_desc_check(const struct brig_desc *d, struct brig_fail *fail)
{
    int r;
    if (memchr(d->arch, '\0', sizeof d->arch) == NULL)
        return brig_fail_set(fail, BRIG_EFORMAT, "the architecture's name is too long");
    if ((r = check_count("the number of layers", d->n_layers, BRIG_MAX_LAYERS, fail)) < 0 ||
        (r = check_count("the hidden size", d->hidden, BRIG_MAX_HIDDEN, fail)) < 0 ||
        (r = check_count("the number of attention heads", d->n_heads, BRIG_MAX_HEADS, fail)) < 0 ||
        (r = check_count("the number of KV heads", d->n_kv_heads, d->n_heads, fail)) < 0 ||
        (r = check_count("the width of a head", d->head_dim, BRIG_MAX_HIDDEN, fail)) < 0 ||
        (r = check_count("the feed-forward size", d->ffn, BRIG_MAX_HIDDEN, fail)) < 0 ||
        (r = check_count("the vocabulary's size", d->vocab, BRIG_MAX_VOCAB, fail)) < 0 ||
        (r = check_count("the trained context", d->ctx_trained, BRIG_MAX_CTX, fail)) < 0 ||
        (r = check_heads(d, fail)) < 0)
        return r;
    if ((r = check_kinds(d, fail)) < 0 || (r = check_experts(d, fail)) < 0 ||
        (r = check_layers(d, fail)) < 0 || (r = check_factors(d, fail)) < 0)
        return r;
    return check_floats(d, fail);
}
