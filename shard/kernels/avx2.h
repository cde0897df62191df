/* Shared by the AVX2 files only: how 8 rows become 8 lanes (panel.h), and the functions that cross files. */
#ifndef BRIG_SHARD_KERNELS_AVX2_H
#define BRIG_SHARD_KERNELS_AVX2_H

#include <immintrin.h>

#include "shard/kernels/panel.h"

/* The integer chains of panel.h, 8 rows. */
void brig_avx2_chain_int(enum brig_type_id id, struct brig_panel p, const struct brig_act *x, size_t first,
                         unsigned n_tokens, size_t col, unsigned n_cols, float *acc);
/* Of an interleaved matrix (panel.h). */
void brig_avx2_chain_r16_int(enum brig_type_id id, const uint8_t *blocks, const uint8_t *ahead,
                             const struct brig_act *x, size_t first, unsigned n_tokens, size_t col,
                             unsigned n_cols, float *acc);

/* 16 bytes of two rows. */
static inline __m256i brig_avx2_pair(const uint8_t *low, const uint8_t *high)
{
    __m256i v = _mm256_castsi128_si256(_mm_loadu_si128((const __m128i *)low));
    return _mm256_inserti128_si256(v, _mm_loadu_si128((const __m128i *)high), 1);
}

/* 16 bytes of each of 8 rows, transposed: lane r of t[c] is dword c of row r. */
static inline void brig_avx2_transpose(const uint8_t *p, size_t stride, __m256i t[4])
{
    const uint8_t *p4 = p + 4 * stride;
    size_t three = 3 * stride;
    __asm__("" : "+r"(p4), "+r"(three)); /* two addresses with index registers instead of eight */
    __m256i r0 = brig_avx2_pair(p, p4), r1 = brig_avx2_pair(p + stride, p4 + stride);
    __m256i r2 = brig_avx2_pair(p + 2 * stride, p4 + 2 * stride), r3 = brig_avx2_pair(p + three, p4 + three);
    __m256i a = _mm256_unpacklo_epi32(r0, r1), b = _mm256_unpacklo_epi32(r2, r3);
    __m256i c = _mm256_unpackhi_epi32(r0, r1), d = _mm256_unpackhi_epi32(r2, r3);
    t[0] = _mm256_unpacklo_epi64(a, b);
    t[1] = _mm256_unpackhi_epi64(a, b);
    t[2] = _mm256_unpacklo_epi64(c, d);
    t[3] = _mm256_unpackhi_epi64(c, d);
}

/* Byte offsets of 8 rows. */
static inline __m256i brig_avx2_offsets(size_t stride)
{
    return _mm256_mullo_epi32(_mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7), _mm256_set1_epi32((int)stride));
}

/* Low halves of 8 dwords as f16, widened. */
static inline __m256 brig_avx2_half(__m256i v)
{
    v = _mm256_and_si256(v, _mm256_set1_epi32(0xffff));
    v = _mm256_permute4x64_epi64(_mm256_packus_epi32(v, v), 0x08);
    return _mm256_cvtph_ps(_mm256_castsi256_si128(v));
}

/* The 32 columns of one block of 8 rows as bytes, dword c of lane r holding columns 4c..4c+3 of row r:
 * unsigned, a value being byte - offset; those of Q8_0 signed. And the two scales. */
struct brig_avx2_block {
    __m256i u[8];
    __m256 d, m;
};

/* Q8_0 and its like are read as signed bytes. */
static inline int brig_avx2_offset(enum brig_type_id id)
{
    switch (id) {
    case BRIG_TYPE_Q6_K:
        return 32;
    case BRIG_TYPE_Q5_0:
        return 16;
    case BRIG_TYPE_Q4_0:
    case BRIG_TYPE_Q4_0_G16:
    case BRIG_TYPE_Q4_0_G64:
        return 8;
    default:
        return 0;
    }
}

static inline void brig_avx2_nibbles(const uint8_t *p, size_t stride, __m256i u[8])
{
    const __m256i low = _mm256_set1_epi8(15);
    __m256i t[4];
    brig_avx2_transpose(p, stride, t);
    for (int c = 0; c < 4; c++) {
        u[c] = _mm256_and_si256(t[c], low);
        u[4 + c] = _mm256_and_si256(_mm256_srli_epi32(t[c], 4), low);
    }
}

