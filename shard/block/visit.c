/*
 * Activations in the order that a matrix visits its columns in (act-order, proto/model/packed.h): gathered
 * once a product, so that the kernels read them one after another.
 */
#include "shard/block/parts.h"

struct job {
    const uint32_t *order; /* [cols] */
    uint32_t cols;
    const float *from; /* [rows, cols] */
    float *to;
};

static void row_main(void *ctx, unsigned thread, uint32_t row)
{
    const struct job *j = ctx;
    const float *from = j->from + (size_t)row * j->cols;
    float *to = j->to + (size_t)row * j->cols;
    (void)thread;
    for (uint32_t i = 0; i < j->cols; i++)
        to[i] = from[j->order[i]];
}

void brig_acts_visit(struct brig_block *b, const struct brig_matrix *w, struct brig_act *x, size_t *used)
{
    if (w->packed == NULL || w->packed->order == NULL)
        return;
    struct job j = {w->packed->order, x->cols, x->f, b->visits + *used};
    brig_team_run(b->setup.team, x->n_rows, row_main, &j);
    *used += (size_t)x->n_rows * x->cols;
    x->f = j.to;
}
