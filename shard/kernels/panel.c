/*
 * The walk of a matrix product over panels of rows, tokens, units and their tree: the same for every vector
 * kernel. Compiled for the plain instruction set: it only copies.
 *
 * Stack: sums take 36 KiB, a chain up to 9 KiB, and the copy of the last rows 8 KiB or the dequantised blocks
 * 16 KiB.
 */
#include "shard/kernels/panel.h"

#include "proto/model/r16.h"
#include "shard/kernels/scalar.h"

/* How far before its use an interleaved matrix is fetched: it is one stream, panel after panel. */
enum { AHEAD_BYTES = 16384 };

enum {
    TOKENS_MAX = 128, /* rows of x that share one unpacking of the weights: enough to pay for it */
    PACKED_ROWS = 128 /* of a packed matrix, at most: lines of 64 bytes hold 128 rows of AWQ */
};

enum { SUMS = 36 * 1024 / sizeof(float) };
/* So many one by one: what a tile spends on unpacking pays off from more on. */
enum { FEW_TOKENS = 3 };

struct job;
/* n_cols columns from col on of all rows and tokens; chunk: where they begin in the first row, when rows lie
 * one by one. */
typedef void (*chain_fn)(const struct job *j, const uint8_t *chunk, size_t col, unsigned n_cols, float *acc);

/* How a matrix is walked over. */
struct way {
    chain_fn chain;
    size_t step; /* columns given to it at a time */
};

/* One panel (or several) times a tile of rows of x. */
struct job {
    const struct brig_panel_ops *ops;
    unsigned panel; /* rows of one */
    const struct brig_matrix *w;
    const struct brig_act *x;
    uint64_t row;               /* number of the panel's first one */
    const uint8_t *rows, *next; /* next: of the panel that follows, or this one again */
    unsigned n_panels;          /* done together, see panels_together */
    unsigned n_rows;            /* of all panels: the last may have fewer than the others */
    unsigned n_tokens;
    size_t first_token;
    bool integer;
    struct way way;
    size_t unit_bytes, step_bytes; /* of a row: what lies between units, and between steps */
};

/* [panel, token, row] */
static uint32_t n_sums(const struct job *j)
{
    return j->n_panels * j->n_tokens * j->panel;
}

/* Bytes of a row's chunk: 512 for 128 f32, 272 for 256 columns of Q8_0; 16 more so that a read of whole 16
 * bytes ends inside. */
enum { COPY_BYTES = BRIG_PANEL_CHUNK_FLOAT * sizeof(float) + 16 };

static void chain(const struct job *j, struct brig_panel p, size_t col, unsigned n_cols, float *acc)
{
    brig_panel_chain_fn fn = j->integer ? j->ops->integer : j->ops->floats;
    if (j->n_tokens > FEW_TOKENS) {
        fn(j->w->type->id, p, j->x, j->first_token, j->n_tokens, col, n_cols, acc);
        return;
    }
    for (unsigned k = 0; k < j->n_tokens; k++)
        fn(j->w->type->id, p, j->x, j->first_token + k, 1, col, n_cols, acc + (size_t)k * j->panel);
}

/* The same over a copy of the chunk, where a read could leave the rows: fewer than a panel has, or a last
 * piece shorter than 16 bytes. Missing rows are zeros. */
static void chain_copied(const struct job *j, const uint8_t *chunk, size_t col, unsigned n_cols, float *acc)
{
    size_t bytes = n_cols / j->w->type->block_elems * j->w->type->block_bytes;
    uint8_t copy[BRIG_PANEL_ROWS][COPY_BYTES];
    memset(copy, 0, sizeof copy);
    for (unsigned r = 0; r < j->n_rows; r++)
        memcpy(copy[r], chunk + r * j->w->row_bytes, bytes);
    chain(j, (struct brig_panel){copy[0], COPY_BYTES, copy[0]}, col, n_cols, acc);
}

