/*
 * Interleaved matrices (proto/model/r16.h) with AVX2: a vector of weights is one load. Called by
 * brig_panel_matmul.
 */
#include "shard/kernels/avx2/tile.h"

static inline __attribute__((always_inline)) void fetch(enum brig_type_id id, const uint8_t *ahead)
{
    for (unsigned i = 0; i < brig_block_r16_bytes(id); i += 64)
        _mm_prefetch((const char *)ahead + i, _MM_HINT_T1);
}

/* One token: the halves of the rows side by side, as they lie in memory. */
static inline __attribute__((always_inline)) void chain_one(enum brig_type_id id, const uint8_t *blocks,
                                                            const uint8_t *ahead, struct brig_token x,
                                                            unsigned n_groups, float *acc)
{
    __m256 a[2] = {_mm256_load_ps(acc), _mm256_load_ps(acc + BRIG_LANES)};
    for (unsigned g = 0; g < n_groups; g++, x.q += BRIG_ACT_GROUP, x.d++, x.sum += 2) {
        fetch(id, ahead + g * brig_block_r16_bytes(id));
        for (unsigned v = 0; v < 2; v++) {
            struct brig_block b;
            brig_block_read_r16(id, blocks + g * brig_block_r16_bytes(id), BRIG_LANES * v, &b);
            a[v] = brig_tile_one(id, &b, x, a[v]);
        }
    }
    _mm256_store_ps(acc, a[0]);
    _mm256_store_ps(acc + BRIG_LANES, a[1]);
}

static inline __attribute__((always_inline)) void chain(enum brig_type_id id, const uint8_t *blocks,
                                                        const uint8_t *ahead, const struct brig_act *x,
                                                        size_t first, unsigned n_tokens, size_t col,
                                                        unsigned n_groups, float *acc)
{
    struct brig_block s[2][BRIG_PANEL_CHUNK_INT / BRIG_ACT_GROUP];
    if (n_tokens == 1) {
        chain_one(id, blocks, ahead, brig_token_at(x, first, col), n_groups, acc);
        return;
    }
    for (unsigned g = 0; g < n_groups; g++) {
        fetch(id, ahead + g * brig_block_r16_bytes(id));
        for (unsigned v = 0; v < 2; v++)
            brig_block_read_r16(id, blocks + g * brig_block_r16_bytes(id), BRIG_LANES * v, &s[v][g]);
    }
    brig_tiles(id, s, x, first, n_tokens, col, n_groups, acc);
}

void BRIG_ISA(chain_r16_int)(enum brig_type_id id, const uint8_t *blocks, const uint8_t *ahead,
                             const struct brig_act *x, size_t first, unsigned n_tokens, size_t col,
                             unsigned n_cols, float *acc)
{
    unsigned n_groups = n_cols / BRIG_ACT_GROUP;
    switch (id) {
    case BRIG_TYPE_Q4_0_R16:
        chain(BRIG_TYPE_Q4_0_R16, blocks, ahead, x, first, n_tokens, col, n_groups, acc);
        break;
    case BRIG_TYPE_Q4_1_R16:
        chain(BRIG_TYPE_Q4_1_R16, blocks, ahead, x, first, n_tokens, col, n_groups, acc);
        break;
    default:
        chain(BRIG_TYPE_Q8_0_R16, blocks, ahead, x, first, n_tokens, col, n_groups, acc);
        break;
    }
}
