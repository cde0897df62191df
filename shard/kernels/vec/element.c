/*
 * The vector work around the products: quantising, norms, activation functions, additions, log-sum-exp. Each
 * lane repeats the operations of scalar.c in their order. Called through the kernel table.
 */
#include <math.h>
#include <string.h>

#include "shard/kernels/math.h"
#include "shard/kernels/vec/exp.h"

enum { GROUP_PARTS = BRIG_ACT_GROUP / BRIG_LANES };

static void quantize_group(const float *x, int8_t *q, float *d, int32_t *sum)
{
    brig_vf v[GROUP_PARTS];
    brig_vu top = {0};
    for (unsigned k = 0; k < GROUP_PARTS; k++) {
        v[k] = brig_vf_load(x + k * BRIG_LANES);
        top = brig_vu_max(top, (brig_vu)v[k] & 0x7fffffffu);
    }
    uint32_t bits = brig_vu_top(top);
    float amax;
    memcpy(&amax, &bits, sizeof amax);
    sum[0] = sum[1] = 0;
    if (!(amax >= BRIG_AMAX_MIN && amax < INFINITY)) {
        *d = amax < INFINITY ? 0.0f : NAN;
        memset(q, 0, BRIG_ACT_GROUP);
        return;
    }
    *d = amax / 127.0f;
    float scale = 127.0f / amax;
    brig_vi half[2] = {{0}, {0}};
    for (unsigned k = 0; k < GROUP_PARTS; k++) {
        brig_vi i = brig_vf_nearest(v[k] * scale);
        brig_vi_store_bytes(q + k * BRIG_LANES, i);
        half[k / (GROUP_PARTS / 2)] += i;
    }
    sum[0] = brig_vi_sum(half[0]);
    sum[1] = brig_vi_sum(half[1]);
}

void BRIG_ISA(quantize)(const float *x, uint32_t cols, int8_t *q, float *d, int32_t *sum)
{
    for (uint32_t g = 0; g < cols / BRIG_ACT_GROUP; g++)
        quantize_group(x + g * BRIG_ACT_GROUP, q + g * BRIG_ACT_GROUP, d + g, sum + 2 * g);
}

/* sum of (x - mean)^2 in the 16 chains; with mean 0 nothing is subtracted. */
static inline __attribute__((always_inline)) float squares(const float *x, uint32_t n, bool centred,
                                                           float mean)
{
    brig_vf chain[BRIG_PARTS] = {{0}};
    uint32_t i = 0;
    for (; i + BRIG_CHAINS <= n; i += BRIG_CHAINS)
        for (unsigned k = 0; k < BRIG_PARTS; k++) {
            brig_vf v = brig_vf_load(x + i + k * BRIG_LANES);
            v = centred ? v - mean : v;
            chain[k] = brig_vf_fma(v, v, chain[k]);
        }
    for (unsigned k = 0; k < BRIG_PARTS; k++, i += BRIG_LANES) {
        if (i >= n)
            break;
        brig_vf v = brig_vf_load_n(x + i, n - i);
        v = centred ? v - mean : v;
        chain[k] = brig_vf_keep_n(chain[k], brig_vf_fma(v, v, chain[k]), n - i);
    }
    return brig_vf_tree(chain);
}

void BRIG_ISA(rms_norm)(const float *x, const float *w, uint32_t n, float eps, float *out)
{
    float r = 1.0f / sqrtf(squares(x, n, false, 0.0f) / (float)n + eps);
    for (uint32_t i = 0; i < n; i += BRIG_LANES)
        brig_vf_store_n(out + i, brig_vf_load_n(x + i, n - i) * r * brig_vf_load_n(w + i, n - i), n - i);
}

static float plain_sum(const float *x, uint32_t n)
{
    brig_vf chain[BRIG_PARTS] = {{0}};
    uint32_t i = 0;
    for (; i + BRIG_CHAINS <= n; i += BRIG_CHAINS)
        for (unsigned k = 0; k < BRIG_PARTS; k++)
            chain[k] += brig_vf_load(x + i + k * BRIG_LANES);
    for (unsigned k = 0; k < BRIG_PARTS; k++, i += BRIG_LANES) {
        if (i >= n)
            break;
        chain[k] = brig_vf_keep_n(chain[k], chain[k] + brig_vf_load_n(x + i, n - i), n - i);
    }
    return brig_vf_tree(chain);
}

