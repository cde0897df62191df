/* Roles: names, shapes, and the checks that a description must pass before anything is computed with it. */
#include "proto/model/private.h"

#include <math.h>
#include <string.h>

static const char *const names[BRIG_ROLE_COUNT] = {
    [BRIG_ROLE_ATTN_NORM] = "attn_norm",
    [BRIG_ROLE_ATTN_Q] = "attn_q",
    [BRIG_ROLE_ATTN_K] = "attn_k",
    [BRIG_ROLE_ATTN_V] = "attn_v",
    [BRIG_ROLE_ATTN_OUT] = "attn_out",
    [BRIG_ROLE_FFN_NORM] = "ffn_norm",
    [BRIG_ROLE_FFN_GATE] = "ffn_gate",
    [BRIG_ROLE_FFN_UP] = "ffn_up",
    [BRIG_ROLE_FFN_DOWN] = "ffn_down",
    [BRIG_ROLE_ATTN_Q_BIAS] = "attn_q_bias",
    [BRIG_ROLE_ATTN_K_BIAS] = "attn_k_bias",
    [BRIG_ROLE_ATTN_V_BIAS] = "attn_v_bias",
    [BRIG_ROLE_ATTN_OUT_BIAS] = "attn_out_bias",
    [BRIG_ROLE_ATTN_Q_NORM] = "attn_q_norm",
    [BRIG_ROLE_ATTN_K_NORM] = "attn_k_norm",
    [BRIG_ROLE_FFN_GATE_BIAS] = "ffn_gate_bias",
    [BRIG_ROLE_FFN_UP_BIAS] = "ffn_up_bias",
    [BRIG_ROLE_FFN_DOWN_BIAS] = "ffn_down_bias",
    [BRIG_ROLE_ROPE_FACTORS] = "rope_factors",
    [BRIG_ROLE_OUTPUT_NORM] = "output_norm",
    [BRIG_ROLE_OUTPUT] = "output",
    [BRIG_ROLE_TOKEN_TABLE] = "token_table",
};

const char *brig_role_name(enum brig_role role)
{
    return (unsigned)role < BRIG_ROLE_COUNT ? names[role] : "none";
}

bool brig_role_is_vector(enum brig_role role)
{
    switch (role) {
    case BRIG_ROLE_ATTN_NORM:
    case BRIG_ROLE_FFN_NORM:
    case BRIG_ROLE_ATTN_Q_BIAS:
    case BRIG_ROLE_ATTN_K_BIAS:
    case BRIG_ROLE_ATTN_V_BIAS:
    case BRIG_ROLE_ATTN_OUT_BIAS:
    case BRIG_ROLE_ATTN_Q_NORM:
    case BRIG_ROLE_ATTN_K_NORM:
    case BRIG_ROLE_FFN_GATE_BIAS:
    case BRIG_ROLE_FFN_UP_BIAS:
    case BRIG_ROLE_FFN_DOWN_BIAS:
    case BRIG_ROLE_OUTPUT_NORM:
    case BRIG_ROLE_ROPE_FACTORS:
        return true;
    default:
        return false;
    }
}

bool brig_desc_has(const struct brig_desc *d, enum brig_role role)
{
    switch (role) {
    case BRIG_ROLE_ATTN_Q_BIAS:
    case BRIG_ROLE_ATTN_K_BIAS:
    case BRIG_ROLE_ATTN_V_BIAS:
        return d->qkv_bias;
    case BRIG_ROLE_ATTN_OUT_BIAS:
        return d->out_bias;
    case BRIG_ROLE_ATTN_Q_NORM:
    case BRIG_ROLE_ATTN_K_NORM:
        return d->qk_norm != BRIG_QK_NORM_NONE;
    case BRIG_ROLE_FFN_GATE_BIAS:
    case BRIG_ROLE_FFN_UP_BIAS:
    case BRIG_ROLE_FFN_DOWN_BIAS:
        return d->mlp_bias;
    default:
        return role < BRIG_ROLE_LAYER_COUNT;
    }
}

