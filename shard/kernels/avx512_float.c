/*
 * Float products with AVX-512: a chunk of 16 rows is widened (or dequantised) and transposed to one vector a
 * column, then every token's chain goes over the columns in order. Called by brig_panel_matmul for F32, F16
 * and BF16 weights, and for all types when activations are f32.
 */
#include "shard/kernels/avx512.h"

enum { HALF_COLS = 8, FULL_COLS = 4 }; /* columns in 16 bytes */

static void read_f32(struct brig_panel p, unsigned n_cols, __m512 *w)
{
    for (unsigned c = 0; c < n_cols; c += FULL_COLS) {
        __m512i t[4];
        brig_avx512_transpose(p.base + c * sizeof(float), p.stride, t);
        for (unsigned i = 0; i < 4; i++)
            w[c + i] = _mm512_castsi512_ps(t[i]);
    }
}

static void read_f16(struct brig_panel p, unsigned n_cols, __m512 *w)
{
    for (unsigned c = 0; c < n_cols; c += HALF_COLS) {
        __m512i t[4];
        brig_avx512_transpose(p.base + c * sizeof(uint16_t), p.stride, t);
        for (unsigned i = 0; i < 4; i++) {
            w[c + 2 * i] = brig_avx512_half(t[i]);
            w[c + 2 * i + 1] = brig_avx512_half(_mm512_srli_epi32(t[i], 16));
        }
    }
}

static void read_bf16(struct brig_panel p, unsigned n_cols, __m512 *w)
{
    for (unsigned c = 0; c < n_cols; c += HALF_COLS) {
        __m512i t[4];
        brig_avx512_transpose(p.base + c * sizeof(uint16_t), p.stride, t);
        for (unsigned i = 0; i < 4; i++) {
            w[c + 2 * i] = _mm512_castsi512_ps(_mm512_slli_epi32(t[i], 16));
            w[c + 2 * i + 1] =
                _mm512_castsi512_ps(_mm512_and_si512(t[i], _mm512_set1_epi32((int)0xffff0000u)));
        }
    }
}

/* As the types' own dequant: integer times scale, then plus minimum, each rounded. */
static inline __attribute__((always_inline)) void read_blocks(enum brig_type_id id, unsigned block_bytes,
                                                              struct brig_panel p, unsigned n_cols, __m512 *w)
{
    const __m512i offsets = brig_avx512_offsets(p.stride), byte = _mm512_set1_epi32(255);
    const __m512i zero_point = _mm512_set1_epi32(brig_avx512_offset(id));
    for (unsigned g = 0; g < n_cols / 32; g++, w += 32) {
        struct brig_avx512_block b;
        brig_avx512_read(id, p.base + g * block_bytes, p.stride, offsets, &b);
        for (unsigned i = 0; i < 32; i++) {
            __m512i v = _mm512_and_si512(_mm512_srli_epi32(b.u[i / 4], 8 * (i % 4)), byte);
            w[i] = _mm512_mul_ps(_mm512_cvtepi32_ps(_mm512_sub_epi32(v, zero_point)), b.d);
            if (brig_panel_has_min(id))
                w[i] = _mm512_add_ps(w[i], b.m);
        }
    }
}

static void read_weights(enum brig_type_id id, struct brig_panel p, unsigned n_cols, __m512 *w)
{
    switch (id) {
    case BRIG_TYPE_F32:
        read_f32(p, n_cols, w);
        break;
    case BRIG_TYPE_F16:
        read_f16(p, n_cols, w);
        break;
    case BRIG_TYPE_BF16:
        read_bf16(p, n_cols, w);
        break;
    case BRIG_TYPE_Q4_0:
        read_blocks(BRIG_TYPE_Q4_0, 18, p, n_cols, w);
        break;
    case BRIG_TYPE_Q4_1:
        read_blocks(BRIG_TYPE_Q4_1, 20, p, n_cols, w);
        break;
    case BRIG_TYPE_Q5_0:
        read_blocks(BRIG_TYPE_Q5_0, 22, p, n_cols, w);
        break;
    case BRIG_TYPE_Q5_1:
        read_blocks(BRIG_TYPE_Q5_1, 24, p, n_cols, w);
        break;
    default:
        read_blocks(BRIG_TYPE_Q8_0, 34, p, n_cols, w);
        break;
    }
}

static inline __attribute__((always_inline)) void tile(const int N, const __m512 *w, const float *f,
                                                       size_t cols, unsigned n_cols, float *acc)
{
    __m512 a[8];
    for (int k = 0; k < N; k++)
        a[k] = _mm512_load_ps(acc + 16 * k);
    for (unsigned c = 0; c < n_cols; c++)
        for (int k = 0; k < N; k++)
            a[k] = _mm512_fmadd_ps(w[c], _mm512_set1_ps(f[(size_t)k * cols + c]), a[k]);
    for (int k = 0; k < N; k++)
        _mm512_store_ps(acc + 16 * k, a[k]);
}

void brig_avx512_columns(const __m512 *w, const struct brig_act *x, size_t first, unsigned n_tokens,
                         size_t col, unsigned n_cols, float *acc)
{
    const float *f = x->f + first * x->cols + col;
    unsigned t = 0;
    for (; t + 8 <= n_tokens; t += 8)
        tile(8, w, f + t * (size_t)x->cols, x->cols, n_cols, acc + 16 * t);
    if (t + 4 <= n_tokens) {
        tile(4, w, f + t * (size_t)x->cols, x->cols, n_cols, acc + 16 * t);
        t += 4;
    }
    for (; t < n_tokens; t++)
        tile(1, w, f + t * (size_t)x->cols, x->cols, n_cols, acc + 16 * t);
}

void brig_avx512_chain_float(enum brig_type_id id, struct brig_panel p, const struct brig_act *x,
                             size_t first, unsigned n_tokens, size_t col, unsigned n_cols, float *acc)
{
    __m512 w[BRIG_PANEL_CHUNK_FLOAT];
    read_weights(id, p, n_cols, w);
    brig_avx512_columns(w, x, first, n_tokens, col, n_cols, acc);
}
