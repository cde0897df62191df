/* The llama family: Llama, Mistral, SmolLM, Mixtral and others that GGUF files call "llama": RMSNorm,
 * grouped-query attention, SwiGLU or experts of it, biases where the file has them. GGUF's files hold the
 * rows of queries and keys in an order that turns in pairs. */
#include "proto/model/family.h"

#include "proto/model/private.h"

int brig_family_llama_describe(struct brig_model *m, const struct brig_meta *meta, struct brig_fail *fail)
{
    struct brig_desc *d = &m->desc;
    int r;
    if ((r = brig_family_common(m, meta, fail)) < 0 ||
        (r = brig_family_experts(d, meta, BRIG_OPTIONAL, BRIG_EXPERTS_SUM_TO_ONE, fail)) < 0)
        return r;
    d->rope = m->hub_layout ? BRIG_ROPE_HALVES : BRIG_ROPE_PAIRS;
    brig_family_biases(m);
    return brig_family_finish(m, fail);
}

const struct brig_family brig_family_llama = {
    .name = "llama",
    .help = "Llama, SmolLM, and all that GGUF files call llama, Mistral and Mixtral too",
    .describe = brig_family_llama_describe,
};
