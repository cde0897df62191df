/* Roles: names, how many of them, shapes. */
#include "proto/model/private.h"

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
    [BRIG_ROLE_ATTN_NORM_BIAS] = "attn_norm_bias",
    [BRIG_ROLE_FFN_NORM_BIAS] = "ffn_norm_bias",
    [BRIG_ROLE_ATTN_POST_NORM] = "attn_post_norm",
    [BRIG_ROLE_FFN_POST_NORM] = "ffn_post_norm",
    [BRIG_ROLE_ROUTER] = "router",
    [BRIG_ROLE_EXPERT_GATE] = "expert_gate",
    [BRIG_ROLE_EXPERT_UP] = "expert_up",
    [BRIG_ROLE_EXPERT_DOWN] = "expert_down",
    [BRIG_ROLE_OUTPUT_NORM] = "output_norm",
    [BRIG_ROLE_OUTPUT_NORM_BIAS] = "output_norm_bias",
    [BRIG_ROLE_OUTPUT] = "output",
    [BRIG_ROLE_TOKEN_TABLE] = "token_table",
    [BRIG_ROLE_POSITION_TABLE] = "position_table",
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
    case BRIG_ROLE_ATTN_NORM_BIAS:
    case BRIG_ROLE_FFN_NORM_BIAS:
    case BRIG_ROLE_ATTN_POST_NORM:
    case BRIG_ROLE_FFN_POST_NORM:
    case BRIG_ROLE_OUTPUT_NORM:
    case BRIG_ROLE_OUTPUT_NORM_BIAS:
        return true;
    default:
        return false;
    }
}

/* Of the MLP: the layer has one, or experts in its place. */
static bool has_mlp_role(const struct brig_desc *d, enum brig_role role)
{
    bool gated = d->mlp != BRIG_MLP_GELU;
    switch (role) {
    case BRIG_ROLE_FFN_GATE:
        return gated;
    case BRIG_ROLE_FFN_GATE_BIAS:
        return gated && d->mlp_bias;
    case BRIG_ROLE_FFN_UP_BIAS:
    case BRIG_ROLE_FFN_DOWN_BIAS:
        return d->mlp_bias;
    default:
        return true;
    }
}

static uint32_t head_count(const struct brig_desc *d, enum brig_role role)
{
    if (role == BRIG_ROLE_OUTPUT_NORM_BIAS)
        return d->norm == BRIG_NORM_LAYER;
    return role == BRIG_ROLE_OUTPUT_NORM || role == BRIG_ROLE_OUTPUT;
}

uint32_t brig_desc_count(const struct brig_desc *d, enum brig_role role, uint32_t cell)
{
    if (cell >= d->n_layers)
        return head_count(d, role);
    bool dense = d->n_experts == 0 || (d->layer_flags[cell] & BRIG_LAYER_DENSE) != 0;
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
    case BRIG_ROLE_ATTN_NORM_BIAS:
    case BRIG_ROLE_FFN_NORM_BIAS:
        return d->norm == BRIG_NORM_LAYER;
    case BRIG_ROLE_ATTN_POST_NORM:
    case BRIG_ROLE_FFN_POST_NORM:
        return d->post_norms;
    case BRIG_ROLE_FFN_GATE:
    case BRIG_ROLE_FFN_UP:
    case BRIG_ROLE_FFN_DOWN:
    case BRIG_ROLE_FFN_GATE_BIAS:
    case BRIG_ROLE_FFN_UP_BIAS:
    case BRIG_ROLE_FFN_DOWN_BIAS:
        return dense && has_mlp_role(d, role);
    case BRIG_ROLE_ROUTER:
        return !dense;
    case BRIG_ROLE_EXPERT_GATE:
    case BRIG_ROLE_EXPERT_UP:
    case BRIG_ROLE_EXPERT_DOWN:
        return dense ? 0 : d->n_experts;
    default:
        return role < BRIG_ROLE_LAYER_COUNT;
    }
}

