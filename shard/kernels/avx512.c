/*
 * The AVX-512 row of the kernel table (F, BW, DQ, VL, VNNI, and F16C; Intel since Ice Lake, AMD since Zen 4),
 * and its element-wise work. Each lane repeats the operations of scalar.c in their order.
 */
#include "shard/kernels/avx512.h"

#include <math.h>

#include "shard/kernels/expf.h"
#include "shard/kernels/math.h"
#include "shard/kernels/scalar.h"

static inline __mmask16 lanes(uint32_t n)
{
    return n >= 16 ? (__mmask16)0xffff : (__mmask16)((1u << n) - 1);
}

__m512 brig_avx512_exp(__m512 x)
{
    __m512 n = _mm512_roundscale_ps(_mm512_mul_ps(x, _mm512_set1_ps(BRIG_EXP_LOG2E)),
                                    _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    __m512 r = _mm512_fmadd_ps(n, _mm512_set1_ps(-BRIG_EXP_LN2_HI), x);
    r = _mm512_fmadd_ps(n, _mm512_set1_ps(-BRIG_EXP_LN2_LO), r);
    __m512 p = _mm512_set1_ps(BRIG_EXP_C7);
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(BRIG_EXP_C6));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(BRIG_EXP_C5));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(BRIG_EXP_C4));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(BRIG_EXP_C3));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(BRIG_EXP_C2));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.0f));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.0f));
    __m512i bits = _mm512_add_epi32(_mm512_castps_si512(p), _mm512_slli_epi32(_mm512_cvtps_epi32(n), 23));
    __m512 e = _mm512_castsi512_ps(bits);
    e = _mm512_mask_mov_ps(e, _mm512_cmp_ps_mask(x, _mm512_set1_ps(BRIG_EXP_LOW), _CMP_LT_OQ),
                           _mm512_setzero_ps());
    e = _mm512_mask_mov_ps(e, _mm512_cmp_ps_mask(x, _mm512_set1_ps(BRIG_EXP_HIGH), _CMP_GT_OQ),
                           _mm512_set1_ps(INFINITY));
    return _mm512_mask_mov_ps(e, _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q), x);
}

static void quantize_group(const float *x, int8_t *q, float *d, int32_t *sum)
{
    const __m512i magnitude = _mm512_set1_epi32(0x7fffffff);
    __m512 a = _mm512_loadu_ps(x), b = _mm512_loadu_ps(x + 16);
    __m512i top = _mm512_max_epu32(_mm512_and_si512(_mm512_castps_si512(a), magnitude),
                                   _mm512_and_si512(_mm512_castps_si512(b), magnitude));
    uint32_t bits = _mm512_reduce_max_epu32(top);
    float amax;
    memcpy(&amax, &bits, sizeof amax);
    if (!(amax >= BRIG_AMAX_MIN && amax < INFINITY)) {
        *d = amax < INFINITY ? 0.0f : NAN;
        sum[0] = sum[1] = 0;
        memset(q, 0, BRIG_ACT_GROUP);
        return;
    }
    *d = amax / 127.0f;
    __m512 scale = _mm512_set1_ps(127.0f / amax);
    __m512i qa = _mm512_cvtps_epi32(_mm512_mul_ps(a, scale)); /* to nearest, ties to even */
    __m512i qb = _mm512_cvtps_epi32(_mm512_mul_ps(b, scale));
    _mm_storeu_si128((__m128i *)q, _mm512_cvtepi32_epi8(qa));
    _mm_storeu_si128((__m128i *)(q + 16), _mm512_cvtepi32_epi8(qb));
    sum[0] = _mm512_reduce_add_epi32(qa);
    sum[1] = _mm512_reduce_add_epi32(qb);
}

static void quantize(const float *x, uint32_t cols, int8_t *q, float *d, int32_t *sum)
{
    for (uint32_t g = 0; g < cols / BRIG_ACT_GROUP; g++)
        quantize_group(x + g * BRIG_ACT_GROUP, q + g * BRIG_ACT_GROUP, d + g, sum + 2 * g);
}

