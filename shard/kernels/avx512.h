/* Shared by the AVX-512 files only: how 16 rows become 16 lanes (panel.h), and the functions that cross
 * files. */
#ifndef BRIG_SHARD_KERNELS_AVX512_H
#define BRIG_SHARD_KERNELS_AVX512_H

#include <immintrin.h>

#include "shard/kernels/panel.h"

/* The integer chains of panel.h, 16 rows. */
void brig_avx512_chain_int(enum brig_type_id id, struct brig_panel p, const struct brig_act *x, size_t first,
                           unsigned n_tokens, size_t col, unsigned n_cols, float *acc);
/* Of an interleaved matrix (panel.h). */
void brig_avx512_chain_r16_int(enum brig_type_id id, const uint8_t *blocks, const uint8_t *ahead,
                               const struct brig_act *x, size_t first, unsigned n_tokens, size_t col,
                               unsigned n_cols, float *acc);

/* 16 bytes from each address, in the four 128-bit lanes. */
static inline __m512i brig_avx512_quad(const uint8_t *p0, const uint8_t *p4, const uint8_t *p8,
                                       const uint8_t *p12)
{
    __m512i v = _mm512_castsi128_si512(_mm_loadu_si128((const __m128i *)p0));
    v = _mm512_inserti32x4(v, _mm_loadu_si128((const __m128i *)p4), 1);
    v = _mm512_inserti32x4(v, _mm_loadu_si128((const __m128i *)p8), 2);
    return _mm512_inserti32x4(v, _mm_loadu_si128((const __m128i *)p12), 3);
}

/* 16 bytes of each of 16 rows, transposed: lane r of t[c] is dword c of row r. */
static inline void brig_avx512_transpose(const uint8_t *p, size_t stride, __m512i t[4])
{
    const uint8_t *p4 = p + 4 * stride, *p8 = p + 8 * stride, *p12 = p + 12 * stride;
    size_t three = 3 * stride;
    /* Hidden from the optimiser, which would else keep 16 addresses and spill most of them: measured 1.6
     * times faster. */
    __asm__("" : "+r"(p4), "+r"(p8), "+r"(p12), "+r"(three));
    __m512i r0 = brig_avx512_quad(p, p4, p8, p12);
    __m512i r1 = brig_avx512_quad(p + stride, p4 + stride, p8 + stride, p12 + stride);
    __m512i r2 = brig_avx512_quad(p + 2 * stride, p4 + 2 * stride, p8 + 2 * stride, p12 + 2 * stride);
    __m512i r3 = brig_avx512_quad(p + three, p4 + three, p8 + three, p12 + three);
    __m512i a = _mm512_unpacklo_epi32(r0, r1), b = _mm512_unpacklo_epi32(r2, r3);
    __m512i c = _mm512_unpackhi_epi32(r0, r1), d = _mm512_unpackhi_epi32(r2, r3);
    t[0] = _mm512_unpacklo_epi64(a, b);
    t[1] = _mm512_unpackhi_epi64(a, b);
    t[2] = _mm512_unpacklo_epi64(c, d);
    t[3] = _mm512_unpackhi_epi64(c, d);
}

/* Byte offsets of 16 rows. */
static inline __m512i brig_avx512_offsets(size_t stride)
{
    __m512i iota = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
    return _mm512_mullo_epi32(iota, _mm512_set1_epi32((int)stride));
}

/* Low halves of 16 dwords as f16, widened. */
static inline __m512 brig_avx512_half(__m512i v)
{
    return _mm512_cvtph_ps(_mm512_cvtepi32_epi16(v));
}

/* The 32 columns of one block of 16 rows: unsigned bytes, dword c of lane r holding columns 4c..4c+3 of row
 * r, and the two scales. A value is byte - offset. */
struct brig_avx512_block {
    __m512i u[8];
    __m512 d, m;
};

