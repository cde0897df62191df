/*
 * Packed matrices (proto/model/packed.h) with AVX-512: 16 rows of a column lie side by side in the file, so a
 * vector of weights is a load and a shift. Called by brig_panel_matmul.
 */
#include "shard/kernels/avx512.h"

/* One group's scales and zeros for the rows of a panel. */
struct group {
    __m512 scale;
    __m512i zero;
};

static inline __m512 weights(const struct group *g, __m512i v, const int BITS)
{
    v = _mm512_sub_epi32(_mm512_and_si512(v, _mm512_set1_epi32((1 << BITS) - 1)), g->zero);
    return _mm512_mul_ps(_mm512_cvtepi32_ps(v), g->scale);
}

/* The words that hold a column of a GPTQ matrix. */
static inline __m512i column_words(const struct brig_packed *p, uint64_t row, uint64_t col, const int BITS)
{
    const uint8_t *at = p->words + (col / (unsigned)(32 / BITS) * p->rows + row) * 4;
    return _mm512_loadu_si512(at);
}

/* n columns from `col` on, word by word. */
static inline __attribute__((always_inline)) void lying(const struct brig_packed *p, const struct group *g,
                                                        uint64_t row, uint64_t col, unsigned n, __m512 *w,
                                                        const int BITS)
{
    while (n > 0) {
        unsigned in_word = 32 / BITS, first = (unsigned)(col % in_word);
        unsigned k = in_word - first < n ? in_word - first : n;
        __m512i v = _mm512_srl_epi32(column_words(p, row, col, BITS), _mm_cvtsi32_si128((int)first * BITS));
        if (k == (unsigned)(32 / BITS)) { /* known to the compiler */
            for (int i = 0; i < 32 / BITS; i++)
                w[i] = weights(g, _mm512_srli_epi32(v, i * BITS), BITS);
        } else {
            for (unsigned i = 0; i < k; i++, v = _mm512_srli_epi32(v, BITS))
                w[i] = weights(g, v, BITS);
        }
        w += k;
        col += k;
        n -= k;
    }
}

/* n columns in an order of their own. */
static inline __attribute__((always_inline)) void ordered(const struct brig_packed *p, const struct group *g,
                                                          uint64_t row, const uint32_t *order, unsigned n,
                                                          __m512 *w, const int BITS)
{
    for (unsigned i = 0; i < n; i++) {
        __m128i shift = _mm_cvtsi32_si128((int)(order[i] % (unsigned)(32 / BITS)) * BITS);
        w[i] = weights(g, _mm512_srl_epi32(column_words(p, row, order[i], BITS), shift), BITS);
    }
}

/* Two words hold the 16 rows of a column of an AWQ matrix. */
static inline __m512i column_rows(const struct brig_packed *p, uint64_t row, uint64_t col, __m512i shifts)
{
    uint32_t two[2];
    memcpy(two, p->words + (col * (p->rows / 8) + row / 8) * 4, sizeof two);
    __m512i v = _mm512_inserti64x4(_mm512_set1_epi32((int)two[0]), _mm256_set1_epi32((int)two[1]), 1);
    return _mm512_srlv_epi32(v, shifts);
}

static void by_rows(const struct brig_packed *p, const struct group *g, uint64_t row, uint64_t col,
                    unsigned n, __m512 *w)
{
    uint32_t shifts[16];
    for (unsigned r = 0; r < 16; r++)
        shifts[r] = p->packing->place[r % 8] * 4u;
    const __m512i v = _mm512_loadu_si512(shifts);
    for (unsigned i = 0; i < n; i++)
        w[i] = weights(g, column_rows(p, row, col + i, v), 4);
}

/* Visits of one group. */
static void unpack(const struct brig_packed *p, const struct group *g, uint64_t row, uint64_t visit,
                   unsigned n, __m512 *w)
{
    if (p->packing->by_rows)
        by_rows(p, g, row, visit, n, w);
    else if (p->order != NULL && p->packing->bits == 4)
        ordered(p, g, row, p->order + visit, n, w, 4);
    else if (p->order != NULL)
        ordered(p, g, row, p->order + visit, n, w, 8);
    else if (p->packing->bits == 4)
        lying(p, g, row, visit, n, w, 4);
    else
        lying(p, g, row, visit, n, w, 8);
}

void brig_avx512_chain_packed(const struct brig_packed *p, uint64_t row, const struct brig_act *x,
                              size_t first, unsigned n_tokens, size_t col, unsigned n_cols, float *acc)
{
    __m512 w[BRIG_PANEL_CHUNK_FLOAT];
    for (unsigned done = 0; done < n_cols;) {
        _Alignas(64) float scales[16];
        _Alignas(64) int32_t zeros[16];
        uint64_t end;
        brig_packed_scales(p, brig_packed_group(p, col + done, &end), row, 16, scales, zeros);
        unsigned n = end - col < n_cols ? (unsigned)(end - col) - done : n_cols - done;
        const struct group g = {_mm512_load_ps(scales), _mm512_load_si512(zeros)};
        unpack(p, &g, row, col + done, n, w + done);
        done += n;
    }
    brig_avx512_columns(w, x, first, n_tokens, col, n_cols, acc);
}