/* Add the fifth bits: bit i of a row's dword belongs to column i. */
static inline void brig_avx2_fifth(__m256i bits, __m256i u[8])
{
    const __m256i dwords =
        _mm256_setr_epi32(0, 0x04040404, 0x08080808, 0x0c0c0c0c, 0, 0x04040404, 0x08080808, 0x0c0c0c0c);
    for (int c = 0; c < 8; c++) {
        __m256i which = _mm256_set1_epi32((int)(c % 2 == 0 ? 0x08040201u : 0x80402010u));
        __m256i bytes = _mm256_shuffle_epi8(bits, _mm256_add_epi8(dwords, _mm256_set1_epi8((char)(c / 2))));
        __m256i set = _mm256_cmpeq_epi8(_mm256_and_si256(bytes, which), which);
        u[c] = _mm256_or_si256(u[c], _mm256_and_si256(set, _mm256_set1_epi8(16)));
    }
}

/* Read one block of 8 rows. Inlined with a constant id, so that nothing is decided at run time. */
static inline __attribute__((always_inline)) void brig_avx2_read(enum brig_type_id id, const uint8_t *p,
                                                                 size_t stride, __m256i offsets,
                                                                 struct brig_avx2_block *b)
{
    __m256i head = _mm256_i32gather_epi32((const int *)(const void *)p, offsets, 1);
    size_t at = 2; /* first byte after the scales */
    b->d = brig_avx2_half(head);
    b->m = _mm256_setzero_ps();
    if (brig_panel_has_min(id)) {
        b->m = brig_avx2_half(_mm256_srli_epi32(head, 16));
        at = 4;
    }
    if (id == BRIG_TYPE_Q8_0) {
        brig_avx2_transpose(p + at, stride, b->u);
        brig_avx2_transpose(p + at + 16, stride, b->u + 4);
    } else if (id == BRIG_TYPE_Q5_0 || id == BRIG_TYPE_Q5_1) {
        brig_avx2_nibbles(p + at + 4, stride, b->u);
        brig_avx2_fifth(_mm256_i32gather_epi32((const int *)(const void *)(p + at), offsets, 1), b->u);
    } else {
        brig_avx2_nibbles(p + at, stride, b->u);
    }
}

/* Scales and minimums, multiplied by those of the block, of the 8 groups of a block of Q4_K or Q5_K. */
static inline void brig_avx2_scales_k(const uint8_t *p, size_t stride, struct brig_avx2_block b[8])
{
    const __m256i low4 = _mm256_set1_epi32(15), two = _mm256_set1_epi32(0x30), low6 = _mm256_set1_epi32(63);
    __m256i t[4]; /* the two f16; scales; minimums; low halves of the last four of both */
    brig_avx2_transpose(p, stride, t);
    __m256 d = brig_avx2_half(t[0]);
    __m256 dmin = brig_avx2_half(_mm256_xor_si256(_mm256_srli_epi32(t[0], 16), _mm256_set1_epi32(0x8000)));
    for (int g = 0; g < 4; g++) {
        __m256i scale = _mm256_srli_epi32(t[1], 8 * g), min = _mm256_srli_epi32(t[2], 8 * g);
        __m256i low = _mm256_srli_epi32(t[3], 8 * g);
        __m256i scale4 =
            _mm256_or_si256(_mm256_and_si256(low, low4), _mm256_and_si256(_mm256_srli_epi32(scale, 2), two));
        __m256i min4 = _mm256_or_si256(_mm256_and_si256(_mm256_srli_epi32(low, 4), low4),
                                       _mm256_and_si256(_mm256_srli_epi32(min, 2), two));
        b[g].d = _mm256_mul_ps(d, _mm256_cvtepi32_ps(_mm256_and_si256(scale, low6)));
        b[g].m = _mm256_mul_ps(dmin, _mm256_cvtepi32_ps(_mm256_and_si256(min, low6)));
        b[g + 4].d = _mm256_mul_ps(d, _mm256_cvtepi32_ps(scale4));
        b[g + 4].m = _mm256_mul_ps(dmin, _mm256_cvtepi32_ps(min4));
    }
}

