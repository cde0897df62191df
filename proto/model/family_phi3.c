/* The phi3 family: queries, keys and values in one tensor, gate and up in another; a part of each head may be
 * all that turns (rope.dimension_count). */
#include "proto/model/family.h"

#include "proto/model/private.h"

static const struct brig_split joined[] = {
    {"attn_qkv.weight", {BRIG_ROLE_ATTN_Q, BRIG_ROLE_ATTN_K, BRIG_ROLE_ATTN_V}, false},
    {"ffn_up.weight", {BRIG_ROLE_FFN_GATE, BRIG_ROLE_FFN_UP, BRIG_ROLE_COUNT}, false},
};

static int describe(struct brig_model *m, const struct brig_meta *meta, struct brig_fail *fail)
{
    int r = brig_family_common(m, meta, fail);
    if (r < 0)
        return r;
    return brig_family_finish_joined(m, joined, sizeof joined / sizeof joined[0], fail);
}

const struct brig_family brig_family_phi3 = {
    .name = "phi3",
    .help = "Phi-3, Phi-3.5, Phi-4: joined projections, heads of which a part may turn",
    .describe = describe,
};
