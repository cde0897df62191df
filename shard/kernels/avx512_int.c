/*
 * Integer products with AVX-512 VNNI: weights as unsigned bytes, activations as signed bytes, 4 columns of 16
 * rows an instruction. Sums of a group are exact, so their order is free; the f32 chain goes group by group.
 * Called by brig_panel_matmul for each chunk of a unit.
 */
#include <string.h>

#include "shard/kernels/vec/blocks.h"

/* A chunk of unpacked weights, shared by all tokens of a tile. */
struct unpacked {
    struct brig_block group[BRIG_PANEL_CHUNK_INT / BRIG_ACT_GROUP];
};

/* The instruction wants unsigned bytes: the signed ones of Q8_0 and its like are moved up by 128. */
static inline bool is_signed(enum brig_type_id id)
{
    return id == BRIG_TYPE_Q8_0 || id == BRIG_TYPE_Q8_0_G16 || id == BRIG_TYPE_Q8_0_G64;
}

static inline int offset_of(enum brig_type_id id)
{
    return is_signed(id) ? 128 : brig_block_offset(id);
}

static inline void flip(enum brig_type_id id, brig_vu *u, unsigned n)
{
    for (unsigned c = 0; is_signed(id) && c < n; c++)
        u[c] ^= 0x80808080u;
}

static inline __m512i four(const int8_t *q)
{
    int32_t v;
    memcpy(&v, q, sizeof v);
    return _mm512_set1_epi32(v);
}

static inline void fetch(const uint8_t *p, unsigned bytes)
{
    for (unsigned i = 0; i < bytes; i += 64)
        _mm_prefetch((const char *)p + i, _MM_HINT_T1);
}

static inline __m512 add_group(enum brig_type_id id, __m512i isum, __m512 d, __m512 m, float dx, int32_t xsum,
                               __m512 acc)
{
    acc = _mm512_fmadd_ps(_mm512_cvtepi32_ps(isum), _mm512_mul_ps(d, _mm512_set1_ps(dx)), acc);
    if (brig_panel_has_min(id))
        acc = _mm512_fmadd_ps(m, _mm512_set1_ps(dx * (float)xsum), acc);
    return acc;
}

/* One token: from the stored block to the sum without leaving the registers. */
static inline __attribute__((always_inline)) void one(enum brig_type_id id, unsigned block_bytes,
                                                      struct brig_panel p, struct brig_token x,
                                                      unsigned n_groups, float *acc)
{
    __m512 a = _mm512_load_ps(acc);
    for (unsigned g = 0; g < n_groups; g++, x.q += BRIG_ACT_GROUP) {
        struct brig_block b;
        fetch(p.ahead + g * block_bytes * BRIG_PANEL_ROWS, block_bytes * BRIG_PANEL_ROWS);
        brig_block_read(id, p.base + g * block_bytes, p.stride, &b);
        flip(id, b.u, 8);
        int32_t xsum = x.sum[2 * g] + x.sum[2 * g + 1];
        __m512i even = _mm512_set1_epi32(-offset_of(id) * xsum);
        __m512i odd = _mm512_setzero_si512();
        for (int c = 0; c < 8; c += 2) {
            even = _mm512_dpbusd_epi32(even, (__m512i)b.u[c], four(x.q + 4 * c));
            odd = _mm512_dpbusd_epi32(odd, (__m512i)b.u[c + 1], four(x.q + 4 * c + 4));
        }
        a = add_group(id, _mm512_add_epi32(even, odd), b.d, b.m, x.d[g], xsum, a);
    }
    _mm512_store_ps(acc, a);
}

static inline __attribute__((always_inline)) void
unpack(enum brig_type_id id, unsigned block_bytes, struct brig_panel p, unsigned n_groups, struct unpacked *s)
{
    for (unsigned g = 0; g < n_groups; g++) {
        brig_block_read(id, p.base + g * block_bytes, p.stride, &s->group[g]);
        flip(id, s->group[g].u, 8);
    }
}

/* What a token brings to the groups of a chunk beside its integers. */
struct factors {
    float d[BRIG_PANEL_CHUNK_INT / 16], dsum[BRIG_PANEL_CHUNK_INT / 16]; /* scale; scale times sum */
    int32_t start[BRIG_PANEL_CHUNK_INT / 16];                            /* -offset times sum */
};

static inline __mmask16 first_lanes(unsigned n)
{
    return (__mmask16)((1u << n) - 1);
}

