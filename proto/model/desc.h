/*
 * The description of a model: everything that the block and the head need to know, and nothing about where a
 * model comes from. A family (family.h) fills it from a checkpoint; code in shard/ reads only this.
 */
#ifndef BRIG_PROTO_MODEL_DESC_H
#define BRIG_PROTO_MODEL_DESC_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/model/type.h"

/* What a tensor is for. Layer roles come once per layer, as often as the description has them
 * (brig_desc_count); the last ones belong to the whole model. */
enum brig_role {
    BRIG_ROLE_ATTN_NORM,      /* [hidden] */
    BRIG_ROLE_ATTN_Q,         /* [n_heads * head_dim, hidden]: rows are outputs */
    BRIG_ROLE_ATTN_K,         /* [n_kv_heads * head_dim, hidden] */
    BRIG_ROLE_ATTN_V,         /* [n_kv_heads * head_dim, hidden] */
    BRIG_ROLE_ATTN_OUT,       /* [hidden, n_heads * head_dim] */
    BRIG_ROLE_FFN_NORM,       /* [hidden] */
    BRIG_ROLE_FFN_GATE,       /* [ffn, hidden] */
    BRIG_ROLE_FFN_UP,         /* [ffn, hidden] */
    BRIG_ROLE_FFN_DOWN,       /* [hidden, ffn] */
    BRIG_ROLE_ATTN_Q_BIAS,    /* [n_heads * head_dim] */
    BRIG_ROLE_ATTN_K_BIAS,    /* [n_kv_heads * head_dim] */
    BRIG_ROLE_ATTN_V_BIAS,    /* [n_kv_heads * head_dim] */
    BRIG_ROLE_ATTN_OUT_BIAS,  /* [hidden] */
    BRIG_ROLE_ATTN_Q_NORM,    /* [head_dim], or [n_heads * head_dim] for the whole projection */
    BRIG_ROLE_ATTN_K_NORM,    /* [head_dim], or [n_kv_heads * head_dim] */
    BRIG_ROLE_FFN_GATE_BIAS,  /* [ffn] */
    BRIG_ROLE_FFN_UP_BIAS,    /* [ffn] */
    BRIG_ROLE_FFN_DOWN_BIAS,  /* [hidden] */
    BRIG_ROLE_ATTN_NORM_BIAS, /* [hidden], LayerNorm only; the next too */
    BRIG_ROLE_FFN_NORM_BIAS,
    BRIG_ROLE_ATTN_POST_NORM, /* [hidden] norm of what a branch adds, before it is added */
    BRIG_ROLE_FFN_POST_NORM,
    BRIG_ROLE_ROUTER,      /* [n_experts, hidden] */
    BRIG_ROLE_EXPERT_GATE, /* [expert_ffn, hidden], n_experts of them; the next two likewise */
    BRIG_ROLE_EXPERT_UP,
    BRIG_ROLE_EXPERT_DOWN, /* [hidden, expert_ffn] */
    BRIG_ROLE_LAYER_COUNT,
    BRIG_ROLE_OUTPUT_NORM = BRIG_ROLE_LAYER_COUNT, /* [hidden], head */
    BRIG_ROLE_OUTPUT_NORM_BIAS,                    /* [hidden], head, LayerNorm only */
    BRIG_ROLE_OUTPUT,                              /* [vocab, hidden], head: the token table when tied */
    BRIG_ROLE_TOKEN_TABLE,                         /* [vocab, hidden], the driver's */
    BRIG_ROLE_POSITION_TABLE, /* [ctx_trained, hidden], the driver's: learned positions */
    BRIG_ROLE_COUNT
};

#define BRIG_ROLE_EXPERT_FIRST BRIG_ROLE_EXPERT_GATE /* from here to BRIG_ROLE_LAYER_COUNT: one an expert */

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

enum brig_norm {
    BRIG_NORM_RMS,          /* x / sqrt(mean(x^2) + eps) * w */
    BRIG_NORM_RMS_PLUS_ONE, /* the same with 1 + w, norms of queries and keys too */
    BRIG_NORM_LAYER         /* (x - mean) / sqrt(variance + eps) * w + bias; the biased variance */
};

