/*
 * Rotary positions, and the way of new keys and values into the cache.
 *
 * Frequencies are computed in double and rounded once; an angle is one f32 product of position and frequency
 * (docs/arithmetic.md). Sines and cosines are made once a frame and serve all layers, or all windowed ones.
 */
#include "shard/block/parts.h"

#include <math.h>

#include "proto/base/real.h"
#include "shard/kernels/kv_row.h"
#include "shard/kernels/math.h"

#define ANGLE_LIMIT 0x1p27f /* brig_sincosf takes angles below it */

static int make_frequencies(const struct brig_block *b, const struct brig_turns *t, struct brig_fail *fail)
{
    const struct brig_desc *d = b->desc;
    float last = (float)b->setup.ctx / t->linear;
    for (uint32_t i = 0; i < d->rope_dims / 2; i++) {
        float f = (float)brig_pow(t->base, -2.0 * i / d->rope_dims);
        t->inv_freq[i] = t->factors != NULL ? f / t->factors[i] : f;
        if (!(t->inv_freq[i] >= 0.0f && t->inv_freq[i] * last < ANGLE_LIMIT))
            return brig_fail_set(fail, BRIG_EFORMAT,
                                 "rotary frequency %u of the model is out of range (%g) for a context of %u",
                                 i, (double)t->inv_freq[i], b->setup.ctx);
    }
    return 0;
}

/* Of the layers that turn with a base of their own there is a second table. */
static unsigned table_count(const struct brig_desc *d)
{
    return d->rope_dims == 0 ? 0 : d->rope_windowed_base != 0.0f ? 2 : 1;
}

int brig_rope_init(struct brig_block *b, struct brig_fail *fail)
{
    const struct brig_desc *d = b->desc;
    struct brig_turns *all = &b->turns[0], *windowed = &b->turns[1];
    all->base = d->rope_base;
    all->linear = d->rope_linear;
    all->mscale = d->rope_mscale;
    if (d->n_rope_factors > 0)
        all->factors = d->rope_long_from != 0 && b->setup.ctx > d->rope_long_from ? d->rope_long_factors
                                                                                  : d->rope_factors;
    windowed->base = d->rope_windowed_base;
    windowed->linear = windowed->mscale = 1.0f;
    int r = 0;
    for (unsigned i = 0; i < table_count(d) && r == 0; i++)
        r = make_frequencies(b, &b->turns[i], fail);
    return r;
}

static void angles_piece(void *ctx, unsigned thread, uint32_t row)
{
    struct brig_block *b = ctx;
    uint32_t half = b->desc->rope_dims / 2;
    (void)thread;
    for (unsigned k = 0; k < table_count(b->desc); k++) {
        const struct brig_turns *t = &b->turns[k];
        float pos = (float)b->row_pos[row] / t->linear;
        for (uint32_t i = 0; i < half; i++) {
            size_t at = (size_t)row * half + i;
            brig_sincosf(pos * t->inv_freq[i], &t->sines[at], &t->cosines[at]);
            t->sines[at] = t->sines[at] * t->mscale;
            t->cosines[at] = t->cosines[at] * t->mscale;
        }
    }
}

void brig_rope_angles(struct brig_block *b)
{
    if (table_count(b->desc) > 0)
        brig_team_run(b->setup.team, b->n_rows, angles_piece, b);
}

/* One head: x1' = x1 cos - x2 sin, x2' = x2 cos + x1 sin; a product, then one fused step. */
static void turn(const struct brig_block *b, const struct brig_turns *t, uint32_t row, float *x)
{
    uint32_t half = b->desc->rope_dims / 2;
    const float *sines = t->sines + (size_t)row * half, *cosines = t->cosines + (size_t)row * half;
    bool pairs = b->desc->rope == BRIG_ROPE_PAIRS;
    for (uint32_t i = 0; i < half; i++) {
        float *x1 = pairs ? x + 2 * (size_t)i : x + i;
        float *x2 = pairs ? x1 + 1 : x1 + half;
        float a = *x1, c = *x2;
        *x1 = fmaf(a, cosines[i], -(c * sines[i]));
        *x2 = fmaf(c, cosines[i], a * sines[i]);
    }
}

static void store(const struct brig_block *b, const float *x, void *plane, uint32_t pos)
{
    brig_kv_row_store(b->setup.kernel, brig_kv_shape_of(b->kv).type, x, b->desc->head_dim,
                      (char *)plane + pos * brig_kv_stride(b->kv));
}

struct store_job {
    struct brig_block *b;
    uint32_t layer;
    const struct brig_turns *turns;
};

/* A NaN stays one. */
static void clip(float *x, uint32_t n, float most)
{
    for (uint32_t i = 0; i < n; i++)
        x[i] = x[i] > most ? most : x[i] < -most ? -most : x[i];
}

/* Bias, norm and clip of all heads of a row of one projection. */
static void finish_projection(const struct brig_block *b, float *x, uint32_t n_heads, const float *bias,
                              const float *norm)
{
    const struct brig_desc *d = b->desc;
    uint32_t n = n_heads * d->head_dim;
    if (bias != NULL)
        b->setup.kernel->add(x, bias, n);
    uint32_t step = d->qk_norm == BRIG_QK_NORM_WHOLE ? n : d->head_dim;
    for (uint32_t at = 0; norm != NULL && at < n; at += step)
        b->setup.kernel->rms_norm(x + at, norm, step, d->norm_eps, x + at);
    if (d->clip_qkv > 0.0f)
        clip(x, n, d->clip_qkv);
}

static void store_piece(void *ctx, unsigned thread, uint32_t row)
{
    const struct store_job *j = ctx;
    struct brig_block *b = j->b;
    const struct brig_desc *d = b->desc;
    float *q = b->q + (size_t)row * d->n_heads * d->head_dim;
    float *k = b->k + (size_t)row * d->n_kv_heads * d->head_dim;
    float *v = b->v + (size_t)row * d->n_kv_heads * d->head_dim;
    const struct brig_layer *l = &b->layers[j->layer - b->first_layer];
    uint32_t slot = b->row_slot[row], pos = b->row_pos[row];
    (void)thread;
    finish_projection(b, q, d->n_heads, l->q_bias, l->q_norm);
    finish_projection(b, k, d->n_kv_heads, l->k_bias, l->k_norm);
    finish_projection(b, v, d->n_kv_heads, l->v_bias, NULL);
    for (uint32_t head = 0; head < d->n_heads; head++)
        turn(b, j->turns, row, q + (size_t)head * d->head_dim);
    for (uint32_t head = 0; head < d->n_kv_heads; head++) {
        size_t at = (size_t)head * d->head_dim;
        turn(b, j->turns, row, k + at);
        store(b, k + at, brig_kv_k(b->kv, slot, j->layer, head), pos);
        store(b, v + at, brig_kv_v(b->kv, slot, j->layer, head), pos);
    }
}

void brig_rope_store(struct brig_block *b, uint32_t layer)
{
    bool own =
        (b->desc->layer_flags[layer] & BRIG_LAYER_WINDOWED) != 0 && b->desc->rope_windowed_base != 0.0f;
    struct store_job j = {b, layer, &b->turns[own]};
    brig_team_run(b->setup.team, b->n_rows, store_piece, &j);
}
