/* The olmoe family: experts whose weights are left as the softmax gave them; queries and keys are normed as
 * one vector each, over all heads, and may be clipped. */
#include "proto/model/family.h"

#include "proto/model/private.h"

static int read_clip(struct brig_desc *d, const struct brig_meta *meta, struct brig_fail *fail)
{
    static const char key[] = "brigade.clip_qkv";
    double clip;
    const char *kind = brig_meta_kind(meta, key);
    if (kind == NULL)
        return brig_family_f32(d, meta, "attention.clamp_kqv", BRIG_OPTIONAL, &d->clip_qkv, fail);
    if (!brig_meta_f64(meta, key, &clip))
        return brig_fail_set(fail, BRIG_EFORMAT, "the metadata key %s is %s, a number is wanted", key, kind);
    d->clip_qkv = (float)clip;
    return 0;
}

static int describe(struct brig_model *m, const struct brig_meta *meta, struct brig_fail *fail)
{
    struct brig_desc *d = &m->desc;
    int r;
    if ((r = brig_family_common(d, meta, fail)) < 0 ||
        (r = brig_family_experts(d, meta, BRIG_REQUIRED, BRIG_EXPERTS_AS_THEY_ARE, fail)) < 0 ||
        (r = read_clip(d, meta, fail)) < 0)
        return r;
    d->qk_norm = BRIG_QK_NORM_WHOLE;
    d->qkv_bias = brig_family_has(m, "blk.0.attn_q.bias");
    d->out_bias = brig_family_has(m, "blk.0.attn_output.bias");
    return brig_family_finish(m, fail);
}

const struct brig_family brig_family_olmoe = {
    .name = "olmoe",
    .help = "OLMoE: experts weighed by the softmax over all; a norm over all heads of queries and of keys",
    .describe = describe,
};