/* A multiplication of this width is slow; all offsets are powers of two. */
static inline __m512i times_offset(enum brig_type_id id, __m512i v)
{
    return _mm512_slli_epi32(v, (unsigned)__builtin_ctz((unsigned)offset_of(id)));
}

/* n groups of `columns` columns, 32 or 16. */
static inline __attribute__((always_inline)) void
factors_of(enum brig_type_id id, unsigned columns, struct brig_token x, unsigned n, struct factors *f)
{
    const __m512i even = _mm512_set_epi32(30, 28, 26, 24, 22, 20, 18, 16, 14, 12, 10, 8, 6, 4, 2, 0);
    const __m512i halves = _mm512_set_epi32(7, 7, 6, 6, 5, 5, 4, 4, 3, 3, 2, 2, 1, 1, 0, 0);
    __m512i sum = _mm512_maskz_loadu_epi32(first_lanes(columns == 32 ? 2 * n : n), x.sum);
    __m512 d = _mm512_maskz_loadu_ps(first_lanes(columns == 32 ? n : n / 2), x.d);
    if (columns == 32)
        sum = _mm512_permutexvar_epi32(even, _mm512_add_epi32(sum, _mm512_srli_epi64(sum, 32)));
    else
        d = _mm512_permutexvar_ps(halves, d);
    _mm512_storeu_ps(f->d, d);
    if (brig_panel_has_min(id))
        _mm512_storeu_ps(f->dsum, _mm512_mul_ps(d, _mm512_cvtepi32_ps(sum)));
    if (offset_of(id) != 0)
        _mm512_storeu_si512(f->start, _mm512_sub_epi32(_mm512_setzero_si512(), times_offset(id, sum)));
}

/* Group g of N tokens: u is n_dwords dwords of columns, q those of the first token. */
static inline __attribute__((always_inline)) void tile_group(enum brig_type_id id, const int N,
                                                             const brig_vu *u, unsigned n_dwords, __m512 d,
                                                             __m512 m, const int8_t *q, size_t stride,
                                                             const struct factors *f, unsigned g, __m512 *a)
{
    __m512i isum[8];
    for (int k = 0; k < N; k++)
        isum[k] = offset_of(id) != 0 ? _mm512_set1_epi32(f[k].start[g]) : _mm512_setzero_si512();
    for (unsigned c = 0; c < n_dwords; c++)
        for (int k = 0; k < N; k++)
            isum[k] = _mm512_dpbusd_epi32(isum[k], (__m512i)u[c], four(q + (size_t)k * stride + 4 * c));
    for (int k = 0; k < N; k++) {
        a[k] =
            _mm512_fmadd_ps(_mm512_cvtepi32_ps(isum[k]), _mm512_mul_ps(d, _mm512_set1_ps(f[k].d[g])), a[k]);
        if (brig_panel_has_min(id))
            a[k] = _mm512_fmadd_ps(m, _mm512_set1_ps(f[k].dsum[g]), a[k]);
    }
}

/* N tokens, N a constant: their sums stay in registers while the weights pass by. */
static inline __attribute__((always_inline)) void tile(enum brig_type_id id, const int N,
                                                       const struct unpacked *s, struct brig_token x,
                                                       size_t stride, unsigned n_groups, float *acc)
{
    struct factors f[8];
    __m512 a[8];
    for (int k = 0; k < N; k++) {
        struct brig_token t = {x.q, x.d + (size_t)k * (stride / BRIG_ACT_GROUP),
                               x.sum + (size_t)k * (stride / 16)};
        factors_of(id, BRIG_ACT_GROUP, t, n_groups, &f[k]);
        a[k] = _mm512_load_ps(acc + 16 * k);
    }
    for (unsigned g = 0; g < n_groups; g++)
        tile_group(id, N, s->group[g].u, 8, s->group[g].d, s->group[g].m, x.q + g * BRIG_ACT_GROUP, stride, f,
                   g, a);
    for (int k = 0; k < N; k++)
        _mm512_store_ps(acc + 16 * k, a[k]);
}

static inline __attribute__((always_inline)) void tiles(enum brig_type_id id, const struct unpacked *s,
                                                        const struct brig_act *x, size_t first,
                                                        unsigned n_tokens, size_t col, unsigned n_groups,
                                                        float *acc)
{
    unsigned t = 0;
    for (; t + 8 <= n_tokens; t += 8)
        tile(id, 8, s, brig_token_at(x, first + t, col), brig_act_stride(x->cols), n_groups, acc + 16 * t);
    if (t + 4 <= n_tokens) {
        tile(id, 4, s, brig_token_at(x, first + t, col), brig_act_stride(x->cols), n_groups, acc + 16 * t);
        t += 4;
    }
    for (; t < n_tokens; t++)
        tile(id, 1, s, brig_token_at(x, first + t, col), brig_act_stride(x->cols), n_groups, acc + 16 * t);
}

