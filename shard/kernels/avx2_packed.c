/*
 * Packed matrices (proto/model/packed.h) with AVX2: 8 rows of a column lie side by side in the file, so a
 * vector of weights is one load and shifts. Called by brig_panel_matmul.
 */
#include "shard/kernels/avx2.h"

/* What stays the same over the columns of one panel. */
struct lines {
    const uint8_t *words; /* of the panel's first row, column 0 */
    size_t stride;        /* between lines */
    unsigned bits, in_word;
    __m256i shifts; /* AWQ: of the 8 rows in their word */
};

static struct lines lines_of(const struct brig_packed *p, uint64_t row)
{
    unsigned bits = p->packing->bits, in_word = 32 / bits;
    uint32_t shifts[8];
    for (unsigned r = 0; r < 8; r++)
        shifts[r] = p->packing->place[r % in_word] * bits;
    return (struct lines){
        .words = p->words + (p->packing->by_rows ? row / in_word * 4 : row * 4),
        .stride = p->packing->by_rows ? p->rows / in_word * 4 : p->rows * 4,
        .bits = bits,
        .in_word = in_word,
        .shifts = _mm256_loadu_si256((const __m256i *)shifts),
    };
}

/* The words of a column, moved so that its integers are the lowest bits. */
static inline __m256i column_words(const struct lines *l, uint64_t col)
{
    const uint8_t *line = l->words + col / l->in_word * l->stride;
    return _mm256_srl_epi32(_mm256_loadu_si256((const __m256i *)line),
                            _mm_cvtsi32_si128((int)(col % l->in_word * l->bits)));
}

/* A word that holds the 8 rows. */
static inline __m256i column_rows(const struct lines *l, uint64_t col)
{
    int32_t w;
    memcpy(&w, l->words + col * l->stride, sizeof w);
    return _mm256_srlv_epi32(_mm256_set1_epi32(w), l->shifts);
}

static void unpack(const struct brig_packed *p, uint64_t row, uint64_t visit, unsigned n, __m256 *w)
{
    const struct lines l = lines_of(p, row);
    const __m256i mask = _mm256_set1_epi32((1 << l.bits) - 1);
    uint64_t last = visit + n, end;
    while (visit < last) {
        _Alignas(32) float scales[8];
        _Alignas(32) int32_t zeros[8];
        brig_packed_scales(p, brig_packed_group(p, visit, &end), row, 8, scales, zeros);
        const __m256 scale = _mm256_load_ps(scales);
        const __m256i zero = _mm256_load_si256((const __m256i *)zeros);
        for (; visit < end && visit < last; visit++) {
            uint64_t col = p->order != NULL ? p->order[visit] : visit;
            __m256i v = p->packing->by_rows ? column_rows(&l, col) : column_words(&l, col);
            v = _mm256_sub_epi32(_mm256_and_si256(v, mask), zero);
            *w++ = _mm256_mul_ps(_mm256_cvtepi32_ps(v), scale);
        }
    }
}

void brig_avx2_chain_packed(const struct brig_packed *p, uint64_t row, const struct brig_act *x, size_t first,
                            unsigned n_tokens, size_t col, unsigned n_cols, float *acc)
{
    __m256 w[BRIG_PANEL_CHUNK_FLOAT];
    unpack(p, row, col, n_cols, w);
    brig_avx2_columns(w, x, first, n_tokens, col, n_cols, acc);
}
