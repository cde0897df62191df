/*
 * Integer products of unpacked weights with AVX2, for int.c and r16.c. Bytes are multiplied in
 * pairs into 16 bits, added there as often as nothing can pass them, and only then widened: that is exact.
 * Two weights of 4 bits give at most 2 * 15 * 127 = 3810, so 8 steps fit; of 5 bits 2 * 31 * 127 = 7874, 4
 * steps; of 6 bits 2 * 63 * 127 = 16002, 2 steps; of Q8_0, taken as magnitude times signed activation, at
 * most 2 * 128 * 127 = 32512. With VNNI four products are added in 32 bits at once; the signed bytes of Q8_0
 * are moved up by 128 for it.
 *
 * A panel is one vector of 8 rows for one token, two for many: their products are done in tiles of 4 tokens,
 * so that six loads feed eight multiplications.
 */
#ifndef BRIG_SHARD_KERNELS_AVX2_TILE_H
#define BRIG_SHARD_KERNELS_AVX2_TILE_H

#include <string.h>

#include "shard/kernels/vec/blocks.h"

enum { BRIG_TILE_TOKENS = 4, BRIG_CHUNK_TOKENS = 32 };

/* Vectors of rows that a panel has. */
static inline unsigned brig_tile_vectors(unsigned n_tokens)
{
    return n_tokens == 1 ? 1 : BRIG_MANY_ROWS / BRIG_LANES;
}

static inline bool brig_tile_signed(enum brig_type_id id)
{
    return id == BRIG_TYPE_Q8_0 || id == BRIG_TYPE_Q8_0_G16 || id == BRIG_TYPE_Q8_0_G64 ||
           id == BRIG_TYPE_Q8_0_R16;
}

#if defined(__AVXVNNI__)
#define BRIG_TILE_VNNI true
#else
#define BRIG_TILE_VNNI false
#endif

/* What unsigned bytes are too large by. */
static inline int brig_tile_offset(enum brig_type_id id)
{
    return BRIG_TILE_VNNI && brig_tile_signed(id) ? 128 : brig_block_offset(id);
}

/* Sums have 32 bits from the start. */
static inline bool brig_tile_wide(enum brig_type_id id)
{
    return BRIG_TILE_VNNI || brig_tile_signed(id);
}

/* Products of pairs that are added in 16 bits. */
static inline unsigned brig_tile_steps(enum brig_type_id id)
{
    switch (id) {
    case BRIG_TYPE_Q6_K:
        return 2;
    case BRIG_TYPE_Q5_0:
    case BRIG_TYPE_Q5_1:
    case BRIG_TYPE_Q5_K:
        return 4;
    default:
        return 8;
    }
}

static inline __m256i brig_tile_four(const int8_t *q)
{
    int32_t four;
    memcpy(&four, q, sizeof four);
    return _mm256_set1_epi32(four);
}

/* sum[v][t] += the products of 4 columns of 2 vectors of rows with 4 tokens, in pairs. In assembly, for
 * compilers put more products side by side than there are registers: six loads feed eight multiplications
 * only when nothing is spilled. */
