/* The model types of config.json: how each is spelled and what its class takes for granted. Defaults are
 * facts of transformers' configuration classes (4.x and 5.x agree on them). */
#include "proto/model/hub.h"

#define COUNT(a) (sizeof(a) / sizeof(a)[0])

static const char *const llama_bases[] = {"model.", "model.language_model.", "language_model.model.", "",
                                          NULL};
static const char *const gptneo_bases[] = {"transformer.", "", NULL};

/* clang-format off */
static const struct brig_hub_name llama_rows[] = {
    {"embed_tokens.weight", "token_embd.weight"},
    {"layers.*.input_layernorm.weight", "blk.*.attn_norm.weight"},
    {"layers.*.self_attn.q_proj.weight", "blk.*.attn_q.weight"},
    {"layers.*.self_attn.q_proj.bias", "blk.*.attn_q.bias"},
    {"layers.*.self_attn.k_proj.weight", "blk.*.attn_k.weight"},
    {"layers.*.self_attn.k_proj.bias", "blk.*.attn_k.bias"},
    {"layers.*.self_attn.v_proj.weight", "blk.*.attn_v.weight"},
    {"layers.*.self_attn.v_proj.bias", "blk.*.attn_v.bias"},
    {"layers.*.self_attn.q_norm.weight", "blk.*.attn_q_norm.weight"},
    {"layers.*.self_attn.k_norm.weight", "blk.*.attn_k_norm.weight"},
    {"layers.*.self_attn.o_proj.weight", "blk.*.attn_output.weight"},
    {"layers.*.self_attn.o_proj.bias", "blk.*.attn_output.bias"},
    {"layers.*.post_attention_layernorm.weight", "blk.*.ffn_norm.weight"},
    {"layers.*.mlp.gate_proj.weight", "blk.*.ffn_gate.weight"},
    {"layers.*.mlp.gate_proj.bias", "blk.*.ffn_gate.bias"},
    {"layers.*.mlp.up_proj.weight", "blk.*.ffn_up.weight"},
    {"layers.*.mlp.up_proj.bias", "blk.*.ffn_up.bias"},
    {"layers.*.mlp.down_proj.weight", "blk.*.ffn_down.weight"},
    {"layers.*.mlp.down_proj.bias", "blk.*.ffn_down.bias"},
    {"layers.*.mlp.gate.weight", "blk.*.ffn_gate_inp.weight"},
    {"layers.*.mlp.experts.*.gate_proj.weight", "blk.*.ffn_gate.*.weight"},
    {"layers.*.mlp.experts.*.up_proj.weight", "blk.*.ffn_up.*.weight"},
    {"layers.*.mlp.experts.*.down_proj.weight", "blk.*.ffn_down.*.weight"},
    {"norm.weight", "output_norm.weight"},
    {"layers.*.self_attn.rotary_emb.inv_freq", NULL},
};

static const struct brig_hub_name mixtral_rows[] = {
    {"embed_tokens.weight", "token_embd.weight"},
    {"layers.*.input_layernorm.weight", "blk.*.attn_norm.weight"},
    {"layers.*.self_attn.q_proj.weight", "blk.*.attn_q.weight"},
    {"layers.*.self_attn.k_proj.weight", "blk.*.attn_k.weight"},
    {"layers.*.self_attn.v_proj.weight", "blk.*.attn_v.weight"},
    {"layers.*.self_attn.o_proj.weight", "blk.*.attn_output.weight"},
    {"layers.*.post_attention_layernorm.weight", "blk.*.ffn_norm.weight"},
    {"layers.*.block_sparse_moe.gate.weight", "blk.*.ffn_gate_inp.weight"},
    {"layers.*.block_sparse_moe.experts.*.w1.weight", "blk.*.ffn_gate.*.weight"},
    {"layers.*.block_sparse_moe.experts.*.w3.weight", "blk.*.ffn_up.*.weight"},
    {"layers.*.block_sparse_moe.experts.*.w2.weight", "blk.*.ffn_down.*.weight"},
    {"norm.weight", "output_norm.weight"},
    {"layers.*.self_attn.rotary_emb.inv_freq", NULL},
};

