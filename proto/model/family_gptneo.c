/*
 * The gpt-neo family (GPT-Neo, TinyStories): LayerNorm with biases, learned positions, scores that are not
 * scaled, a window on some layers, an MLP without a gate. GGUF has no such architecture; names are those that
 * it gives the same things elsewhere.
 */
#include "proto/model/family.h"

#include "proto/model/private.h"

static int describe(struct brig_model *m, const struct brig_meta *meta, struct brig_fail *fail)
{
    struct brig_desc *d = &m->desc;
    d->norm = BRIG_NORM_LAYER;
    int r = brig_family_common(m, meta, fail);
    if (r < 0)
        return r;
    d->mlp = BRIG_MLP_GELU;
    d->learned_positions = true;
    d->rope_dims = d->n_rope_factors = 0;
    if (!brig_family_stated(d, meta, "brigade.attn_scale"))
        d->attn_scale = 1.0f;
    brig_family_biases(m);
    return brig_family_finish(m, fail);
}

const struct brig_family brig_family_gptneo = {
    .name = "gpt-neo",
    .help = "GPT-Neo and TinyStories: learned positions, LayerNorm, no gate in the MLP",
    .describe = describe,
};
