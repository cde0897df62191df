/*
 * The gemma3 family (text): four norms a layer, of queries and keys too; five layers of six see a window and
 * turn with a base of their own; GEGLU; token rows times the root of the hidden size. GGUF's files hold norms
 * as 1 + w and leave the pattern of layers and the scale of scores out.
 */
#include "proto/model/family.h"

#include <math.h>

#include "proto/model/private.h"

#define PATTERN 6u /* each PATTERN-th layer sees the whole context */
#define LAYERS_27B                                                                                           \
    62u /* scores of that size are scaled by the width of a head that n_heads of hidden have                 \
         */

/* Numbers that would change what is computed; the released files have none of them. */
static int refuse_caps(const struct brig_desc *d, const struct brig_meta *meta, struct brig_fail *fail)
{
    static const char *const caps[] = {"attn_logit_softcapping", "final_logit_softcapping"};
    for (unsigned i = 0; i < sizeof caps / sizeof caps[0]; i++) {
        float cap = 0.0f;
        int r = brig_family_f32(d, meta, caps[i], BRIG_OPTIONAL, &cap, fail);
        if (r < 0)
            return r;
        if (cap != 0.0f)
            return brig_fail_set(fail, BRIG_EUNSUPPORTED, "capped logits (%s.%s is %g) are not supported",
                                 d->arch, caps[i], (double)cap);
    }
    return 0;
}

/* What GGUF takes for granted. */
static int apply_defaults(struct brig_desc *d, const struct brig_meta *meta, struct brig_fail *fail)
{
    uint32_t pattern = PATTERN;
    int r = brig_family_u32(d, meta, "attention.sliding_window_pattern", BRIG_OPTIONAL, &pattern, fail);
    if (r < 0)
        return r;
    if (pattern == 0)
        return brig_fail_set(fail, BRIG_EFORMAT, "%s.attention.sliding_window_pattern is 0", d->arch);
    for (uint32_t i = pattern - 1; i < d->n_layers && i < BRIG_MAX_LAYERS; i += pattern)
        d->layer_flags[i] &= (uint8_t)~BRIG_LAYER_WINDOWED;
    if (d->n_layers == LAYERS_27B && !brig_family_stated(d, meta, "brigade.attn_scale"))
        d->attn_scale = 1.0f / sqrtf((float)d->hidden / (float)d->n_heads);
    return 0;
}

static int describe(struct brig_model *m, const struct brig_meta *meta, struct brig_fail *fail)
{
    struct brig_desc *d = &m->desc;
    int r;
    if ((r = brig_family_common(m, meta, fail)) < 0 || (r = refuse_caps(d, meta, fail)) < 0)
        return r;
    d->rope_windowed_base = 10000.0f;
    if ((r = brig_family_f32(d, meta, "rope.freq_base_swa", BRIG_OPTIONAL, &d->rope_windowed_base, fail)) < 0)
        return r;
    if (!m->hub_layout && !brig_family_stated(d, meta, "brigade.layer_types") &&
        (r = apply_defaults(d, meta, fail)) < 0)
        return r;
    d->norm = m->hub_layout ? BRIG_NORM_RMS_PLUS_ONE : BRIG_NORM_RMS;
    d->qk_norm = BRIG_QK_NORM_HEAD;
    d->post_norms = true;
    d->mlp = BRIG_MLP_GEGLU;
    d->embed_scale = sqrtf((float)d->hidden);
    return brig_family_finish(m, fail);
}

const struct brig_family brig_family_gemma3 = {
    .name = "gemma3",
    .help = "Gemma 3, text: windows on five layers of six, norms before and after each branch",
    .describe = describe,
};
