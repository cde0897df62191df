/*
 * The definition of the vector work around the matrix products (norms, attention, activation functions,
 * quantising), and the scalar row of the kernel table. Written for reading beside docs/arithmetic.md: every
 * fused operation is spelt fmaf, and the file is compiled without fused instructions.
 */
#include "shard/kernels/scalar.h"

#include <math.h>

#include "proto/base/half.h"
#include "shard/kernels/math.h"

float brig_tree_sum(float *v, uint32_t n)
{
    if (n == 1)
        return v[0];
    uint32_t left = n / 2 + n % 2;
    float a = brig_tree_sum(v, left);
    return a + brig_tree_sum(v + left, n - left);
}

void brig_scalar_quantize(const float *x, uint32_t cols, int8_t *q, float *d, int32_t *sum)
{
    for (uint32_t g = 0; g < cols / BRIG_ACT_GROUP; g++, x += BRIG_ACT_GROUP, q += BRIG_ACT_GROUP) {
        uint32_t top = 0; /* bits of |x|: their order is that of the values, NaN above infinity */
        for (uint32_t i = 0; i < BRIG_ACT_GROUP; i++) {
            uint32_t bits = brig_f32_to_bits(x[i]) & 0x7fffffffu;
            top = bits > top ? bits : top;
        }
        float amax = brig_bits_to_f32(top);
        sum[2 * g] = sum[2 * g + 1] = 0;
        if (!(amax >= BRIG_AMAX_MIN && amax < INFINITY)) {
            d[g] = amax < INFINITY ? 0.0f : NAN;
            memset(q, 0, BRIG_ACT_GROUP);
            continue;
        }
        d[g] = amax / 127.0f;
        float scale = 127.0f / amax;
        for (uint32_t i = 0; i < BRIG_ACT_GROUP; i++) {
            q[i] = (int8_t)rintf(x[i] * scale);
            sum[2 * g + i / 16] += q[i];
        }
    }
}

void brig_scalar_rms_norm(const float *x, const float *w, uint32_t n, float eps, float *out)
{
    float chain[BRIG_CHAINS] = {0};
    for (uint32_t i = 0; i < n; i++)
        chain[i % BRIG_CHAINS] = fmaf(x[i], x[i], chain[i % BRIG_CHAINS]);
    float r = 1.0f / sqrtf(brig_tree_sum(chain, BRIG_CHAINS) / (float)n + eps);
    for (uint32_t i = 0; i < n; i++)
        out[i] = x[i] * r * w[i];
}

void brig_scalar_layer_norm(const float *x, const float *w, const float *bias, uint32_t n, float eps,
                            float *out)
{
    float chain[BRIG_CHAINS] = {0};
    for (uint32_t i = 0; i < n; i++)
        chain[i % BRIG_CHAINS] = chain[i % BRIG_CHAINS] + x[i];
    float mean = brig_tree_sum(chain, BRIG_CHAINS) / (float)n;
    memset(chain, 0, sizeof chain);
    for (uint32_t i = 0; i < n; i++) {
        float apart = x[i] - mean;
        chain[i % BRIG_CHAINS] = fmaf(apart, apart, chain[i % BRIG_CHAINS]);
    }
    float r = 1.0f / sqrtf(brig_tree_sum(chain, BRIG_CHAINS) / (float)n + eps);
    for (uint32_t i = 0; i < n; i++)
        out[i] = fmaf((x[i] - mean) * r, w[i], bias[i]);
}

/* Element i of the row at a position of K or V, as f32. */
static float kv_element(const struct brig_attention *a, const void *base, uint32_t pos, uint32_t i)
{
    const char *row = (const char *)base + pos * a->stride;
    if (a->kv == BRIG_KV_F32)
        return ((const float *)(const void *)row)[i];
    if (a->kv == BRIG_KV_F16)
        return brig_f16_to_f32(((const uint16_t *)(const void *)row)[i]);
    const float *scales = (const float *)(const void *)(row + brig_kv_quant_bytes(a->head_dim));
    return (float)((const int8_t *)row)[i] * scales[i / BRIG_KV_GROUP];
}

static float score(const struct brig_attention *a, const float *q, uint32_t pos)
{
    float chain[BRIG_CHAINS] = {0};
    for (uint32_t i = 0; i < a->head_dim; i++)
        chain[i % BRIG_CHAINS] = fmaf(q[i], kv_element(a, a->k, pos, i), chain[i % BRIG_CHAINS]);
    return brig_tree_sum(chain, BRIG_CHAINS) * a->scale;
}

