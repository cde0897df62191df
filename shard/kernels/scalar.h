/* The scalar kernels by name, for instruction sets that do only part of the work themselves. Contracts:
 * kernel.h. */
#ifndef BRIG_SHARD_KERNELS_SCALAR_H
#define BRIG_SHARD_KERNELS_SCALAR_H

#include "shard/kernels/kernel.h"

#define BRIG_CHAINS         16u /* interleaved chains of norm sums, scores and log-sum-exp */
#define BRIG_ATTN_BLOCK_POS 64u /* positions whose weighted sums are added up before joining the total */

/* gelu(x) = x / (1 + exp(-x * (A + B x^2))): A = 2 sqrt(2 / pi), B = 0.044715 A. */
#define BRIG_GELU_A 0x1.988454p+0f
#define BRIG_GELU_B 0x1.2444f2p-4f

void brig_scalar_matmul(const struct brig_matrix *w, uint64_t row_begin, uint64_t row_end,
                        const struct brig_act *x, float *y, size_t y_stride);
void brig_scalar_quantize(const float *x, uint32_t cols, int8_t *q, float *d, int32_t *sum);
void brig_scalar_rms_norm(const float *x, const float *w, uint32_t n, float eps, float *out);
void brig_scalar_layer_norm(const float *x, const float *w, const float *bias, uint32_t n, float eps,
                            float *out);
void brig_scalar_attention(const float *q, const void *k, const void *v, bool kv_f32, size_t stride,
                           uint32_t first, uint32_t n_pos, uint32_t head_dim, float scale, float *scores,
                           float *out);
void brig_scalar_swiglu(const float *gate, const float *up, uint32_t n, float *out);
void brig_scalar_geglu(const float *gate, const float *up, uint32_t n, float *out);
void brig_scalar_add(float *x, const float *y, uint32_t n);
void brig_scalar_add_scaled(float *x, float g, const float *y, uint32_t n);
void brig_scalar_to_f16(const float *x, uint32_t n, uint16_t *out);
float brig_scalar_log_sum_exp(const float *x, uint32_t n);

/* The sum of the attention weights of positions first..n_pos-1: blocks of 64 positions counted from position
 * 0, each in order, added in order. */
float brig_scalar_weight_sum(const float *e, uint32_t first, uint32_t n_pos);

/* Where the block of positions that holds p ends, or n_pos when that comes before. */
static inline uint32_t brig_attn_block_end(uint32_t p, uint32_t n_pos)
{
    uint32_t left = BRIG_ATTN_BLOCK_POS - p % BRIG_ATTN_BLOCK_POS;
    return n_pos - p < left ? n_pos : p + left;
}

/* Smallest magnitude whose 127 / amax is finite with room to spare: below it a group counts as zero. */
#define BRIG_AMAX_MIN 0x1p-120f

#endif
