/*
 * Types of the KV cache: how the keys and the values of one position and one KV head, a row, lie in it. Known
 * to all programs: a driver asks for one by name, a plan counts its bytes, a shard stores and reads it
 * (shard/kernels/kv_row.h; docs/arithmetic.md, Cache of 8-bit integers).
 */
#ifndef BRIG_PROTO_MODEL_KV_TYPE_H
#define BRIG_PROTO_MODEL_KV_TYPE_H

#include <stdbool.h>
#include <stdint.h>

enum brig_kv_id {
#define BRIG_KV_TYPE(id, name, help) BRIG_KV_##id,
#include "proto/model/kv_type.def"
#undef BRIG_KV_TYPE
    BRIG_KV_COUNT
};

struct brig_kv_type {
    const char *name; /* "f16" */
    const char *help;
};

#define BRIG_KV_GROUP 32u /* elements of a q8 row that share a scale */

const struct brig_kv_type *brig_kv_type_at(unsigned i); /* NULL after the last row; i is an enum brig_kv_id */
/* Returns false when nothing has this name; *ret is then untouched. */
bool brig_kv_type_by_name(const char *name, enum brig_kv_id *ret);
const char *brig_kv_type_name(unsigned id); /* "unknown" for a number that is none */

/* Bytes that the integers of a q8 row of head_dim elements take: a whole number of groups, those after
 * head_dim 0. The scales follow. */
static inline uint64_t brig_kv_quant_bytes(uint32_t head_dim)
{
    return ((uint64_t)head_dim + BRIG_KV_GROUP - 1) / BRIG_KV_GROUP * BRIG_KV_GROUP;
}

/* Bytes of a row of head_dim elements; a multiple of 2, of f32 and q8 one of 4. */
uint64_t brig_kv_row_bytes(enum brig_kv_id id, uint32_t head_dim);

#endif
