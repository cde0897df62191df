/*
 * The KV cache of one slice: a memfd (or a file) that outlives the shard, indexed by slot, layer and
 * position. Pages are allocated explicitly as slots grow and punched out when dropped: no space is one clear
 * line, never SIGBUS. A header states version, model identity, cells, KV type, slots and context, and is
 * checked on mapping. Writes are by position and a row at position p attends to 0..p, so no length lives in a
 * shard.
 */
#ifndef BRIG_SHARD_CACHE_KV_H
#define BRIG_SHARD_CACHE_KV_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/base/err.h"
#include "proto/model/kv_type.h"
#include "proto/model/slice.h"
#include "proto/wire/frame.h"
#include "shard/kernels/kernel.h"

struct brig_kv; /* one mapping */

struct brig_kv_shape {
    enum brig_kv_id type;
    uint32_t slots, ctx;
};

/* Map the cache in fd (taken: closed by close). An empty file is given its size and header; one with a header
 * must match. A slice without layers needs no cache: *ret is then a cache with nothing in it and fd may be
 * -1. */
int brig_kv_open(struct brig_kv **ret, int fd, const struct brig_slice *slice, struct brig_kv_shape shape,
                 struct brig_fail *fail);
void brig_kv_close(struct brig_kv *kv); /* NULL allowed; the contents stay with the file */

/* Make sure that positions [pos, pos + count) of a slot have pages, in every layer. */
int brig_kv_reserve(struct brig_kv *kv, uint32_t slot, uint32_t pos, uint32_t count, struct brig_fail *fail);

/* Cache operations of a frame, in order. */
int brig_kv_apply(struct brig_kv *kv, const struct brig_cache_op *ops, unsigned n, struct brig_fail *fail);

/* Where K and V of (slot, layer, kv head) begin: a row for each position (brig_kv_row_store), brig_kv_stride
 * bytes apart. layer is the model's number of the layer. */
void *brig_kv_k(struct brig_kv *kv, uint32_t slot, uint32_t layer, uint32_t kv_head);
void *brig_kv_v(struct brig_kv *kv, uint32_t slot, uint32_t layer, uint32_t kv_head);
size_t brig_kv_stride(const struct brig_kv *kv);
struct brig_kv_shape brig_kv_shape_of(const struct brig_kv *kv);

#endif
