/*
 * The definition of the matrix products: docs/arithmetic.md in C, one row and one token at a time. Every
 * other kernel is tested against this one bit for bit. Called through brig_kernel_scalar, and by other
 * instruction sets for shapes that they do not handle.
 */
#include "shard/kernels/scalar.h"

#include <math.h>

#include "proto/base/half.h"
#include "proto/model/r16.h"
#include "proto/model/type_k.h"

enum { CHUNK_COLS = 256 };

/* One output: a row of weights times a row of activations. */
struct product {
    const struct brig_matrix *w;
    uint64_t number; /* of the row */
    const uint8_t *row;
    const float *f; /* activations as floats, when q is NULL */
    const int8_t *q;
    const float *d;
    const int32_t *sum;
};

/* The integers of 32 columns (or 16), fixed offset included; its scale, and its minimum with the type's sign
 * where it has one. */
struct group {
    int v[32];
    float d, m;
    bool has_min;
};

static void low_high(const uint8_t *quants, int *v)
{
    for (int i = 0; i < 16; i++) {
        v[i] = quants[i] & 15;
        v[i + 16] = quants[i] >> 4;
    }
}

static void fifth_bits(const uint8_t *bits, int *v)
{
    for (int i = 0; i < 32; i++)
        v[i] |= ((bits[i / 8] >> (i % 8)) & 1) << 4;
}

static void shift(int *v, int offset)
{
    for (int i = 0; i < 32; i++)
        v[i] -= offset;
}

static void group_read(enum brig_type_id id, const uint8_t *block, struct group *g)
{
    g->d = brig_f16_to_f32(brig_load_u16(block));
    g->m = 0.0f;
    g->has_min = id == BRIG_TYPE_Q4_1 || id == BRIG_TYPE_Q5_1;
    if (g->has_min)
        g->m = brig_f16_to_f32(brig_load_u16(block + 2));
    switch (id) {
    case BRIG_TYPE_Q4_0:
        low_high(block + 2, g->v);
        shift(g->v, 8);
        break;
    case BRIG_TYPE_Q4_1:
        low_high(block + 4, g->v);
        break;
    case BRIG_TYPE_Q5_0:
        low_high(block + 6, g->v);
        fifth_bits(block + 2, g->v);
        shift(g->v, 16);
        break;
    case BRIG_TYPE_Q5_1:
        low_high(block + 8, g->v);
        fifth_bits(block + 4, g->v);
        break;
    default: /* Q8_0 */
        for (int i = 0; i < 32; i++)
            g->v[i] = (int8_t)block[2 + i];
        break;
    }
}

/* Group g of a block of Q4_K or Q5_K. */
static void group_read_k(enum brig_type_id id, const uint8_t *block, unsigned g, struct group *ret)
{
    const uint8_t *q = block + (id == BRIG_TYPE_Q5_K ? 48 : 16) + g / 2 * 32, *fifth = block + 16;
    unsigned scale, min;
    brig_k_scale_min(block + 4, g, &scale, &min);
    ret->d = brig_f16_to_f32(brig_load_u16(block)) * (float)scale;
    ret->m = -(brig_f16_to_f32(brig_load_u16(block + 2)) * (float)min);
    ret->has_min = true;
    for (int i = 0; i < 32; i++) {
        ret->v[i] = (q[i] >> (g % 2 * 4)) & 15;
        if (id == BRIG_TYPE_Q5_K)
            ret->v[i] |= ((fifth[i] >> g) & 1) << 4;
    }
}

/* Half g of a block of a _G64 type. */
static void group_read_64(enum brig_type_id id, const uint8_t *block, unsigned g, struct group *ret)
{
    ret->d = brig_f16_to_f32(brig_load_u16(block));
    ret->has_min = id == BRIG_TYPE_Q4_1_G64;
    ret->m = ret->has_min ? brig_f16_to_f32(brig_load_u16(block + 2)) : 0.0f;
    const uint8_t *q = block + (ret->has_min ? 4 : 2);
    for (unsigned i = 0; i < 32; i++) {
        if (id == BRIG_TYPE_Q8_0_G64)
            ret->v[i] = (int8_t)q[32 * g + i];
        else
            ret->v[i] = ((q[i] >> (4 * g)) & 15) - (id == BRIG_TYPE_Q4_0_G64 ? 8 : 0);
    }
}

/* Group g, 16 columns, of a block of Q6_K. */
static void group_read_q6_k(const uint8_t *block, unsigned g, struct group *ret)
{
    const uint8_t *low = block + g / 8 * 64 + g % 4 * 16, *high = block + 128 + g / 8 * 32 + g % 2 * 16;
    ret->d = brig_f16_to_f32(brig_load_u16(block + 208)) * (float)(int8_t)block[192 + g];
    ret->has_min = false;
    for (unsigned i = 0; i < 16; i++)
        ret->v[i] = (((low[i] >> (g % 8 / 4 * 4)) & 15) | ((high[i] >> (g % 8 / 2 * 2)) & 3) << 4) - 32;
}

/* One group of a _G16 type. */
static void group_read_16(enum brig_type_id id, const uint8_t *group, struct group *ret)
{
    ret->d = brig_f16_to_f32(brig_load_u16(group));
    ret->has_min = id == BRIG_TYPE_Q4_1_G16;
    ret->m = ret->has_min ? brig_f16_to_f32(brig_load_u16(group + 2)) : 0.0f;
    const uint8_t *q = group + (ret->has_min ? 4 : 2);
    for (unsigned i = 0; i < 16; i++) {
        if (id == BRIG_TYPE_Q8_0_G16)
            ret->v[i] = (int8_t)q[i];
        else
            ret->v[i] = ((q[i % 8] >> (i / 8 * 4)) & 15) - (id == BRIG_TYPE_Q4_0_G16 ? 8 : 0);
    }
}