uint64_t brig_desc_choices(const struct brig_desc *d)
{
    return (uint64_t)d->n_layers * d->n_experts_used;
}

uint32_t brig_desc_places(const struct brig_desc *d)
{
    return BRIG_ROLE_EXPERT_FIRST + (BRIG_ROLE_LAYER_COUNT - BRIG_ROLE_EXPERT_FIRST) * d->n_experts;
}

uint32_t brig_desc_place(const struct brig_desc *d, enum brig_role role, uint32_t expert)
{
    if (role < BRIG_ROLE_EXPERT_FIRST)
        return role;
    return BRIG_ROLE_EXPERT_FIRST + (role - BRIG_ROLE_EXPERT_FIRST) * d->n_experts + expert;
}

bool brig_role_takes(enum brig_role role, const struct brig_type *type)
{
    if (!brig_type_has_rows(type) && (role == BRIG_ROLE_TOKEN_TABLE || role == BRIG_ROLE_POSITION_TABLE))
        return false; /* single rows are read from those */
    return !brig_role_is_vector(role) || type->block_elems == 1;
}

static uint64_t vector_cols(const struct brig_desc *d, enum brig_role role)
{
    uint64_t heads = (uint64_t)d->n_heads * d->head_dim, kv_heads = (uint64_t)d->n_kv_heads * d->head_dim;
    bool whole = d->qk_norm == BRIG_QK_NORM_WHOLE;
    switch (role) {
    case BRIG_ROLE_ATTN_Q_BIAS:
        return heads;
    case BRIG_ROLE_ATTN_K_BIAS:
    case BRIG_ROLE_ATTN_V_BIAS:
        return kv_heads;
    case BRIG_ROLE_ATTN_Q_NORM:
        return whole ? heads : d->head_dim;
    case BRIG_ROLE_ATTN_K_NORM:
        return whole ? kv_heads : d->head_dim;
    case BRIG_ROLE_FFN_GATE_BIAS:
    case BRIG_ROLE_FFN_UP_BIAS:
        return d->ffn;
    default: /* norms and biases of the hidden size */
        return d->hidden;
    }
}

static uint64_t matrix_rows(const struct brig_desc *d, enum brig_role role)
{
    switch (role) {
    case BRIG_ROLE_ATTN_Q:
        return (uint64_t)d->n_heads * d->head_dim;
    case BRIG_ROLE_ATTN_K:
    case BRIG_ROLE_ATTN_V:
        return (uint64_t)d->n_kv_heads * d->head_dim;
    case BRIG_ROLE_FFN_GATE:
    case BRIG_ROLE_FFN_UP:
        return d->ffn;
    case BRIG_ROLE_EXPERT_GATE:
    case BRIG_ROLE_EXPERT_UP:
        return d->expert_ffn;
    case BRIG_ROLE_ROUTER:
        return d->n_experts;
    case BRIG_ROLE_POSITION_TABLE:
        return d->ctx_trained;
    case BRIG_ROLE_OUTPUT:
    case BRIG_ROLE_TOKEN_TABLE:
        return d->vocab;
    default: /* what leads back to the hidden size */
        return d->hidden;
    }
}

static uint64_t matrix_cols(const struct brig_desc *d, enum brig_role role)
{
    switch (role) {
    case BRIG_ROLE_ATTN_OUT:
        return (uint64_t)d->n_heads * d->head_dim;
    case BRIG_ROLE_FFN_DOWN:
        return d->ffn;
    case BRIG_ROLE_EXPERT_DOWN:
        return d->expert_ffn;
    default:
        return d->hidden;
    }
}

void brig_role_shape(const struct brig_desc *d, enum brig_role role, uint64_t *rows, uint64_t *cols)
{
    bool vector = brig_role_is_vector(role);
    *rows = vector ? 1 : matrix_rows(d, role);
    *cols = vector ? vector_cols(d, role) : matrix_cols(d, role);
}
