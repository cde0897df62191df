/* The qwen3moe family: qwen3 with experts; some layers may be dense. */
#include "proto/model/family.h"

#include "proto/model/private.h"

static int describe(struct brig_model *m, const struct brig_meta *meta, struct brig_fail *fail)
{
    struct brig_desc *d = &m->desc;
    int r;
    if ((r = brig_family_common(m, meta, fail)) < 0 ||
        (r = brig_family_experts(d, meta, BRIG_REQUIRED, BRIG_EXPERTS_SUM_TO_ONE, fail)) < 0)
        return r;
    d->qk_norm = BRIG_QK_NORM_HEAD;
    brig_family_biases(m);
    return brig_family_finish(m, fail);
}

const struct brig_family brig_family_qwen3moe = {
    .name = "qwen3moe",
    .help = "Qwen3 with experts (30B-A3B, 235B-A22B): weights of the chosen sum to one; dense layers",
    .describe = describe,
};
