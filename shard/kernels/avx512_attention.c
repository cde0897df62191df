/*
 * Attention of one head with AVX-512. Scores: the 16 chains of a position are the 16 lanes, and 16 positions
 * are joined at once by a tree of adjacent pairs. Weighted sums: lanes are elements of the head, positions in
 * order. Called through brig_kernel_avx512.
 */
#include "shard/kernels/avx512.h"

#include <math.h>

#include "shard/kernels/scalar.h"

static inline __mmask16 lanes(uint32_t n)
{
    return n >= 16 ? (__mmask16)0xffff : (__mmask16)((1u << n) - 1);
}

/* Elements [i, i + 16) of a row of the cache, those of the mask. */
static inline __attribute__((always_inline)) __m512 load(const void *row, bool f32, size_t i, __mmask16 mask)
{
    if (f32)
        return _mm512_maskz_loadu_ps(mask, (const float *)row + i);
    return _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(mask, (const uint16_t *)row + i));
}

static inline const void *row_at(const void *base, bool f32, size_t stride, uint32_t pos)
{
    return (const char *)base + (size_t)pos * stride * (f32 ? sizeof(float) : sizeof(uint16_t));
}

/* The 16 chains of one position. A lane without an element in the last step keeps its sum untouched. */
static inline __attribute__((always_inline)) __m512 chains(const float *q, const void *row, bool f32,
                                                           uint32_t head_dim)
{
    __m512 acc = _mm512_setzero_ps();
    uint32_t i = 0;
    for (; i + 16 <= head_dim; i += 16)
        acc = _mm512_fmadd_ps(_mm512_loadu_ps(q + i), load(row, f32, i, 0xffff), acc);
    if (i < head_dim) {
        __mmask16 m = lanes(head_dim - i);
        acc = _mm512_mask3_fmadd_ps(_mm512_maskz_loadu_ps(m, q + i), load(row, f32, i, m), acc, m);
    }
    return acc;
}

/* Add neighbours: of each 128-bit lane [a0 a1 a2 a3], [b0 b1 b2 b3] -> [a0+a1, a2+a3, b0+b1, b2+b3]. */
static inline __m512 pairs(__m512 a, __m512 b)
{
    return _mm512_add_ps(_mm512_shuffle_ps(a, b, 0x88), _mm512_shuffle_ps(a, b, 0xdd));
}

/* The same for whole 128-bit lanes. */
static inline __m512 quad_pairs(__m512 a, __m512 b)
{
    return _mm512_add_ps(_mm512_shuffle_f32x4(a, b, 0x88), _mm512_shuffle_f32x4(a, b, 0xdd));
}

/* Lane p of the result: the tree over the 16 lanes of v[p]. */
static inline __m512 tree16(const __m512 v[16])
{
    __m512 four[4];
    for (int i = 0; i < 4; i++)
        four[i] = pairs(pairs(v[4 * i], v[4 * i + 1]), pairs(v[4 * i + 2], v[4 * i + 3]));
    return quad_pairs(quad_pairs(four[0], four[1]), quad_pairs(four[2], four[3]));
}

float brig_avx512_tree(__m512 v)
{
    __m512 a = pairs(v, v);
    a = pairs(a, a);
    a = quad_pairs(a, a);
    return _mm512_cvtss_f32(quad_pairs(a, a));
}

static inline __attribute__((always_inline)) float scores_of(const float *q, const void *k, bool f32,
                                                             size_t stride, uint32_t first, uint32_t n_pos,
                                                             uint32_t head_dim, float scale, float *scores)
{
    __m512 top = _mm512_set1_ps(-INFINITY);
    for (uint32_t p = first; p < n_pos; p += 16) {
        __m512 v[16];
        for (uint32_t i = 0; i < 16; i++) /* past the end: the last position once more, not stored */
            v[i] = chains(q, row_at(k, f32, stride, p + i < n_pos ? p + i : n_pos - 1), f32, head_dim);
        __m512 s = _mm512_mul_ps(tree16(v), _mm512_set1_ps(scale));
        __mmask16 m = lanes(n_pos - p);
        _mm512_mask_storeu_ps(scores + p, m, s);
        top = _mm512_mask_max_ps(top, m, s, top); /* a NaN score leaves the maximum alone */
    }
    return _mm512_reduce_max_ps(top);
}

/* N vectors of the output, N a constant: total over blocks of the block's weighted sum, over the sum. */
static inline __attribute__((always_inline)) void weighted(const int N, const float *e, const void *v,
                                                           bool f32, size_t stride, uint32_t first,
                                                           uint32_t n_pos, size_t at, __mmask16 mask,
                                                           float sum, float *out)
{
    __m512 total[4];
    for (int k = 0; k < N; k++)
        total[k] = _mm512_setzero_ps();
    for (uint32_t p = first; p < n_pos;) {
        __m512 block[4];
        for (int k = 0; k < N; k++)
            block[k] = _mm512_setzero_ps();
        for (uint32_t end = brig_attn_block_end(p, n_pos); p < end; p++) {
            const void *row = row_at(v, f32, stride, p);
            for (int k = 0; k < N; k++)
                block[k] = _mm512_fmadd_ps(_mm512_set1_ps(e[p]), load(row, f32, at + 16 * (size_t)k, mask),
                                           block[k]);
        }
        for (int k = 0; k < N; k++)
            total[k] = _mm512_add_ps(total[k], block[k]);
    }
    for (int k = 0; k < N; k++)
        _mm512_mask_storeu_ps(out + at + 16 * k, mask, _mm512_div_ps(total[k], _mm512_set1_ps(sum)));
}

static inline __attribute__((always_inline)) void attention(const float *q, const void *k, const void *v,
                                                            bool f32, size_t stride, uint32_t first,
                                                            uint32_t n_pos, uint32_t head_dim, float scale,
                                                            float *scores, float *out)
{
    float top = scores_of(q, k, f32, stride, first, n_pos, head_dim, scale, scores);
    for (uint32_t p = first; p < n_pos; p += 16) {
        __mmask16 m = lanes(n_pos - p);
        __m512 s = _mm512_sub_ps(_mm512_maskz_loadu_ps(m, scores + p), _mm512_set1_ps(top));
        _mm512_mask_storeu_ps(scores + p, m, brig_avx512_exp(s));
    }
    float sum = brig_scalar_weight_sum(scores, first, n_pos);
    size_t i = 0;
    for (; i + 64 <= head_dim; i += 64)
        weighted(4, scores, v, f32, stride, first, n_pos, i, 0xffff, sum, out);
    for (; i + 16 <= head_dim; i += 16)
        weighted(1, scores, v, f32, stride, first, n_pos, i, 0xffff, sum, out);
    if (i < head_dim)
        weighted(1, scores, v, f32, stride, first, n_pos, i, lanes((uint32_t)(head_dim - i)), sum, out);
}

void brig_avx512_attention(const float *q, const void *k, const void *v, bool kv_f32, size_t stride,
                           uint32_t first, uint32_t n_pos, uint32_t head_dim, float scale, float *scores,
                           float *out)
{
    if (kv_f32)
        attention(q, k, v, true, stride, first, n_pos, head_dim, scale, scores, out);
    else
        attention(q, k, v, false, stride, first, n_pos, head_dim, scale, scores, out);
}
