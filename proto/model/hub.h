/*
 * Checkpoints as they lie on the Hugging Face hub, in GGUF's words: config.json becomes metadata under GGUF's
 * keys, and tensor names become GGUF's names, so that a family reads both formats the same way. One row for
 * each model_type (hub_archs.c) says how it is spelled. Private to this room.
 *
 * Keys beside those that GGUF has:
 *
 * - brigade.hub_layout: true when rows of queries and keys lie in the hub's order (they turn by halves) and
 *   norms are stored without the 1 that gemma3 adds.
 *
 * - brigade.layer_types: one letter a layer, 'w': sliding window, 'g': the whole context. Absent: all layers
 *   use <arch>.attention.sliding_window when that is there.
 *
 * - brigade.dense_layers: one digit a layer of a mixture of experts, '1': dense. Absent: none is.
 *
 * - brigade.attn_scale: scores are multiplied by it. Absent: head size ^ -0.5.
 *
 * - brigade.clip_qkv: queries, keys and values are cut to [-it, it]. Absent: they are not.
 *
 * - brigade.norm_topk_prob: routing weights are divided by their sum.
 *
 * - brigade.rope.attention_factor: cosines and sines are multiplied by exactly it (yarn, longrope). Absent:
 *   what the kind of scaling says by itself.
 *
 * - brigade.rope.low_freq_factor, brigade.rope.high_freq_factor: of <arch>.rope.scaling.type "llama3".
 *
 * - brigade.rope.yarn_truncate: false when the ends of YaRN's ramp are not rounded to whole pairs. Absent:
 *   they are.
 *
 * - brigade.rope.short_factor, brigade.rope.long_factor: f32 arrays of "longrope".
 */
#ifndef BRIG_PROTO_MODEL_HUB_H
#define BRIG_PROTO_MODEL_HUB_H

#include <jansson.h>

#include "proto/model/meta_make.h"

/* Which layers see a window of <sliding_window> positions. */
enum brig_hub_window {
    BRIG_HUB_WINDOW_NONE,
    BRIG_HUB_WINDOW_ALL,     /* all, unless sliding_window is null */
    BRIG_HUB_WINDOW_ASKED,   /* all, if use_sliding_window */
    BRIG_HUB_WINDOW_UPPER,   /* those from max_window_layers on, if use_sliding_window */
    BRIG_HUB_WINDOW_PATTERN, /* all but each sliding_window_pattern-th (gemma3) */
    BRIG_HUB_WINDOW_LOCAL    /* the "local" ones of attention_types (gpt_neo) */
};

/* A tensor's name on the hub, without the base ("model."), and in GGUF. '*' is a number, the same in both.
 * name NULL: not a weight, left out. */
struct brig_hub_name {
    const char *own, *name;
};

struct brig_hub_names {
    const char *const *bases; /* what may stand before all names but lm_head's, NULL at the end; the first
                                 one is the usual one */
    const char *table;        /* own name of the token table, by which the base is found */
    const struct brig_hub_name *rows;
    unsigned n;
};

/* The mixture of experts of an architecture; what config.json leaves out is as its class has it. */
struct brig_hub_moe {
    const char *width_key; /* "moe_intermediate_size" */
    uint32_t n_experts, n_used;
    bool always_normed; /* routing weights are always divided by their sum, whatever config.json says */
};

/* A kind of config.json. Defaults are those of the class in transformers, for keys that are absent. */
struct brig_hub_arch {
    const char *model_type; /* "qwen3_moe" */
    const char *arch;       /* a family's name: "qwen3moe" */
    const struct brig_hub_names *names;
    const char *activation; /* what the MLP must use */
    uint32_t n_heads;       /* 0: must be stated */
    uint32_t n_kv_heads;    /* 0: as many as heads */
    uint32_t head_dim;      /* 0: hidden size / heads */
    uint32_t ctx;
    double norm_eps;
    double rope_base; /* 0: positions are learned */
    double
        query_scalar; /* scores are scaled by query_pre_attn_scalar ^ -0.5, this by default; 0: not stated */
    uint32_t ffn_factor; /* intermediate_size may be null: this times the hidden size; 0: it may not */
    bool layer_norm;     /* LayerNorm with biases, not RMSNorm */
    bool su_is_longrope; /* rope scalings "su" and "yarn" are older names of longrope */
    bool tied;
    enum brig_hub_window window;
    uint32_t window_size;           /* 0: none */
    const struct brig_hub_moe *moe; /* NULL: dense */
};