static void rms_norm(const float *x, const float *w, uint32_t n, float eps, float *out)
{
    __m512 chain = _mm512_setzero_ps();
    for (uint32_t i = 0; i < n; i += 16) {
        __mmask16 m = lanes(n - i);
        __m512 v = _mm512_maskz_loadu_ps(m, x + i);
        chain = _mm512_mask3_fmadd_ps(v, v, chain, m);
    }
    __m512 r = _mm512_set1_ps(1.0f / sqrtf(brig_avx512_tree(chain) / (float)n + eps));
    for (uint32_t i = 0; i < n; i += 16) {
        __mmask16 m = lanes(n - i);
        __m512 v = _mm512_mul_ps(_mm512_maskz_loadu_ps(m, x + i), r);
        _mm512_mask_storeu_ps(out + i, m, _mm512_mul_ps(v, _mm512_maskz_loadu_ps(m, w + i)));
    }
}

static void layer_norm(const float *x, const float *w, const float *bias, uint32_t n, float eps, float *out)
{
    __m512 chain = _mm512_setzero_ps();
    for (uint32_t i = 0; i < n; i += 16) {
        __mmask16 m = lanes(n - i);
        chain = _mm512_mask_add_ps(chain, m, chain, _mm512_maskz_loadu_ps(m, x + i));
    }
    __m512 mean = _mm512_set1_ps(brig_avx512_tree(chain) / (float)n);
    chain = _mm512_setzero_ps();
    for (uint32_t i = 0; i < n; i += 16) {
        __mmask16 m = lanes(n - i);
        __m512 v = _mm512_sub_ps(_mm512_maskz_loadu_ps(m, x + i), mean);
        chain = _mm512_mask3_fmadd_ps(v, v, chain, m);
    }
    __m512 r = _mm512_set1_ps(1.0f / sqrtf(brig_avx512_tree(chain) / (float)n + eps));
    for (uint32_t i = 0; i < n; i += 16) {
        __mmask16 m = lanes(n - i);
        __m512 v = _mm512_mul_ps(_mm512_sub_ps(_mm512_maskz_loadu_ps(m, x + i), mean), r);
        v = _mm512_fmadd_ps(v, _mm512_maskz_loadu_ps(m, w + i), _mm512_maskz_loadu_ps(m, bias + i));
        _mm512_mask_storeu_ps(out + i, m, v);
    }
}

static void swiglu(const float *gate, const float *up, uint32_t n, float *out)
{
    const __m512i sign = _mm512_set1_epi32((int)0x80000000u);
    for (uint32_t i = 0; i < n; i += 16) {
        __mmask16 m = lanes(n - i);
        __m512 g = _mm512_maskz_loadu_ps(m, gate + i);
        __m512 e = brig_avx512_exp(_mm512_castsi512_ps(_mm512_xor_si512(_mm512_castps_si512(g), sign)));
        __m512 s = _mm512_div_ps(g, _mm512_add_ps(_mm512_set1_ps(1.0f), e));
        _mm512_mask_storeu_ps(out + i, m, _mm512_mul_ps(s, _mm512_maskz_loadu_ps(m, up + i)));
    }
}

static __m512 gelu(__m512 x)
{
    const __m512i sign = _mm512_set1_epi32((int)0x80000000u);
    __m512 slope =
        _mm512_fmadd_ps(_mm512_set1_ps(BRIG_GELU_B), _mm512_mul_ps(x, x), _mm512_set1_ps(BRIG_GELU_A));
    __m512 t = _mm512_mul_ps(x, slope);
    __m512 e = brig_avx512_exp(_mm512_castsi512_ps(_mm512_xor_si512(_mm512_castps_si512(t), sign)));
    return _mm512_div_ps(x, _mm512_add_ps(_mm512_set1_ps(1.0f), e));
}