bool brig_role_takes(enum brig_role role, const struct brig_type *type)
{
    return !brig_role_is_vector(role) || type->block_elems == 1;
}

void brig_role_shape(const struct brig_desc *d, enum brig_role role, uint64_t *rows, uint64_t *cols)
{
    uint64_t heads = (uint64_t)d->n_heads * d->head_dim, kv_heads = (uint64_t)d->n_kv_heads * d->head_dim;
    *rows = 1;
    *cols = d->hidden;
    switch (role) {
    case BRIG_ROLE_ATTN_Q:
        *rows = heads;
        break;
    case BRIG_ROLE_ATTN_K:
    case BRIG_ROLE_ATTN_V:
        *rows = kv_heads;
        break;
    case BRIG_ROLE_ATTN_Q_BIAS:
        *cols = heads;
        break;
    case BRIG_ROLE_ATTN_K_BIAS:
    case BRIG_ROLE_ATTN_V_BIAS:
        *cols = kv_heads;
        break;
    case BRIG_ROLE_ATTN_Q_NORM:
        *cols = d->qk_norm == BRIG_QK_NORM_WHOLE ? heads : d->head_dim;
        break;
    case BRIG_ROLE_ATTN_K_NORM:
        *cols = d->qk_norm == BRIG_QK_NORM_WHOLE ? kv_heads : d->head_dim;
        break;
    case BRIG_ROLE_FFN_GATE_BIAS:
    case BRIG_ROLE_FFN_UP_BIAS:
        *cols = d->ffn;
        break;
    case BRIG_ROLE_ATTN_OUT:
        *rows = d->hidden;
        *cols = heads;
        break;
    case BRIG_ROLE_FFN_GATE:
    case BRIG_ROLE_FFN_UP:
        *rows = d->ffn;
        break;
    case BRIG_ROLE_FFN_DOWN:
        *rows = d->hidden;
        *cols = d->ffn;
        break;
    case BRIG_ROLE_ROPE_FACTORS:
        *cols = d->rope_dims / 2;
        break;
    case BRIG_ROLE_OUTPUT:
    case BRIG_ROLE_TOKEN_TABLE:
        *rows = d->vocab;
        break;
    default: /* norms and biases of the hidden size */
        break;
    }
}

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
    if (d->rope_dims < 2 || d->rope_dims % 2 != 0 || d->rope_dims > d->head_dim)
        return brig_fail_set(fail, BRIG_EFORMAT,
                             "%u rotary dimensions do not fit a head of %u: an even number from 2 is wanted",
                             d->rope_dims, d->head_dim);
    return 0;
}

static int check_floats(const struct brig_desc *d, struct brig_fail *fail)
{
    if (!(d->norm_eps >= 0.0f && d->norm_eps <= 1.0f))
        return brig_fail_set(fail, BRIG_EFORMAT, "the norm's epsilon is %g, it must be from 0 to 1",
                             (double)d->norm_eps);
    if (!(isfinite(d->attn_scale) && d->attn_scale > 0.0f))
        return brig_fail_set(fail, BRIG_EFORMAT, "the attention scale is %g, it must be above 0",
                             (double)d->attn_scale);
    if (!(isfinite(d->rope_base) && d->rope_base >= 1.0f))
        return brig_fail_set(fail, BRIG_EFORMAT, "the rotary base is %g, it must be at least 1",
                             (double)d->rope_base);
    if (!(isfinite(d->rope_linear) && d->rope_linear > 0.0f))
        return brig_fail_set(fail, BRIG_EFORMAT, "the rotary scaling factor is %g, it must be above 0",
                             (double)d->rope_linear);
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
    if ((unsigned)d->rope > BRIG_ROPE_HALVES)
        return brig_fail_set(fail, BRIG_EFORMAT, "an unknown kind of rotary embedding: %u",
                             (unsigned)d->rope);
    if ((unsigned)d->qk_norm > BRIG_QK_NORM_WHOLE)
        return brig_fail_set(fail, BRIG_EFORMAT, "an unknown kind of norm of queries and keys: %u",
                             (unsigned)d->qk_norm);
    return check_floats(d, fail);
}