/* NULL when there is none of that model_type. */
const struct brig_hub_arch *brig_hub_arch_of(struct brig_str model_type);
const struct brig_hub_arch *brig_hub_arch_at(unsigned i); /* NULL after the last row */

/* How the matrices of a quantised checkpoint are stored. */
enum brig_hub_method { BRIG_HUB_FLOATS, BRIG_HUB_GPTQ, BRIG_HUB_AWQ };

struct brig_hub_quant {
    enum brig_hub_method method;
    const char *type;    /* of the matrices: "GPTQ4" */
    uint32_t group_cols; /* 0: one group for all columns */
    uint32_t zero_bias;  /* packed.h */
    bool act_order;      /* columns have groups of their own */
};

/* What config.json says. */
struct brig_hub_config {
    const struct brig_hub_arch *arch;
    uint32_t n_layers, hidden, n_heads, head_dim;
    uint32_t vocab; /* 0: not stated */
    bool tied;
    bool untied;   /* config.json itself says that there is an output table */
    int attn_bias; /* 1: config.json says that there are biases, 0: that there are none, -1: nothing */
    int mlp_bias;  /* the same */
    struct brig_hub_quant quant;
    struct brig_meta_make make; /* released by the caller */
};

/* From a parsed config.json (borrowed) into *ret, which is {0}; make is filled also on failure. Everything
 * that would change the numbers and is not known is refused and named. */
int brig_hub_config_read(struct brig_hub_config *ret, const json_t *config, struct brig_fail *fail);

/* Parts of it. config is the object that holds the text model's keys. */
int brig_hub_u32(const json_t *config, const char *key, uint32_t absent, uint32_t *ret,
                 struct brig_fail *fail);                                                   /* null: 0 */
int brig_hub_rope(struct brig_hub_config *c, const json_t *config, struct brig_fail *fail); /* hub_rope.c */
int brig_hub_window(struct brig_hub_config *c, const json_t *config,
                    struct brig_fail *fail);                                               /* hub_layers.c */
int brig_hub_moe(struct brig_hub_config *c, const json_t *config, struct brig_fail *fail); /* the same */

/* From config.json's quantization_config, quantize_config.json (GPTQ) or quant_config.json (AWQ), parsed;
 * `method` is what the last two are for, BRIG_HUB_FLOATS when the object itself says it (hub_quant.c). */
int brig_hub_quant_read(struct brig_hub_quant *ret, const json_t *object, enum brig_hub_method method,
                        struct brig_fail *fail);

/* ---- names (hub_names.c) ---- */

#define BRIG_HUB_NAME_BYTES 160u

enum brig_hub_fate {
    BRIG_HUB_KNOWN,   /* has a name in GGUF */
    BRIG_HUB_LEFT,    /* no part of the text model's weights */
    BRIG_HUB_UNKNOWN, /* inside the text model, and nobody knows what it does */
};

/* A tensor's name in GGUF's words and its place in the order of a model's tensors: token table, layers,
 * output. */
struct brig_hub_place {
    char name[BRIG_HUB_NAME_BYTES];
    uint64_t order;
};

/* The base that stands before `own`'s names in this checkpoint when `name` is its token table; else NULL. */
const char *brig_hub_base(const struct brig_hub_names *names, struct brig_str name);

/* `name` as the checkpoint has it. ret is filled when the fate is KNOWN. */
enum brig_hub_fate brig_hub_translate(const struct brig_hub_names *names, const char *base,
                                      struct brig_str name, struct brig_hub_place *ret);

/* The other way: false when no tensor of the hub has that name. */
bool brig_hub_own_name(const struct brig_hub_names *names, const char *base, const char *name,
                       char ret[BRIG_HUB_NAME_BYTES]);

#endif