static inline __attribute__((always_inline)) void brig_tile_step(__m256i sum[2][BRIG_TILE_TOKENS],
                                                                 const __m256i *u0, const __m256i *u1,
                                                                 const int8_t *q, size_t stride)
{
#define BRIG_PAIRS(four, low, high)                                                                          \
    "vpbroadcastd " four ", %[x]\n\t"                                                                        \
    "vpmaddubsw %[x], %[w0], %[p]\n\t"                                                                       \
    "vpmaddubsw %[x], %[w1], %[x]\n\t"                                                                       \
    "vpaddw %[p], " low ", " low "\n\t"                                                                      \
    "vpaddw %[x], " high ", " high "\n\t"
    typedef int32_t four_columns __attribute__((aligned(1), may_alias));
    const four_columns *x0 = (const four_columns *)q, *x1 = (const four_columns *)(q + stride);
    const four_columns *x2 = (const four_columns *)(q + 2 * stride),
                       *x3 = (const four_columns *)(q + 3 * stride);
    __m256i x, p, w0 = *u0, w1 = *u1;
    __asm__(BRIG_PAIRS("%[x0]", "%[a0]", "%[b0]") BRIG_PAIRS("%[x1]", "%[a1]", "%[b1]")
                BRIG_PAIRS("%[x2]", "%[a2]", "%[b2]") BRIG_PAIRS("%[x3]", "%[a3]", "%[b3]")
            : [a0] "+x"(sum[0][0]), [b0] "+x"(sum[1][0]), [a1] "+x"(sum[0][1]), [b1] "+x"(sum[1][1]),
              [a2] "+x"(sum[0][2]), [b2] "+x"(sum[1][2]), [a3] "+x"(sum[0][3]), [b3] "+x"(sum[1][3]),
              [x] "=&x"(x), [p] "=&x"(p)
            : [w0] "x"(w0), [w1] "x"(w1), [x0] "m"(*x0), [x1] "m"(*x1), [x2] "m"(*x2), [x3] "m"(*x3));
#undef BRIG_PAIRS
}

/* sum + the products of 4 columns of 8 rows with one token's. */
static inline __attribute__((always_inline)) __m256i brig_tile_products(enum brig_type_id id, __m256i sum,
                                                                        __m256i w, __m256i x)
{
#if defined(__AVXVNNI__)
    if (brig_tile_signed(id))
        w = _mm256_xor_si256(w, _mm256_set1_epi8(-128));
    return _mm256_dpbusd_avx_epi32(sum, w, x);
#else
    if (!brig_tile_signed(id))
        return _mm256_add_epi16(sum, _mm256_maddubs_epi16(w, x));
    __m256i products = _mm256_maddubs_epi16(_mm256_abs_epi8(w), _mm256_sign_epi8(x, w));
    sum = _mm256_add_epi32(sum, _mm256_madd_epi16(products, _mm256_set1_epi16(1)));
    __asm__("" : "+x"(sum)); /* in this order, see above */
    return sum;
#endif
}

/* sum[v][t] += the products of dword i of each vector's columns. */
static inline __attribute__((always_inline)) void brig_tile_dword(enum brig_type_id id, const unsigned N,
                                                                  const unsigned T, const brig_vu *const u[2],
                                                                  unsigned i, const int8_t *q, size_t stride,
                                                                  __m256i sum[2][BRIG_TILE_TOKENS])
{
    if (N == 2 && T == BRIG_TILE_TOKENS && !brig_tile_wide(id)) {
        brig_tile_step(sum, (const __m256i *)&u[0][i], (const __m256i *)&u[1][i], q + 4 * i, stride);
        return;
    }
    for (unsigned t = 0; t < T; t++) {
        __m256i x = brig_tile_four(q + t * stride + 4 * i);
        for (unsigned v = 0; v < N; v++)
            sum[v][t] = brig_tile_products(id, sum[v][t], (__m256i)u[v][i], x);
    }
}

/* isum[v][t] = the exact sum of 4 * n columns (n: 8 or 4) of vector v's rows and token t, offset not yet
 * taken off. N vectors, T tokens, whose bytes lie `stride` apart. */
static inline __attribute__((always_inline)) void brig_tile_dot(enum brig_type_id id, const unsigned N,
                                                                const unsigned T, const brig_vu *const u[2],
                                                                unsigned n, const int8_t *q, size_t stride,
                                                                __m256i isum[2][BRIG_TILE_TOKENS])
{
    const __m256i zero = _mm256_setzero_si256(), ones = _mm256_set1_epi16(1);
    unsigned steps = brig_tile_wide(id) || brig_tile_steps(id) > n ? n : brig_tile_steps(id);
    for (unsigned c = 0; c < n; c += steps) {
        __m256i sum[2][BRIG_TILE_TOKENS] = {{zero, zero, zero, zero}, {zero, zero, zero, zero}};
        for (unsigned i = c; i < c + steps; i++)
            brig_tile_dword(id, N, T, u, i, q, stride, sum);
        for (unsigned k = 0; k < N * T; k++) {
            __m256i s = sum[k / T][k % T];
            if (!brig_tile_wide(id))
                s = _mm256_madd_epi16(s, ones);
            isum[k / T][k % T] = c == 0 ? s : _mm256_add_epi32(isum[k / T][k % T], s);
        }
    }
}

