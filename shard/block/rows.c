/*
 * Work row by row between the products: residual additions, norms, the gate of the MLP, quantising.
 */
#include "shard/block/parts.h"

#define CHUNK_COLS                                                                                           \
    1024u /* a multiple of the activation group: wide rows are cut so that threads share one                 \
           */

/* Columns [first, first + n) of a row, both multiples of the group. */
static void quantize_part(const struct brig_block *b, const struct brig_acts *x, uint64_t row, uint32_t cols,
                          uint32_t first, uint32_t n)
{
    uint64_t at = row * brig_act_stride(cols) + first;
    b->setup.kernel->quantize(x->f + row * cols + first, n, x->q + at, x->d + at / BRIG_ACT_GROUP,
                              x->sum + at / 16);
}

void brig_acts_quantize(const struct brig_block *b, const struct brig_acts *x, uint64_t row, uint32_t cols)
{
    /* A width that is no multiple of the group belongs to types that are computed as floats. */
    if (!b->setup.exact && cols % BRIG_ACT_GROUP == 0)
        quantize_part(b, x, row, cols, 0, cols);
}

void brig_row_norm(const struct brig_block *b, const float *x, struct brig_norm_of norm, float *out)
{
    const struct brig_desc *d = b->desc;
    if (d->norm == BRIG_NORM_LAYER)
        b->setup.kernel->layer_norm(x, norm.weight, norm.bias, d->hidden, d->norm_eps, out);
    else /* the 1 of 1 + w is in the weights (weights.h) */
        b->setup.kernel->rms_norm(x, norm.weight, d->hidden, d->norm_eps, out);
}

struct norm_job {
    struct brig_block *b;
    const struct brig_branch *branch;
    struct brig_norm_of norm;
};

static void norm_piece(void *ctx, unsigned thread, uint32_t row)
{
    const struct norm_job *j = ctx;
    struct brig_block *b = j->b;
    uint32_t hidden = b->desc->hidden;
    float *h = b->h + (size_t)row * hidden;
    (void)thread;
    if (j->branch != NULL) {
        float *y = b->y + (size_t)row * hidden;
        if (j->branch->bias != NULL)
            b->setup.kernel->add(y, j->branch->bias, hidden);
        if (j->branch->norm.weight != NULL)
            brig_row_norm(b, y, j->branch->norm, y);
        b->setup.kernel->add(h, y, hidden);
    }
    if (j->norm.weight == NULL)
        return;
    brig_row_norm(b, h, j->norm, b->norm.f + (size_t)row * hidden);
    brig_acts_quantize(b, &b->norm, row, hidden);
}

void brig_rows_norm(struct brig_block *b, const struct brig_branch *branch, struct brig_norm_of norm)
{
    struct norm_job j = {b, branch, norm};
    brig_team_run(b->setup.team, b->n_rows, norm_piece, &j);
}

struct gate_job {
    struct brig_block *b;
    const struct brig_gating *gating;
    uint32_t chunks; /* of a row */
};

/* n columns of gate and up from `at` on. */
static void activate(const struct brig_block *b, size_t at, uint32_t n)
{
    const struct brig_kernel *k = b->setup.kernel;
    switch (b->desc->mlp) {
    case BRIG_MLP_SWIGLU:
        k->swiglu(b->gate + at, b->up + at, n, b->wide.f + at);
        break;
    case BRIG_MLP_GEGLU:
        k->geglu(b->gate + at, b->up + at, n, b->wide.f + at);
        break;
    case BRIG_MLP_GELU:
        k->geglu(b->up + at, NULL, n, b->wide.f + at);
        break;
    }
}

static void gate_piece(void *ctx, unsigned thread, uint32_t piece)
{
    const struct gate_job *j = ctx;
    const struct brig_gating *g = j->gating;
    struct brig_block *b = j->b;
    uint32_t row = g->first_row + piece / j->chunks, first = piece % j->chunks * CHUNK_COLS;
    uint32_t n = g->cols - first < CHUNK_COLS ? g->cols - first : CHUNK_COLS;
    size_t at = (size_t)row * g->cols + first;
    (void)thread;
    if (g->gate_bias != NULL)
        b->setup.kernel->add(b->gate + at, g->gate_bias + first, n);
    if (g->up_bias != NULL)
        b->setup.kernel->add(b->up + at, g->up_bias + first, n);
    activate(b, at, n);
    if (g->quantize)
        quantize_part(b, &b->wide, row, g->cols, first, n);
}

void brig_rows_gate(struct brig_block *b, const struct brig_gating *g)
{
    struct gate_job j = {b, g, (g->cols + CHUNK_COLS - 1) / CHUNK_COLS};
    brig_team_run(b->setup.team, g->n_rows * j.chunks, gate_piece, &j);
}