void BRIG_ISA(layer_norm)(const float *x, const float *w, const float *bias, uint32_t n, float eps,
                          float *out)
{
    float mean = plain_sum(x, n) / (float)n;
    float r = 1.0f / sqrtf(squares(x, n, true, mean) / (float)n + eps);
    for (uint32_t i = 0; i < n; i += BRIG_LANES) {
        brig_vf v = (brig_vf_load_n(x + i, n - i) - mean) * r;
        v = brig_vf_fma(v, brig_vf_load_n(w + i, n - i), brig_vf_load_n(bias + i, n - i));
        brig_vf_store_n(out + i, v, n - i);
    }
}

/* x / (1 + exp(-t)) */
static inline brig_vf gated(brig_vf x, brig_vf t)
{
    return x / (1.0f + brig_vf_exp(-t));
}

void BRIG_ISA(swiglu)(const float *gate, const float *up, uint32_t n, float *out)
{
    for (uint32_t i = 0; i < n; i += BRIG_LANES) {
        brig_vf g = brig_vf_load_n(gate + i, n - i);
        brig_vf_store_n(out + i, gated(g, g) * brig_vf_load_n(up + i, n - i), n - i);
    }
}

void BRIG_ISA(geglu)(const float *gate, const float *up, uint32_t n, float *out)
{
    for (uint32_t i = 0; i < n; i += BRIG_LANES) {
        brig_vf x = brig_vf_load_n(gate + i, n - i);
        brig_vf slope = brig_vf_fma(brig_vf_set1(BRIG_GELU_B), x * x, brig_vf_set1(BRIG_GELU_A));
        brig_vf g = gated(x, x * slope);
        brig_vf_store_n(out + i, up != NULL ? g * brig_vf_load_n(up + i, n - i) : g, n - i);
    }
}

void BRIG_ISA(add)(float *x, const float *y, uint32_t n)
{
    uint32_t i = 0;
    for (; i + BRIG_LANES <= n; i += BRIG_LANES)
        brig_vf_store(x + i, brig_vf_load(x + i) + brig_vf_load(y + i));
    if (i < n)
        brig_vf_store_n(x + i, brig_vf_load_n(x + i, n - i) + brig_vf_load_n(y + i, n - i), n - i);
}

void BRIG_ISA(add_scaled)(float *x, float g, const float *y, uint32_t n)
{
    uint32_t i = 0;
    for (; i + BRIG_LANES <= n; i += BRIG_LANES)
        brig_vf_store(x + i, brig_vf_fma(brig_vf_set1(g), brig_vf_load(y + i), brig_vf_load(x + i)));
    if (i < n) {
        brig_vf v = brig_vf_load_n(x + i, n - i);
        brig_vf_store_n(x + i, brig_vf_fma(brig_vf_set1(g), brig_vf_load_n(y + i, n - i), v), n - i);
    }
}

void BRIG_ISA(to_f16)(const float *x, uint32_t n, uint16_t *out)
{
    for (uint32_t i = 0; i < n; i += BRIG_LANES)
        brig_vf_store_f16_n(out + i, brig_vf_load_n(x + i, n - i), n - i);
}

/* The 16 chains, joined. */
static float exp_sum(const float *x, uint32_t n, float top)
{
    brig_vf chain[BRIG_PARTS] = {{0}};
    uint32_t i = 0;
    for (; i + BRIG_CHAINS <= n; i += BRIG_CHAINS)
        for (unsigned k = 0; k < BRIG_PARTS; k++)
            chain[k] += brig_vf_exp(brig_vf_load(x + i + k * BRIG_LANES) - top);
    for (unsigned k = 0; k < BRIG_PARTS; k++, i += BRIG_LANES) {
        if (i >= n)
            break;
        brig_vf e = brig_vf_exp(brig_vf_load_n(x + i, n - i) - top);
        chain[k] = brig_vf_keep_n(chain[k], chain[k] + e, n - i);
    }
    return brig_vf_tree(chain);
}

float BRIG_ISA(log_sum_exp)(const float *x, uint32_t n)
{
    brig_vf tops = brig_vf_set1(-INFINITY);
    uint32_t i = 0;
    for (; i + BRIG_LANES <= n; i += BRIG_LANES)
        tops = brig_vf_larger(brig_vf_load(x + i), tops);
    float lane[BRIG_LANES], top = -INFINITY;
    brig_vf_store(lane, tops);
    for (unsigned k = 0; k < BRIG_LANES; k++)
        top = lane[k] > top ? lane[k] : top;
    for (; i < n; i++)
        top = x[i] > top ? x[i] : top;
    return brig_logf(exp_sum(x, n, top)) + top;
}