static inline int brig_avx512_offset(enum brig_type_id id)
{
    switch (id) {
    case BRIG_TYPE_Q8_0:
    case BRIG_TYPE_Q8_0_G16:
    case BRIG_TYPE_Q8_0_G64:
        return 128;
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

static inline void brig_avx512_nibbles(const uint8_t *p, size_t stride, __m512i u[8])
{
    const __m512i low = _mm512_set1_epi8(15);
    __m512i t[4];
    brig_avx512_transpose(p, stride, t);
    for (int c = 0; c < 4; c++) {
        u[c] = _mm512_and_si512(t[c], low);
        u[4 + c] = _mm512_and_si512(_mm512_srli_epi32(t[c], 4), low);
    }
}

/* Add the fifth bits: bit i of a row's dword belongs to column i. */
static inline void brig_avx512_fifth(__m512i bits, __m512i u[8])
{
    const __m512i low = _mm512_set1_epi32((int)0x08040201u), high = _mm512_set1_epi32((int)0x80402010u);
    const __m512i lanes = _mm512_set4_epi32(0x0c0c0c0c, 0x08080808, 0x04040404, 0);
    const __m512i bit4 = _mm512_set1_epi8(16);
    for (int c = 0; c < 8; c++) {
        __m512i bytes = _mm512_shuffle_epi8(bits, _mm512_add_epi8(lanes, _mm512_set1_epi8((char)(c / 2))));
        __mmask64 set = _mm512_test_epi8_mask(bytes, c % 2 == 0 ? low : high);
        u[c] = _mm512_mask_add_epi8(u[c], set, u[c], bit4);
    }
}

/* Read one block of 16 rows. Inlined with a constant id, so that nothing is decided at run time. */
static inline __attribute__((always_inline)) void brig_avx512_read(enum brig_type_id id, const uint8_t *p,
                                                                   size_t stride, __m512i offsets,
                                                                   struct brig_avx512_block *b)
{
    __m512i head = _mm512_i32gather_epi32(offsets, p, 1);
    size_t at = 2; /* first byte after the scales */
    b->d = brig_avx512_half(head);
    if (brig_panel_has_min(id)) {
        b->m = brig_avx512_half(_mm512_srli_epi32(head, 16));
        at = 4;
    }
    if (id == BRIG_TYPE_Q8_0) {
        brig_avx512_transpose(p + at, stride, b->u);
        brig_avx512_transpose(p + at + 16, stride, b->u + 4);
        for (int c = 0; c < 8; c++)
            b->u[c] = _mm512_xor_si512(b->u[c], _mm512_set1_epi8((char)0x80));
    } else if (id == BRIG_TYPE_Q5_0 || id == BRIG_TYPE_Q5_1) {
        brig_avx512_nibbles(p + at + 4, stride, b->u);
        brig_avx512_fifth(_mm512_i32gather_epi32(offsets, p + at, 1), b->u);
    } else {
        brig_avx512_nibbles(p + at, stride, b->u);
    }
}

/* Scales and minimums, multiplied by those of the block, of the 8 groups of a block of Q4_K or Q5_K. */
static inline void brig_avx512_scales_k(const uint8_t *p, size_t stride, struct brig_avx512_block b[8])
{
    const __m512i low4 = _mm512_set1_epi32(15), two = _mm512_set1_epi32(0x30), low6 = _mm512_set1_epi32(63);
    __m512i t[4]; /* the two f16; scales; minimums; low halves of the last four of both */
    brig_avx512_transpose(p, stride, t);
    __m512 d = brig_avx512_half(t[0]);
    __m512 dmin = brig_avx512_half(_mm512_xor_si512(_mm512_srli_epi32(t[0], 16), _mm512_set1_epi32(0x8000)));
    for (int g = 0; g < 4; g++) {
        __m512i scale = _mm512_srli_epi32(t[1], 8 * g), min = _mm512_srli_epi32(t[2], 8 * g);
        __m512i low = _mm512_srli_epi32(t[3], 8 * g);
        __m512i scale4 =
            _mm512_or_si512(_mm512_and_si512(low, low4), _mm512_and_si512(_mm512_srli_epi32(scale, 2), two));
        __m512i min4 = _mm512_or_si512(_mm512_and_si512(_mm512_srli_epi32(low, 4), low4),
                                       _mm512_and_si512(_mm512_srli_epi32(min, 2), two));
        b[g].d = _mm512_mul_ps(d, _mm512_cvtepi32_ps(_mm512_and_si512(scale, low6)));
        b[g].m = _mm512_mul_ps(dmin, _mm512_cvtepi32_ps(_mm512_and_si512(min, low6)));
        b[g + 4].d = _mm512_mul_ps(d, _mm512_cvtepi32_ps(scale4));
        b[g + 4].m = _mm512_mul_ps(dmin, _mm512_cvtepi32_ps(min4));
    }
}

/* Read one block of Q4_K or Q5_K of 16 rows: 8 groups. */
static inline __attribute__((always_inline)) void
brig_avx512_read_k(enum brig_type_id id, const uint8_t *p, size_t stride, struct brig_avx512_block b[8])
{
    const __m512i low4 = _mm512_set1_epi8(15), bit4 = _mm512_set1_epi8(16);
    const uint8_t *quants = p + (id == BRIG_TYPE_Q5_K ? 48 : 16);
    __m512i fifth[8], t[8];
    brig_avx512_scales_k(p, stride, b);
    if (id == BRIG_TYPE_Q5_K) {
        brig_avx512_transpose(p + 16, stride, fifth);
        brig_avx512_transpose(p + 32, stride, fifth + 4);
    }
    for (int g = 0; g < 8; g += 2) {
        brig_avx512_transpose(quants + 16 * g, stride, t);
        brig_avx512_transpose(quants + 16 * g + 16, stride, t + 4);
        for (int c = 0; c < 8; c++) {
            b[g].u[c] = _mm512_and_si512(t[c], low4);
            b[g + 1].u[c] = _mm512_and_si512(_mm512_srli_epi32(t[c], 4), low4);
            if (id != BRIG_TYPE_Q5_K)
                continue;
            __m512i even = _mm512_slli_epi32(_mm512_srli_epi32(fifth[c], g), 4);
            __m512i odd = _mm512_slli_epi32(_mm512_srli_epi32(fifth[c], g + 1), 4);
            b[g].u[c] = _mm512_or_si512(b[g].u[c], _mm512_and_si512(even, bit4));
            b[g + 1].u[c] = _mm512_or_si512(b[g + 1].u[c], _mm512_and_si512(odd, bit4));
        }
    }
}

/* 16 columns of 16 rows with one scale, and a minimum where the type has one: unsigned bytes, a value being
 * byte - offset. */
struct brig_avx512_group16 {
    __m512i u[4];
    __m512 d, m;
};

/* Read one block of Q6_K of 16 rows: 16 groups. */
static inline void brig_avx512_read_q6_k(const uint8_t *p, size_t stride, struct brig_avx512_group16 b[16])
{
    const __m512i low4 = _mm512_set1_epi8(15), pair = _mm512_set1_epi8(0x30);
    __m512i low[4], high[4], scales[4];
    /* The last two bytes of the block, read with the two before them, so that nothing behind it is. */
    __m512 d = brig_avx512_half(
        _mm512_srli_epi32(_mm512_i32gather_epi32(brig_avx512_offsets(stride), p + 206, 1), 16));
    brig_avx512_transpose(p + 192, stride, scales);
    for (int k = 0; k < 8; k++) { /* 16 bytes: low halves are group g, high halves group g + 4 */
        int g = k / 4 * 8 + k % 4;
        brig_avx512_transpose(p + 16 * k, stride, low);
        brig_avx512_transpose(p + 128 + k / 4 * 32 + k % 2 * 16, stride, high);
        for (int c = 0; c < 4; c++) {
            __m512i pairs =
                _mm512_srli_epi32(high[c], k % 4 / 2 * 2); /* group g's lowest, g + 4's at bit 4 */
            b[g].u[c] = _mm512_or_si512(_mm512_and_si512(low[c], low4),
                                        _mm512_and_si512(_mm512_slli_epi32(pairs, 4), pair));
            b[g + 4].u[c] = _mm512_or_si512(_mm512_and_si512(_mm512_srli_epi32(low[c], 4), low4),
                                            _mm512_and_si512(pairs, pair));
        }
    }
    for (int g = 0; g < 16; g++) {
        __m512i scale = _mm512_srai_epi32(_mm512_slli_epi32(scales[g / 4], 24 - g % 4 * 8), 24);
        b[g].d = _mm512_mul_ps(d, _mm512_cvtepi32_ps(scale));
    }
}

/* Read one block of a _G64 type of 16 rows: two groups of 32 with one scale. */
static inline __attribute__((always_inline)) void brig_avx512_read_64(enum brig_type_id id, const uint8_t *p,
                                                                      size_t stride, __m512i offsets,
                                                                      struct brig_avx512_block b[2])
{
    const __m512i low = _mm512_set1_epi8(15);
    const uint8_t *q = p + (brig_panel_has_min(id) ? 4 : 2);
    __m512i head = _mm512_i32gather_epi32(offsets, p, 1);
    b[0].d = b[1].d = brig_avx512_half(head);
    b[0].m = b[1].m = brig_avx512_half(_mm512_srli_epi32(head, 16));
    for (int g = 0; g < 2; g++) {
        brig_avx512_transpose(q + 16 * g, stride, b[0].u + 4 * g);
        if (id == BRIG_TYPE_Q8_0_G64)
            brig_avx512_transpose(q + 32 + 16 * g, stride, b[1].u + 4 * g);
    }
    for (int c = 0; c < 8; c++) {
        if (id == BRIG_TYPE_Q8_0_G64) {
            b[0].u[c] = _mm512_xor_si512(b[0].u[c], _mm512_set1_epi8((char)0x80));
            b[1].u[c] = _mm512_xor_si512(b[1].u[c], _mm512_set1_epi8((char)0x80));
        } else {
            b[1].u[c] = _mm512_and_si512(_mm512_srli_epi32(b[0].u[c], 4), low);
            b[0].u[c] = _mm512_and_si512(b[0].u[c], low);
        }
    }
}

/* 8 bytes of two columns each. */
static inline void brig_avx512_nibbles_16(__m512i q0, __m512i q1, __m512i u[4])
{
    const __m512i low = _mm512_set1_epi8(15);
    u[0] = _mm512_and_si512(q0, low);
    u[1] = _mm512_and_si512(q1, low);
    u[2] = _mm512_and_si512(_mm512_srli_epi32(q0, 4), low);
    u[3] = _mm512_and_si512(_mm512_srli_epi32(q1, 4), low);
}

/* Dwords that begin in the middle of a dword. */
static inline __m512i brig_avx512_joint(__m512i low, __m512i high)
{
    return _mm512_or_si512(_mm512_srli_epi32(low, 16), _mm512_slli_epi32(high, 16));
}

/* Read one block of a _G16 type of 16 rows: two groups. */
static inline __attribute__((always_inline)) void brig_avx512_read_16(enum brig_type_id id, const uint8_t *p,
                                                                      size_t stride, __m512i offsets,
                                                                      struct brig_avx512_group16 b[2])
{
    __m512i t[4], rest[4];
    if (id == BRIG_TYPE_Q8_0_G16) { /* scale, 16 bytes, scale, 16 bytes */
        b[0].d = brig_avx512_half(_mm512_i32gather_epi32(offsets, p, 1));
        b[1].d = brig_avx512_half(_mm512_i32gather_epi32(offsets, p + 18, 1));
        brig_avx512_transpose(p + 2, stride, b[0].u);
        brig_avx512_transpose(p + 20, stride, b[1].u);
        for (int g = 0; g < 2; g++)
            for (int c = 0; c < 4; c++)
                b[g].u[c] = _mm512_xor_si512(b[g].u[c], _mm512_set1_epi8((char)0x80));
    } else if (id == BRIG_TYPE_Q4_0_G16) { /* scale, 8 bytes, scale, 8 bytes */
        brig_avx512_transpose(p, stride, t);
        b[0].d = brig_avx512_half(t[0]);
        b[1].d = brig_avx512_half(_mm512_srli_epi32(t[2], 16));
        brig_avx512_nibbles_16(brig_avx512_joint(t[0], t[1]), brig_avx512_joint(t[1], t[2]), b[0].u);
        brig_avx512_nibbles_16(t[3], _mm512_i32gather_epi32(offsets, p + 16, 1), b[1].u);
    } else { /* Q4_1_G16: scale, minimum, 8 bytes, and again */
        brig_avx512_transpose(p, stride, t);
        brig_avx512_transpose(p + 8, stride, rest);
        b[0].d = brig_avx512_half(t[0]);
        b[0].m = brig_avx512_half(_mm512_srli_epi32(t[0], 16));
        b[1].d = brig_avx512_half(t[3]);
        b[1].m = brig_avx512_half(_mm512_srli_epi32(t[3], 16));
        brig_avx512_nibbles_16(t[1], t[2], b[0].u);
        brig_avx512_nibbles_16(rest[2], rest[3], b[1].u);
    }
}

#endif
