/*
 * Stored types: how the numbers of a tensor lie in a file. One row each in type.def, one file each.
 * The layouts are those of GGUF (ggml): little-endian blocks of `block_elems` consecutive columns of one row.
 * Types that are Brigade's own have numbers from 1000 on, which no other program takes for something else.
 */
#ifndef BRIG_PROTO_MODEL_TYPE_H
#define BRIG_PROTO_MODEL_TYPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct brig_packing;

enum brig_type_id {
#define BRIG_TYPE(id, object) BRIG_TYPE_##id,
#include "proto/model/type.def"
#undef BRIG_TYPE
    BRIG_TYPE_COUNT
};

struct brig_type {
    const char *name; /* "Q4_0", as people write it */
    const char *help; /* one line for `brigade list types` */
    enum brig_type_id id;
    uint32_t gguf_id;     /* ggml's number for it */
    uint32_t block_elems; /* columns in a block: 1 for F32, F16, BF16 */
    uint32_t block_bytes;
    /* Columns that share one scale in an integer product with int8 activations (docs/arithmetic.md, Group); 0
     * when the type has no integer product and is always computed as floats. */
    uint32_t group;
    /* How integers lie in words that rows share (packed.h); a type that has it has no dequant of its own.
     * NULL for all whose rows lie one by one. */
    const struct brig_packing *packing;
    /* The type whose blocks lie in this one with 16 rows interleaved (r16.h), bytes and all else as there; it
     * converts, this one does not. NULL for all others. */
    const struct brig_type *native;
    /* n_elems (a multiple of block_elems) from src (any alignment) to dst f32, exactly as the format defines.
     */
    void (*dequant)(const void *src, float *dst, size_t n_elems);
    /* n_elems finite floats (a multiple of block_elems) to dst (any alignment), to the bit as ggml's
     * reference rounds them. A number that is too large for the format becomes one that dequant makes not
     * finite. NULL: we do not write this type. */
    void (*quantize)(const float *src, void *dst, size_t n_elems);
};

const struct brig_type *brig_type_at(unsigned i); /* row i of the table, NULL from BRIG_TYPE_COUNT on */
const struct brig_type *brig_type_by_gguf(uint32_t gguf_id); /* NULL when unknown */
const struct brig_type *brig_type_by_name(const char *name); /* NULL when unknown */

/* Rows lie one by one, so that a single one can be read. */
bool brig_type_has_rows(const struct brig_type *t);
/* The type that numbers are converted by: t itself, or of an interleaved one its native type. */
const struct brig_type *brig_type_native(const struct brig_type *t);
/* The type that interleaves this one; NULL when there is none. */
const struct brig_type *brig_type_interleaved(const struct brig_type *t);
/* The number of rows of a matrix must be a multiple of it: 1, or 16 of an interleaved one. */
uint32_t brig_type_panel_rows(const struct brig_type *t);

/* The name of a number, also of one of ggml's that we do not support ("Q8_K"); NULL when unknown. */
const char *brig_type_gguf_name(uint32_t gguf_id);

/* Bytes of a row of n_cols; 0 when n_cols is 0, no multiple of the block, or the size overflows. */
uint64_t brig_type_row_bytes(const struct brig_type *t, uint64_t n_cols);

#endif
