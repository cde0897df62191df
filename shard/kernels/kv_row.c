/* Rows of a KV cache. Called by the block for each KV head of each row of a frame. */
#include "shard/kernels/kv_row.h"

#include <string.h>

/* Each group as the activations of a product (docs/arithmetic.md); the last one filled up with zeros. */
static void store_q8(const struct brig_kernel *kernel, const float *x, uint32_t head_dim, void *row)
{
    int8_t *q = row;
    uint8_t *scales = (uint8_t *)row + brig_kv_quant_bytes(head_dim);
    for (uint32_t i = 0; i < head_dim; i += BRIG_KV_GROUP) {
        float group[BRIG_KV_GROUP] = {0}, scale;
        int32_t sums[BRIG_KV_GROUP / 16];
        uint32_t n = head_dim - i < BRIG_KV_GROUP ? head_dim - i : BRIG_KV_GROUP;
        memcpy(group, x + i, n * sizeof *x);
        kernel->quantize(group, BRIG_KV_GROUP, q + i, &scale, sums);
        memcpy(scales + i / BRIG_KV_GROUP * sizeof scale, &scale, sizeof scale);
    }
}

void brig_kv_row_store(const struct brig_kernel *kernel, enum brig_kv_id id, const float *x,
                       uint32_t head_dim, void *row)
{
    switch (id) {
    case BRIG_KV_Q8:
        store_q8(kernel, x, head_dim, row);
        break;
    case BRIG_KV_F32:
        memcpy(row, x, head_dim * sizeof *x);
        break;
    default:
        kernel->to_f16(x, head_dim, row);
    }
}