/* acc + isum * (d * dx), and + m * dsum; start: -offset times the sum of the activations. */
static inline __attribute__((always_inline)) __m256 brig_tile_add(enum brig_type_id id, __m256i isum,
                                                                  __m256 d, __m256 m, float dx, float dsum,
                                                                  int32_t start, __m256 acc)
{
    if (brig_tile_offset(id) != 0)
        isum = _mm256_add_epi32(isum, _mm256_set1_epi32(start));
    acc = _mm256_fmadd_ps(_mm256_cvtepi32_ps(isum), _mm256_mul_ps(d, _mm256_set1_ps(dx)), acc);
    if (brig_panel_has_min(id))
        acc = _mm256_fmadd_ps(m, _mm256_set1_ps(dsum), acc);
    return acc;
}

/* One vector of rows, one group of 32 columns of one token. */
static inline __attribute__((always_inline)) __m256
brig_tile_one(enum brig_type_id id, const struct brig_block *b, struct brig_token x, __m256 acc)
{
    const brig_vu *const u[2] = {b->u, b->u};
    __m256i isum[2][BRIG_TILE_TOKENS];
    int32_t sum = x.sum[0] + x.sum[1];
    brig_tile_dot(id, 1, 1, u, 8, x.q, 0, isum);
    return brig_tile_add(id, isum[0][0], b->d, b->m, *x.d, *x.d * (float)sum, -brig_tile_offset(id) * sum,
                         acc);
}

/* What tokens bring to the groups of a chunk beside their integers: [group][token]. */
struct brig_factors {
    float dsum[BRIG_PANEL_CHUNK_INT / 16][BRIG_CHUNK_TOKENS];    /* scale times sum */
    int32_t start[BRIG_PANEL_CHUNK_INT / 16][BRIG_CHUNK_TOKENS]; /* -offset times sum */
};

/* A group of some rows: n dwords of columns of each vector, scales, minimums. */
struct brig_group {
    const brig_vu *u[2];
    __m256 d[2], m[2];
    unsigned n_dwords, n_vectors;
};

/* T tokens times a group of N vectors; k: at that group of the first token; dsum and start of it, acc:
 * [token][16] or [8]. */
static inline __attribute__((always_inline)) void
brig_tile(enum brig_type_id id, const unsigned N, const unsigned T, const struct brig_group *w,
          struct brig_token k, size_t stride, const float *dsum, const int32_t *start, float *acc)
{
    __m256i isum[2][BRIG_TILE_TOKENS];
    for (unsigned t = 0; t < T; t++)
        _mm_prefetch((const char *)k.q + t * stride + 64, _MM_HINT_T0);
    brig_tile_dot(id, N, T, w->u, w->n_dwords, k.q, stride, isum);
    for (unsigned t = 0; t < T; t++)
        for (unsigned v = 0; v < N; v++) {
            float *a = acc + BRIG_MANY_ROWS * t + BRIG_LANES * v;
            _mm256_store_ps(a, brig_tile_add(id, isum[v][t], w->d[v], w->m[v],
                                             k.d[t * (stride / BRIG_ACT_GROUP)], dsum[t], start[t],
                                             _mm256_load_ps(a)));
        }
}

static inline __attribute__((always_inline)) void
brig_group_tiles(enum brig_type_id id, const struct brig_group *w, struct brig_token k, size_t stride,
                 const float *dsum, const int32_t *start, unsigned n_tokens, float *acc)
{
    unsigned t = 0;
    if (w->n_vectors == 1) {
        brig_tile(id, 1, 1, w, k, stride, dsum, start, acc);
        return;
    }
    for (; t + BRIG_TILE_TOKENS <= n_tokens; t += BRIG_TILE_TOKENS) {
        brig_tile(id, 2, BRIG_TILE_TOKENS, w, k, stride, dsum + t, start + t, acc + BRIG_MANY_ROWS * t);
        k.q += BRIG_TILE_TOKENS * stride;
        k.d += BRIG_TILE_TOKENS * (stride / BRIG_ACT_GROUP);
    }
    for (; t < n_tokens; t++, k.q += stride, k.d += stride / BRIG_ACT_GROUP)
        brig_tile(id, 2, 1, w, k, stride, dsum + t, start + t, acc + BRIG_MANY_ROWS * t);
}

