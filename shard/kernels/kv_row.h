/* Writing a row of a KV cache: what brig_kernel's attention reads. */
#ifndef BRIG_SHARD_KERNELS_KV_ROW_H
#define BRIG_SHARD_KERNELS_KV_ROW_H

#include "proto/model/kv_type.h"
#include "shard/kernels/kernel.h"

/* x [head_dim] f32 to row [brig_kv_row_bytes(id, head_dim)], aligned to 4 bytes (f16: to 2). */
void brig_kv_row_store(const struct brig_kernel *kernel, enum brig_kv_id id, const float *x,
                       uint32_t head_dim, void *row);

#endif
