/* AVX-512 (F, BW, DQ, VL, VNNI, and F16C; Intel since Ice Lake, AMD since Zen 4) for vec.h: 16 lanes. */
#ifndef BRIG_SHARD_KERNELS_VEC_VEC_AVX512_H
#define BRIG_SHARD_KERNELS_VEC_VEC_AVX512_H

#include <immintrin.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BRIG_LANES      16u
#define BRIG_MANY_ROWS  BRIG_LANES
#define BRIG_ISA(name)  brig_avx512_##name
#define BRIG_ISA_NAME   "avx512"
#define BRIG_ISA_KERNEL brig_kernel_avx512
#define BRIG_ISA_HELP   "AVX-512 with VNNI: 16 rows a vector"

typedef float brig_vf __attribute__((vector_size(64)));
typedef int32_t brig_vi __attribute__((vector_size(64)));
typedef uint32_t brig_vu __attribute__((vector_size(64)));

static inline bool brig_vec_usable(void)
{
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("avx512vnni") && __builtin_cpu_supports("fma") &&
           __builtin_cpu_supports("f16c");
}

static inline __mmask16 brig_avx512_first(size_t n)
{
    return n >= 16 ? (__mmask16)0xffff : (__mmask16)((1u << n) - 1);
}

static inline brig_vf brig_vf_set1(float x)
{
    return _mm512_set1_ps(x);
}

static inline brig_vf brig_vf_load(const float *p)
{
    return _mm512_loadu_ps(p);
}

static inline brig_vf brig_vf_load_n(const float *p, size_t n)
{
    return _mm512_maskz_loadu_ps(brig_avx512_first(n), p);
}

static inline void brig_vf_store(float *p, brig_vf v)
{
    _mm512_storeu_ps(p, v);
}

static inline void brig_vf_store_n(float *p, brig_vf v, size_t n)
{
    _mm512_mask_storeu_ps(p, brig_avx512_first(n), v);
}

static inline brig_vf brig_vf_keep_n(brig_vf kept, brig_vf v, size_t n)
{
    return _mm512_mask_mov_ps(kept, brig_avx512_first(n), v);
}

static inline brig_vf brig_vf_load_f16(const void *p)
{
    return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)p));
}

static inline brig_vf brig_vf_load_f16_n(const uint16_t *p, size_t n)
{
    return _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(brig_avx512_first(n), p));
}

static inline brig_vf brig_vf_load_i8(const int8_t *p)
{
    return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)(const void *)p)));
}

static inline void brig_vf_store_f16_n(uint16_t *p, brig_vf v, size_t n)
{
    _mm256_mask_storeu_epi16(p, brig_avx512_first(n), _mm512_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT));
}

static inline brig_vf brig_vf_fma(brig_vf a, brig_vf b, brig_vf c)
{
    return _mm512_fmadd_ps(a, b, c);
}

static inline brig_vf brig_vf_select_lt(brig_vf a, brig_vf b, brig_vf yes, brig_vf no)
{
    return _mm512_mask_mov_ps(no, _mm512_cmp_ps_mask(a, b, _CMP_LT_OQ), yes);
}

static inline brig_vf brig_vf_larger(brig_vf a, brig_vf b)
{
    return _mm512_max_ps(a, b); /* b when one is not a number */
}