/* Read one block of Q4_K or Q5_K of 8 rows: 8 groups. */
static inline __attribute__((always_inline)) void brig_avx2_read_k(enum brig_type_id id, const uint8_t *p,
                                                                   size_t stride, struct brig_avx2_block b[8])
{
    const __m256i low4 = _mm256_set1_epi8(15), bit4 = _mm256_set1_epi8(16);
    const uint8_t *quants = p + (id == BRIG_TYPE_Q5_K ? 48 : 16);
    __m256i fifth[8], t[8];
    brig_avx2_scales_k(p, stride, b);
    if (id == BRIG_TYPE_Q5_K) {
        brig_avx2_transpose(p + 16, stride, fifth);
        brig_avx2_transpose(p + 32, stride, fifth + 4);
    }
    for (int g = 0; g < 8; g += 2) {
        brig_avx2_transpose(quants + 16 * g, stride, t);
        brig_avx2_transpose(quants + 16 * g + 16, stride, t + 4);
        for (int c = 0; c < 8; c++) {
            b[g].u[c] = _mm256_and_si256(t[c], low4);
            b[g + 1].u[c] = _mm256_and_si256(_mm256_srli_epi32(t[c], 4), low4);
            if (id != BRIG_TYPE_Q5_K)
                continue;
            __m256i even = _mm256_slli_epi32(_mm256_srli_epi32(fifth[c], g), 4);
            __m256i odd = _mm256_slli_epi32(_mm256_srli_epi32(fifth[c], g + 1), 4);
            b[g].u[c] = _mm256_or_si256(b[g].u[c], _mm256_and_si256(even, bit4));
            b[g + 1].u[c] = _mm256_or_si256(b[g + 1].u[c], _mm256_and_si256(odd, bit4));
        }
    }
}

/* 16 columns of 8 rows with one scale, and a minimum where the type has one: unsigned bytes, a value being
 * byte - offset; those of Q8_0_G16 signed. */
struct brig_avx2_group16 {
    __m256i u[4];
    __m256 d, m;
};

/* Read one block of Q6_K of 8 rows: 16 groups. */
static inline void brig_avx2_read_q6_k(const uint8_t *p, size_t stride, struct brig_avx2_group16 b[16])
{
    const __m256i low4 = _mm256_set1_epi8(15), pair = _mm256_set1_epi8(0x30);
    __m256i low[4], high[4], scales[4];
    /* The last two bytes of the block, read with the two before them, so that nothing behind it is. */
    __m256 d = brig_avx2_half(_mm256_srli_epi32(
        _mm256_i32gather_epi32((const int *)(const void *)(p + 206), brig_avx2_offsets(stride), 1), 16));
    brig_avx2_transpose(p + 192, stride, scales);
    for (int k = 0; k < 8; k++) { /* 16 bytes: low halves are group g, high halves group g + 4 */
        int g = k / 4 * 8 + k % 4;
        brig_avx2_transpose(p + 16 * k, stride, low);
        brig_avx2_transpose(p + 128 + k / 4 * 32 + k % 2 * 16, stride, high);
        for (int c = 0; c < 4; c++) {
            __m256i pairs =
                _mm256_srli_epi32(high[c], k % 4 / 2 * 2); /* group g's lowest, g + 4's at bit 4 */
            b[g].u[c] = _mm256_or_si256(_mm256_and_si256(low[c], low4),
                                        _mm256_and_si256(_mm256_slli_epi32(pairs, 4), pair));
            b[g + 4].u[c] = _mm256_or_si256(_mm256_and_si256(_mm256_srli_epi32(low[c], 4), low4),
                                            _mm256_and_si256(pairs, pair));
        }
    }
    for (int g = 0; g < 16; g++) {
        __m256i scale = _mm256_srai_epi32(_mm256_slli_epi32(scales[g / 4], 24 - g % 4 * 8), 24);
        b[g].d = _mm256_mul_ps(d, _mm256_cvtepi32_ps(scale));
    }
}

