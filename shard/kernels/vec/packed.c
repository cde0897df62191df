/*
 * Packed matrices (proto/model/packed.h): the rows of a column lie side by side in the file, so a vector of
 * weights is a load and a shift. Called by brig_panel_matmul.
 */
#include <string.h>

#include "shard/kernels/vec/vec.h"

/* One group's scales and zeros for the rows of a panel. */
struct group {
    brig_vf scale;
    brig_vi zero;
};

static inline brig_vf weights(const struct group *g, brig_vu v, const unsigned BITS)
{
    brig_vi i = (brig_vi)(v & ((1u << BITS) - 1)) - g->zero;
    return __builtin_convertvector(i, brig_vf) * g->scale;
}

/* The words that hold a column of a GPTQ matrix. */
static inline brig_vu column_words(const struct brig_packed *p, uint64_t row, uint64_t col,
                                   const unsigned BITS)
{
    brig_vu v;
    memcpy(&v, p->words + (col / (32 / BITS) * p->rows + row) * 4, sizeof v);
    return v;
}

/* n columns from `col` on, word by word. */
static inline __attribute__((always_inline)) void lying(const struct brig_packed *p, const struct group *g,
                                                        uint64_t row, uint64_t col, unsigned n, brig_vf *w,
                                                        const unsigned BITS)
{
    while (n > 0) {
        unsigned in_word = 32 / BITS, first = (unsigned)(col % in_word);
        unsigned k = in_word - first < n ? in_word - first : n;
        brig_vu v = column_words(p, row, col, BITS) >> (first * BITS);
        if (k == 32 / BITS) { /* known to the compiler */
            for (unsigned i = 0; i < 32 / BITS; i++)
                w[i] = weights(g, v >> (i * BITS), BITS);
        } else {
            for (unsigned i = 0; i < k; i++, v >>= BITS)
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
                                                          brig_vf *w, const unsigned BITS)
{
    for (unsigned i = 0; i < n; i++)
        w[i] = weights(g, column_words(p, row, order[i], BITS) >> (order[i] % (32 / BITS) * BITS), BITS);
}

/* One or two words hold the rows of a column of an AWQ matrix. */
static void by_rows(const struct brig_packed *p, const struct group *g, uint64_t row, uint64_t col,
                    unsigned n, brig_vf *w)
{
    brig_vu shifts;
    for (unsigned r = 0; r < BRIG_LANES; r++)
        shifts[r] = p->packing->place[(row + r) % 8] * 4u;
    for (unsigned i = 0; i < n; i++) {
        uint32_t word[2] = {0};
        memcpy(word, p->words + ((col + i) * (p->rows / 8) + row / 8) * 4, BRIG_LANES > 8 ? 8 : 4);
        w[i] = weights(g, brig_vu_words(word[0], word[1]) >> shifts, 4);
    }
}

/* Visits of one group. */
static void unpack(const struct brig_packed *p, const struct group *g, uint64_t row, uint64_t visit,
                   unsigned n, brig_vf *w)
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

void BRIG_ISA(chain_packed)(const struct brig_packed *p, uint64_t row, const struct brig_act *x, size_t first,
                            unsigned n_tokens, size_t col, unsigned n_cols, float *acc)
{
    brig_vf w[BRIG_PANEL_CHUNK_FLOAT];
    for (unsigned done = 0; done < n_cols;) {
        float scales[BRIG_LANES];
        int32_t zeros[BRIG_LANES];
        struct group g;
        uint64_t end;
        brig_packed_scales(p, brig_packed_group(p, col + done, &end), row, BRIG_LANES, scales, zeros);
        unsigned n = end - col < n_cols ? (unsigned)(end - col) - done : n_cols - done;
        memcpy(&g.scale, scales, sizeof g.scale);
        memcpy(&g.zero, zeros, sizeof g.zero);
        unpack(p, &g, row, col + done, n, w + done);
        done += n;
    }
    BRIG_ISA(columns)(w, x, first, n_tokens, col, n_cols, acc);
}
