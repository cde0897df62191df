/*
 * Attention of one head. Scores: the 16 chains of a position lie in lanes, and as many positions as there are
 * lanes are joined at once by a tree of adjacent pairs. Weighted sums: lanes are elements of the head,
 * positions in order. Called through the kernel table.
 */
#include <math.h>

#include "shard/kernels/vec/exp.h"

/* Elements [i, i + n) of a row of the cache: n a vector, or fewer. */
static inline __attribute__((always_inline)) brig_vf load(const void *row, bool f32, size_t i)
{
    return f32 ? brig_vf_load((const float *)row + i) : brig_vf_load_f16((const uint16_t *)row + i);
}

static inline __attribute__((always_inline)) brig_vf load_n(const void *row, bool f32, size_t i, size_t n)
{
    return f32 ? brig_vf_load_n((const float *)row + i, n) : brig_vf_load_f16_n((const uint16_t *)row + i, n);
}

static inline const void *row_at(const void *base, bool f32, size_t stride, uint32_t pos)
{
    return (const char *)base + (size_t)pos * stride * (f32 ? sizeof(float) : sizeof(uint16_t));
}

/* The 16 chains of one position. A lane without an element in the last step keeps its sum untouched. */
static inline __attribute__((always_inline)) void chains(const float *q, const void *row, bool f32,
                                                         uint32_t head_dim, brig_vf ret[BRIG_PARTS])
{
    brig_vf acc[BRIG_PARTS] = {{0}}; /* a copy of its own stays in registers */
    uint32_t i = 0;
    for (; i + BRIG_CHAINS <= head_dim; i += BRIG_CHAINS)
        for (unsigned k = 0; k < BRIG_PARTS; k++)
            acc[k] =
                brig_vf_fma(brig_vf_load(q + i + k * BRIG_LANES), load(row, f32, i + k * BRIG_LANES), acc[k]);
    for (unsigned k = 0; k < BRIG_PARTS; k++, i += BRIG_LANES) {
        if (i >= head_dim)
            break;
        uint32_t n = head_dim - i;
        brig_vf sum = brig_vf_fma(brig_vf_load_n(q + i, n), load_n(row, f32, i, n), acc[k]);
        acc[k] = brig_vf_keep_n(acc[k], sum, n);
    }
    for (unsigned k = 0; k < BRIG_PARTS; k++)
        ret[k] = acc[k];
}

static inline __attribute__((always_inline)) float scores_of(const float *q, const void *k, bool f32,
                                                             size_t stride, uint32_t first, uint32_t n_pos,
                                                             uint32_t head_dim, float scale, float *scores)
{
    brig_vf tops = brig_vf_set1(-INFINITY);
    for (uint32_t p = first; p < n_pos; p += BRIG_LANES) {
        brig_vf v[BRIG_LANES * BRIG_PARTS];
        for (uint32_t i = 0; i < BRIG_LANES; i++) /* past the end: the last position again, not stored */
            chains(q, row_at(k, f32, stride, p + i < n_pos ? p + i : n_pos - 1), f32, head_dim,
                   v + i * BRIG_PARTS);
        brig_vf s = brig_vf_tree16(v) * scale;
        brig_vf_store_n(scores + p, s, n_pos - p);
        tops = brig_vf_larger(s, tops); /* a score that is no number leaves the maximum alone */
    }
    float lane[BRIG_LANES], top = -INFINITY;
    brig_vf_store(lane, tops);
    for (unsigned i = 0; i < BRIG_LANES; i++)
        top = lane[i] > top ? lane[i] : top;
    return top;
}

enum { WIDE = 4 }; /* vectors of the output that share one pass over the positions */

/* WIDE vectors of the output, or fewer elements than one: total over blocks of the block's weighted sum, over
 * the sum of the weights. */
static inline __attribute__((always_inline)) void weighted(const unsigned N, const float *e, const void *v,
                                                           bool f32, size_t stride, uint32_t first,
                                                           uint32_t n_pos, size_t at, size_t n, float sum,
                                                           float *out)
{
    brig_vf total[WIDE];
    for (unsigned k = 0; k < N; k++)
        total[k] = brig_vf_zero();
    for (uint32_t p = first; p < n_pos;) {
        brig_vf block[WIDE];
        for (unsigned k = 0; k < N; k++)
            block[k] = brig_vf_zero();
        for (uint32_t end = brig_attn_block_end(p, n_pos); p < end; p++) {
            const void *row = row_at(v, f32, stride, p);
            for (unsigned k = 0; k < N; k++) {
                size_t i = at + k * BRIG_LANES;
                brig_vf x = N > 1 ? load(row, f32, i) : load_n(row, f32, i, n);
                block[k] = brig_vf_fma(brig_vf_set1(e[p]), x, block[k]);
            }
        }
        for (unsigned k = 0; k < N; k++)
            total[k] += block[k];
    }
    for (unsigned k = 0; k < N; k++)
        brig_vf_store_n(out + at + k * BRIG_LANES, total[k] / sum, n - k * BRIG_LANES);
}

static inline __attribute__((always_inline)) void attention(const float *q, const void *k, const void *v,
                                                            bool f32, size_t stride, uint32_t first,
                                                            uint32_t n_pos, uint32_t head_dim, float scale,
                                                            float *scores, float *out)
{
    float top = scores_of(q, k, f32, stride, first, n_pos, head_dim, scale, scores);
    for (uint32_t p = first; p < n_pos; p += BRIG_LANES)
        brig_vf_store_n(scores + p, brig_vf_exp(brig_vf_load_n(scores + p, n_pos - p) - top), n_pos - p);
    float sum = brig_scalar_weight_sum(scores, first, n_pos);
    size_t i = 0;
    for (; i + WIDE * BRIG_LANES <= head_dim; i += WIDE * BRIG_LANES)
        weighted(WIDE, scores, v, f32, stride, first, n_pos, i, WIDE * BRIG_LANES, sum, out);
    for (; i < head_dim; i += BRIG_LANES)
        weighted(1, scores, v, f32, stride, first, n_pos, i, head_dim - i, sum, out);
}

void BRIG_ISA(attention)(const float *q, const void *k, const void *v, bool kv_f32, size_t stride,
                         uint32_t first, uint32_t n_pos, uint32_t head_dim, float scale, float *scores,
                         float *out)
{
    if (kv_f32)
        attention(q, k, v, true, stride, first, n_pos, head_dim, scale, scores, out);
    else
        attention(q, k, v, false, stride, first, n_pos, head_dim, scale, scores, out);
}
