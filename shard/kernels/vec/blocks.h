/*
 * How blocks of stored types of BRIG_LANES rows become lanes: dword c of lane r holds columns 4c..4c+3 of row
 * r as bytes. They are unsigned, a value being byte - brig_block_offset; those of the Q8_0 types are signed.
 */
#ifndef BRIG_SHARD_KERNELS_VEC_BLOCKS_H
#define BRIG_SHARD_KERNELS_VEC_BLOCKS_H

#include <string.h>

#include "proto/model/r16.h"
#include "shard/kernels/vec/vec.h"

/* 32 columns with one scale, and a minimum where the type has one (brig_panel_has_min). */
struct brig_block {
    brig_vu u[8];
    brig_vf d, m;
};

/* The same of 16 columns. */
struct brig_block16 {
    brig_vu u[4];
    brig_vf d, m;
};

/* Activations of one token from one group on. */
struct brig_token {
    const int8_t *q;
    const float *d;
    const int32_t *sum;
};

static inline struct brig_token brig_token_at(const struct brig_act *x, size_t t, size_t col)
{
    size_t at = t * brig_act_stride(x->cols) + col;
    return (struct brig_token){x->q + at, x->d + at / BRIG_ACT_GROUP, x->sum + at / 16};
}

static inline int brig_block_offset(enum brig_type_id id)
{
    switch (id) {
    case BRIG_TYPE_Q6_K:
        return 32;
    case BRIG_TYPE_Q5_0:
        return 16;
    case BRIG_TYPE_Q4_0:
    case BRIG_TYPE_Q4_0_G16:
    case BRIG_TYPE_Q4_0_G64:
    case BRIG_TYPE_Q4_0_R16:
        return 8;
    default:
        return 0;
    }
}

#define BRIG_LOW_NIBBLES 0x0f0f0f0fu

static inline void brig_block_nibbles(const uint8_t *p, size_t stride, brig_vu u[8])
{
    brig_vu t[4];
    brig_vu_transpose(p, stride, t);
    for (int c = 0; c < 4; c++) {
        u[c] = t[c] & BRIG_LOW_NIBBLES;
        u[4 + c] = (t[c] >> 4) & BRIG_LOW_NIBBLES;
    }
}

/* One block of a type with blocks of 32 columns. Inlined with a constant id, so that nothing is decided at
 * run time. */
static inline __attribute__((always_inline)) void brig_block_read(enum brig_type_id id, const uint8_t *p,
                                                                  size_t stride, struct brig_block *b)
{
    brig_vu head = brig_vu_gather(p, stride);
    size_t at = 2; /* first byte after the scales */
    b->d = brig_vu_half(head);
    if (brig_panel_has_min(id)) {
        b->m = brig_vu_half(head >> 16);
        at = 4;
    }
    if (id == BRIG_TYPE_Q8_0) {
        brig_vu_transpose(p + at, stride, b->u);
        brig_vu_transpose(p + at + 16, stride, b->u + 4);
    } else if (id == BRIG_TYPE_Q5_0 || id == BRIG_TYPE_Q5_1) {
        brig_block_nibbles(p + at + 4, stride, b->u);
        brig_vu bits = brig_vu_gather(p + at, stride); /* bit i belongs to column i */
        for (int c = 0; c < 8; c++)
            b->u[c] = brig_vu_add_fifth(b->u[c], bits, c);
    } else {
        brig_block_nibbles(p + at, stride, b->u);
    }
}

/* Whole numbers below 2^24 as floats. */
static inline brig_vf brig_vu_float(brig_vu v)
{
    return __builtin_convertvector((brig_vi)v, brig_vf);
}

