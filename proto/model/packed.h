/*
 * Packed matrices, as GPTQ and AWQ checkpoints hold them: integers in 32-bit little-endian words that several
 * columns or rows of the matrix share, and beside the words matrices of their own for scales and zeros, one
 * row of them for each group of columns.
 *
 *   words   GPTQ: [cols * bits / 32][rows]; a word holds consecutive columns of one row, low bits first
 *           AWQ:  [cols][rows * bits / 32]; a word holds consecutive rows of one column, in an order of its
 * own zeros   [groups][rows * bits / 32] words of consecutive rows, in the type's order scales [groups][rows]
 * floats groups  [cols] 32-bit integers, the group of each column; absent: column / group_cols
 *
 *   weight = (float)(integer - zero) * scale: the difference is exact, the product one f32 operation.
 *
 * A matrix whose columns have groups of their own (act-order) is visited in the order (group, column), see
 * docs/arithmetic.md; "visit" counts columns in the order that they are visited in.
 */
#ifndef BRIG_PROTO_MODEL_PACKED_H
#define BRIG_PROTO_MODEL_PACKED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/base/err.h"
#include "proto/model/type.h"

/* How the integers of a type lie in their words. */
struct brig_packing {
    uint32_t bits; /* of an integer: 4 or 8 */
    bool by_rows;  /* a word of the matrix holds rows (AWQ), not columns */
    /* Which integer of a word, counted from the low bits, is row number i of the 32 / bits that share it. */
    uint8_t place[8];
};

/* ---- in files ---- */

/* What lies beside the words. */
enum brig_side_id { BRIG_SIDE_SCALES, BRIG_SIDE_ZEROS, BRIG_SIDE_GROUPS, BRIG_SIDE_COUNT };

struct brig_side {
    uint32_t file;
    uint64_t offset, bytes; /* bytes 0: absent */
};

/* All zeros for a tensor that is not packed. */
struct brig_sides {
    uint32_t group_cols;                /* at least 1 */
    uint32_t zero_bias;                 /* zeros are stored less it: 0 or 1 */
    const struct brig_type *scale_type; /* F16, BF16 or F32 */
    struct brig_side side[BRIG_SIDE_COUNT];
};

/* Groups that rows of n_cols have: the last one may be shorter. */
uint64_t brig_packed_groups(uint64_t n_cols, uint32_t group_cols);

/* The sides against type and shape of their tensor: a type that is packed has all that it needs, with the
 * sizes that follow from the shape, and any other type has none. Where they lie is the caller's to check. */
int brig_sides_check(const struct brig_sides *s, const struct brig_type *type, uint64_t rows, uint64_t cols,
                     struct brig_fail *fail);

uint64_t brig_sides_bytes(const struct brig_sides *s);

/* ---- in memory ---- */

/* A matrix ready for use; everything is borrowed, of any alignment, and has the sizes above. */
struct brig_packed {
    const struct brig_packing *packing;
    const struct brig_type *scale_type;
    const uint8_t *words, *scales, *zeros;
    uint64_t rows, cols;
    uint32_t group_cols, zero_bias, n_groups;
    const uint32_t *order;  /* [cols] the column of each visit; NULL: columns come as they lie */
    const uint32_t *starts; /* [n_groups + 1] with order: the visit that a group begins at */
};

/* The order (group, column) of n_cols columns whose groups are groups [n_cols] (little-endian, any
 * alignment): order [n_cols] and starts [n_groups + 1] are written. A negative number: fine. Otherwise the
 * first column whose group is not below n_groups. */
int64_t brig_packed_sort(const void *groups, uint32_t n_cols, uint32_t n_groups, uint32_t *order,
                         uint32_t *starts);

/* The group of a visit, and the visit at which its run of columns ends. */
uint32_t brig_packed_group(const struct brig_packed *p, uint64_t visit, uint64_t *ret_end);

/* Scales and zeros of a group for rows [row, row + n). */
void brig_packed_scales(const struct brig_packed *p, uint32_t group, uint64_t row, unsigned n, float *scales,
                        int32_t *zeros);

/* n weights of a row, from a visit on. */
void brig_packed_dequant(const struct brig_packed *p, uint64_t row, uint64_t visit, size_t n, float *dst);

#endif