/* One element of the output: weighted sum of column i of v, by blocks of positions. */
static float weighted(const struct brig_attention *a, const float *e, uint32_t first, uint32_t n_pos,
                      uint32_t i)
{
    float total = 0.0f;
    for (uint32_t p = first; p < n_pos;) {
        float block = 0.0f;
        for (uint32_t end = brig_attn_block_end(p, n_pos); p < end; p++)
            block = fmaf(e[p], kv_element(a, a->v, p, i), block);
        total = total + block;
    }
    return total;
}

static float weight_sum(const float *e, uint32_t first, uint32_t n_pos)
{
    float total = 0.0f;
    for (uint32_t p = first; p < n_pos;) {
        float block = 0.0f;
        for (uint32_t end = brig_attn_block_end(p, n_pos); p < end; p++)
            block = block + e[p];
        total = total + block;
    }
    return total;
}

static void attend(const struct brig_attention *a, unsigned query)
{
    float top = -INFINITY, *scores = a->scores + query * a->scores_stride;
    uint32_t first = a->first[query], n_pos = a->n_pos[query];
    for (uint32_t p = first; p < n_pos; p++) {
        scores[p] = score(a, a->q[query], p);
        top = scores[p] > top ? scores[p] : top;
    }
    for (uint32_t p = first; p < n_pos; p++)
        scores[p] = brig_expf(scores[p] - top);
    float sum = weight_sum(scores, first, n_pos);
    for (uint32_t i = 0; i < a->head_dim; i++)
        a->out[query][i] = weighted(a, scores, first, n_pos, i) / sum;
}

void brig_scalar_attention(const struct brig_attention *a)
{
    for (unsigned query = 0; query < a->n; query++)
        attend(a, query);
}

void brig_scalar_swiglu(const float *gate, const float *up, uint32_t n, float *out)
{
    for (uint32_t i = 0; i < n; i++)
        out[i] = gate[i] / (1.0f + brig_expf(-gate[i])) * up[i];
}

static float gelu(float x)
{
    float t = x * fmaf(BRIG_GELU_B, x * x, BRIG_GELU_A);
    return x / (1.0f + brig_expf(-t));
}

void brig_scalar_geglu(const float *gate, const float *up, uint32_t n, float *out)
{
    for (uint32_t i = 0; i < n; i++)
        out[i] = up != NULL ? gelu(gate[i]) * up[i] : gelu(gate[i]);
}

void brig_scalar_add(float *x, const float *y, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        x[i] = x[i] + y[i];
}

void brig_scalar_add_scaled(float *x, float g, const float *y, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        x[i] = fmaf(g, y[i], x[i]);
}

void brig_scalar_to_f16(const float *x, uint32_t n, uint16_t *out)
{
    for (uint32_t i = 0; i < n; i++)
        out[i] = brig_f32_to_f16(x[i]);
}

float brig_scalar_log_sum_exp(const float *x, uint32_t n)
{
    float top = -INFINITY, chain[BRIG_CHAINS] = {0};
    for (uint32_t i = 0; i < n; i++)
        top = x[i] > top ? x[i] : top;
    for (uint32_t i = 0; i < n; i++)
        chain[i % BRIG_CHAINS] = chain[i % BRIG_CHAINS] + brig_expf(x[i] - top);
    return brig_logf(brig_tree_sum(chain, BRIG_CHAINS)) + top;
}

static bool always(void)
{
    return true;
}

const struct brig_kernel brig_kernel_scalar = {
    .name = "scalar",
    .help = "plain C, the definition that every other kernel equals bit for bit",
    .usable = always,
    .matmul = brig_scalar_matmul,
    .quantize = brig_scalar_quantize,
    .rms_norm = brig_scalar_rms_norm,
    .layer_norm = brig_scalar_layer_norm,
    .attention = brig_scalar_attention,
    .swiglu = brig_scalar_swiglu,
    .geglu = brig_scalar_geglu,
    .add = brig_scalar_add,
    .add_scaled = brig_scalar_add_scaled,
    .to_f16 = brig_scalar_to_f16,
    .log_sum_exp = brig_scalar_log_sum_exp,
};
