/*
 * Matrices with 16 rows interleaved: what 16 lanes want lies side by side, and a matrix is one stream of
 * memory. The bytes are those of the native type (Q8_0, Q4_0, Q4_1) in another order, as many of them.
 *
 * A matrix is panels of 16 rows, one after another; a panel is the blocks of 32 columns, one after another;
 * of a block of 16 rows, r = 0..15, come first the f16 of their native blocks, then the 4-byte pieces of
 * quants:
 *
 *   f16     [1 or 2][r]     Q8_0, Q4_0: scales; Q4_1: scales, then minimums
 *   pieces  [8 or 4][r]     Q8_0: piece k holds columns 4 k to 4 k + 3; of 4 bits: those in the low halves,
 * and columns 16 + 4 k to 19 + 4 k in the high ones
 *
 * The number of rows is a multiple of 16. A row has no bytes of its own to point at: "row_bytes" is its
 * share.
 */
#ifndef BRIG_PROTO_MODEL_R16_H
#define BRIG_PROTO_MODEL_R16_H

#include <stddef.h>
#include <stdint.h>

#include "proto/model/type.h"

#define BRIG_R16_ROWS      16u
#define BRIG_R16_COLS      32u /* of a block */
#define BRIG_R16_BLOCK_MAX 34u /* bytes of a native block, at most */

/* Everywhere `type` is an interleaved one, and bytes have any alignment. */

/* The native block of a row (below 16) from the block of 16 rows at src, and into it. */
void brig_r16_get(const struct brig_type *type, const void *src, unsigned row, void *block);
void brig_r16_put(const struct brig_type *type, const void *block, unsigned row, void *dst);

/* A whole panel: 16 native rows of row_bytes each, one after another, from it and into it. */
void brig_r16_split(const struct brig_type *type, const void *panel, uint64_t row_bytes, void *rows);
void brig_r16_join(const struct brig_type *type, const void *rows, uint64_t row_bytes, void *panel);

/* The block of 16 rows that a row of a matrix has its 32 columns from col on in. */
const uint8_t *brig_r16_block(const struct brig_type *type, const void *data, uint64_t row_bytes,
                              uint64_t row, uint64_t col);

/* Columns [col, col + n), both multiples of 32, of a row of a matrix as f32. */
void brig_r16_dequant(const struct brig_type *type, const void *data, uint64_t row_bytes, uint64_t row,
                      uint64_t col, size_t n, float *dst);

#endif
