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
    uint64_t at = row * cols + first;
    b->setup.kernel->quantize(x->f + at, n, x->q + at, x->d + at / BRIG_ACT_GROUP, x->sum + at / 16);
}

void brig_acts_quantize(const struct brig_block *b, const struct brig_acts *x, uint64_t row, uint32_t cols)
{
    /* A width that is no multiple of the group belongs to types that are computed as floats. */
    if (!b->setup.exact && cols % BRIG_ACT_GROUP == 0)
        quantize_part(b, x, row, cols, 0, cols);
}

struct norm_job {
    struct brig_block *b;
    const struct brig_branch *branch;
    const float *weight;
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
        b->setup.kernel->add(h, y, hidden);
    }
    if (j->weight == NULL)
        return;
    b->setup.kernel->rms_norm(h, j->weight, hidden, b->desc->norm_eps, b->norm.f + (size_t)row * hidden);
    brig_acts_quantize(b, &b->norm, row, hidden);
}

void brig_rows_norm(struct brig_block *b, const struct brig_branch *branch, const float *norm_weight)
{
    struct norm_job j = {b, branch, norm_weight};
    brig_team_run(b->setup.team, b->n_rows, norm_piece, &j);
}

struct gate_job {
    struct brig_block *b;
    const struct brig_gating *gating;
    uint32_t chunks; /* of a row */
};

static void gate_piece(void *ctx, unsigned thread, uint32_t piece)
{
    const struct gate_job *j = ctx;
    const struct brig_gating *g = j->gating;
    struct brig_block *b = j->b;
    uint32_t row = piece / j->chunks, first = piece % j->chunks * CHUNK_COLS;
    uint32_t n = g->cols - first < CHUNK_COLS ? g->cols - first : CHUNK_COLS;
    size_t at = (size_t)row * g->cols + first;
    (void)thread;
    if (g->gate_bias != NULL)
        b->setup.kernel->add(b->gate + at, g->gate_bias + first, n);
    if (g->up_bias != NULL)
        b->setup.kernel->add(b->up + at, g->up_bias + first, n);
    b->setup.kernel->swiglu(b->gate + at, b->up + at, n, b->wide.f + at);
    if (g->quantize)
        quantize_part(b, &b->wide, row, g->cols, first, n);
}

void brig_rows_gate(struct brig_block *b, const struct brig_gating *g)
{
    struct gate_job j = {b, g, (g->cols + CHUNK_COLS - 1) / CHUNK_COLS};
    brig_team_run(b->setup.team, g->n_rows * j.chunks, gate_piece, &j);
}
