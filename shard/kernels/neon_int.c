/*
 * Integer products with NEON: dot products of 4 signed bytes, 4 rows an instruction; every stored byte but
 * those of the Q8_0 types is below 64, so signed serves all. Sums of a group are exact, so their order is
 * free; the f32 chain goes group by group. Called by brig_panel_matmul for each chunk of a unit.
 */
#include "shard/kernels/vec/blocks.h"

enum {
    GROUPS = BRIG_PANEL_CHUNK_INT / BRIG_ACT_GROUP, /* of a chunk at most */
    GROUPS_16 = BRIG_PANEL_CHUNK_INT / 16
};

static inline void fetch(const uint8_t *p, unsigned bytes)
{
    for (unsigned i = 0; i < bytes; i += 64)
        __builtin_prefetch(p + i);
}

/* 16 columns. */
static inline int32x4_t dot16(int32x4_t sum, const brig_vu u[4], const int8_t *q)
{
    int8x16_t x = vld1q_s8(q);
    sum = vdotq_laneq_s32(sum, (int8x16_t)u[0], x, 0);
    sum = vdotq_laneq_s32(sum, (int8x16_t)u[1], x, 1);
    sum = vdotq_laneq_s32(sum, (int8x16_t)u[2], x, 2);
    return vdotq_laneq_s32(sum, (int8x16_t)u[3], x, 3);
}

static inline brig_vf add_group(enum brig_type_id id, int32x4_t isum, brig_vf d, brig_vf m, float dx,
                                int32_t xsum, brig_vf acc)
{
    acc = brig_vf_fma(__builtin_convertvector((brig_vi)isum, brig_vf), d * dx, acc);
    if (brig_panel_has_min(id))
        acc = brig_vf_fma(m, brig_vf_set1(dx * (float)xsum), acc);
    return acc;
}

static inline brig_vf group32(enum brig_type_id id, const struct brig_block *b, const int8_t *q, float dx,
                              const int32_t *sum, brig_vf acc)
{
    int32_t xsum = sum[0] + sum[1];
    int32x4_t isum = dot16(vdupq_n_s32(-brig_block_offset(id) * xsum), b->u, q);
    return add_group(id, dot16(isum, b->u + 4, q + 16), b->d, b->m, dx, xsum, acc);
}

/* One token: from the stored block to the sum without leaving the registers. */
static inline __attribute__((always_inline)) void one(enum brig_type_id id, unsigned block_bytes,
                                                      struct brig_panel p, struct brig_token x,
                                                      unsigned n_groups, float *acc)
{
    brig_vf a = brig_vf_load(acc);
    for (unsigned g = 0; g < n_groups; g++) {
        struct brig_block b;
        fetch(p.ahead + g * block_bytes * BRIG_LANES, block_bytes * BRIG_LANES);
        brig_block_read(id, p.base + g * block_bytes, p.stride, &b);
        a = group32(id, &b, x.q + g * BRIG_ACT_GROUP, x.d[g], x.sum + 2 * g, a);
    }
    brig_vf_store(acc, a);
}

/* N tokens, N a constant: their sums stay in registers while the weights pass by. */
static inline __attribute__((always_inline)) void tile(enum brig_type_id id, const unsigned N,
                                                       const struct brig_block *s, struct brig_token x,
                                                       size_t stride, unsigned n_groups, float *acc)
{
    brig_vf a[8];
    for (unsigned k = 0; k < N; k++)
        a[k] = brig_vf_load(acc + BRIG_LANES * k);
    for (unsigned g = 0; g < n_groups; g++)
        for (unsigned k = 0; k < N; k++)
            a[k] = group32(id, &s[g], x.q + k * stride + g * BRIG_ACT_GROUP,
                           x.d[k * (stride / BRIG_ACT_GROUP) + g], x.sum + k * (stride / 16) + 2 * g, a[k]);
    for (unsigned k = 0; k < N; k++)
        brig_vf_store(acc + BRIG_LANES * k, a[k]);
}

