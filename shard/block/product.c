/*
 * Products of weights with activations on the thread team: the rows of up to three matrices of one input are
 * cut into pieces of whole panels, enough of them that a thread which is kept busy elsewhere holds up no
 * other.
 */
#include "shard/block/parts.h"

#define MAX_PRODUCTS      3u
#define PIECES_PER_THREAD 16u
#define PIECE_MAX_ROWS    256u

struct job {
    const struct brig_kernel *kernel;
    unsigned n;
    uint32_t piece_rows;
    const struct brig_product *products;
    struct brig_act acts[MAX_PRODUCTS];
    uint32_t first_piece[MAX_PRODUCTS + 1];
};

static void piece_main(void *ctx, unsigned thread, uint32_t piece)
{
    const struct job *j = ctx;
    unsigned i = 0;
    (void)thread;
    while (piece >= j->first_piece[i + 1])
        i++;
    const struct brig_matrix *w = j->products[i].w;
    uint64_t begin = (uint64_t)(piece - j->first_piece[i]) * j->piece_rows;
    uint64_t end = begin + j->piece_rows < w->rows ? begin + j->piece_rows : w->rows;
    j->kernel->matmul(w, begin, end, &j->acts[i], j->products[i].y, w->rows);
}

static uint32_t rows_of_piece(uint64_t rows, unsigned n_threads)
{
    uint64_t n = rows / ((uint64_t)n_threads * PIECES_PER_THREAD);
    n = (n + BRIG_PANEL_ROWS - 1) / BRIG_PANEL_ROWS * BRIG_PANEL_ROWS;
    if (n < BRIG_PANEL_ROWS)
        return BRIG_PANEL_ROWS;
    return n < PIECE_MAX_ROWS ? (uint32_t)n : PIECE_MAX_ROWS;
}

static struct brig_act act_for(const struct brig_block *b, const struct brig_matrix *w,
                               const struct brig_acts *x, uint32_t n_rows)
{
    struct brig_act a = {.n_rows = n_rows, .cols = (uint32_t)w->cols};
    if (b->setup.exact || w->type->group == 0) {
        a.f = x->f;
    } else {
        a.q = x->q;
        a.d = x->d;
        a.sum = x->sum;
    }
    return a;
}

void brig_products(struct brig_block *b, const struct brig_product *p, unsigned n, const struct brig_acts *x,
                   uint32_t n_rows)
{
    struct job j = {.kernel = b->setup.kernel, .n = n, .products = p};
    uint64_t rows = 0;
    size_t used = 0;
    for (unsigned i = 0; i < n; i++)
        rows += p[i].w->rows;
    j.piece_rows = rows_of_piece(rows, b->n_threads);
    for (unsigned i = 0; i < n; i++) {
        j.acts[i] = act_for(b, p[i].w, x, n_rows);
        brig_acts_visit(b, p[i].w, &j.acts[i], &used);
        j.first_piece[i + 1] =
            j.first_piece[i] + (uint32_t)((p[i].w->rows + j.piece_rows - 1) / j.piece_rows);
    }
    brig_team_run(b->setup.team, j.first_piece[n], piece_main, &j);
}