static inline __attribute__((always_inline)) void many(enum brig_type_id id, unsigned block_bytes,
                                                       struct brig_panel p, const struct brig_act *x,
                                                       size_t first, unsigned n_tokens, size_t col,
                                                       unsigned n_groups, float *acc)
{
    struct unpacked s;
    unpack(id, block_bytes, p, n_groups, &s);
    tiles(id, &s, x, first, n_tokens, col, n_groups, acc);
}

/* A chunk is one block of Q4_K or Q5_K. */
static inline __attribute__((always_inline)) void chain_k(enum brig_type_id id, unsigned block_bytes,
                                                          struct brig_panel p, const struct brig_act *x,
                                                          size_t first, unsigned n_tokens, size_t col,
                                                          float *acc)
{
    struct unpacked s;
    if (n_tokens == 1)
        fetch(p.ahead, block_bytes * BRIG_PANEL_ROWS);
    brig_block_read_k(id, p.base, p.stride, s.group);
    tiles(id, &s, x, first, n_tokens, col, BRIG_PANEL_CHUNK_INT / BRIG_ACT_GROUP, acc);
}

/* tile for the types with groups of 16 columns. */
static inline __attribute__((always_inline)) void tile_16(enum brig_type_id id, const int N,
                                                          const struct brig_block16 *s, struct brig_token x,
                                                          size_t stride, unsigned n_groups, float *acc)
{
    struct factors f[8];
    __m512 a[8];
    for (int k = 0; k < N; k++) {
        struct brig_token t = {x.q, x.d + (size_t)k * (stride / BRIG_ACT_GROUP),
                               x.sum + (size_t)k * (stride / 16)};
        factors_of(id, 16, t, n_groups, &f[k]);
        a[k] = _mm512_load_ps(acc + 16 * k);
    }
    for (unsigned g = 0; g < n_groups; g++)
        tile_group(id, N, s[g].u, 4, s[g].d, s[g].m, x.q + 16 * g, stride, f, g, a);
    for (int k = 0; k < N; k++)
        _mm512_store_ps(acc + 16 * k, a[k]);
}

static inline __attribute__((always_inline)) void tiles_16(enum brig_type_id id, const struct brig_block16 *s,
                                                           const struct brig_act *x, size_t first,
                                                           unsigned n_tokens, size_t col, unsigned n_groups,
                                                           float *acc)
{
    unsigned t = 0;
    for (; t + 8 <= n_tokens; t += 8)
        tile_16(id, 8, s, brig_token_at(x, first + t, col), brig_act_stride(x->cols), n_groups, acc + 16 * t);
    for (; t < n_tokens; t++)
        tile_16(id, 1, s, brig_token_at(x, first + t, col), brig_act_stride(x->cols), n_groups, acc + 16 * t);
}

/* A chunk is one block of Q6_K. */
static void chain_q6_k(struct brig_panel p, const struct brig_act *x, size_t first, unsigned n_tokens,
                       size_t col, float *acc)
{
    struct brig_block16 s[BRIG_PANEL_CHUNK_INT / 16];
    if (n_tokens == 1)
        fetch(p.ahead, 210 * BRIG_PANEL_ROWS);
    brig_block_read_q6_k(p.base, p.stride, s);
    tiles_16(BRIG_TYPE_Q6_K, s, x, first, n_tokens, col, BRIG_PANEL_CHUNK_INT / 16, acc);
}

/* n_groups: of 32 columns, a block of a _G16 type each. */
static inline __attribute__((always_inline)) void chain_16(enum brig_type_id id, unsigned block_bytes,
                                                           struct brig_panel p, const struct brig_act *x,
                                                           size_t first, unsigned n_tokens, size_t col,
                                                           unsigned n_groups, float *acc)
{
    struct brig_block16 s[BRIG_PANEL_CHUNK_INT / 16];
    if (n_tokens == 1)
        fetch(p.ahead, n_groups * block_bytes * BRIG_PANEL_ROWS);
    for (unsigned g = 0; g < n_groups; g++) {
        brig_block_read_16(id, p.base + g * block_bytes, p.stride, s + 2 * g);
        flip(id, s[2 * g].u, 4);
        flip(id, s[2 * g + 1].u, 4);
    }
    tiles_16(id, s, x, first, n_tokens, col, 2 * n_groups, acc);
}