/* The same for groups of 16 columns. */
static inline __attribute__((always_inline)) void tile_16(enum brig_type_id id, const unsigned N,
                                                          const struct brig_block16 *s, struct brig_token x,
                                                          size_t stride, unsigned n_groups, float *acc)
{
    brig_vf a[8];
    for (unsigned k = 0; k < N; k++)
        a[k] = brig_vf_load(acc + BRIG_LANES * k);
    for (unsigned g = 0; g < n_groups; g++)
        for (unsigned k = 0; k < N; k++) {
            int32_t xsum = x.sum[k * (stride / 16) + g];
            int32x4_t isum = vdupq_n_s32(-brig_block_offset(id) * xsum);
            isum = dot16(isum, s[g].u, x.q + k * stride + 16 * g);
            a[k] =
                add_group(id, isum, s[g].d, s[g].m, x.d[k * (stride / BRIG_ACT_GROUP) + g / 2], xsum, a[k]);
        }
    for (unsigned k = 0; k < N; k++)
        brig_vf_store(acc + BRIG_LANES * k, a[k]);
}

static inline __attribute__((always_inline)) void tiles(enum brig_type_id id, const struct brig_block *s,
                                                        const struct brig_act *x, size_t first,
                                                        unsigned n_tokens, size_t col, unsigned n_groups,
                                                        float *acc)
{
    unsigned t = 0;
    for (; t + 8 <= n_tokens; t += 8)
        tile(id, 8, s, brig_token_at(x, first + t, col), brig_act_stride(x->cols), n_groups,
             acc + BRIG_LANES * t);
    for (; t < n_tokens; t++)
        tile(id, 1, s, brig_token_at(x, first + t, col), brig_act_stride(x->cols), n_groups,
             acc + BRIG_LANES * t);
}

static inline __attribute__((always_inline)) void tiles_16(enum brig_type_id id, const struct brig_block16 *s,
                                                           const struct brig_act *x, size_t first,
                                                           unsigned n_tokens, size_t col, unsigned n_groups,
                                                           float *acc)
{
    unsigned t = 0;
    for (; t + 8 <= n_tokens; t += 8)
        tile_16(id, 8, s, brig_token_at(x, first + t, col), brig_act_stride(x->cols), n_groups,
                acc + BRIG_LANES * t);
    for (; t < n_tokens; t++)
        tile_16(id, 1, s, brig_token_at(x, first + t, col), brig_act_stride(x->cols), n_groups,
                acc + BRIG_LANES * t);
}

static inline __attribute__((always_inline)) void chain(enum brig_type_id id, unsigned block_bytes,
                                                        struct brig_panel p, const struct brig_act *x,
                                                        size_t first, unsigned n_tokens, size_t col,
                                                        unsigned n_groups, float *acc)
{
    struct brig_block s[GROUPS];
    if (n_tokens == 1) {
        one(id, block_bytes, p, brig_token_at(x, first, col), n_groups, acc);
        return;
    }
    for (unsigned g = 0; g < n_groups; g++)
        brig_block_read(id, p.base + g * block_bytes, p.stride, &s[g]);
    tiles(id, s, x, first, n_tokens, col, n_groups, acc);
}

/* A chunk is one block of Q4_K or Q5_K. */
static inline __attribute__((always_inline)) void chain_k(enum brig_type_id id, unsigned block_bytes,
                                                          struct brig_panel p, const struct brig_act *x,
                                                          size_t first, unsigned n_tokens, size_t col,
                                                          float *acc)
{
    struct brig_block s[GROUPS];
    if (n_tokens == 1)
        fetch(p.ahead, block_bytes * BRIG_LANES);
    brig_block_read_k(id, p.base, p.stride, s);
    tiles(id, s, x, first, n_tokens, col, GROUPS, acc);
}

/* A chunk is one block of Q6_K. */
static void chain_q6_k(struct brig_panel p, const struct brig_act *x, size_t first, unsigned n_tokens,
                       size_t col, float *acc)
{
    struct brig_block16 s[GROUPS_16];
    if (n_tokens == 1)
        fetch(p.ahead, 210 * BRIG_LANES);
    brig_block_read_q6_k(p.base, p.stride, s);
    tiles_16(BRIG_TYPE_Q6_K, s, x, first, n_tokens, col, GROUPS_16, acc);
}