/* Of groups of `columns` columns, 32 or 16. */
static inline __attribute__((always_inline)) void brig_factors_of(enum brig_type_id id, unsigned columns,
                                                                  const struct brig_act *x, size_t first,
                                                                  unsigned n_tokens, size_t col,
                                                                  unsigned n_groups, struct brig_factors *f)
{
    if (!brig_panel_has_min(id) && brig_tile_offset(id) == 0)
        return;
    for (unsigned t = 0; t < n_tokens; t++) {
        struct brig_token k = brig_token_at(x, first + t, col);
        for (unsigned g = 0; g < n_groups; g++) {
            int32_t sum = columns == 32 ? k.sum[2 * g] + k.sum[2 * g + 1] : k.sum[g];
            f->dsum[g][t] = k.d[columns == 32 ? g : g / 2] * (float)sum;
            f->start[g][t] = -brig_tile_offset(id) * sum;
        }
    }
}

/* A chunk of n_groups groups of 32 columns, of one vector for one token, of both for n_tokens rows of x from
 * `first` on; acc as in panel.h. */
static inline __attribute__((always_inline)) void
brig_tiles(enum brig_type_id id, struct brig_block s[2][BRIG_PANEL_CHUNK_INT / 32], const struct brig_act *x,
           size_t first, unsigned n_tokens, size_t col, unsigned n_groups, float *acc)
{
    struct brig_factors f;
    const unsigned n_vectors = brig_tile_vectors(n_tokens);
    for (unsigned n, t = 0; t < n_tokens; t += n, first += n, acc += BRIG_MANY_ROWS * n) {
        n = n_tokens - t < BRIG_CHUNK_TOKENS ? n_tokens - t : BRIG_CHUNK_TOKENS;
        brig_factors_of(id, 32, x, first, n, col, n_groups, &f);
        for (unsigned g = 0; g < n_groups; g++) {
            const struct brig_block *a = &s[0][g], *b = &s[1][g];
            struct brig_group w = {{a->u, b->u}, {a->d, b->d}, {a->m, b->m}, 8, n_vectors};
            brig_group_tiles(id, &w, brig_token_at(x, first, col + 32 * g), brig_act_stride(x->cols),
                             f.dsum[g], f.start[g], n, acc);
        }
    }
}

/* The same of groups of 16 columns. */
static inline __attribute__((always_inline)) void
brig_tiles_16(enum brig_type_id id, struct brig_block16 s[2][BRIG_PANEL_CHUNK_INT / 16],
              const struct brig_act *x, size_t first, unsigned n_tokens, size_t col, unsigned n_groups,
              float *acc)
{
    struct brig_factors f;
    const unsigned n_vectors = brig_tile_vectors(n_tokens);
    for (unsigned n, t = 0; t < n_tokens; t += n, first += n, acc += BRIG_MANY_ROWS * n) {
        n = n_tokens - t < BRIG_CHUNK_TOKENS ? n_tokens - t : BRIG_CHUNK_TOKENS;
        brig_factors_of(id, 16, x, first, n, col, n_groups, &f);
        for (unsigned g = 0; g < n_groups; g++) {
            const struct brig_block16 *a = &s[0][g], *b = &s[1][g];
            struct brig_group w = {{a->u, b->u}, {a->d, b->d}, {a->m, b->m}, 4, n_vectors};
            brig_group_tiles(id, &w, brig_token_at(x, first, col + 16 * g), brig_act_stride(x->cols),
                             f.dsum[g], f.start[g], n, acc);
        }
    }
}

#endif
