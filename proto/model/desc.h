/*
 * The description of a model: everything that the block and the head need to know, and nothing about where a
 * model comes from. A family (family.h) fills it from a checkpoint; code in shard/ reads only this.
 */
#ifndef BRIG_PROTO_MODEL_DESC_H
#define BRIG_PROTO_MODEL_DESC_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/model/type.h"

/* What a tensor is for. Layer roles come once per layer, those that the description has (brig_desc_has); the
 * last four belong to the whole model. */
enum brig_role {
    BRIG_ROLE_ATTN_NORM,     /* [hidden] */
    BRIG_ROLE_ATTN_Q,        /* [n_heads * head_dim, hidden]: rows are outputs */
    BRIG_ROLE_ATTN_K,        /* [n_kv_heads * head_dim, hidden] */
    BRIG_ROLE_ATTN_V,        /* [n_kv_heads * head_dim, hidden] */
    BRIG_ROLE_ATTN_OUT,      /* [hidden, n_heads * head_dim] */
    BRIG_ROLE_FFN_NORM,      /* [hidden] */
    BRIG_ROLE_FFN_GATE,      /* [ffn, hidden] */
    BRIG_ROLE_FFN_UP,        /* [ffn, hidden] */
    BRIG_ROLE_FFN_DOWN,      /* [hidden, ffn] */
    BRIG_ROLE_ATTN_Q_BIAS,   /* [n_heads * head_dim] */
    BRIG_ROLE_ATTN_K_BIAS,   /* [n_kv_heads * head_dim] */
    BRIG_ROLE_ATTN_V_BIAS,   /* [n_kv_heads * head_dim] */
    BRIG_ROLE_ATTN_OUT_BIAS, /* [hidden] */
    BRIG_ROLE_ATTN_Q_NORM,   /* [head_dim], or [n_heads * head_dim] for the whole projection */
    BRIG_ROLE_ATTN_K_NORM,   /* [head_dim], or [n_kv_heads * head_dim] */
    BRIG_ROLE_FFN_GATE_BIAS, /* [ffn] */
    BRIG_ROLE_FFN_UP_BIAS,   /* [ffn] */
    BRIG_ROLE_FFN_DOWN_BIAS, /* [hidden] */
    BRIG_ROLE_LAYER_COUNT,
    BRIG_ROLE_ROPE_FACTORS = BRIG_ROLE_LAYER_COUNT, /* [rope_dims / 2] f32, optional: angles are divided by
                                                       it; goes with every slice that has a layer */
    BRIG_ROLE_OUTPUT_NORM,                          /* [hidden], head */
    BRIG_ROLE_OUTPUT,                               /* [vocab, hidden], head: the token table when tied */
    BRIG_ROLE_TOKEN_TABLE,                          /* [vocab, hidden], the driver's */
    BRIG_ROLE_COUNT
};

const char *brig_role_name(enum brig_role role); /* "attn_q" */

enum brig_rope {
    BRIG_ROPE_PAIRS, /* element 2i turns with 2i + 1 (llama files in GGUF) */
    BRIG_ROPE_HALVES /* element i turns with i + rope_dims / 2 (NEOX) */
};

/* RMSNorm of queries and keys, after the biases and before they turn. */
enum brig_qk_norm {
    BRIG_QK_NORM_NONE,
    BRIG_QK_NORM_HEAD, /* each head by itself, one weight for all of them */
    BRIG_QK_NORM_WHOLE /* all heads of the projection as one vector */
};

struct brig_desc {
    char arch[32]; /* the family's name, for people */
    uint32_t n_layers;
    uint32_t hidden;
    uint32_t n_heads;
    uint32_t n_kv_heads; /* divides n_heads */
    uint32_t head_dim;
    uint32_t ffn;
    uint32_t vocab;
    uint32_t ctx_trained;
    float norm_eps;   /* RMSNorm: x / sqrt(mean(x^2) + eps) * w */
    float attn_scale; /* scores are multiplied by it: head_dim^-0.5 */
    enum brig_rope rope;
    uint32_t rope_dims; /* even, at most head_dim */
    float rope_base;
    float rope_linear; /* positions are divided by it; 1 when there is no linear scaling */
    bool tied;         /* the output table is the token table */
    bool qkv_bias;     /* added to the product, as all biases */
    bool out_bias;     /* of the attention's output */
    bool mlp_bias;     /* of gate, up and down */
    enum brig_qk_norm qk_norm;
};

/* A layer of this model has a tensor of this role. */
bool brig_desc_has(const struct brig_desc *d, enum brig_role role);

/* Caps on everything above, checked when a checkpoint is opened and again when a slice is received. */
#define BRIG_MAX_LAYERS 4096u
#define BRIG_MAX_HIDDEN (1u << 20)
#define BRIG_MAX_HEADS  4096u
#define BRIG_MAX_VOCAB  (1u << 24)
#define BRIG_MAX_CTX    (1u << 27)

#endif
