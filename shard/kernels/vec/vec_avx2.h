/* AVX2 with FMA and F16C (nearly every x86-64 machine since 2013), with and without VNNI (Intel since 2021,
 * AMD since 2024), for vec.h: 8 lanes. */
#ifndef BRIG_SHARD_KERNELS_VEC_VEC_AVX2_H
#define BRIG_SHARD_KERNELS_VEC_VEC_AVX2_H

#include <immintrin.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define BRIG_LANES     8u
#define BRIG_MANY_ROWS 16u /* two vectors of rows share the activations (avx2/tile.h) */
#if defined(__AVXVNNI__)
#define BRIG_ISA(name)  brig_avxvnni_##name
#define BRIG_ISA_NAME   "avxvnni"
#define BRIG_ISA_KERNEL brig_kernel_avxvnni
#define BRIG_ISA_HELP   "AVX2 with dot products of bytes (AVX-VNNI): 8 rows a vector"
#else
#define BRIG_ISA(name)  brig_avx2_##name
#define BRIG_ISA_NAME   "avx2"
#define BRIG_ISA_KERNEL brig_kernel_avx2
#define BRIG_ISA_HELP   "AVX2 with FMA and F16C: 8 rows a vector"
#endif

typedef float brig_vf __attribute__((vector_size(32)));
typedef int32_t brig_vi __attribute__((vector_size(32)));
typedef uint32_t brig_vu __attribute__((vector_size(32)));

static inline bool brig_vec_usable(void)
{
#if defined(__AVXVNNI__)
    if (!__builtin_cpu_supports("avxvnni"))
        return false;
#endif
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c");
}

/* Lanes below n are all ones. */
static inline __m256i brig_avx2_first(size_t n)
{
    int below = n < BRIG_LANES ? (int)n : (int)BRIG_LANES;
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(below), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

static inline brig_vf brig_vf_set1(float x)
{
    return _mm256_set1_ps(x);
}

static inline brig_vf brig_vf_load(const float *p)
{
    return _mm256_loadu_ps(p);
}

static inline brig_vf brig_vf_load_n(const float *p, size_t n)
{
    return n >= BRIG_LANES ? _mm256_loadu_ps(p) : _mm256_maskload_ps(p, brig_avx2_first(n));
}

static inline void brig_vf_store(float *p, brig_vf v)
{
    _mm256_storeu_ps(p, v);
}

static inline void brig_vf_store_n(float *p, brig_vf v, size_t n)
{
    if (n >= BRIG_LANES)
        _mm256_storeu_ps(p, v);
    else
        _mm256_maskstore_ps(p, brig_avx2_first(n), v);
}

static inline brig_vf brig_vf_keep_n(brig_vf kept, brig_vf v, size_t n)
{
    return _mm256_blendv_ps(kept, v, _mm256_castsi256_ps(brig_avx2_first(n)));
}

static inline brig_vf brig_vf_load_f16(const void *p)
{
    return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)p));
}

static inline brig_vf brig_vf_load_f16_n(const uint16_t *p, size_t n)
{
    uint16_t some[BRIG_LANES] = {0};
    if (n >= BRIG_LANES)
        return brig_vf_load_f16(p);
    memcpy(some, p, n * sizeof *p);
    return brig_vf_load_f16(some);
}

static inline brig_vf brig_vf_load_i8(const int8_t *p)
{
    return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)p)));
}

static inline void brig_vf_store_f16_n(uint16_t *p, brig_vf v, size_t n)
{
    __m128i half = _mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT);
    memcpy(p, &half, (n < BRIG_LANES ? n : BRIG_LANES) * sizeof *p);
}

static inline brig_vf brig_vf_fma(brig_vf a, brig_vf b, brig_vf c)
{
    return _mm256_fmadd_ps(a, b, c);
}

static inline brig_vf brig_vf_select_lt(brig_vf a, brig_vf b, brig_vf yes, brig_vf no)
{
    return _mm256_blendv_ps(no, yes, _mm256_cmp_ps(a, b, _CMP_LT_OQ));
}

