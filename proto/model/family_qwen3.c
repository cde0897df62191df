/* The qwen3 family: each head of queries and keys is normed before it turns. */
#include "proto/model/family.h"

#include "proto/model/private.h"

static int describe(struct brig_model *m, const struct brig_meta *meta, struct brig_fail *fail)
{
    int r = brig_family_common(m, meta, fail);
    if (r < 0)
        return r;
    m->desc.qk_norm = BRIG_QK_NORM_HEAD;
    brig_family_biases(m);
    return brig_family_finish(m, fail);
}

const struct brig_family brig_family_qwen3 = {
    .name = "qwen3",
    .help = "Qwen3: a norm on each head of queries and keys",
    .describe = describe,
};
