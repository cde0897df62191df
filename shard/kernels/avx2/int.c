/*
 * Integer products with AVX2, with and without VNNI, of matrices as they are stored: blocks of 8 rows are
 * unpacked (vec/blocks.h) and multiplied (tile.h). Called by brig_panel_matmul.
 */
#include "shard/kernels/avx2/tile.h"

enum { GROUPS = BRIG_PANEL_CHUNK_INT / BRIG_ACT_GROUP, GROUPS_16 = BRIG_PANEL_CHUNK_INT / 16 };

/* What the next panel has where this one has `bytes` of each row. */
static inline void fetch(struct brig_panel p, unsigned n_tokens, unsigned bytes)
{
    for (unsigned i = 0; i < bytes * BRIG_LANES * brig_tile_vectors(n_tokens); i += 64)
        _mm_prefetch((const char *)p.ahead + i, _MM_HINT_T1);
}

/* For one token a group stays in registers from its reading to its product. */
static inline __attribute__((always_inline)) void chain_one(enum brig_type_id id, unsigned block_bytes,
                                                            struct brig_panel p, struct brig_token x,
                                                            unsigned n_groups, float *acc)
{
    __m256 a = _mm256_load_ps(acc);
    for (unsigned g = 0; g < n_groups; g++, x.q += BRIG_ACT_GROUP, x.d++, x.sum += 2) {
        struct brig_block b;
        fetch(p, 1, block_bytes);
        brig_block_read(id, p.base, p.stride, &b);
        a = brig_tile_one(id, &b, x, a);
        p.base += block_bytes;
        p.ahead += block_bytes * BRIG_LANES;
    }
    _mm256_store_ps(acc, a);
}

static inline __attribute__((always_inline)) void chain(enum brig_type_id id, unsigned block_bytes,
                                                        struct brig_panel p, const struct brig_act *x,
                                                        size_t first, unsigned n_tokens, size_t col,
                                                        unsigned n_groups, float *acc)
{
    struct brig_block s[2][GROUPS];
    if (n_tokens == 1) {
        chain_one(id, block_bytes, p, brig_token_at(x, first, col), n_groups, acc);
        return;
    }
    fetch(p, n_tokens, n_groups * block_bytes);
    for (unsigned v = 0; v < brig_tile_vectors(n_tokens); v++)
        for (unsigned g = 0; g < n_groups; g++)
            brig_block_read(id, p.base + v * BRIG_LANES * p.stride + g * block_bytes, p.stride, &s[v][g]);
    brig_tiles(id, s, x, first, n_tokens, col, n_groups, acc);
}

/* A chunk is one block of Q4_K or Q5_K. */
static inline __attribute__((always_inline)) void chain_k(enum brig_type_id id, unsigned block_bytes,
                                                          struct brig_panel p, const struct brig_act *x,
                                                          size_t first, unsigned n_tokens, size_t col,
                                                          float *acc)
{
    struct brig_block s[2][GROUPS];
    fetch(p, n_tokens, block_bytes);
    for (unsigned v = 0; v < brig_tile_vectors(n_tokens); v++)
        brig_block_read_k(id, p.base + v * BRIG_LANES * p.stride, p.stride, s[v]);
    brig_tiles(id, s, x, first, n_tokens, col, GROUPS, acc);
}

/* A chunk is one block of Q6_K: groups of 16 columns. */
static void chain_q6_k(struct brig_panel p, const struct brig_act *x, size_t first, unsigned n_tokens,
                       size_t col, float *acc)
{
    struct brig_block16 s[2][GROUPS_16];
    fetch(p, n_tokens, 210);
    for (unsigned v = 0; v < brig_tile_vectors(n_tokens); v++)
        brig_block_read_q6_k(p.base + v * BRIG_LANES * p.stride, p.stride, s[v]);
    brig_tiles_16(BRIG_TYPE_Q6_K, s, x, first, n_tokens, col, GROUPS_16, acc);
}

/* n_groups: of 32 columns, a block of a _G16 type each. */
static inline __attribute__((always_inline)) void chain_16(enum brig_type_id id, unsigned block_bytes,
                                                           struct brig_panel p, const struct brig_act *x,
                                                           size_t first, unsigned n_tokens, size_t col,
                                                           unsigned n_groups, float *acc)
{
    struct brig_block16 s[2][GROUPS_16];
    fetch(p, n_tokens, n_groups * block_bytes);
    for (unsigned v = 0; v < brig_tile_vectors(n_tokens); v++)
        for (unsigned g = 0; g < n_groups; g++)
            brig_block_read_16(id, p.base + v * BRIG_LANES * p.stride + g * block_bytes, p.stride,
                               s[v] + 2 * g);
    brig_tiles_16(id, s, x, first, n_tokens, col, 2 * n_groups, acc);
}

/* n_groups: of 32 columns, two of them a block of a _G64 type. */
static inline __attribute__((always_inline)) void chain_64(enum brig_type_id id, unsigned block_bytes,
                                                           struct brig_panel p, const struct brig_act *x,
                                                           size_t first, unsigned n_tokens, size_t col,
                                                           unsigned n_groups, float *acc)
{
    struct brig_block s[2][GROUPS];
    fetch(p, n_tokens, n_groups / 2 * block_bytes);
    for (unsigned v = 0; v < brig_tile_vectors(n_tokens); v++)
        for (unsigned g = 0; g < n_groups; g += 2)
            brig_block_read_64(id, p.base + v * BRIG_LANES * p.stride + g / 2 * block_bytes, p.stride,
                               s[v] + g);
    brig_tiles(id, s, x, first, n_tokens, col, n_groups, acc);
}

void BRIG_ISA(chain_int)(enum brig_type_id id, struct brig_panel p, const struct brig_act *x, size_t first,
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
