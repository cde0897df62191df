/* The mixtral family: llama with experts, by the name that the hub gives it. GGUF files say llama. */
#include "proto/model/family.h"

#include "proto/model/private.h"

static int describe(struct brig_model *m, const struct brig_meta *meta, struct brig_fail *fail)
{
    int r = brig_family_llama_describe(m, meta, fail);
    if (r < 0 || m->desc.n_experts > 0)
        return r;
    return brig_fail_set(fail, BRIG_EFORMAT, "a mixtral without experts (mixtral.expert_count)");
}

const struct brig_family brig_family_mixtral = {
    .name = "mixtral",
    .help = "Mixtral: llama with experts, whose weights are made to sum to one (GGUF files say llama)",
    .describe = describe,
};
