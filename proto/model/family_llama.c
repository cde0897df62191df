/* The llama family: Llama, Mistral, SmolLM and others that GGUF files call "llama": RMSNorm, grouped-query
 * attention, SwiGLU, biases where the file has them. Its files hold the rows of queries and keys in an order
 * that turns in pairs. */
#include "proto/model/family.h"

#include "proto/model/private.h"

/* What some files of this architecture have and this family does not compute. */
static int refuse_others(const struct brig_desc *d, const struct brig_meta *meta, struct brig_fail *fail)
{
    uint32_t experts = 0, window = 0;
    int r;
    if ((r = brig_family_u32(d, meta, "expert_count", BRIG_OPTIONAL, &experts, fail)) < 0 ||
        (r = brig_family_u32(d, meta, "attention.sliding_window", BRIG_OPTIONAL, &window, fail)) < 0)
        return r;
    if (experts > 0)
        return brig_fail_set(fail, BRIG_EUNSUPPORTED,
                             "a mixture of experts (llama.expert_count is %u) is not supported", experts);
    if (window > 0 && window < d->ctx_trained)
        return brig_fail_set(fail, BRIG_EUNSUPPORTED,
                             "a sliding window (llama.attention.sliding_window is %u) is not supported",
                             window);
    return 0;
}

static int describe(struct brig_model *m, const struct brig_meta *meta, struct brig_fail *fail)
{
    struct brig_desc *d = &m->desc;
    int r;
    if ((r = brig_family_common(d, meta, fail)) < 0 || (r = refuse_others(d, meta, fail)) < 0)
        return r;
    d->rope = m->hub_layout ? BRIG_ROPE_HALVES : BRIG_ROPE_PAIRS;
    d->qkv_bias = brig_family_has(m, "blk.0.attn_q.bias");
    d->out_bias = brig_family_has(m, "blk.0.attn_output.bias");
    d->mlp_bias = brig_family_has(m, "blk.0.ffn_down.bias");
    return brig_family_finish(m, fail);
}

const struct brig_family brig_family_llama = {
    .name = "llama",
    .help = "Llama, Mistral, SmolLM and other files that say llama; no experts",
    .describe = describe,
};