static inline brig_vf brig_vf_round(brig_vf v)
{
    return _mm512_roundscale_ps(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

static inline brig_vi brig_vf_nearest(brig_vf v)
{
    return (brig_vi)_mm512_cvtps_epi32(v);
}

static inline brig_vu brig_vu_max(brig_vu a, brig_vu b)
{
    return (brig_vu)_mm512_max_epu32((__m512i)a, (__m512i)b);
}

static inline uint32_t brig_vu_top(brig_vu v)
{
    return _mm512_reduce_max_epu32((__m512i)v);
}

static inline int32_t brig_vi_sum(brig_vi v)
{
    return _mm512_reduce_add_epi32((__m512i)v);
}

static inline void brig_vi_store_bytes(int8_t *p, brig_vi v)
{
    _mm_storeu_si128((__m128i *)p, _mm512_cvtepi32_epi8((__m512i)v));
}

static inline brig_vf brig_vu_half(brig_vu v)
{
    return _mm512_cvtph_ps(_mm512_cvtepi32_epi16((__m512i)v));
}

static inline brig_vu brig_vu_words(uint32_t low, uint32_t high)
{
    return (brig_vu)_mm512_inserti64x4(_mm512_set1_epi32((int)low), _mm256_set1_epi32((int)high), 1);
}

/* 16 bytes from each address, in the four 128-bit lanes. */
static inline __m512i brig_avx512_quads(const uint8_t *p0, const uint8_t *p4, const uint8_t *p8,
                                        const uint8_t *p12)
{
    __m512i v = _mm512_castsi128_si512(_mm_loadu_si128((const __m128i *)p0));
    v = _mm512_inserti32x4(v, _mm_loadu_si128((const __m128i *)p4), 1);
    v = _mm512_inserti32x4(v, _mm_loadu_si128((const __m128i *)p8), 2);
    return _mm512_inserti32x4(v, _mm_loadu_si128((const __m128i *)p12), 3);
}

static inline void brig_vu_transpose(const uint8_t *p, size_t stride, brig_vu t[4])
{
    const uint8_t *p4 = p + 4 * stride, *p8 = p + 8 * stride, *p12 = p + 12 * stride;
    size_t three = 3 * stride;
    /* Hidden from the optimiser, which would else keep 16 addresses and spill most of them: measured 1.6
     * times faster. */
    __asm__("" : "+r"(p4), "+r"(p8), "+r"(p12), "+r"(three));
    __m512i r0 = brig_avx512_quads(p, p4, p8, p12);
    __m512i r1 = brig_avx512_quads(p + stride, p4 + stride, p8 + stride, p12 + stride);
    __m512i r2 = brig_avx512_quads(p + 2 * stride, p4 + 2 * stride, p8 + 2 * stride, p12 + 2 * stride);
    __m512i r3 = brig_avx512_quads(p + three, p4 + three, p8 + three, p12 + three);
    __m512i a = _mm512_unpacklo_epi32(r0, r1), b = _mm512_unpacklo_epi32(r2, r3);
    __m512i c = _mm512_unpackhi_epi32(r0, r1), d = _mm512_unpackhi_epi32(r2, r3);
    t[0] = (brig_vu)_mm512_unpacklo_epi64(a, b);
    t[1] = (brig_vu)_mm512_unpackhi_epi64(a, b);
    t[2] = (brig_vu)_mm512_unpacklo_epi64(c, d);
    t[3] = (brig_vu)_mm512_unpackhi_epi64(c, d);
}

/* 16 bytes of rows r and r + 8. */
static inline __m256i brig_avx512_two(const uint8_t *low, const uint8_t *high)
{
    __m256i v = _mm256_castsi128_si256(_mm_loadu_si128((const __m128i *)low));
    return _mm256_inserti128_si256(v, _mm_loadu_si128((const __m128i *)high), 1);
}

static inline void brig_vf_halves(const uint8_t *p, size_t stride, brig_vf w[8])
{
    const uint8_t *p4 = p + 4 * stride, *p8 = p + 8 * stride, *p12 = p + 12 * stride;
    size_t three = 3 * stride;
    __asm__("" : "+r"(p4), "+r"(p8), "+r"(p12), "+r"(three)); /* as above */
    const __m256i r[8] = {brig_avx512_two(p, p8),
                          brig_avx512_two(p + stride, p8 + stride),
                          brig_avx512_two(p + 2 * stride, p8 + 2 * stride),
                          brig_avx512_two(p + three, p8 + three),
                          brig_avx512_two(p4, p12),
                          brig_avx512_two(p4 + stride, p12 + stride),
                          brig_avx512_two(p4 + 2 * stride, p12 + 2 * stride),
                          brig_avx512_two(p4 + three, p12 + three)};
    __m256i two[8], four[8]; /* rows side by side */
    for (int i = 0; i < 4; i++) {
        two[2 * i] = _mm256_unpacklo_epi16(r[2 * i], r[2 * i + 1]);
        two[2 * i + 1] = _mm256_unpackhi_epi16(r[2 * i], r[2 * i + 1]);
    }
    for (int i = 0; i < 2; i++)
        for (int half = 0; half < 2; half++) { /* columns 0 to 3, and 4 to 7 */
            four[4 * i + 2 * half] = _mm256_unpacklo_epi32(two[4 * i + half], two[4 * i + 2 + half]);
            four[4 * i + 2 * half + 1] = _mm256_unpackhi_epi32(two[4 * i + half], two[4 * i + 2 + half]);
        }
    for (int i = 0; i < 4; i++) {
        w[2 * i] = _mm512_cvtph_ps(_mm256_unpacklo_epi64(four[i], four[4 + i]));
        w[2 * i + 1] = _mm512_cvtph_ps(_mm256_unpackhi_epi64(four[i], four[4 + i]));
    }
}

static inline brig_vu brig_vu_gather(const uint8_t *p, size_t stride)
{
    __m512i iota = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
    __m512i offsets = _mm512_mullo_epi32(iota, _mm512_set1_epi32((int)stride));
    return (brig_vu)_mm512_i32gather_epi32(offsets, p, 1);
}

static inline brig_vu brig_vu_add_fifth(brig_vu u, brig_vu bits, int c)
{
    const __m512i lanes = _mm512_set4_epi32(0x0c0c0c0c, 0x08080808, 0x04040404, 0);
    __m512i which = _mm512_set1_epi32((int)(c % 2 == 0 ? 0x08040201u : 0x80402010u));
    __m512i at = _mm512_add_epi8(lanes, _mm512_set1_epi8((char)(c / 2)));
    __mmask64 set = _mm512_test_epi8_mask(_mm512_shuffle_epi8((__m512i)bits, at), which);
    return (brig_vu)_mm512_mask_add_epi8((__m512i)u, set, (__m512i)u, _mm512_set1_epi8(16));
}

/* Add neighbours: of each 128-bit lane [a0 a1 a2 a3], [b0 b1 b2 b3] -> [a0+a1, a2+a3, b0+b1, b2+b3]. */
static inline __m512 brig_avx512_pairs(__m512 a, __m512 b)
{
    return _mm512_add_ps(_mm512_shuffle_ps(a, b, 0x88), _mm512_shuffle_ps(a, b, 0xdd));
}

/* The same for whole 128-bit lanes. */
static inline __m512 brig_avx512_quad_pairs(__m512 a, __m512 b)
{
    return _mm512_add_ps(_mm512_shuffle_f32x4(a, b, 0x88), _mm512_shuffle_f32x4(a, b, 0xdd));
}

static inline brig_vf brig_vf_tree16(const brig_vf v[16])
{
    __m512 four[4];
    for (int i = 0; i < 4; i++)
        four[i] = brig_avx512_pairs(brig_avx512_pairs(v[4 * i], v[4 * i + 1]),
                                    brig_avx512_pairs(v[4 * i + 2], v[4 * i + 3]));
    return brig_avx512_quad_pairs(brig_avx512_quad_pairs(four[0], four[1]),
                                  brig_avx512_quad_pairs(four[2], four[3]));
}

static inline float brig_vf_tree(const brig_vf chain[1])
{
    __m512 v = brig_avx512_pairs(chain[0], chain[0]);
    v = brig_avx512_pairs(v, v);
    v = brig_avx512_quad_pairs(v, v);
    return _mm512_cvtss_f32(brig_avx512_quad_pairs(v, v));
}

#endif
