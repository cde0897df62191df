/* The qwen2 family: as llama, with biases on queries, keys and values. */
#include "proto/model/family.h"

#include "proto/model/private.h"

static int describe(struct brig_model *m, const struct brig_meta *meta, struct brig_fail *fail)
{
    int r = brig_family_common(m, meta, fail);
    if (r < 0)
        return r;
    m->desc.qkv_bias = true;
    return brig_family_finish(m, fail);
}

const struct brig_family brig_family_qwen2 = {
    .name = "qwen2",
    .help = "Qwen2 and Qwen2.5: biases on queries, keys and values",
    .describe = describe,
};