/* n_groups: of 32 columns, a block of a _G16 type each. */
static inline __attribute__((always_inline)) void chain_16(enum brig_type_id id, unsigned block_bytes,
                                                           struct brig_panel p, const struct brig_act *x,
                                                           size_t first, unsigned n_tokens, size_t col,
                                                           unsigned n_groups, float *acc)
{
    struct brig_block16 s[GROUPS_16];
    if (n_tokens == 1)
        fetch(p.ahead, n_groups * block_bytes * BRIG_LANES);
    for (unsigned g = 0; g < n_groups; g++)
        brig_block_read_16(id, p.base + g * block_bytes, p.stride, s + 2 * g);
    tiles_16(id, s, x, first, n_tokens, col, 2 * n_groups, acc);
}

/* n_groups: of 32 columns, two of them a block of a _G64 type. */
static inline __attribute__((always_inline)) void chain_64(enum brig_type_id id, unsigned block_bytes,
                                                           struct brig_panel p, const struct brig_act *x,
                                                           size_t first, unsigned n_tokens, size_t col,
                                                           unsigned n_groups, float *acc)
{
    struct brig_block s[GROUPS];
    if (n_tokens == 1)
        fetch(p.ahead, n_groups / 2 * block_bytes * BRIG_LANES);
    for (unsigned g = 0; g < n_groups; g += 2)
        brig_block_read_64(id, p.base + g / 2 * block_bytes, p.stride, s + g);
    tiles(id, s, x, first, n_tokens, col, n_groups, acc);
}

void brig_neon_chain_int(enum brig_type_id id, struct brig_panel p, const struct brig_act *x, size_t first,
                         unsigned n_tokens, size_t col, unsigned n_cols, float *acc)
{
    unsigned n_groups = n_cols / BRIG_ACT_GROUP;
    switch (id) {
    case BRIG_TYPE_Q4_0:
        chain(BRIG_TYPE_Q4_0, 18, p, x, first, n_tokens, col, n_groups, acc);
        break;
    case BRIG_TYPE_Q4_1:
        chain(BRIG_TYPE_Q4_1, 20, p, x, first, n_tokens, col, n_groups, acc);
        break;
    case BRIG_TYPE_Q5_0:
        chain(BRIG_TYPE_Q5_0, 22, p, x, first, n_tokens, col, n_groups, acc);
        break;
    case BRIG_TYPE_Q5_1:
        chain(BRIG_TYPE_Q5_1, 24, p, x, first, n_tokens, col, n_groups, acc);
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
        chain(BRIG_TYPE_Q8_0, 34, p, x, first, n_tokens, col, n_groups, acc);
        break;
    }
}

/* The rows' quarters, one after the other. */
static inline __attribute__((always_inline)) void chain_r16(enum brig_type_id id, const uint8_t *blocks,
                                                            const uint8_t *ahead, const struct brig_act *x,
                                                            size_t first, unsigned n_tokens, size_t col,
                                                            unsigned n_groups, float *acc)
{
    struct brig_block s[GROUPS];
    unsigned bytes = brig_block_r16_bytes(id);
    if (n_tokens == 1)
        fetch(ahead, n_groups * bytes);
    for (unsigned row = 0; row < BRIG_R16_ROWS; row += BRIG_LANES, acc += BRIG_LANES * n_tokens) {
        for (unsigned g = 0; g < n_groups; g++)
            brig_block_read_r16(id, blocks + g * bytes, row, &s[g]);
        tiles(id, s, x, first, n_tokens, col, n_groups, acc);
    }
}

void brig_neon_chain_r16_int(enum brig_type_id id, const uint8_t *blocks, const uint8_t *ahead,
                             const struct brig_act *x, size_t first, unsigned n_tokens, size_t col,
                             unsigned n_cols, float *acc)
{
    unsigned n_groups = n_cols / BRIG_ACT_GROUP;
    switch (id) {
    case BRIG_TYPE_Q4_0_R16:
        chain_r16(BRIG_TYPE_Q4_0_R16, blocks, ahead, x, first, n_tokens, col, n_groups, acc);
        break;
    case BRIG_TYPE_Q4_1_R16:
        chain_r16(BRIG_TYPE_Q4_1_R16, blocks, ahead, x, first, n_tokens, col, n_groups, acc);
        break;
    default:
        chain_r16(BRIG_TYPE_Q8_0_R16, blocks, ahead, x, first, n_tokens, col, n_groups, acc);
        break;
    }
}
