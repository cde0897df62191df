/* The olmoe family: experts whose weights are left as the softmax gave them; queries and keys are normed as
 * one vector each, over all heads, and may be clipped. */
#include "proto/model/family.h"

#include "proto/model/private.h"

static int describe(struct brig_model *m, const struct brig_meta *meta, struct brig_fail *fail)
{
    struct brig_desc *d = &m->desc;
    int r;
    if ((r = brig_family_common(m, meta, fail)) < 0 ||
        (r = brig_family_experts(d, meta, BRIG_REQUIRED, BRIG_EXPERTS_AS_THEY_ARE, fail)) < 0 ||
        (r = brig_family_f32(d, meta, "attention.clamp_kqv", BRIG_OPTIONAL, &d->clip_qkv, fail)) < 0 ||
        (r = brig_family_f32(d, meta, "brigade.clip_qkv", BRIG_OPTIONAL, &d->clip_qkv, fail)) < 0)
        return r;
    d->qk_norm = BRIG_QK_NORM_WHOLE;
    brig_family_biases(m);
    return brig_family_finish(m, fail);
}

const struct brig_family brig_family_olmoe = {
    .name = "olmoe",
    .help = "OLMoE: experts weighed by the softmax over all; a norm over all heads of queries and of keys",
    .describe = describe,
};
