/*
 * The AVX2 row of the kernel table (with FMA and F16C: nearly every x86-64 machine since 2013), and its
 * element-wise work. What costs little in a token is left to the scalar kernel; the rest repeats its
 * operations lane by lane.
 */
#include "shard/kernels/avx2.h"

#include <math.h>

#include "shard/kernels/expf.h"
#include "shard/kernels/math.h"
#include "shard/kernels/scalar.h"

__m256 brig_avx2_exp(__m256 x)
{
    __m256 n = _mm256_round_ps(_mm256_mul_ps(x, _mm256_set1_ps(BRIG_EXP_LOG2E)),
                               _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    __m256 r = _mm256_fmadd_ps(n, _mm256_set1_ps(-BRIG_EXP_LN2_HI), x);
    r = _mm256_fmadd_ps(n, _mm256_set1_ps(-BRIG_EXP_LN2_LO), r);
    __m256 p = _mm256_set1_ps(BRIG_EXP_C7);
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(BRIG_EXP_C6));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(BRIG_EXP_C5));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(BRIG_EXP_C4));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(BRIG_EXP_C3));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(BRIG_EXP_C2));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(1.0f));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(1.0f));
    __m256i bits = _mm256_add_epi32(_mm256_castps_si256(p), _mm256_slli_epi32(_mm256_cvtps_epi32(n), 23));
    __m256 e = _mm256_castsi256_ps(bits);
    e = _mm256_blendv_ps(e, _mm256_setzero_ps(), _mm256_cmp_ps(x, _mm256_set1_ps(BRIG_EXP_LOW), _CMP_LT_OQ));
    e = _mm256_blendv_ps(e, _mm256_set1_ps(INFINITY),
                         _mm256_cmp_ps(x, _mm256_set1_ps(BRIG_EXP_HIGH), _CMP_GT_OQ));
    return _mm256_blendv_ps(e, x, _mm256_cmp_ps(x, x, _CMP_UNORD_Q));
}

static void matmul(const struct brig_matrix *w, uint64_t row_begin, uint64_t row_end,
                   const struct brig_act *x, float *y, size_t y_stride)
{
    const struct brig_panel_ops ops = {8,
                                       brig_avx2_chain_int,
                                       brig_avx2_chain_float,
                                       brig_avx2_chain_packed,
                                       brig_avx2_chain_r16_int,
                                       brig_avx2_chain_r16_float};
    brig_panel_matmul(&ops, w, row_begin, row_end, x, y, y_stride);
}

static void swiglu(const float *gate, const float *up, uint32_t n, float *out)
{
    uint32_t i = 0;
    for (; i + 8 <= n; i += 8) {
        __m256 g = _mm256_loadu_ps(gate + i);
        __m256 e = brig_avx2_exp(_mm256_xor_ps(g, _mm256_set1_ps(-0.0f)));
        __m256 s = _mm256_div_ps(g, _mm256_add_ps(_mm256_set1_ps(1.0f), e));
        _mm256_storeu_ps(out + i, _mm256_mul_ps(s, _mm256_loadu_ps(up + i)));
    }
    brig_scalar_swiglu(gate + i, up + i, n - i, out + i);
}

static __m256 gelu(__m256 x)
{
    __m256 slope =
        _mm256_fmadd_ps(_mm256_set1_ps(BRIG_GELU_B), _mm256_mul_ps(x, x), _mm256_set1_ps(BRIG_GELU_A));
    __m256 e = brig_avx2_exp(_mm256_xor_ps(_mm256_mul_ps(x, slope), _mm256_set1_ps(-0.0f)));
    return _mm256_div_ps(x, _mm256_add_ps(_mm256_set1_ps(1.0f), e));
}

static void geglu(const float *gate, const float *up, uint32_t n, float *out)
{
    uint32_t i = 0;
    for (; i + 8 <= n; i += 8) {
        __m256 g = gelu(_mm256_loadu_ps(gate + i));
        _mm256_storeu_ps(out + i, up != NULL ? _mm256_mul_ps(g, _mm256_loadu_ps(up + i)) : g);
    }
    brig_scalar_geglu(gate + i, up != NULL ? up + i : NULL, n - i, out + i);
}

static void add_scaled(float *x, float g, const float *y, uint32_t n)
{
    uint32_t i = 0;
    for (; i + 8 <= n; i += 8) {
        __m256 v = _mm256_fmadd_ps(_mm256_set1_ps(g), _mm256_loadu_ps(y + i), _mm256_loadu_ps(x + i));
        _mm256_storeu_ps(x + i, v);
    }
    brig_scalar_add_scaled(x + i, g, y + i, n - i);
}

/* The 16 chains of one block of the vocabulary, joined. */
static float lse_block(const float *x, uint32_t n, float top)
{
    __m256 low = _mm256_setzero_ps(), high = _mm256_setzero_ps(), t = _mm256_set1_ps(top);
    uint32_t i = 0;
    for (; i + BRIG_CHAINS <= n; i += BRIG_CHAINS) {
        low = _mm256_add_ps(low, brig_avx2_exp(_mm256_sub_ps(_mm256_loadu_ps(x + i), t)));
        high = _mm256_add_ps(high, brig_avx2_exp(_mm256_sub_ps(_mm256_loadu_ps(x + i + 8), t)));
    }
    float chain[BRIG_CHAINS];
    _mm256_storeu_ps(chain, low);
    _mm256_storeu_ps(chain + 8, high);
    for (; i < n; i++)
        chain[i % BRIG_CHAINS] = chain[i % BRIG_CHAINS] + brig_expf(x[i] - top);
    return brig_tree_sum(chain, BRIG_CHAINS);
}

static float lse_tree(const float *x, uint32_t n, float top)
{
    if (n <= BRIG_LSE_BLOCK)
        return lse_block(x, n, top);
    uint32_t n_blocks = n / BRIG_LSE_BLOCK + (n % BRIG_LSE_BLOCK != 0);
    uint32_t left = (n_blocks / 2 + n_blocks % 2) * BRIG_LSE_BLOCK;
    float a = lse_tree(x, left, top);
    return a + lse_tree(x + left, n - left, top);
}

static float log_sum_exp(const float *x, uint32_t n)
{
    float top = -INFINITY;
    for (uint32_t i = 0; i < n; i++)
        top = x[i] > top ? x[i] : top;
    return n == 0 ? top : brig_logf(lse_tree(x, n, top)) + top;
}

static bool usable(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c");
}

const struct brig_kernel brig_kernel_avx2 = {
    .name = "avx2",
    .help = "AVX2 with FMA and F16C: 8 rows a vector",
    .usable = usable,
    .matmul = matmul,
    .quantize = brig_scalar_quantize,
    .rms_norm = brig_scalar_rms_norm,
    .layer_norm = brig_scalar_layer_norm,
    .attention = brig_avx2_attention,
    .swiglu = swiglu,
    .geglu = geglu,
    .add = brig_scalar_add,
    .add_scaled = add_scaled,
    .to_f16 = brig_scalar_to_f16,
    .log_sum_exp = log_sum_exp,
};
