/*
 * Products of weights with activations on the thread team: the rows of all matrices of a run are cut into
 * pieces of whole panels, enough of them that a thread which is kept busy elsewhere holds up no other.
 */
#include "shard/block/parts.h"

#define MAX_PRODUCTS      3u
#define PIECES_PER_THREAD 16u
#define PIECE_MAX_ROWS    256u

struct job {
    const struct brig_kernel *kernel;
    unsigned n;
    uint32_t piece_rows;
    const struct brig_task *tasks;
};

/* The last task whose first piece is not past this one. */
static const struct brig_task *task_of(const struct job *j, uint32_t piece)
{
    unsigned low = 0, high = j->n;
    while (high - low > 1) {
        unsigned middle = low + (high - low) / 2;
        if (j->tasks[middle].first_piece <= piece)
            low = middle;
        else
            high = middle;
    }
    return &j->tasks[low];
}

static void piece_main(void *ctx, unsigned thread, uint32_t piece)
{
    const struct job *j = ctx;
    const struct brig_task *t = task_of(j, piece);
    uint64_t begin = (uint64_t)(piece - t->first_piece) * j->piece_rows;
    uint64_t end = begin + j->piece_rows < t->w.rows ? begin + j->piece_rows : t->w.rows;
    (void)thread;
    j->kernel->matmul(&t->w, begin, end, &t->x, t->y, t->w.rows);
}

static uint32_t rows_of_piece(uint64_t rows, unsigned n_threads)
{
    uint64_t n = rows / ((uint64_t)n_threads * PIECES_PER_THREAD);
    n = (n + BRIG_PANEL_ROWS - 1) / BRIG_PANEL_ROWS * BRIG_PANEL_ROWS;
    if (n < BRIG_PANEL_ROWS)
        return BRIG_PANEL_ROWS;
    return n < PIECE_MAX_ROWS ? (uint32_t)n : PIECE_MAX_ROWS;
}

struct brig_act brig_acts_for(const struct brig_block *b, const struct brig_matrix *w,
                              const struct brig_acts *x, uint32_t first_row, uint32_t n_rows)
{
    struct brig_act a = {.n_rows = n_rows, .cols = (uint32_t)w->cols};
    size_t at = (size_t)first_row * w->cols;
    if (b->setup.exact || w->type->group == 0) {
        a.f = x->f + at;
    } else {
        a.q = x->q + at;
        a.d = x->d + at / BRIG_ACT_GROUP;
        a.sum = x->sum + at / 16;
    }
    return a;
}

void brig_tasks_run(struct brig_block *b, struct brig_task *tasks, unsigned n)
{
    uint64_t rows = 0;
    uint32_t pieces = 0;
    size_t visited = 0;
    for (unsigned i = 0; i < n; i++)
        rows += tasks[i].w.rows;
    struct job j = {b->setup.kernel, n, rows_of_piece(rows, b->n_threads), tasks};
    for (unsigned i = 0; i < n; i++) {
        tasks[i].first_piece = pieces;
        brig_acts_visit(b, &tasks[i].w, &tasks[i].x, &visited);
        pieces += (uint32_t)((tasks[i].w.rows + j.piece_rows - 1) / j.piece_rows);
    }
    brig_team_run(b->setup.team, pieces, piece_main, &j);
}

void brig_products(struct brig_block *b, const struct brig_product *p, unsigned n, const struct brig_acts *x,
                   uint32_t n_rows)
{
    struct brig_task tasks[MAX_PRODUCTS];
    for (unsigned i = 0; i < n; i++)
        tasks[i] = (struct brig_task){.w = *p[i].w, .x = brig_acts_for(b, p[i].w, x, 0, n_rows), .y = p[i].y};
    brig_tasks_run(b, tasks, n);
}