static inline brig_vf brig_vf_larger(brig_vf a, brig_vf b)
{
    return _mm256_max_ps(a, b); /* b when one is not a number */
}

static inline brig_vf brig_vf_round(brig_vf v)
{
    return _mm256_round_ps(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

static inline brig_vi brig_vf_nearest(brig_vf v)
{
    return (brig_vi)_mm256_cvtps_epi32(v);
}

static inline brig_vu brig_vu_max(brig_vu a, brig_vu b)
{
    return (brig_vu)_mm256_max_epu32((__m256i)a, (__m256i)b);
}

static inline uint32_t brig_vu_top(brig_vu v)
{
    __m128i m = _mm_max_epu32(_mm256_castsi256_si128((__m256i)v), _mm256_extracti128_si256((__m256i)v, 1));
    m = _mm_max_epu32(m, _mm_shuffle_epi32(m, 0x4e));
    m = _mm_max_epu32(m, _mm_shuffle_epi32(m, 0xb1));
    return (uint32_t)_mm_cvtsi128_si32(m);
}

static inline int32_t brig_vi_sum(brig_vi v)
{
    __m128i s = _mm_add_epi32(_mm256_castsi256_si128((__m256i)v), _mm256_extracti128_si256((__m256i)v, 1));
    s = _mm_add_epi32(s, _mm_shuffle_epi32(s, 0x4e));
    s = _mm_add_epi32(s, _mm_shuffle_epi32(s, 0xb1));
    return _mm_cvtsi128_si32(s);
}

static inline void brig_vi_store_bytes(int8_t *p, brig_vi v)
{
    __m128i words =
        _mm_packs_epi32(_mm256_castsi256_si128((__m256i)v), _mm256_extracti128_si256((__m256i)v, 1));
    _mm_storel_epi64((__m128i *)(void *)p, _mm_packs_epi16(words, words));
}

static inline brig_vf brig_vu_half(brig_vu v)
{
    __m256i low = _mm256_and_si256((__m256i)v, _mm256_set1_epi32(0xffff));
    low = _mm256_permute4x64_epi64(_mm256_packus_epi32(low, low), 0x08);
    return _mm256_cvtph_ps(_mm256_castsi256_si128(low));
}

static inline brig_vu brig_vu_words(uint32_t low, uint32_t high)
{
    (void)high;
    return (brig_vu)_mm256_set1_epi32((int)low);
}

/* 16 bytes of two rows. */
static inline __m256i brig_avx2_two(const uint8_t *low, const uint8_t *high)
{
    __m256i v = _mm256_castsi128_si256(_mm_loadu_si128((const __m128i *)low));
    return _mm256_inserti128_si256(v, _mm_loadu_si128((const __m128i *)high), 1);
}

static inline void brig_vu_transpose(const uint8_t *p, size_t stride, brig_vu t[4])
{
    const uint8_t *p4 = p + 4 * stride;
    size_t three = 3 * stride;
    __asm__("" : "+r"(p4), "+r"(three)); /* two addresses with index registers instead of eight */
    __m256i r0 = brig_avx2_two(p, p4), r1 = brig_avx2_two(p + stride, p4 + stride);
    __m256i r2 = brig_avx2_two(p + 2 * stride, p4 + 2 * stride), r3 = brig_avx2_two(p + three, p4 + three);
    __m256i a = _mm256_unpacklo_epi32(r0, r1), b = _mm256_unpacklo_epi32(r2, r3);
    __m256i c = _mm256_unpackhi_epi32(r0, r1), d = _mm256_unpackhi_epi32(r2, r3);
    t[0] = (brig_vu)_mm256_unpacklo_epi64(a, b);
    t[1] = (brig_vu)_mm256_unpackhi_epi64(a, b);
    t[2] = (brig_vu)_mm256_unpacklo_epi64(c, d);
    t[3] = (brig_vu)_mm256_unpackhi_epi64(c, d);
}

static inline void brig_vf_halves(const uint8_t *p, size_t stride, brig_vf w[8])
{
    __m128i r[8], two[8], four[8]; /* rows; two of them and four of them side by side */
    for (int i = 0; i < 8; i++)
        r[i] = _mm_loadu_si128((const __m128i *)(const void *)(p + (size_t)i * stride));
    for (int i = 0; i < 4; i++) {
        two[2 * i] = _mm_unpacklo_epi16(r[2 * i], r[2 * i + 1]);
        two[2 * i + 1] = _mm_unpackhi_epi16(r[2 * i], r[2 * i + 1]);
    }
    for (int i = 0; i < 2; i++)
        for (int half = 0; half < 2; half++) { /* columns 0 to 3, and 4 to 7 */
            four[4 * i + 2 * half] = _mm_unpacklo_epi32(two[4 * i + half], two[4 * i + 2 + half]);
            four[4 * i + 2 * half + 1] = _mm_unpackhi_epi32(two[4 * i + half], two[4 * i + 2 + half]);
        }
    for (int i = 0; i < 4; i++) {
        w[2 * i] = _mm256_cvtph_ps(_mm_unpacklo_epi64(four[i], four[4 + i]));
        w[2 * i + 1] = _mm256_cvtph_ps(_mm_unpackhi_epi64(four[i], four[4 + i]));
    }
}

/* Eight loads: where the instruction for it exists, it takes as long as forty of them. */
static inline brig_vu brig_vu_gather(const uint8_t *p, size_t stride)
{
    const uint8_t *p4 = p + 4 * stride;
    uint32_t v[8];
    for (int i = 0; i < 4; i++) {
        memcpy(&v[i], p + i * stride, 4);
        memcpy(&v[4 + i], p4 + i * stride, 4);
    }
    return (brig_vu)_mm256_setr_epi32((int)v[0], (int)v[1], (int)v[2], (int)v[3], (int)v[4], (int)v[5],
                                      (int)v[6], (int)v[7]);
}

static inline brig_vu brig_vu_add_fifth(brig_vu u, brig_vu bits, int c)
{
    const __m256i dwords =
        _mm256_setr_epi32(0, 0x04040404, 0x08080808, 0x0c0c0c0c, 0, 0x04040404, 0x08080808, 0x0c0c0c0c);
    __m256i which = _mm256_set1_epi32((int)(c % 2 == 0 ? 0x08040201u : 0x80402010u));
    __m256i at = _mm256_add_epi8(dwords, _mm256_set1_epi8((char)(c / 2)));
    __m256i set = _mm256_cmpeq_epi8(_mm256_and_si256(_mm256_shuffle_epi8((__m256i)bits, at), which), which);
    return u | (brig_vu)_mm256_and_si256(set, _mm256_set1_epi8(16));
}

/* Four rows of 16 chains a b c d: [a b | c d], of each the sums of the first and of the last 8 chains. */
static inline __m256 brig_avx2_eights(const brig_vf v[8])
{
    __m256 ab = _mm256_hadd_ps(_mm256_hadd_ps(v[0], v[1]), _mm256_hadd_ps(v[2], v[3]));
    __m256 cd = _mm256_hadd_ps(_mm256_hadd_ps(v[4], v[5]), _mm256_hadd_ps(v[6], v[7]));
    return _mm256_add_ps(_mm256_permute2f128_ps(ab, cd, 0x20), _mm256_permute2f128_ps(ab, cd, 0x31));
}

static inline brig_vf brig_vf_tree16(const brig_vf v[16])
{
    __m256 s = _mm256_hadd_ps(brig_avx2_eights(v), brig_avx2_eights(v + 8)); /* 0 1 4 5 | 2 3 6 7 */
    return _mm256_castpd_ps(_mm256_permute4x64_pd(_mm256_castps_pd(s), 0xd8));
}

static inline float brig_vf_tree(const brig_vf chain[2])
{
    __m256 v = _mm256_hadd_ps(chain[0], chain[1]);
    v = _mm256_hadd_ps(v, v); /* chains 0..3 and 8..11 | 4..7 and 12..15 */
    __m128 eights = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    return _mm_cvtss_f32(_mm_hadd_ps(eights, eights));
}

#endif
