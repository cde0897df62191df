/*
 * Packed matrices (proto/model/packed.h) with AVX-512: 16 rows of a column lie side by side in the file, so a
 * vector of weights is one load and shifts. Called by brig_panel_matmul.
 */
#include "shard/kernels/avx512.h"

/* What stays the same over the columns of one panel. */
struct lines {
    const uint8_t *words; /* of the panel's first row, column 0 */
    size_t stride;        /* between lines */
    unsigned bits, in_word;
    __m512i shifts; /* AWQ: of the 16 rows in their words */
};

static struct lines lines_of(const struct brig_packed *p, uint64_t row)
{
    unsigned bits = p->packing->bits, in_word = 32 / bits;
    uint32_t shifts[16];
    for (unsigned r = 0; r < 16; r++)
        shifts[r] = p->packing->place[r % in_word] * bits;
    return (struct lines){
        .words = p->words + (p->packing->by_rows ? row / in_word * 4 : row * 4),
        .stride = p->packing->by_rows ? p->rows / in_word * 4 : p->rows * 4,
        .bits = bits,
        .in_word = in_word,
        .shifts = _mm512_loadu_si512(shifts),
    };
}

/* The words of a column, moved so that its integers are the lowest bits. */
static inline __m512i column_words(const struct lines *l, uint64_t col)
{
    const uint8_t *line = l->words + col / l->in_word * l->stride;
    return _mm512_srl_epi32(_mm512_loadu_si512(line), _mm_cvtsi32_si128((int)(col % l->in_word * l->bits)));
}

/* Words that hold rows: two for 16 of them. */
static inline __m512i column_rows(const struct lines *l, uint64_t col)
{
    uint32_t w[2];
    memcpy(w, l->words + col * l->stride, sizeof w);
    __m512i v = _mm512_inserti64x4(_mm512_set1_epi32((int)w[0]), _mm256_set1_epi32((int)w[1]), 1);
    return _mm512_srlv_epi32(v, l->shifts);
}

static void unpack(const struct brig_packed *p, uint64_t row, uint64_t visit, unsigned n, __m512 *w)
{
    const struct lines l = lines_of(p, row);
    const __m512i mask = _mm512_set1_epi32((1 << l.bits) - 1);
    uint64_t last = visit + n, end;
    while (visit < last) {
        _Alignas(64) float scales[16];
        _Alignas(64) int32_t zeros[16];
        brig_packed_scales(p, brig_packed_group(p, visit, &end), row, 16, scales, zeros);
        const __m512 scale = _mm512_load_ps(scales);
        const __m512i zero = _mm512_load_si512(zeros);
        for (; visit < end && visit < last; visit++) {
            uint64_t col = p->order != NULL ? p->order[visit] : visit;
            __m512i v = p->packing->by_rows ? column_rows(&l, col) : column_words(&l, col);
            v = _mm512_sub_epi32(_mm512_and_si512(v, mask), zero);
            *w++ = _mm512_mul_ps(_mm512_cvtepi32_ps(v), scale);
        }
    }
}

void brig_avx512_chain_packed(const struct brig_packed *p, uint64_t row, const struct brig_act *x,
                              size_t first, unsigned n_tokens, size_t col, unsigned n_cols, float *acc)
{
    __m512 w[BRIG_PANEL_CHUNK_FLOAT];
    unpack(p, row, col, n_cols, w);
    brig_avx512_columns(w, x, first, n_tokens, col, n_cols, acc);
}