/* Scales and minimums, multiplied by those of the block, of the 8 groups of a block of Q4_K or Q5_K. */
static inline void brig_block_scales_k(const uint8_t *p, size_t stride, struct brig_block b[8])
{
    brig_vu t[4]; /* the two f16; scales; minimums; low halves of the last four of both */
    brig_vu_transpose(p, stride, t);
    brig_vf d = brig_vu_half(t[0]), dmin = brig_vu_half((t[0] >> 16) ^ 0x8000u);
    for (int g = 0; g < 4; g++) {
        brig_vu scale = t[1] >> (8 * g), min = t[2] >> (8 * g), low = t[3] >> (8 * g);
        b[g].d = d * brig_vu_float(scale & 63u);
        b[g].m = dmin * brig_vu_float(min & 63u);
        b[g + 4].d = d * brig_vu_float((low & 15u) | ((scale >> 2) & 0x30u));
        b[g + 4].m = dmin * brig_vu_float(((low >> 4) & 15u) | ((min >> 2) & 0x30u));
    }
}

/* One block of Q4_K or Q5_K: 8 groups. */
static inline __attribute__((always_inline)) void brig_block_read_k(enum brig_type_id id, const uint8_t *p,
                                                                    size_t stride, struct brig_block b[8])
{
    const uint8_t *quants = p + (id == BRIG_TYPE_Q5_K ? 48 : 16);
    brig_vu fifth[8], t[8];
    brig_block_scales_k(p, stride, b);
    if (id == BRIG_TYPE_Q5_K) {
        brig_vu_transpose(p + 16, stride, fifth);
        brig_vu_transpose(p + 32, stride, fifth + 4);
    }
    for (int g = 0; g < 8; g += 2) {
        brig_vu_transpose(quants + 16 * g, stride, t);
        brig_vu_transpose(quants + 16 * g + 16, stride, t + 4);
        for (int c = 0; c < 8; c++) {
            b[g].u[c] = t[c] & BRIG_LOW_NIBBLES;
            b[g + 1].u[c] = (t[c] >> 4) & BRIG_LOW_NIBBLES;
            if (id != BRIG_TYPE_Q5_K)
                continue;
            b[g].u[c] |= ((fifth[c] >> g) << 4) & 0x10101010u;
            b[g + 1].u[c] |= ((fifth[c] >> (g + 1)) << 4) & 0x10101010u;
        }
    }
}

/* One block of Q6_K: 16 groups. */
static inline void brig_block_read_q6_k(const uint8_t *p, size_t stride, struct brig_block16 b[16])
{
    brig_vu low[4], high[4], scales[4];
    /* The last two bytes of the block, read with the two before them, so that nothing behind it is. */
    brig_vf d = brig_vu_half(brig_vu_gather(p + 206, stride) >> 16);
    brig_vu_transpose(p + 192, stride, scales);
    for (int k = 0; k < 8; k++) { /* 16 bytes: low halves are group g, high halves group g + 4 */
        int g = k / 4 * 8 + k % 4;
        brig_vu_transpose(p + 16 * k, stride, low);
        brig_vu_transpose(p + 128 + k / 4 * 32 + k % 2 * 16, stride, high);
        for (int c = 0; c < 4; c++) {
            brig_vu pairs = high[c] >> (k % 4 / 2 * 2); /* group g's lowest, g + 4's at bit 4 */
            b[g].u[c] = (low[c] & BRIG_LOW_NIBBLES) | ((pairs << 4) & 0x30303030u);
            b[g + 4].u[c] = ((low[c] >> 4) & BRIG_LOW_NIBBLES) | (pairs & 0x30303030u);
        }
    }
    for (int g = 0; g < 16; g++) {
        brig_vi scale = (brig_vi)(scales[g / 4] << (24 - g % 4 * 8)) >> 24;
        b[g].d = d * __builtin_convertvector(scale, brig_vf);
    }
}

/* One block of a _G64 type: two groups of 32 with one scale. */
static inline __attribute__((always_inline)) void brig_block_read_64(enum brig_type_id id, const uint8_t *p,
                                                                     size_t stride, struct brig_block b[2])
{
    const uint8_t *q = p + (brig_panel_has_min(id) ? 4 : 2);
    brig_vu head = brig_vu_gather(p, stride);
    b[0].d = b[1].d = brig_vu_half(head);
    b[0].m = b[1].m = brig_vu_half(head >> 16);
    for (int g = 0; g < 2; g++) {
        brig_vu_transpose(q + 16 * g, stride, b[0].u + 4 * g);
        if (id == BRIG_TYPE_Q8_0_G64)
            brig_vu_transpose(q + 32 + 16 * g, stride, b[1].u + 4 * g);
    }
    if (id == BRIG_TYPE_Q8_0_G64)
        return;
    for (int c = 0; c < 8; c++) {
        b[1].u[c] = (b[0].u[c] >> 4) & BRIG_LOW_NIBBLES;
        b[0].u[c] &= BRIG_LOW_NIBBLES;
    }
}