static const struct brig_hub_name phi3_rows[] = {
    {"embed_tokens.weight", "token_embd.weight"},
    {"layers.*.input_layernorm.weight", "blk.*.attn_norm.weight"},
    {"layers.*.self_attn.qkv_proj.weight", "blk.*.attn_qkv.weight"},
    {"layers.*.self_attn.o_proj.weight", "blk.*.attn_output.weight"},
    {"layers.*.post_attention_layernorm.weight", "blk.*.ffn_norm.weight"},
    {"layers.*.mlp.gate_up_proj.weight", "blk.*.ffn_up.weight"},
    {"layers.*.mlp.down_proj.weight", "blk.*.ffn_down.weight"},
    {"norm.weight", "output_norm.weight"},
};

/* The norm after the attention is a different one here: it is applied to the branch. */
static const struct brig_hub_name gemma3_rows[] = {
    {"embed_tokens.weight", "token_embd.weight"},
    {"layers.*.input_layernorm.weight", "blk.*.attn_norm.weight"},
    {"layers.*.self_attn.q_proj.weight", "blk.*.attn_q.weight"},
    {"layers.*.self_attn.k_proj.weight", "blk.*.attn_k.weight"},
    {"layers.*.self_attn.v_proj.weight", "blk.*.attn_v.weight"},
    {"layers.*.self_attn.q_norm.weight", "blk.*.attn_q_norm.weight"},
    {"layers.*.self_attn.k_norm.weight", "blk.*.attn_k_norm.weight"},
    {"layers.*.self_attn.o_proj.weight", "blk.*.attn_output.weight"},
    {"layers.*.post_attention_layernorm.weight", "blk.*.post_attention_norm.weight"},
    {"layers.*.pre_feedforward_layernorm.weight", "blk.*.ffn_norm.weight"},
    {"layers.*.mlp.gate_proj.weight", "blk.*.ffn_gate.weight"},
    {"layers.*.mlp.up_proj.weight", "blk.*.ffn_up.weight"},
    {"layers.*.mlp.down_proj.weight", "blk.*.ffn_down.weight"},
    {"layers.*.post_feedforward_layernorm.weight", "blk.*.post_ffw_norm.weight"},
    {"norm.weight", "output_norm.weight"},
};

static const struct brig_hub_name gptneo_rows[] = {
    {"wte.weight", "token_embd.weight"},
    {"wpe.weight", "position_embd.weight"},
    {"h.*.ln_1.weight", "blk.*.attn_norm.weight"},
    {"h.*.ln_1.bias", "blk.*.attn_norm.bias"},
    {"h.*.attn.attention.q_proj.weight", "blk.*.attn_q.weight"},
    {"h.*.attn.attention.q_proj.bias", "blk.*.attn_q.bias"},
    {"h.*.attn.attention.k_proj.weight", "blk.*.attn_k.weight"},
    {"h.*.attn.attention.k_proj.bias", "blk.*.attn_k.bias"},
    {"h.*.attn.attention.v_proj.weight", "blk.*.attn_v.weight"},
    {"h.*.attn.attention.v_proj.bias", "blk.*.attn_v.bias"},
    {"h.*.attn.attention.out_proj.weight", "blk.*.attn_output.weight"},
    {"h.*.attn.attention.out_proj.bias", "blk.*.attn_output.bias"},
    {"h.*.ln_2.weight", "blk.*.ffn_norm.weight"},
    {"h.*.ln_2.bias", "blk.*.ffn_norm.bias"},
    {"h.*.mlp.c_fc.weight", "blk.*.ffn_up.weight"},
    {"h.*.mlp.c_fc.bias", "blk.*.ffn_up.bias"},
    {"h.*.mlp.c_proj.weight", "blk.*.ffn_down.weight"},
    {"h.*.mlp.c_proj.bias", "blk.*.ffn_down.bias"},
    {"ln_f.weight", "output_norm.weight"},
    {"ln_f.bias", "output_norm.bias"},
    {"h.*.attn.attention.bias", NULL},
    {"h.*.attn.attention.masked_bias", NULL},
};
/* clang-format on */

static const struct brig_hub_names llama_names = {llama_bases, "embed_tokens.weight", llama_rows,
                                                  COUNT(llama_rows)};
static const struct brig_hub_names mixtral_names = {llama_bases, "embed_tokens.weight", mixtral_rows,
                                                    COUNT(mixtral_rows)};
static const struct brig_hub_names phi3_names = {llama_bases, "embed_tokens.weight", phi3_rows,
                                                 COUNT(phi3_rows)};
static const struct brig_hub_names gemma3_names = {llama_bases, "embed_tokens.weight", gemma3_rows,
                                                   COUNT(gemma3_rows)};
