/* What a checkpoint says about its experts, under the keys that all families share. */
#include "proto/model/private.h"

#include <stdio.h>

#define SOFTMAX 1u /* of <arch>.expert_gating_func; 0: not stated */

/* What some files of these architectures could ask for and the block does not compute. */
static int refuse_others(const struct brig_desc *d, const struct brig_meta *meta, struct brig_fail *fail)
{
    uint32_t shared = 0, gating = 0;
    float scale = 0.0f;
    int r;
    if ((r = brig_family_u32(d, meta, "expert_shared_count", BRIG_OPTIONAL, &shared, fail)) < 0 ||
        (r = brig_family_u32(d, meta, "expert_gating_func", BRIG_OPTIONAL, &gating, fail)) < 0 ||
        (r = brig_family_f32(d, meta, "expert_weights_scale", BRIG_OPTIONAL, &scale, fail)) < 0)
        return r;
    if (shared != 0)
        return brig_fail_set(fail, BRIG_EUNSUPPORTED,
                             "shared experts (%s.expert_shared_count is %u) are not supported", d->arch,
                             shared);
    if (gating > SOFTMAX)
        return brig_fail_set(fail, BRIG_EUNSUPPORTED,
                             "experts chosen by anything but a softmax (%s.expert_gating_func is %u) are not "
                             "supported",
                             d->arch, gating);
    if (scale != 0.0f && scale != 1.0f)
        return brig_fail_set(fail, BRIG_EUNSUPPORTED,
                             "scaled expert weights (%s.expert_weights_scale is %g) are not supported",
                             d->arch, (double)scale);
    return 0;
}

/* One digit a layer, '1': dense. */
static int read_dense(struct brig_desc *d, const struct brig_meta *meta, struct brig_fail *fail)
{
    static const char key[] = "brigade.dense_layers";
    struct brig_str digits;
    const char *kind = brig_meta_kind(meta, key);
    if (kind == NULL)
        return 0;
    if (!brig_meta_str(meta, key, &digits))
        return brig_fail_set(fail, BRIG_EFORMAT, "the metadata key %s is %s, a string is wanted", key, kind);
    if (digits.len != d->n_layers || digits.len > BRIG_MAX_LAYERS)
        return brig_fail_set(fail, BRIG_EFORMAT, "the metadata key %s has %zu digits for %u layers", key,
                             digits.len, d->n_layers);
    for (uint32_t i = 0; i < d->n_layers; i++) {
        if (digits.ptr[i] != '0' && digits.ptr[i] != '1')
            return brig_fail_set(fail, BRIG_EFORMAT, "the metadata key %s must be of the digits 0 and 1",
                                 key);
        if (digits.ptr[i] == '1')
            d->layer_flags[i] |= BRIG_LAYER_DENSE;
    }
    return 0;
}

int brig_family_experts(struct brig_desc *d, const struct brig_meta *meta, enum brig_presence presence,
                        enum brig_expert_norm norm, struct brig_fail *fail)
{
    static const char norm_key[] = "brigade.norm_topk_prob";
    int r = brig_family_u32(d, meta, "expert_count", presence, &d->n_experts, fail);
    if (r < 0 || (d->n_experts == 0 && presence == BRIG_OPTIONAL))
        return r;
    d->expert_ffn = d->ffn;
    if ((r = brig_family_u32(d, meta, "expert_used_count", BRIG_REQUIRED, &d->n_experts_used, fail)) < 0 ||
        (r = brig_family_u32(d, meta, "expert_feed_forward_length", BRIG_OPTIONAL, &d->expert_ffn, fail)) <
            0 ||
        (r = refuse_others(d, meta, fail)) < 0)
        return r;
    const char *kind = brig_meta_kind(meta, norm_key);
    bool sum_to_one = norm == BRIG_EXPERTS_SUM_TO_ONE;
    if (kind != NULL && !brig_meta_bool(meta, norm_key, &sum_to_one))
        return brig_fail_set(fail, BRIG_EFORMAT, "the metadata key %s is %s, a truth value is wanted",
                             norm_key, kind);
    d->expert_norm = sum_to_one ? BRIG_EXPERTS_SUM_TO_ONE : BRIG_EXPERTS_AS_THEY_ARE;
    return read_dense(d, meta, fail);
}
