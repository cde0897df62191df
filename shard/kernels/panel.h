/*
 * What the vector kernels share: a matrix product is done by panels of rows, lanes = rows, so that each lane
 * does one row's additions in exactly the order of docs/arithmetic.md, for one token or for many, and no sum
 * is ever split over lanes. An instruction set brings the two chains; the walk over panels, tokens, units and
 * their tree is common.
 */
#ifndef BRIG_SHARD_KERNELS_PANEL_H
#define BRIG_SHARD_KERNELS_PANEL_H

#include "shard/kernels/kernel.h"

enum {
    BRIG_PANEL_CHUNK_INT = 256,   /* columns given to a chain at a time, integer product */
    BRIG_PANEL_CHUNK_FLOAT = 128, /* and float product */
    BRIG_PANEL_BLOCK_MAX = 256    /* columns of the largest stored block */
};

/* A piece of a panel: row r begins at base + r * stride; offsets of rows fit in int32. From `ahead` on lie as
 * many bytes as the piece has, which the next panel will read. They may be fetched meanwhile, in the order of
 * memory: the strided streams of a panel are more than the hardware follows. */
struct brig_panel {
    const uint8_t *base;
    size_t stride;
    const uint8_t *ahead;
};

/* Continue the chains of n_tokens rows of x, from row `first` on, over columns [col, col + n_cols) of a panel
 * that points at column col. acc: [n_tokens, rows of a panel], 64-byte aligned. Integer: n_cols is a multiple
 * of 32. Float: only types that brig_panel_unpacks. 16 bytes at a time may be read, also where the last
 * columns need fewer. */
typedef void (*brig_panel_chain_fn)(enum brig_type_id id, struct brig_panel p, const struct brig_act *x,
                                    size_t first, unsigned n_tokens, size_t col, unsigned n_cols, float *acc);

/* Float chains over a packed matrix: n_cols columns (at most BRIG_PANEL_CHUNK_FLOAT), in the order of their
 * visits from `col` on, of a whole panel that begins at `row`. */
typedef void (*brig_panel_packed_fn)(const struct brig_packed *p, uint64_t row, const struct brig_act *x,
                                     size_t first, unsigned n_tokens, size_t col, unsigned n_cols,
                                     float *acc);

/* The chains of both kinds over an interleaved matrix (proto/model/r16.h): n_cols, a multiple of 32, of all
 * 16 rows that begin at `blocks`; acc: [16 / rows of a panel][n_tokens][rows of a panel]. From `ahead` on lie
 * bytes that are read soon after: as many as the piece has may be fetched meanwhile. */
typedef void (*brig_panel_r16_fn)(enum brig_type_id id, const uint8_t *blocks, const uint8_t *ahead,
                                  const struct brig_act *x, size_t first, unsigned n_tokens, size_t col,
                                  unsigned n_cols, float *acc);

struct brig_panel_ops {
    unsigned rows;      /* of a panel: divides BRIG_PANEL_ROWS */
    unsigned rows_many; /* of the integer product of more than one token, and of interleaved rows */
    brig_panel_chain_fn integer, floats;
    brig_panel_packed_fn packed;
    brig_panel_r16_fn r16_integer, r16_floats;         /* NULL: such matrices go through the scalar kernel */
    void (*add)(float *x, const float *y, uint32_t n); /* as in kernel.h; n is a multiple of the rows */
};

/* The matmul of kernel.h. */
void brig_panel_matmul(const struct brig_panel_ops *ops, const struct brig_matrix *w, uint64_t row_begin,
                       uint64_t row_end, const struct brig_act *x, float *y, size_t y_stride);

/* Facts about the stored types that a panel is read by. */

/* The float chains turn these into floats themselves; all others come to them as F32 (panel.c). */
static inline bool brig_panel_unpacks(enum brig_type_id id)
{
    switch (id) {
    case BRIG_TYPE_F32:
    case BRIG_TYPE_F16:
    case BRIG_TYPE_BF16:
    case BRIG_TYPE_Q8_0:
    case BRIG_TYPE_Q4_0:
    case BRIG_TYPE_Q4_1:
    case BRIG_TYPE_Q5_0:
    case BRIG_TYPE_Q5_1:
        return true;
    default:
        return false;
    }
}

static inline bool brig_panel_has_min(enum brig_type_id id)
{
    return id == BRIG_TYPE_Q4_1 || id == BRIG_TYPE_Q5_1 || id == BRIG_TYPE_Q4_K || id == BRIG_TYPE_Q5_K ||
           id == BRIG_TYPE_Q4_1_G16 || id == BRIG_TYPE_Q4_1_G64 || id == BRIG_TYPE_Q4_1_R16;
}

#endif