static const struct brig_hub_names gptneo_names = {gptneo_bases, "wte.weight", gptneo_rows,
                                                   COUNT(gptneo_rows)};

static const struct brig_hub_moe mixtral_moe = {"intermediate_size", 8, 2, true};
static const struct brig_hub_moe qwen3_moe = {"moe_intermediate_size", 128, 8, false};
static const struct brig_hub_moe olmoe_moe = {"intermediate_size", 64, 8, false};

#define SILU "silu"
#define GELU "gelu_pytorch_tanh"

static const struct brig_hub_arch archs[] = {
    {.model_type = "llama",
     .arch = "llama",
     .names = &llama_names,
     .activation = SILU,
     .ctx = 2048,
     .norm_eps = 1e-6,
     .rope_base = 1e4},
    {.model_type = "mistral",
     .arch = "mistral",
     .names = &llama_names,
     .activation = SILU,
     .n_kv_heads = 8,
     .ctx = 131072,
     .norm_eps = 1e-6,
     .rope_base = 1e4,
     .window = BRIG_HUB_WINDOW_ALL,
     .window_size = 4096},
    {.model_type = "mixtral",
     .arch = "mixtral",
     .names = &mixtral_names,
     .activation = SILU,
     .n_kv_heads = 8,
     .ctx = 131072,
     .norm_eps = 1e-5,
     .rope_base = 1e6,
     .window = BRIG_HUB_WINDOW_ALL,
     .moe = &mixtral_moe},
    {.model_type = "qwen2",
     .arch = "qwen2",
     .names = &llama_names,
     .activation = SILU,
     .n_kv_heads = 32,
     .ctx = 32768,
     .norm_eps = 1e-6,
     .rope_base = 1e4,
     .window = BRIG_HUB_WINDOW_UPPER,
     .window_size = 4096},
    {.model_type = "qwen3",
     .arch = "qwen3",
     .names = &llama_names,
     .activation = SILU,
     .n_kv_heads = 32,
     .head_dim = 128,
     .ctx = 32768,
     .norm_eps = 1e-6,
     .rope_base = 1e4,
     .window = BRIG_HUB_WINDOW_UPPER,
     .window_size = 4096},
    {.model_type = "qwen3_moe",
     .arch = "qwen3moe",
     .names = &llama_names,
     .activation = SILU,
     .n_kv_heads = 4,
     .ctx = 32768,
     .norm_eps = 1e-6,
     .rope_base = 1e4,
     .window = BRIG_HUB_WINDOW_ASKED,
     .window_size = 4096,
     .moe = &qwen3_moe},
    {.model_type = "olmoe",
     .arch = "olmoe",
     .names = &llama_names,
     .activation = SILU,
     .ctx = 4096,
     .norm_eps = 1e-5,
     .rope_base = 1e4,
     .moe = &olmoe_moe},
    {.model_type = "gemma3_text",
     .arch = "gemma3",
     .names = &gemma3_names,
     .activation = GELU,
     .n_heads = 8,
     .n_kv_heads = 4,
     .head_dim = 256,
     .ctx = 131072,
     .norm_eps = 1e-6,
     .rope_base = 1e6,
     .query_scalar = 256,
     .tied = true,
     .window = BRIG_HUB_WINDOW_PATTERN,
     .window_size = 4096},
    {.model_type = "phi3",
     .arch = "phi3",
     .su_is_longrope = true,
     .names = &phi3_names,
     .activation = SILU,
     .ctx = 4096,
     .norm_eps = 1e-5,
     .rope_base = 1e4,
     .window = BRIG_HUB_WINDOW_ALL},
    {.model_type = "gpt_neo",
     .arch = "gpt-neo",
     .names = &gptneo_names,
     .activation = GELU,
     .ctx = 2048,
     .norm_eps = 1e-5,
     .query_scalar = 1,
     .ffn_factor = 4,
     .layer_norm = true,
     .tied = true,
     .window = BRIG_HUB_WINDOW_LOCAL,
     .window_size = 256},
};

const struct brig_hub_arch *brig_hub_arch_at(unsigned i)
{
    return i < COUNT(archs) ? &archs[i] : NULL;
}

const struct brig_hub_arch *brig_hub_arch_of(struct brig_str model_type)
{
    for (unsigned i = 0; i < COUNT(archs); i++)
        if (brig_str_eq(model_type, archs[i].model_type))
            return &archs[i];
    return NULL;
}