enum brig_mlp {
    BRIG_MLP_SWIGLU, /* down(silu(gate) * up) */
    BRIG_MLP_GEGLU,  /* down(gelu(gate) * up), gelu by its tanh approximation */
    BRIG_MLP_GELU    /* down(gelu(up)), the same gelu: there is no gate */
};

/* How the softmax over all experts weighs the chosen ones. */
enum brig_expert_norm {
    BRIG_EXPERTS_AS_THEY_ARE,
    BRIG_EXPERTS_SUM_TO_ONE /* divided by the sum over the chosen */
};

/* What differs from layer to layer. */
#define BRIG_LAYER_WINDOWED 1u /* attends to the last `window` positions only */
#define BRIG_LAYER_DENSE    2u /* no experts, in a model that has them */

#define BRIG_MAX_LAYERS     4096u
#define BRIG_MAX_ROPE_PAIRS 256u

struct brig_desc {
    char arch[32]; /* the family's name, for people */
    uint32_t n_layers;
    uint32_t hidden;
    uint32_t n_heads;
    uint32_t n_kv_heads; /* divides n_heads */
    uint32_t head_dim;
    uint32_t ffn; /* of layers without experts */
    uint32_t vocab;
    uint32_t ctx_trained;
    enum brig_norm norm;
    float norm_eps;
    float attn_scale; /* scores are multiplied by it: head_dim^-0.5 as a rule */
    bool tied;        /* the output table is the token table */
    bool qkv_bias;    /* added to the product, as all biases */
    bool out_bias;    /* of the attention's output */
    bool mlp_bias;    /* of gate, up and down */
    bool post_norms;  /* what a branch yields is normed before it is added */
    enum brig_qk_norm qk_norm;
    float clip_qkv; /* q, k and v, normed, are clipped to [-clip, clip] before they turn; 0: they are not */
    enum brig_mlp mlp;
    float embed_scale;      /* token rows are multiplied by it */
    bool learned_positions; /* a row of the position table is added to the token's */

    uint32_t window; /* a row at p attends to p - window + 1 ... p in windowed layers; 0: there are none */
    uint8_t layer_flags[BRIG_MAX_LAYERS]; /* BRIG_LAYER_ bits */

    enum brig_rope rope;
    uint32_t rope_dims; /* even, at most head_dim; 0: nothing turns */
    float rope_base;
    float rope_linear;        /* positions are divided by it; 1 when there is no linear scaling */
    float rope_windowed_base; /* of windowed layers, which then have no scaling at all; 0: as the others */
    float rope_mscale;        /* cosines and sines are multiplied by it; 1 as a rule */
    uint32_t n_rope_factors;  /* 0, or rope_dims / 2: pair i's frequency is divided by factor i */
    float rope_factors[BRIG_MAX_ROPE_PAIRS];
    uint32_t rope_long_from; /* a run whose context is larger takes the long factors; 0: there are none */
    float rope_long_factors[BRIG_MAX_ROPE_PAIRS];

    uint32_t n_experts; /* 0: no layer has experts, and the next two are 0 */
    uint32_t n_experts_used;
    uint32_t expert_ffn;
    enum brig_expert_norm expert_norm;
};

/* How many tensors of a role a cell of the line has (layers, then the head, cell n_layers): 0, 1, or
 * n_experts of an expert's role. The driver's tables are in no cell. */
uint32_t brig_desc_count(const struct brig_desc *d, enum brig_role role, uint32_t cell);

/* Experts that a row chooses in all layers together, counting those without experts too; 0 without any. */
uint64_t brig_desc_choices(const struct brig_desc *d);

/* The tensors of a layer as one table: its size, and the place of a role in it. expert is 0 for roles that
 * come once. */
uint32_t brig_desc_places(const struct brig_desc *d);
uint32_t brig_desc_place(const struct brig_desc *d, enum brig_role role, uint32_t expert);

/* Caps on everything above, checked when a checkpoint is opened and again when a slice is received. */
#define BRIG_MAX_HIDDEN  (1u << 20)
#define BRIG_MAX_HEADS   4096u
#define BRIG_MAX_EXPERTS 1024u
#define BRIG_MAX_VOCAB   (1u << 24)
#define BRIG_MAX_CTX     (1u << 27)

#endif
