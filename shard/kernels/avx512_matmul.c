/*
 * The matrix product with AVX-512: panels of 16 rows, up to 32 tokens at a time, units joined by the tree.
 * The chains themselves are in avx512_int.c and avx512_float.c. Called through brig_kernel_avx512.
 *
 * Stack: a tree level holds 2 KiB, a float chunk 8 KiB and its copy of the last rows 8 KiB; at most 16 levels
 * (2^15 units) stay below 64 KiB.
 */
#include "shard/kernels/avx512.h"

#include "proto/base/mem.h"
#include "shard/kernels/scalar.h"

/* Up to 16 rows of w times up to BRIG_AVX512_TOKENS rows of x. */
struct job {
    const struct brig_matrix *w;
    const struct brig_act *x;
    const uint8_t *rows, *next; /* next: of the panel that follows, or this one again */
    unsigned n_rows, n_tokens;
    size_t first_token;
    bool integer;
};

/* Bytes of a row's chunk: 512 for 128 f32, 272 for 256 columns of Q8_0; 16 more so that a read of whole 16
 * bytes ends inside. */
enum { COPY_BYTES = BRIG_AVX512_CHUNK_FLOAT * sizeof(float) + 16 };

static void chain(const struct job *j, struct brig_avx512_panel p, size_t col, unsigned n_cols, __m512 *acc)
{
    if (j->integer)
        brig_avx512_chain_int(j->w->type->id, p, j->x, j->first_token, j->n_tokens, col, n_cols, acc);
    else
        brig_avx512_chain_float(j->w->type->id, p, j->x, j->first_token, j->n_tokens, col, n_cols, acc);
}

/* The same over a copy of the chunk, where a read could leave the rows: fewer than 16 of them, or a last
 * piece shorter than 16 bytes. Missing rows are zeros. */
static void chain_copied(const struct job *j, const uint8_t *chunk, size_t bytes, size_t col, unsigned n_cols,
                         __m512 *acc)
{
    uint8_t copy[BRIG_PANEL_ROWS][COPY_BYTES];
    memset(copy, 0, sizeof copy);
    for (unsigned r = 0; r < j->n_rows; r++)
        memcpy(copy[r], chunk + r * j->w->row_bytes, bytes);
    chain(j, (struct brig_avx512_panel){copy[0], COPY_BYTES, copy[0]}, col, n_cols, acc);
}

static void unit(const struct job *j, uint64_t number, __m512 *acc)
{
    const struct brig_type *type = j->w->type;
    size_t step = j->integer ? BRIG_AVX512_CHUNK_INT : BRIG_AVX512_CHUNK_FLOAT;
    size_t col = number * j->w->unit_cols;
    size_t end = j->w->cols - col < j->w->unit_cols ? j->w->cols : col + j->w->unit_cols;
    for (unsigned t = 0; t < j->n_tokens; t++)
        acc[t] = _mm512_setzero_ps();
    while (col < end) {
        size_t n = end - col < step ? end - col : step;
        size_t bytes = n / type->block_elems * type->block_bytes;
        const uint8_t *chunk = j->rows + col / type->block_elems * type->block_bytes;
        bool whole = type->block_elems > 1 || bytes % 16 == 0;
        if (whole && j->n_rows == BRIG_PANEL_ROWS)
            chain(j,
                  (struct brig_avx512_panel){chunk, j->w->row_bytes,
                                             j->next + (size_t)(chunk - j->rows) * BRIG_PANEL_ROWS},
                  col, (unsigned)n, acc);
        else
            chain_copied(j, chunk, bytes, col, (unsigned)n, acc);
        col += n;
    }
}

/* The tree over units [first, first + n), all tokens and rows at once. */
static void unit_tree(const struct job *j, uint64_t first, uint64_t n, __m512 *acc)
{
    if (n == 1) {
        unit(j, first, acc);
        return;
    }
    __m512 right[BRIG_AVX512_TOKENS];
    uint64_t left = (n + 1) / 2;
    unit_tree(j, first, left, acc);
    unit_tree(j, first + left, n - left, right);
    for (unsigned t = 0; t < j->n_tokens; t++)
        acc[t] = _mm512_add_ps(acc[t], right[t]);
}

static void panel(struct job *j, uint64_t n_units, float *y, size_t y_stride)
{
    __mmask16 rows = (__mmask16)((1u << j->n_rows) - 1);
    for (size_t t = 0; t < j->x->n_rows; t += BRIG_AVX512_TOKENS) {
        __m512 acc[BRIG_AVX512_TOKENS];
        j->first_token = t;
        j->n_tokens =
            j->x->n_rows - t < BRIG_AVX512_TOKENS ? (unsigned)(j->x->n_rows - t) : BRIG_AVX512_TOKENS;
        unit_tree(j, 0, n_units, acc);
        for (unsigned k = 0; k < j->n_tokens; k++)
            _mm512_mask_storeu_ps(y + (t + k) * y_stride, rows, acc[k]);
    }
}

void brig_avx512_matmul(const struct brig_matrix *w, uint64_t row_begin, uint64_t row_end,
                        const struct brig_act *x, float *y, size_t y_stride)
{
    if (w->row_bytes > INT32_MAX / BRIG_PANEL_ROWS) { /* offsets of a panel's rows are 32 bits wide */
        brig_scalar_matmul(w, row_begin, row_end, x, y, y_stride);
        return;
    }
    uint64_t n_units = (w->cols + w->unit_cols - 1) / w->unit_cols;
    struct job j = {.w = w, .x = x, .integer = x->q != NULL && w->type->group != 0};
    for (uint64_t r = row_begin; r < row_end; r += BRIG_PANEL_ROWS) {
        j.rows = (const uint8_t *)w->data + r * w->row_bytes;
        bool more = w->rows - r >= 2 * BRIG_PANEL_ROWS;
        j.next = more ? j.rows + BRIG_PANEL_ROWS * w->row_bytes : j.rows;
        j.n_rows = row_end - r < BRIG_PANEL_ROWS ? (unsigned)(row_end - r) : BRIG_PANEL_ROWS;
        panel(&j, n_units, y + r, y_stride);
    }
}
