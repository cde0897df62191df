/*
 * Kernels: products of stored weights with activations, and the vector work around them, as
 * docs/arithmetic.md defines every sum. One row of ops per instruction set in kernel.def; the scalar one is
 * the definition and every other gives the same bits.
 */
#ifndef BRIG_SHARD_KERNELS_KERNEL_H
#define BRIG_SHARD_KERNELS_KERNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/model/kv_type.h"
#include "proto/model/packed.h"
#include "proto/model/type.h"

#define BRIG_ACT_GROUP    32u  /* columns that share one activation scale */
#define BRIG_UNIT_COLS    256u /* the usual unit: one chain of additions */
#define BRIG_ATTN_QUERIES 16u  /* queries that share one reading of a cache, at most */
#define BRIG_PANEL_ROWS                                                                                      \
    16u /* rows that a vector kernel works on at a time; work is cut at multiples of it                      \
         */

#define BRIG_LSE_BLOCK 4096u /* vocabulary entries whose exponentials are added up together */

/* A stored matrix: rows are outputs. data has any alignment. */
struct brig_matrix {
    const struct brig_type *type;
    const void *data; /* [rows, row_bytes]; an interleaved type: proto/model/r16.h */
    uint64_t rows, cols, row_bytes;
    uint32_t unit_cols; /* columns of one unit; a multiple of the block, or cols: then one unit */
    /* A packed type: how its words, which data points at, become weights. Its columns are counted in the
     * order that they are visited in; the activations of a product lie in that order too. NULL: not packed.
     */
    const struct brig_packed *packed;
    uint32_t
        loan; /* not 0: data comes in pieces and for a time (shard/weights/weights.h); kernels get those */
};

/* From row to row of quantised activations, in columns: an odd number of cache lines, for the rows of a tile
 * would else share few sets of the first cache. A multiple of 64, at least cols. */
static inline size_t brig_act_stride(uint32_t cols)
{
    return (((size_t)cols + 63) / 64 | 1) * 64;
}

/* Activations of n_rows rows, in one of two forms: quantised (q != NULL) or f32. */
struct brig_act {
    uint32_t n_rows;
    uint32_t cols;      /* quantised: a multiple of 32 */
    const float *f;     /* [n_rows, cols] */
    const int8_t *q;    /* [n_rows, stride], or NULL; stride = brig_act_stride(cols) */
    const float *d;     /* [n_rows, stride / 32] scales */
    const int32_t *sum; /* [n_rows, stride / 16] sums of 16 quants each */
};

/* Queries over the cache of one KV head, which they share the reading of. Query i sees the positions from
 * first[i] to n_pos[i] - 1, at least one; the positions of a query touch or overlap those of the one before.
 */
struct brig_attention {
    unsigned n;                        /* 1 to BRIG_ATTN_QUERIES */
    const float *q[BRIG_ATTN_QUERIES]; /* [head_dim] */
    float *out[BRIG_ATTN_QUERIES];     /* [head_dim] */
    uint32_t first[BRIG_ATTN_QUERIES], n_pos[BRIG_ATTN_QUERIES];
    /* Rows of head_dim elements as brig_kv_row_store writes them, `stride` bytes apart (a multiple of 4, of
     * f16 one of 2); those that no query sees are not read. */
    const void *k, *v;
    enum brig_kv_id kv;
    size_t stride;
    uint32_t head_dim;
    float scale;
    float *scores; /* scratch [n, scores_stride]: at least the largest n_pos, rounded up to 16 */
    size_t scores_stride;
};

struct brig_kernel {
    const char *name; /* "scalar", "avx512" */
    const char *help;
    bool (*usable)(void); /* this CPU has it */

    /* y[t * y_stride + r] = row r of w times row t of x, for r in [row_begin, row_end), t in [0, x->n_rows).
     * row_begin is a multiple of BRIG_PANEL_ROWS, and of an interleaved matrix row_end too. With x->q the
     * integer product, else the float product; a type whose group is 0 always gets f32. No bias, no residual.
     * Reads no byte outside the rows of w. Uses no heap; scratch of its own on the stack is at most 64 KiB.
     */
    void (*matmul)(const struct brig_matrix *w, uint64_t row_begin, uint64_t row_end,
                   const struct brig_act *x, float *y, size_t y_stride);

    /* f32 [cols] -> int8 with f32 scales per 32 columns and sums per 16 (docs/arithmetic.md, Activations).
     * cols is a multiple of 32. */
    void (*quantize)(const float *x, uint32_t cols, int8_t *q, float *d, int32_t *sum);

    /* out = x / sqrt(mean(x^2) + eps) * w; the sum of squares in 16 interleaved chains. Each step one f32
     * operation: ((x * r) * w) with r = 1 / sqrtf(sum / n + eps). out may be x. */
    void (*rms_norm)(const float *x, const float *w, uint32_t n, float eps, float *out);

    /* out = (x - mean) / sqrt(variance + eps) * w + bias; both sums in 16 interleaved chains
     * (docs/arithmetic.md, LayerNorm). out may be x. */
    void (*layer_norm)(const float *x, const float *w, const float *bias, uint32_t n, float eps, float *out);

    /* Each query over its positions of a cache: scores q.k in 16 interleaved chains times scale, maximum,
     * exponentials, weighted sums of v, blocks of 64 positions counted from position 0 (docs/arithmetic.md,
     * Attention). No query's result depends on the others. */
    void (*attention)(const struct brig_attention *a);

    /* out[i] = silu(gate[i]) * up[i], silu(x) = x / (1 + exp(-x)) */
    void (*swiglu)(const float *gate, const float *up, uint32_t n, float *out);
    /* out[i] = gelu(gate[i]) * up[i], or gelu(gate[i]) when up is NULL; gelu by its tanh approximation, which
     * is x / (1 + exp(-2 u)), u = sqrt(2 / pi) (x + 0.044715 x^3). out may be gate. */
    void (*geglu)(const float *gate, const float *up, uint32_t n, float *out);
    /* x[i] += y[i] */
    void (*add)(float *x, const float *y, uint32_t n);
    /* x[i] = fmaf(g, y[i], x[i]) */
    void (*add_scaled)(float *x, float g, const float *y, uint32_t n);
    /* n f32 to f16, nearest even */
    void (*to_f16)(const float *x, uint32_t n, uint16_t *out);

    /* log(sum(exp(x[i] - max))) + max, 16 interleaved chains; 1 <= n <= BRIG_LSE_BLOCK. */
    float (*log_sum_exp)(const float *x, uint32_t n);
};

const struct brig_kernel *brig_kernel_at(unsigned i); /* NULL after the last row; rows from best to scalar */
const struct brig_kernel *brig_kernel_by_name(const char *name);
/* The best usable one; the environment variable BRIGADE_KERNEL names another (unusable or unknown: NULL). */
const struct brig_kernel *brig_kernel_choose(void);

/* The tree that joins chains and units: left part ceil(n / 2). Overwrites v. n >= 1. */
float brig_tree_sum(float *v, uint32_t n);

#endif
