/* The order of bytes of interleaved matrices, by plain indexing. */
#include "proto/model/r16.h"

#include <string.h>

enum { HALF = 2, PIECE = 4 }; /* bytes */

/* How many f16 a native block begins with: what 4-byte pieces leave over is one, or two. */
static unsigned halves_of(const struct brig_type *type)
{
    return type->block_bytes % PIECE == 0 ? 2 : 1;
}

void brig_r16_get(const struct brig_type *type, const void *src, unsigned row, void *block)
{
    const uint8_t *from = src;
    uint8_t *to = block, *end = to + type->block_bytes;
    for (unsigned i = 0; i < halves_of(type); i++, to += HALF, from += BRIG_R16_ROWS * HALF)
        memcpy(to, from + row * HALF, HALF);
    for (; to < end; to += PIECE, from += BRIG_R16_ROWS * PIECE)
        memcpy(to, from + row * PIECE, PIECE);
}

void brig_r16_put(const struct brig_type *type, const void *block, unsigned row, void *dst)
{
    const uint8_t *from = block, *end = from + type->block_bytes;
    uint8_t *to = dst;
    for (unsigned i = 0; i < halves_of(type); i++, from += HALF, to += BRIG_R16_ROWS * HALF)
        memcpy(to + row * HALF, from, HALF);
    for (; from < end; from += PIECE, to += BRIG_R16_ROWS * PIECE)
        memcpy(to + row * PIECE, from, PIECE);
}

void brig_r16_split(const struct brig_type *type, const void *panel, uint64_t row_bytes, void *rows)
{
    for (uint64_t at = 0; at < row_bytes; at += type->block_bytes)
        for (unsigned r = 0; r < BRIG_R16_ROWS; r++)
            brig_r16_get(type, (const uint8_t *)panel + BRIG_R16_ROWS * at, r,
                         (uint8_t *)rows + r * row_bytes + at);
}

void brig_r16_join(const struct brig_type *type, const void *rows, uint64_t row_bytes, void *panel)
{
    for (uint64_t at = 0; at < row_bytes; at += type->block_bytes)
        for (unsigned r = 0; r < BRIG_R16_ROWS; r++)
            brig_r16_put(type, (const uint8_t *)rows + r * row_bytes + at, r,
                         (uint8_t *)panel + BRIG_R16_ROWS * at);
}

const uint8_t *brig_r16_block(const struct brig_type *type, const void *data, uint64_t row_bytes,
                              uint64_t row, uint64_t col)
{
    uint64_t panel = row / BRIG_R16_ROWS, number = col / BRIG_R16_COLS;
    return (const uint8_t *)data + BRIG_R16_ROWS * (panel * row_bytes + number * type->block_bytes);
}

void brig_r16_dequant(const struct brig_type *type, const void *data, uint64_t row_bytes, uint64_t row,
                      uint64_t col, size_t n, float *dst)
{
    uint8_t block[BRIG_R16_BLOCK_MAX];
    for (size_t i = 0; i < n; i += BRIG_R16_COLS) {
        const uint8_t *src = brig_r16_block(type, data, row_bytes, row, col + i);
        brig_r16_get(type, src, (unsigned)(row % BRIG_R16_ROWS), block);
        type->native->dequant(block, dst + i, BRIG_R16_COLS);
    }
}
