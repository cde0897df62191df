/* The llama family: Llama, Mistral, SmolLM Mixtral and others that GGUF files call "llama": RMSNorm,
 * grouped-query attention, SwiGLU or experts of it, biases where the file has them. Its files hold the rows
 * of queries and keys in an order that turns in pairs. */
#include "proto/model/family.h"

#include "proto/model/private.h"

/* What some files of this architecture have and this family does not compute. */
static int refuse_others(const struct brig_desc *d, const struct brig_meta *meta, struct brig_fail *fail)
{
    uint32_t window = 0;
    int r = brig_family_u32(d, meta, "attention.sliding_window", BRIG_OPTIONAL, &window, fail);
    if (r < 0)
        return r;
    if (window > 0 && window < d->ctx_trained)
        return brig_fail_set(fail, BRIG_EUNSUPPORTED,
                             "a sliding window (llama.attention.sliding_window is %u) is not supported",
                             window);
    return 0;
}

int brig_family_llama_describe(struct brig_model *m, const struct brig_meta *meta, struct brig_fail *fail)
{
    struct brig_desc *d = &m->desc;
    int r;
    if ((r = brig_family_common(d, meta, fail)) < 0 || (r = refuse_others(d, meta, fail)) < 0 ||
        (r = brig_family_experts(d, meta, BRIG_OPTIONAL, BRIG_EXPERTS_SUM_TO_ONE, fail)) < 0)
        return r;
    d->rope = m->hub_layout ? BRIG_ROPE_HALVES : BRIG_ROPE_PAIRS;
    d->qkv_bias = brig_family_has(m, "blk.0.attn_q.bias");
    d->out_bias = brig_family_has(m, "blk.0.attn_output.bias");
    d->mlp_bias = brig_family_has(m, "blk.0.ffn_down.bias");
    return brig_family_finish(m, fail);
}

const struct brig_family brig_family_llama = {
    .name = "llama",
    .help = "Llama, Mistral, Mixtral, SmolLM and other files that say llama",
    .describe = brig_family_llama_describe,
};
