/*
 * Interleaved matrices (proto/model/r16.h) with AVX-512 VNNI: a vector of weights is one load, so the chains
 * of one token or of eight read the stored blocks themselves. Called by brig_panel_matmul.
 */
#include "shard/kernels/vec/vec.h"

#include "proto/model/r16.h"

/* A block of 16 rows: unsigned bytes, a value being byte - offset_of; vector c of lane r has columns 4 c..4 c
 * + 3 of row r. */
struct block {
    __m512i u[8];
    __m512 d, m;
};

static inline __attribute__((always_inline)) unsigned bytes_of(enum brig_type_id id)
{
    return BRIG_R16_ROWS * (id == BRIG_TYPE_Q8_0_R16 ? 34 : id == BRIG_TYPE_Q4_1_R16 ? 20 : 18);
}

static inline __attribute__((always_inline)) int offset_of(enum brig_type_id id)
{
    return id == BRIG_TYPE_Q8_0_R16 ? 128 : id == BRIG_TYPE_Q4_0_R16 ? 8 : 0;
}

static inline __attribute__((always_inline)) struct block read(enum brig_type_id id, const uint8_t *p)
{
    const __m512i low = _mm512_set1_epi8(15), sign = _mm512_set1_epi8((char)0x80);
    struct block b;
    b.d = b.m = _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)p));
    p += 32;
    if (brig_panel_has_min(id)) {
        b.m = _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)p));
        p += 32;
    }
    for (int c = 0; c < (id == BRIG_TYPE_Q8_0_R16 ? 8 : 4); c++) {
        __m512i v = _mm512_loadu_si512(p + 64 * c);
        if (id == BRIG_TYPE_Q8_0_R16) {
            b.u[c] = _mm512_xor_si512(v, sign);
        } else {
            b.u[c] = _mm512_and_si512(v, low);
            b.u[c + 4] = _mm512_and_si512(_mm512_srli_epi32(v, 4), low);
        }
    }
    return b;
}

static inline __m512i four(const int8_t *q)
{
    int32_t v;
    memcpy(&v, q, sizeof v);
    return _mm512_set1_epi32(v);
}

static inline __attribute__((always_inline)) void fetch(const uint8_t *p, unsigned bytes)
{
    for (unsigned i = 0; i < bytes; i += 64)
        _mm_prefetch((const char *)p + i, _MM_HINT_T1);
}

/* N tokens, N a constant: their sums stay in registers while the weights pass by. ahead: NULL when it is
 * fetched already. */
static inline __attribute__((always_inline)) void tile(enum brig_type_id id, const int N,
                                                       const uint8_t *blocks, const uint8_t *ahead,
                                                       const struct brig_act *x, size_t token, size_t col,
                                                       unsigned n_groups, float *acc)
{
    size_t stride = brig_act_stride(x->cols), at = token * stride + col;
    const int8_t *q = x->q + at;
    const float *d = x->d + at / BRIG_ACT_GROUP;
    const int32_t *sum = x->sum + at / 16;
    __m512 a[8];
    for (int k = 0; k < N; k++)
        a[k] = _mm512_load_ps(acc + 16 * k);
    for (unsigned g = 0; g < n_groups; g++, q += BRIG_ACT_GROUP, d++, sum += 2) {
        if (ahead != NULL)
            fetch(ahead + g * bytes_of(id), bytes_of(id));
        const struct block b = read(id, blocks + g * bytes_of(id));
        __m512i isum[8];
        int32_t xsum[8];
        for (int k = 0; k < N; k++) {
            const int32_t *halves = sum + (size_t)k * (stride / 16);
            xsum[k] = halves[0] + halves[1];
            isum[k] = _mm512_set1_epi32(-offset_of(id) * xsum[k]);
        }
        for (int c = 0; c < 8; c++)
            for (int k = 0; k < N; k++)
                isum[k] = _mm512_dpbusd_epi32(isum[k], b.u[c], four(q + (size_t)k * stride + 4 * c));
        for (int k = 0; k < N; k++) {
            float dx = d[(size_t)k * (stride / BRIG_ACT_GROUP)];
            a[k] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(isum[k]), _mm512_mul_ps(b.d, _mm512_set1_ps(dx)), a[k]);
            if (brig_panel_has_min(id))
                a[k] = _mm512_fmadd_ps(b.m, _mm512_set1_ps(dx * (float)xsum[k]), a[k]);
        }
    }
    for (int k = 0; k < N; k++)
        _mm512_store_ps(acc + 16 * k, a[k]);
}

static inline __attribute__((always_inline)) void tiles(enum brig_type_id id, const uint8_t *blocks,
                                                        const uint8_t *ahead, const struct brig_act *x,
                                                        size_t first, unsigned n_tokens, size_t col,
                                                        unsigned n_groups, float *acc)
{
    unsigned t = 0;
    for (; t + 8 <= n_tokens; t += 8)
        tile(id, 8, blocks, t == 0 ? ahead : NULL, x, first + t, col, n_groups, acc + 16 * t);
    if ((n_tokens & 4) != 0) {
        tile(id, 4, blocks, t == 0 ? ahead : NULL, x, first + t, col, n_groups, acc + 16 * t);
        t += 4;
    }
    if ((n_tokens & 2) != 0) {
        tile(id, 2, blocks, t == 0 ? ahead : NULL, x, first + t, col, n_groups, acc + 16 * t);
        t += 2;
    }
    if ((n_tokens & 1) != 0)
        tile(id, 1, blocks, t == 0 ? ahead : NULL, x, first + t, col, n_groups, acc + 16 * t);
}

void brig_avx512_chain_r16_int(enum brig_type_id id, const uint8_t *blocks, const uint8_t *ahead,
                               const struct brig_act *x, size_t first, unsigned n_tokens, size_t col,
                               unsigned n_cols, float *acc)
{
    unsigned n_groups = n_cols / BRIG_ACT_GROUP;
    switch (id) {
    case BRIG_TYPE_Q4_0_R16:
        tiles(BRIG_TYPE_Q4_0_R16, blocks, ahead, x, first, n_tokens, col, n_groups, acc);
        break;
    case BRIG_TYPE_Q4_1_R16:
        tiles(BRIG_TYPE_Q4_1_R16, blocks, ahead, x, first, n_tokens, col, n_groups, acc);
        break;
    default:
        tiles(BRIG_TYPE_Q8_0_R16, blocks, ahead, x, first, n_tokens, col, n_groups, acc);
        break;
    }
}
