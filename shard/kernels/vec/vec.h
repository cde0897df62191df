/*
 * Vectors of one instruction set. The files of this folder are written once over them and compiled once for
 * each instruction set (Makefile), so that every kernel repeats the operations of scalar.c lane by lane from
 * the same text. The compiler's own operators serve where one operation of every lane is meant (+ - * / and,
 * or, shifts; never fused: docs/arithmetic.md); what differs from machine to machine is in vec_<isa>.h:
 *
 *   BRIG_LANES, BRIG_ISA(name), BRIG_ISA_NAME, BRIG_ISA_KERNEL, BRIG_ISA_HELP, brig_vec_usable
 *   BRIG_MANY_ROWS                  rows_many of panel.h
 *   set1 load store fma             all lanes; any alignment
 *   load_n store_n keep_n           the first n lanes (all when n is larger); others are read as 0, not
 *                                   written, or kept from the first argument
 *   load_f16 ... store_f16_n        the same for f16 in memory
 *   load_i8                         all lanes from 8-bit integers, as floats
 *   select_lt larger round nearest  a < b ? yes : no; a > b ? a : b; to a whole number, ties to even
 *   top_u sum_i max_u store_bytes   reductions, the larger, and low bytes of all lanes
 *   half words                      low halves of the dwords as f16, widened; the first in lanes 0 to 7, the
 *                                   second in those after them
 *   halves                          8 f16 of each row, one row a lane, widened: a vector a column
 *   transpose gather add_fifth      how rows become lanes, see there
 *   tree16 tree                     over LANES times 16 chains, lane p for those from p * BRIG_PARTS on;
 *                                   over 16 chains
 */
#ifndef BRIG_SHARD_KERNELS_VEC_VEC_H
#define BRIG_SHARD_KERNELS_VEC_VEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__AVX512VNNI__)
#include "shard/kernels/vec/vec_avx512.h"
#elif defined(__AVX2__)
#include "shard/kernels/vec/vec_avx2.h"
#else
#include "shard/kernels/vec/vec_neon.h"
#endif

#include "shard/kernels/panel.h"
#include "shard/kernels/scalar.h"

#define BRIG_PARTS (BRIG_CHAINS / BRIG_LANES) /* vectors of 16 interleaved chains */

static inline brig_vf brig_vf_zero(void)
{
    return (brig_vf){0};
}

/* The functions that cross files; contracts in panel.h and kernel.h. */

void BRIG_ISA(chain_int)(enum brig_type_id id, struct brig_panel p, const struct brig_act *x, size_t first,
                         unsigned n_tokens, size_t col, unsigned n_cols, float *acc);
void BRIG_ISA(chain_float)(enum brig_type_id id, struct brig_panel p, const struct brig_act *x, size_t first,
                           unsigned n_tokens, size_t col, unsigned n_cols, float *acc);
void BRIG_ISA(chain_packed)(const struct brig_packed *p, uint64_t row, const struct brig_act *x, size_t first,
                            unsigned n_tokens, size_t col, unsigned n_cols, float *acc);
void BRIG_ISA(chain_r16_int)(enum brig_type_id id, const uint8_t *blocks, const uint8_t *ahead,
                             const struct brig_act *x, size_t first, unsigned n_tokens, size_t col,
                             unsigned n_cols, float *acc);
void BRIG_ISA(chain_r16_float)(enum brig_type_id id, const uint8_t *blocks, const uint8_t *ahead,
                               const struct brig_act *x, size_t first, unsigned n_tokens, size_t col,
                               unsigned n_cols, float *acc);
/* Chains over n_cols vectors of weights, one a column. */
void BRIG_ISA(columns)(const brig_vf *w, const struct brig_act *x, size_t first, unsigned n_tokens,
                       size_t col, unsigned n_cols, float *acc);

void BRIG_ISA(attention)(const struct brig_attention *a);
void BRIG_ISA(quantize)(const float *x, uint32_t cols, int8_t *q, float *d, int32_t *sum);
void BRIG_ISA(rms_norm)(const float *x, const float *w, uint32_t n, float eps, float *out);
void BRIG_ISA(layer_norm)(const float *x, const float *w, const float *bias, uint32_t n, float eps,
                          float *out);
void BRIG_ISA(swiglu)(const float *gate, const float *up, uint32_t n, float *out);
void BRIG_ISA(geglu)(const float *gate, const float *up, uint32_t n, float *out);
void BRIG_ISA(add)(float *x, const float *y, uint32_t n);
void BRIG_ISA(add_scaled)(float *x, float g, const float *y, uint32_t n);
void BRIG_ISA(to_f16)(const float *x, uint32_t n, uint16_t *out);
float BRIG_ISA(log_sum_exp)(const float *x, uint32_t n);

#endif