/* Rows that the instruction set unpacks itself. */
static void chain_stored(const struct job *j, const uint8_t *chunk, size_t col, unsigned n_cols, float *acc)
{
    const struct brig_type *type = j->w->type;
    bool whole = type->block_elems > 1 || n_cols * type->block_bytes % 16 == 0;
    if (!whole || j->n_rows < j->panel) {
        chain_copied(j, chunk, col, n_cols, acc);
        return;
    }
    const uint8_t *ahead = j->next + (size_t)(chunk - j->rows) * j->panel;
    chain(j, (struct brig_panel){chunk, j->w->row_bytes, ahead}, col, n_cols, acc);
}

/* Chains over rows that lie as floats, BRIG_PANEL_BLOCK_MAX apart. */
static void chain_floats(const struct job *j, float w[][BRIG_PANEL_BLOCK_MAX], size_t col, unsigned n_cols,
                         float *acc)
{
    for (unsigned r = j->n_rows; r < j->panel; r++)
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

/* One panel of a packed matrix; fewer rows than it has are dequantised one by one. */
static void chain_packed(const struct job *j, unsigned number, size_t col, unsigned n_cols, float *acc)
{
    _Alignas(64) float w[BRIG_PANEL_ROWS][BRIG_PANEL_BLOCK_MAX];
    struct job one = *j;
    one.row += (uint64_t)number * j->panel;
    one.n_rows = j->n_rows - number * j->panel;
    if (one.n_rows >= j->panel) {
        j->ops->packed(j->w->packed, one.row, j->x, j->first_token, j->n_tokens, col, n_cols, acc);
        return;
    }
    for (unsigned r = 0; r < one.n_rows; r++)
        brig_packed_dequant(j->w->packed, one.row + r, col, n_cols, w[r]);
    chain_floats(&one, w, col, n_cols, acc);
}

/* The panels of a packed matrix that are done together, over the same columns. */
static void chains_packed(const struct job *j, const uint8_t *chunk, size_t col, unsigned n_cols, float *acc)
{
    (void)chunk;
    for (unsigned k = 0; k < j->n_panels; k++)
        chain_packed(j, k, col, n_cols, acc + (size_t)k * j->n_tokens * j->panel);
}

/* 16 rows of an interleaved matrix. */
static void chain_r16(const struct job *j, const uint8_t *chunk, size_t col, unsigned n_cols, float *acc)
{
    (void)chunk;
    const uint8_t *blocks = brig_r16_block(j->w->type, j->w->data, j->w->row_bytes, j->row, col);
    const uint8_t *end = (const uint8_t *)j->w->data + j->w->rows * j->w->row_bytes;
    const uint8_t *ahead = end - blocks > 2 * AHEAD_BYTES ? blocks + AHEAD_BYTES : blocks;
    brig_panel_r16_fn fn = j->integer ? j->ops->r16_integer : j->ops->r16_floats;
    fn(j->w->type->id, blocks, ahead, j->x, j->first_token, j->n_tokens, col, n_cols, acc);
}

static struct way way_of(const struct job *j)
{
    const struct brig_type *type = j->w->type;
    size_t step = j->integer ? BRIG_PANEL_CHUNK_INT : BRIG_PANEL_CHUNK_FLOAT;
    if (type->native != NULL)
        return (struct way){chain_r16, step};
    if (j->w->packed != NULL)
        return (struct way){chains_packed, step};
    if (!j->integer && !brig_panel_unpacks(type->id))
        return (struct way){chain_dequantised, BRIG_PANEL_BLOCK_MAX};
    return (struct way){chain_stored, step};
}

static void unit(const struct job *j, uint64_t number, float *acc)
{
    const uint8_t *chunk = j->rows + number * j->unit_bytes;
    size_t col = number * j->w->unit_cols;
    size_t end = j->w->cols - col < j->w->unit_cols ? j->w->cols : col + j->w->unit_cols;
    memset(acc, 0, (size_t)n_sums(j) * sizeof *acc);
    for (; col < end; col += j->way.step, chunk += j->step_bytes)
        j->way.chain(j, chunk, col, (unsigned)(end - col < j->way.step ? end - col : j->way.step), acc);
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
    float *right = acc + (n_sums(j) + BRIG_PANEL_ROWS - 1) / BRIG_PANEL_ROWS * BRIG_PANEL_ROWS;
    unit_tree(j, first, left, acc);
    unit_tree(j, first + left, n - left, right);
    j->ops->add(acc, right, n_sums(j));
}

static void store(const struct job *j, const float *sums, float *y, size_t y_stride)
{
    for (unsigned p = 0; p < j->n_panels; p++) {
        unsigned first = p * j->panel;
        unsigned n = j->n_rows - first < j->panel ? j->n_rows - first : j->panel;
        for (unsigned k = 0; k < j->n_tokens; k++, sums += j->panel)
            memcpy(y + (j->first_token + k) * y_stride + first, sums, n * sizeof *y);
    }
}

/* Of a few tokens, which are done one by one, narrow panels are read faster. */
static unsigned panel_rows(const struct job *j)
{
    bool many = j->n_tokens > FEW_TOKENS || j->w->type->native != NULL;
    return j->integer && many ? j->ops->rows_many : j->ops->rows;
}

static uint64_t n_units(const struct brig_matrix *w)
{
    return (w->cols + w->unit_cols - 1) / w->unit_cols;
}

/* Sums that each level of the tree has room for: whole panels of one token at least. */
static unsigned level_sums(const struct brig_matrix *w)
{
    unsigned levels = 1;
    while (levels < 64 && (uint64_t)1 << (levels - 1) < n_units(w))
        levels++;
    return SUMS / levels / BRIG_PANEL_ROWS * BRIG_PANEL_ROWS;
}

/* A column of a packed matrix lies side by side for many rows, and the next one far away: with few rows of x
 * several panels are done together, as many as the sums have room for. Of interleaved rows all 16 are, which
 * a tile always has room for. */
static unsigned panels_together(const struct job *j)
{
    unsigned n = level_sums(j->w) / (j->n_tokens * j->panel), most = PACKED_ROWS / j->panel;
    if (j->w->type->native != NULL)
        return BRIG_R16_ROWS / j->panel;
    if (j->w->packed == NULL || n < 1)
        return 1;
    return n < most ? n : most;
}

/* All panels of the rows times one tile. */
static void tile(struct job *j, uint64_t row_begin, uint64_t row_end, float *y, size_t y_stride)
{
    const struct brig_matrix *w = j->w;
    unsigned rows = j->panel, step = panels_together(j) * rows;
    _Alignas(64) float acc[SUMS];
    for (uint64_t r = row_begin; r < row_end; r += step) {
        j->row = r;
        j->rows = (const uint8_t *)w->data + r * w->row_bytes;
        j->next = w->rows - r >= 2 * rows ? j->rows + rows * w->row_bytes : j->rows;
        j->n_rows = row_end - r < step ? (unsigned)(row_end - r) : step;
        j->n_panels = (j->n_rows + rows - 1) / rows;
        unit_tree(j, 0, n_units(w), acc);
        store(j, acc, y + r, y_stride);
    }
}

void brig_panel_matmul(const struct brig_panel_ops *ops, const struct brig_matrix *w, uint64_t row_begin,
                       uint64_t row_end, const struct brig_act *x, float *y, size_t y_stride)
{
    /* Offsets of a panel's rows are 32 bits wide. */
    if (w->row_bytes > INT32_MAX / BRIG_PANEL_ROWS || (w->type->native != NULL && ops->r16_integer == NULL)) {
        brig_scalar_matmul(w, row_begin, row_end, x, y, y_stride);
        return;
    }
    struct job j = {.ops = ops, .w = w, .x = x, .integer = x->q != NULL && w->type->group != 0};
    j.way = way_of(&j);
    j.step_bytes = j.way.step / w->type->block_elems * w->type->block_bytes;
    j.unit_bytes = w->unit_cols / w->type->block_elems * w->type->block_bytes;
    unsigned most = level_sums(w) / BRIG_PANEL_ROWS;
    unsigned step = most >= TOKENS_MAX ? TOKENS_MAX : most > 8 ? most / 8 * 8 : most;
    for (size_t t = 0; t < x->n_rows; t += step) {
        j.first_token = t;
        j.n_tokens = x->n_rows - t < step ? (unsigned)(x->n_rows - t) : step;
        j.panel = panel_rows(&j);
        tile(&j, row_begin, row_end, y, y_stride);
    }
}