static void geglu(const float *gate, const float *up, uint32_t n, float *out)
{
    for (uint32_t i = 0; i < n; i += 16) {
        __mmask16 m = lanes(n - i);
        __m512 g = gelu(_mm512_maskz_loadu_ps(m, gate + i));
        _mm512_mask_storeu_ps(out + i, m,
                              up != NULL ? _mm512_mul_ps(g, _mm512_maskz_loadu_ps(m, up + i)) : g);
    }
}

static void add(float *x, const float *y, uint32_t n)
{
    for (uint32_t i = 0; i < n; i += 16) {
        __mmask16 m = lanes(n - i);
        __m512 v = _mm512_add_ps(_mm512_maskz_loadu_ps(m, x + i), _mm512_maskz_loadu_ps(m, y + i));
        _mm512_mask_storeu_ps(x + i, m, v);
    }
}

static void add_scaled(float *x, float g, const float *y, uint32_t n)
{
    for (uint32_t i = 0; i < n; i += 16) {
        __mmask16 m = lanes(n - i);
        __m512 v = _mm512_fmadd_ps(_mm512_set1_ps(g), _mm512_maskz_loadu_ps(m, y + i),
                                   _mm512_maskz_loadu_ps(m, x + i));
        _mm512_mask_storeu_ps(x + i, m, v);
    }
}

static void to_f16(const float *x, uint32_t n, uint16_t *out)
{
    for (uint32_t i = 0; i < n; i += 16) {
        __mmask16 m = lanes(n - i);
        __m256i h = _mm512_cvtps_ph(_mm512_maskz_loadu_ps(m, x + i), _MM_FROUND_TO_NEAREST_INT);
        _mm256_mask_storeu_epi16(out + i, m, h);
    }
}

/* The 16 chains of one block of the vocabulary, joined. */
static float lse_block(const float *x, uint32_t n, __m512 top)
{
    __m512 chain = _mm512_setzero_ps();
    for (uint32_t i = 0; i < n; i += 16) {
        __mmask16 m = lanes(n - i);
        __m512 e = brig_avx512_exp(_mm512_sub_ps(_mm512_maskz_loadu_ps(m, x + i), top));
        chain = _mm512_mask_add_ps(chain, m, chain, e);
    }
    return brig_avx512_tree(chain);
}

static float lse_tree(const float *x, uint32_t n, __m512 top)
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
    __m512 v = _mm512_set1_ps(-INFINITY);
    for (uint32_t i = 0; i < n; i += 16) {
        __mmask16 m = lanes(n - i);
        v = _mm512_mask_max_ps(v, m, _mm512_maskz_loadu_ps(m, x + i), v);
    }
    float top = _mm512_reduce_max_ps(v);
    return n == 0 ? top : brig_logf(lse_tree(x, n, _mm512_set1_ps(top))) + top;
}

static void matmul(const struct brig_matrix *w, uint64_t row_begin, uint64_t row_end,
                   const struct brig_act *x, float *y, size_t y_stride)
{
    const struct brig_panel_ops ops = {16,
                                       brig_avx512_chain_int,
                                       brig_avx512_chain_float,
                                       brig_avx512_chain_packed,
                                       brig_avx512_chain_r16_int,
                                       brig_avx512_chain_r16_float};
    brig_panel_matmul(&ops, w, row_begin, row_end, x, y, y_stride);
}

static bool usable(void)
{
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("avx512vnni") && __builtin_cpu_supports("fma") &&
           __builtin_cpu_supports("f16c");
}

const struct brig_kernel brig_kernel_avx512 = {
    .name = "avx512",
    .help = "AVX-512 with VNNI: 16 rows a vector",
    .usable = usable,
    .matmul = matmul,
    .quantize = quantize,
    .rms_norm = rms_norm,
    .layer_norm = layer_norm,
    .attention = brig_avx512_attention,
    .swiglu = swiglu,
    .geglu = geglu,
    .add = add,
    .add_scaled = add_scaled,
    .to_f16 = to_f16,
    .log_sum_exp = log_sum_exp,
};