/* 32 columns of a row that is interleaved with others. */
static void group_read_r16(const struct product *p, uint64_t col, struct group *ret)
{
    const struct brig_type *type = p->w->type;
    uint8_t native[BRIG_R16_BLOCK_MAX];
    brig_r16_get(type, brig_r16_block(type, p->w->data, p->w->row_bytes, p->number, col),
                 (unsigned)(p->number % BRIG_R16_ROWS), native);
    group_read(type->native->id, native, ret);
}

/* The types whose scales belong to 16 columns. */
static float integer_chain_16(const struct product *p, uint64_t col, uint64_t end)
{
    const struct brig_type *type = p->w->type;
    float acc = 0.0f;
    for (; col < end; col += 16) {
        const uint8_t *block = p->row + col / type->block_elems * type->block_bytes;
        unsigned n = (unsigned)(col % type->block_elems) / 16;
        struct group g;
        if (type->id == BRIG_TYPE_Q6_K)
            group_read_q6_k(block, n, &g);
        else
            group_read_16(type->id, block + n * (type->block_bytes / 2), &g);
        int32_t isum = 0;
        for (unsigned i = 0; i < 16; i++)
            isum += g.v[i] * p->q[col + i];
        float dx = p->d[col / BRIG_ACT_GROUP];
        acc = fmaf((float)isum, g.d * dx, acc);
        if (g.has_min)
            acc = fmaf(g.m, dx * (float)p->sum[col / 16], acc);
    }
    return acc;
}

static float integer_chain(const struct product *p, uint64_t col, uint64_t end)
{
    const struct brig_type *type = p->w->type;
    unsigned in_block = type->block_elems / BRIG_ACT_GROUP;
    float acc = 0.0f;
    for (; col < end; col += BRIG_ACT_GROUP) {
        uint64_t n = col / BRIG_ACT_GROUP;
        const uint8_t *block = p->row + n / in_block * type->block_bytes;
        struct group g;
        if (type->native != NULL)
            group_read_r16(p, col, &g);
        else if (in_block == 1)
            group_read(type->id, block, &g);
        else if (in_block == 2)
            group_read_64(type->id, block, (unsigned)(n % 2), &g);
        else
            group_read_k(type->id, block, (unsigned)(n % in_block), &g);
        int32_t isum = 0;
        for (int i = 0; i < 32; i++)
            isum += g.v[i] * p->q[col + (unsigned)i];
        acc = fmaf((float)isum, g.d * p->d[n], acc);
        if (g.has_min)
            acc = fmaf(g.m, p->d[n] * (float)(p->sum[2 * n] + p->sum[2 * n + 1]), acc);
    }
    return acc;
}

static float float_chain(const struct product *p, uint64_t col, uint64_t end)
{
    const struct brig_type *type = p->w->type;
    float acc = 0.0f, buf[CHUNK_COLS];
    while (col < end) {
        size_t n = end - col < CHUNK_COLS ? (size_t)(end - col) : CHUNK_COLS;
        if (p->w->packed != NULL)
            brig_packed_dequant(p->w->packed, p->number, col, n, buf);
        else if (type->native != NULL)
            brig_r16_dequant(type, p->w->data, p->w->row_bytes, p->number, col, n, buf);
        else
            type->dequant(p->row + col / type->block_elems * type->block_bytes, buf, n);
        for (size_t i = 0; i < n; i++)
            acc = fmaf(buf[i], p->f[col + i], acc);
        col += n;
    }
    return acc;
}

/* The tree over units [first, first + n). */
static float unit_tree(const struct product *p, uint64_t first, uint64_t n)
{
    if (n > 1) {
        uint64_t left = (n + 1) / 2;
        float a = unit_tree(p, first, left);
        return a + unit_tree(p, first + left, n - left);
    }
    uint64_t col = first * p->w->unit_cols;
    uint64_t end = p->w->cols - col < p->w->unit_cols ? p->w->cols : col + p->w->unit_cols;
    if (p->q == NULL)
        return float_chain(p, col, end);
    return p->w->type->group == 16 ? integer_chain_16(p, col, end) : integer_chain(p, col, end);
}

void brig_scalar_matmul(const struct brig_matrix *w, uint64_t row_begin, uint64_t row_end,
                        const struct brig_act *x, float *y, size_t y_stride)
{
    uint64_t n_units = (w->cols + w->unit_cols - 1) / w->unit_cols;
    bool integer = x->q != NULL && w->type->group != 0;
    size_t stride = brig_act_stride(x->cols);
    for (uint64_t r = row_begin; r < row_end; r++) {
        struct product p = {.w = w, .number = r, .row = (const uint8_t *)w->data + r * w->row_bytes};
        for (size_t t = 0; t < x->n_rows; t++) {
            if (integer) {
                p.q = x->q + t * stride;
                p.d = x->d + t * (stride / BRIG_ACT_GROUP);
                p.sum = x->sum + t * (stride / 16);
            } else {
                p.f = x->f + t * x->cols;
            }
            y[t * y_stride + r] = unit_tree(&p, 0, n_units);
        }
    }
}