/* 8 bytes of two columns each. */
static inline void brig_block_nibbles16(brig_vu q0, brig_vu q1, brig_vu u[4])
{
    u[0] = q0 & BRIG_LOW_NIBBLES;
    u[1] = q1 & BRIG_LOW_NIBBLES;
    u[2] = (q0 >> 4) & BRIG_LOW_NIBBLES;
    u[3] = (q1 >> 4) & BRIG_LOW_NIBBLES;
}

/* One block of a _G16 type: two groups. */
static inline __attribute__((always_inline)) void brig_block_read_16(enum brig_type_id id, const uint8_t *p,
                                                                     size_t stride, struct brig_block16 b[2])
{
    brig_vu t[4], rest[4];
    if (id == BRIG_TYPE_Q8_0_G16) { /* scale, 16 bytes, scale, 16 bytes */
        b[0].d = brig_vu_half(brig_vu_gather(p, stride));
        b[1].d = brig_vu_half(brig_vu_gather(p + 18, stride));
        brig_vu_transpose(p + 2, stride, b[0].u);
        brig_vu_transpose(p + 20, stride, b[1].u);
    } else if (id == BRIG_TYPE_Q4_0_G16) { /* scale, 8 bytes, scale, 8 bytes */
        brig_vu_transpose(p, stride, t);
        b[0].d = brig_vu_half(t[0]);
        b[1].d = brig_vu_half(t[2] >> 16);
        /* The first group's dwords begin in the middle of dwords. */
        brig_block_nibbles16((t[0] >> 16) | (t[1] << 16), (t[1] >> 16) | (t[2] << 16), b[0].u);
        brig_block_nibbles16(t[3], brig_vu_gather(p + 16, stride), b[1].u);
    } else { /* Q4_1_G16: scale, minimum, 8 bytes, and again */
        brig_vu_transpose(p, stride, t);
        brig_vu_transpose(p + 8, stride, rest);
        b[0].d = brig_vu_half(t[0]);
        b[0].m = brig_vu_half(t[0] >> 16);
        b[1].d = brig_vu_half(t[3]);
        b[1].m = brig_vu_half(t[3] >> 16);
        brig_block_nibbles16(t[1], t[2], b[0].u);
        brig_block_nibbles16(rest[2], rest[3], b[1].u);
    }
}

/* Bytes of a block of 16 rows of an interleaved type. */
static inline unsigned brig_block_r16_bytes(enum brig_type_id id)
{
    return BRIG_R16_ROWS * (id == BRIG_TYPE_Q8_0_R16 ? 34 : id == BRIG_TYPE_Q4_1_R16 ? 20 : 18);
}

/* Of such a block the rows from first_row on. */
static inline __attribute__((always_inline)) void
brig_block_read_r16(enum brig_type_id id, const uint8_t *p, unsigned first_row, struct brig_block *b)
{
    b->d = b->m = brig_vf_load_f16(p + 2 * first_row);
    p += 2 * BRIG_R16_ROWS;
    if (brig_panel_has_min(id)) {
        b->m = brig_vf_load_f16(p + 2 * first_row);
        p += 2 * BRIG_R16_ROWS;
    }
    for (unsigned c = 0; c < (id == BRIG_TYPE_Q8_0_R16 ? 8 : 4); c++) {
        brig_vu v;
        memcpy(&v, p + 4 * (BRIG_R16_ROWS * c + first_row), sizeof v);
        b->u[c] = v;
        if (id == BRIG_TYPE_Q8_0_R16)
            continue;
        b->u[c] = v & BRIG_LOW_NIBBLES;
        b->u[c + 4] = (v >> 4) & BRIG_LOW_NIBBLES;
    }
}

#endif