/* Read one block of a _G64 type of 8 rows: two groups of 32 with one scale. */
static inline __attribute__((always_inline)) void brig_avx2_read_64(enum brig_type_id id, const uint8_t *p,
                                                                    size_t stride, __m256i offsets,
                                                                    struct brig_avx2_block b[2])
{
    const __m256i low = _mm256_set1_epi8(15);
    const uint8_t *q = p + (brig_panel_has_min(id) ? 4 : 2);
    __m256i head = _mm256_i32gather_epi32((const int *)(const void *)(p), offsets, 1);
    b[0].d = b[1].d = brig_avx2_half(head);
    b[0].m = b[1].m = brig_avx2_half(_mm256_srli_epi32(head, 16));
    for (int g = 0; g < 2; g++) {
        brig_avx2_transpose(q + 16 * g, stride, b[0].u + 4 * g);
        if (id == BRIG_TYPE_Q8_0_G64)
            brig_avx2_transpose(q + 32 + 16 * g, stride, b[1].u + 4 * g);
    }
    for (int c = 0; c < 8; c++) {
        if (id == BRIG_TYPE_Q8_0_G64) {
            continue;
        } else {
            b[1].u[c] = _mm256_and_si256(_mm256_srli_epi32(b[0].u[c], 4), low);
            b[0].u[c] = _mm256_and_si256(b[0].u[c], low);
        }
    }
}

/* 8 bytes of two columns each. */
static inline void brig_avx2_nibbles_16(__m256i q0, __m256i q1, __m256i u[4])
{
    const __m256i low = _mm256_set1_epi8(15);
    u[0] = _mm256_and_si256(q0, low);
    u[1] = _mm256_and_si256(q1, low);
    u[2] = _mm256_and_si256(_mm256_srli_epi32(q0, 4), low);
    u[3] = _mm256_and_si256(_mm256_srli_epi32(q1, 4), low);
}

/* Dwords that begin in the middle of a dword. */
static inline __m256i brig_avx2_joint(__m256i low, __m256i high)
{
    return _mm256_or_si256(_mm256_srli_epi32(low, 16), _mm256_slli_epi32(high, 16));
}

/* Read one block of a _G16 type of 8 rows: two groups. */
static inline __attribute__((always_inline)) void brig_avx2_read_16(enum brig_type_id id, const uint8_t *p,
                                                                    size_t stride, __m256i offsets,
                                                                    struct brig_avx2_group16 b[2])
{
    __m256i t[4], rest[4];
    if (id == BRIG_TYPE_Q8_0_G16) { /* scale, 16 bytes, scale, 16 bytes */
        b[0].d = brig_avx2_half(_mm256_i32gather_epi32((const int *)(const void *)(p), offsets, 1));
        b[1].d = brig_avx2_half(_mm256_i32gather_epi32((const int *)(const void *)(p + 18), offsets, 1));
        brig_avx2_transpose(p + 2, stride, b[0].u);
        brig_avx2_transpose(p + 20, stride, b[1].u);
    } else if (id == BRIG_TYPE_Q4_0_G16) { /* scale, 8 bytes, scale, 8 bytes */
        brig_avx2_transpose(p, stride, t);
        b[0].d = brig_avx2_half(t[0]);
        b[1].d = brig_avx2_half(_mm256_srli_epi32(t[2], 16));
        brig_avx2_nibbles_16(brig_avx2_joint(t[0], t[1]), brig_avx2_joint(t[1], t[2]), b[0].u);
        brig_avx2_nibbles_16(t[3], _mm256_i32gather_epi32((const int *)(const void *)(p + 16), offsets, 1),
                             b[1].u);
    } else { /* Q4_1_G16: scale, minimum, 8 bytes, and again */
        brig_avx2_transpose(p, stride, t);
        brig_avx2_transpose(p + 8, stride, rest);
        b[0].d = brig_avx2_half(t[0]);
        b[0].m = brig_avx2_half(_mm256_srli_epi32(t[0], 16));
        b[1].d = brig_avx2_half(t[3]);
        b[1].m = brig_avx2_half(_mm256_srli_epi32(t[3], 16));
        brig_avx2_nibbles_16(t[1], t[2], b[0].u);
        brig_avx2_nibbles_16(rest[2], rest[3], b[1].u);
    }
}

#endif
