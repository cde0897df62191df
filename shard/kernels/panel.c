/*
 * The walk of a matrix product over panels of rows, tokens, units and their tree: the same for every vector
 * kernel. Compiled for the plain instruction set: it only copies.
 *
 * Stack: sums take 36 KiB, a chain up to 9 KiB, and the copy of the last rows 8 KiB or the dequantised blocks
 * 16 KiB.
 */
#include "shard/kernels/panel.h"

#include "shard/kernels/scalar.h"

enum {
    TOKENS_MAX = 128, /* rows of x that share one unpacking of the weights: enough to pay for it */
    SUMS = 36 * 1024 / sizeof(float)
};

/* One panel times a tile of rows of x. */
struct job {
    const struct brig_panel_ops *ops;
    const struct brig_matrix *w;
    const struct brig_act *x;
    uint64_t row;               /* number of the panel's first one */
    const uint8_t *rows, *next; /* next: of the panel that follows, or this one again */
    unsigned n_rows, n_tokens;
    size_t first_token;
    bool integer;
};

/* Bytes of a row's chunk: 512 for 128 f32, 272 for 256 columns of Q8_0; 16 more so that a read of whole 16
 * bytes ends inside. */
enum { COPY_BYTES = BRIG_PANEL_CHUNK_FLOAT * sizeof(float) + 16 };

static void chain(const struct job *j, struct brig_panel p, size_t col, unsigned n_cols, float *acc)
{
    brig_panel_chain_fn fn = j->integer ? j->ops->integer : j->ops->floats;
    fn(j->w->type->id, p, j->x, j->first_token, j->n_tokens, col, n_cols, acc);
}

/* The same over a copy of the chunk, where a read could leave the rows: fewer than a panel has, or a last
 * piece shorter than 16 bytes. Missing rows are zeros. */
static void chain_copied(const struct job *j, const uint8_t *chunk, size_t bytes, size_t col, unsigned n_cols,
                         float *acc)
{
    uint8_t copy[BRIG_PANEL_ROWS][COPY_BYTES];
    memset(copy, 0, sizeof copy);
    for (unsigned r = 0; r < j->n_rows; r++)
        memcpy(copy[r], chunk + r * j->w->row_bytes, bytes);
    chain(j, (struct brig_panel){copy[0], COPY_BYTES, copy[0]}, col, n_cols, acc);
}

/* Chains over rows that lie as floats, BRIG_PANEL_BLOCK_MAX apart. */
static void chain_floats(const struct job *j, float w[][BRIG_PANEL_BLOCK_MAX], size_t col, unsigned n_cols,
                         float *acc)
{
    for (unsigned r = j->n_rows; r < j->ops->rows; r++)
        memset(w[r], 0, BRIG_PANEL_BLOCK_MAX * sizeof w[r][0]);
    for (unsigned c = 0; c < n_cols; c += BRIG_PANEL_CHUNK_FLOAT) {
        unsigned n = n_cols - c < BRIG_PANEL_CHUNK_FLOAT ? n_cols - c : BRIG_PANEL_CHUNK_FLOAT;
        const uint8_t *at = (const uint8_t *)&w[0][c];
        j->ops->floats(BRIG_TYPE_F32, (struct brig_panel){at, sizeof w[0], at}, j->x, j->first_token,
                       j->n_tokens, col + c, n, acc);
    }
}

/* Any type: whole blocks of all rows by the type's own dequant, then chains over the floats. Missing rows are
 * zeros. */
static void chain_dequantised(const struct job *j, const uint8_t *chunk, size_t col, unsigned n_cols,
                              float *acc)
{
    _Alignas(64) float w[BRIG_PANEL_ROWS][BRIG_PANEL_BLOCK_MAX];
    for (unsigned r = 0; r < j->n_rows; r++)
        j->w->type->dequant(chunk + r * j->w->row_bytes, w[r], n_cols);
    chain_floats(j, w, col, n_cols, acc);
}

/* A packed matrix; fewer rows than a panel has are dequantised one by one. */
static void chain_packed(const struct job *j, size_t col, unsigned n_cols, float *acc)
{
    _Alignas(64) float w[BRIG_PANEL_ROWS][BRIG_PANEL_BLOCK_MAX];
    if (j->n_rows == j->ops->rows) {
        j->ops->packed(j->w->packed, j->row, j->x, j->first_token, j->n_tokens, col, n_cols, acc);
        return;
    }
    for (unsigned r = 0; r < j->n_rows; r++)
        brig_packed_dequant(j->w->packed, j->row + r, col, n_cols, w[r]);
    chain_floats(j, w, col, n_cols, acc);
}