/* n_groups: of 32 columns, two of them a block of a _G64 type. */
static inline __attribute__((always_inline)) void chain_64(enum brig_type_id id, unsigned block_bytes,
                                                           struct brig_panel p, const struct brig_act *x,
                                                           size_t first, unsigned n_tokens, size_t col,
                                                           unsigned n_groups, float *acc)
{
    struct unpacked s;
    if (n_tokens == 1)
        fetch(p.ahead, n_groups / 2 * block_bytes * BRIG_PANEL_ROWS);
    for (unsigned g = 0; g < n_groups; g += 2) {
        brig_block_read_64(id, p.base + g / 2 * block_bytes, p.stride, s.group + g);
        flip(id, s.group[g].u, 8);
        flip(id, s.group[g + 1].u, 8);
    }
    tiles(id, &s, x, first, n_tokens, col, n_groups, acc);
}

#define CHAIN(ID, block_bytes)                                                                               \
    static void chain_##ID(struct brig_panel p, const struct brig_act *x, size_t first, unsigned n_tokens,   \
                           size_t col, unsigned n_groups, float *acc)                                        \
    {                                                                                                        \
        if (n_tokens == 1)                                                                                   \
            one(BRIG_TYPE_##ID, block_bytes, p, brig_token_at(x, first, col), n_groups, acc);                \
        else                                                                                                 \
            many(BRIG_TYPE_##ID, block_bytes, p, x, first, n_tokens, col, n_groups, acc);                    \
    }
CHAIN(Q4_0, 18)
CHAIN(Q4_1, 20)
CHAIN(Q5_0, 22)
CHAIN(Q5_1, 24)
CHAIN(Q8_0, 34)

void brig_avx512_chain_int(enum brig_type_id id, struct brig_panel p, const struct brig_act *x, size_t first,
                           unsigned n_tokens, size_t col, unsigned n_cols, float *acc)
{
    unsigned n_groups = n_cols / BRIG_ACT_GROUP;
    switch (id) {
    case BRIG_TYPE_Q4_0:
        chain_Q4_0(p, x, first, n_tokens, col, n_groups, acc);
        break;
    case BRIG_TYPE_Q4_1:
        chain_Q4_1(p, x, first, n_tokens, col, n_groups, acc);
        break;
    case BRIG_TYPE_Q5_0:
        chain_Q5_0(p, x, first, n_tokens, col, n_groups, acc);
        break;
    case BRIG_TYPE_Q5_1:
        chain_Q5_1(p, x, first, n_tokens, col, n_groups, acc);
        break;
    case BRIG_TYPE_Q4_K:
        chain_k(BRIG_TYPE_Q4_K, 144, p, x, first, n_tokens, col, acc);
        break;
    case BRIG_TYPE_Q5_K:
        chain_k(BRIG_TYPE_Q5_K, 176, p, x, first, n_tokens, col, acc);
        break;
    case BRIG_TYPE_Q6_K:
        chain_q6_k(p, x, first, n_tokens, col, acc);
        break;
    case BRIG_TYPE_Q8_0_G16:
        chain_16(BRIG_TYPE_Q8_0_G16, 36, p, x, first, n_tokens, col, n_groups, acc);
        break;
    case BRIG_TYPE_Q4_0_G16:
        chain_16(BRIG_TYPE_Q4_0_G16, 20, p, x, first, n_tokens, col, n_groups, acc);
        break;
    case BRIG_TYPE_Q4_1_G16:
        chain_16(BRIG_TYPE_Q4_1_G16, 24, p, x, first, n_tokens, col, n_groups, acc);
        break;
    case BRIG_TYPE_Q8_0_G64:
        chain_64(BRIG_TYPE_Q8_0_G64, 66, p, x, first, n_tokens, col, n_groups, acc);
        break;
    case BRIG_TYPE_Q4_0_G64:
        chain_64(BRIG_TYPE_Q4_0_G64, 34, p, x, first, n_tokens, col, n_groups, acc);
        break;
    case BRIG_TYPE_Q4_1_G64:
        chain_64(BRIG_TYPE_Q4_1_G64, 36, p, x, first, n_tokens, col, n_groups, acc);
        break;
    default:
        chain_Q8_0(p, x, first, n_tokens, col, n_groups, acc);
        break;
    }
}
