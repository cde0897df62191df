/*
 * Attention of one head with AVX2: the 16 chains of a score are two vectors, the weighted sums have lanes =
 * elements. Heads whose size is no multiple of 16 go to the scalar kernel. Called through brig_kernel_avx2.
 */
#include "shard/kernels/avx2.h"

#include <math.h>

#include "shard/kernels/math.h"
#include "shard/kernels/scalar.h"

/* Elements [i, i + 8) of a row of the cache. */
static inline __attribute__((always_inline)) __m256 load(const void *row, bool f32, size_t i)
{
    if (f32)
        return _mm256_loadu_ps((const float *)row + i);
    return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)((const uint16_t *)row + i)));
}

static inline const void *row_at(const void *base, bool f32, size_t stride, uint32_t pos)
{
    return (const char *)base + (size_t)pos * stride * (f32 ? sizeof(float) : sizeof(uint16_t));
}

/* The tree over 16 chains: neighbours, pairs, then the four quarters. */
static inline float tree16(__m256 low, __m256 high)
{
    __m256 pairs = _mm256_hadd_ps(low, high);
    __m256 fours = _mm256_hadd_ps(pairs, pairs); /* [c0..3, c8..11, ...] [c4..7, c12..15, ...] */
    __m128 eights = _mm_add_ps(_mm256_castps256_ps128(fours), _mm256_extractf128_ps(fours, 1));
    return _mm_cvtss_f32(_mm_hadd_ps(eights, eights));
}

static inline __attribute__((always_inline)) float score(const float *q, const void *row, bool f32,
                                                         uint32_t head_dim)
{
    __m256 low = _mm256_setzero_ps(), high = _mm256_setzero_ps();
    for (uint32_t i = 0; i < head_dim; i += 16) {
        low = _mm256_fmadd_ps(_mm256_loadu_ps(q + i), load(row, f32, i), low);
        high = _mm256_fmadd_ps(_mm256_loadu_ps(q + i + 8), load(row, f32, i + 8), high);
    }
    return tree16(low, high);
}

/* Two vectors of the output. */
static inline __attribute__((always_inline)) void weighted(const float *e, const void *v, bool f32,
                                                           size_t stride, uint32_t first, uint32_t n_pos,
                                                           size_t at, float sum, float *out)
{
    __m256 total[2] = {_mm256_setzero_ps(), _mm256_setzero_ps()};
    for (uint32_t p = first; p < n_pos;) {
        __m256 block[2] = {_mm256_setzero_ps(), _mm256_setzero_ps()};
        for (uint32_t end = brig_attn_block_end(p, n_pos); p < end; p++) {
            const void *row = row_at(v, f32, stride, p);
            block[0] = _mm256_fmadd_ps(_mm256_set1_ps(e[p]), load(row, f32, at), block[0]);
            block[1] = _mm256_fmadd_ps(_mm256_set1_ps(e[p]), load(row, f32, at + 8), block[1]);
        }
        total[0] = _mm256_add_ps(total[0], block[0]);
        total[1] = _mm256_add_ps(total[1], block[1]);
    }
    _mm256_storeu_ps(out + at, _mm256_div_ps(total[0], _mm256_set1_ps(sum)));
    _mm256_storeu_ps(out + at + 8, _mm256_div_ps(total[1], _mm256_set1_ps(sum)));
}

static void exponentials(float *scores, uint32_t first, uint32_t n_pos, float top)
{
    uint32_t p = first;
    for (; n_pos - p >= 8; p += 8)
        _mm256_storeu_ps(scores + p,
                         brig_avx2_exp(_mm256_sub_ps(_mm256_loadu_ps(scores + p), _mm256_set1_ps(top))));
    for (; p < n_pos; p++)
        scores[p] = brig_expf(scores[p] - top);
}

static inline __attribute__((always_inline)) void attention(const float *q, const void *k, const void *v,
                                                            bool f32, size_t stride, uint32_t first,
                                                            uint32_t n_pos, uint32_t head_dim, float scale,
                                                            float *scores, float *out)
{
    float top = -INFINITY;
    for (uint32_t p = first; p < n_pos; p++) {
        scores[p] = score(q, row_at(k, f32, stride, p), f32, head_dim) * scale;
        top = scores[p] > top ? scores[p] : top;
    }
    exponentials(scores, first, n_pos, top);
    float sum = brig_scalar_weight_sum(scores, first, n_pos);
    for (size_t i = 0; i < head_dim; i += 16)
        weighted(scores, v, f32, stride, first, n_pos, i, sum, out);
}

void brig_avx2_attention(const float *q, const void *k, const void *v, bool kv_f32, size_t stride,
                         uint32_t first, uint32_t n_pos, uint32_t head_dim, float scale, float *scores,
                         float *out)
{
    if (head_dim % 16 != 0)
        brig_scalar_attention(q, k, v, kv_f32, stride, first, n_pos, head_dim, scale, scores, out);
    else if (kv_f32)
        attention(q, k, v, true, stride, first, n_pos, head_dim, scale, scores, out);
    else
        attention(q, k, v, false, stride, first, n_pos, head_dim, scale, scores, out);
}