static void unit(const struct job *j, uint64_t number, float *acc)
{
    const struct brig_type *type = j->w->type;
    bool packed = j->w->packed != NULL;
    bool dequantise = !packed && !j->integer && !brig_panel_unpacks(type->id);
    size_t step = dequantise   ? BRIG_PANEL_BLOCK_MAX
                  : j->integer ? BRIG_PANEL_CHUNK_INT
                               : BRIG_PANEL_CHUNK_FLOAT;
    size_t col = number * j->w->unit_cols;
    size_t end = j->w->cols - col < j->w->unit_cols ? j->w->cols : col + j->w->unit_cols;
    memset(acc, 0, (size_t)j->n_tokens * j->ops->rows * sizeof *acc);
    while (col < end) {
        size_t n = end - col < step ? end - col : step;
        size_t bytes = n / type->block_elems * type->block_bytes;
        const uint8_t *chunk = j->rows + col / type->block_elems * type->block_bytes;
        bool whole = type->block_elems > 1 || bytes % 16 == 0;
        if (packed) {
            chain_packed(j, col, (unsigned)n, acc);
        } else if (dequantise) {
            chain_dequantised(j, chunk, col, (unsigned)n, acc);
        } else if (whole && j->n_rows == j->ops->rows) {
            const uint8_t *ahead = j->next + (size_t)(chunk - j->rows) * j->ops->rows;
            chain(j, (struct brig_panel){chunk, j->w->row_bytes, ahead}, col, (unsigned)n, acc);
        } else {
            chain_copied(j, chunk, bytes, col, (unsigned)n, acc);
        }
        col += n;
    }
}

/* The tree over units [first, first + n), all tokens and rows at once. Sums of the right parts lie behind
 * acc, one after another. */
static void unit_tree(const struct job *j, uint64_t first, uint64_t n, float *acc)
{
    if (n == 1) {
        unit(j, first, acc);
        return;
    }
    uint64_t left = (n + 1) / 2;
    uint32_t count = j->n_tokens * j->ops->rows;
    float *right = acc + (size_t)j->n_tokens * BRIG_PANEL_ROWS; /* 64-byte aligned, for fewer rows too */
    unit_tree(j, first, left, acc);
    unit_tree(j, first + left, n - left, right);
    j->ops->add(acc, right, count);
}

/* Rows of x that one walk of the tree takes: all its sums must find room. */
static unsigned tile_tokens(uint64_t n_units)
{
    unsigned levels = 1;
    while (levels < 64 && (uint64_t)1 << (levels - 1) < n_units)
        levels++;
    unsigned n = SUMS / BRIG_PANEL_ROWS / levels / 8 * 8;
    return n < TOKENS_MAX ? n : TOKENS_MAX;
}

/* All panels of the rows times one tile. */
static void tile(struct job *j, uint64_t row_begin, uint64_t row_end, float *y, size_t y_stride)
{
    const struct brig_matrix *w = j->w;
    uint64_t n_units = (w->cols + w->unit_cols - 1) / w->unit_cols;
    _Alignas(64) float acc[SUMS];
    for (uint64_t r = row_begin; r < row_end; r += j->ops->rows) {
        j->row = r;
        j->rows = (const uint8_t *)w->data + r * w->row_bytes;
        j->next = w->rows - r >= 2 * j->ops->rows ? j->rows + j->ops->rows * w->row_bytes : j->rows;
        j->n_rows = row_end - r < j->ops->rows ? (unsigned)(row_end - r) : j->ops->rows;
        unit_tree(j, 0, n_units, acc);
        for (unsigned k = 0; k < j->n_tokens; k++)
            memcpy(y + k * y_stride + r, acc + (size_t)k * j->ops->rows, j->n_rows * sizeof *y);
    }
}

void brig_panel_matmul(const struct brig_panel_ops *ops, const struct brig_matrix *w, uint64_t row_begin,
                       uint64_t row_end, const struct brig_act *x, float *y, size_t y_stride)
{
    if (w->row_bytes > INT32_MAX / BRIG_PANEL_ROWS) { /* offsets of a panel's rows are 32 bits wide */
        brig_scalar_matmul(w, row_begin, row_end, x, y, y_stride);
        return;
    }
    struct job j = {.ops = ops, .w = w, .x = x, .integer = x->q != NULL && w->type->group != 0};
    unsigned step = tile_tokens((w->cols + w->unit_cols - 1) / w->unit_cols);
    for (size_t t = 0; t < x->n_rows; t += step) {
        j.first_token = t;
        j.n_tokens = x->n_rows - t < step ? (unsigned)(x->n_rows - t) : step;
        tile(&j, row_begin, row_end, y + t * y_stride, y_stride);
    }
}
