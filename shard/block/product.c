/*
 * Products of weights with activations on the thread team: the rows of all matrices of a run are cut into
 * pieces of whole panels, enough of them that a thread which is kept busy elsewhere holds up no other.
 */
#include "shard/block/parts.h"

#define MAX_PRODUCTS      3u
#define MAX_LOT           16u /* pieces of weights that are multiplied with in one run of the team */
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
    j->kernel->matmul(&t->w, begin, end, &t->x, t->y, t->y_stride);
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
    size_t at = first_row * brig_act_stride(a.cols);
    if (b->setup.exact || w->type->group == 0) {
        a.f = x->f + (size_t)first_row * a.cols;
    } else {
        a.q = x->q + at;
        a.d = x->d + at / BRIG_ACT_GROUP;
        a.sum = x->sum + at / 16;
    }
    return a;
}

static void run(struct brig_block *b, struct brig_task *tasks, unsigned n)
{
    uint64_t rows = 0;
    uint32_t pieces = 0;
    for (unsigned i = 0; i < n; i++)
        rows += tasks[i].w.rows;
    struct job j = {b->setup.kernel, n, rows_of_piece(rows, b->n_threads), tasks};
    for (unsigned i = 0; i < n; i++) {
        tasks[i].first_piece = pieces;
        pieces += (uint32_t)((tasks[i].w.rows + j.piece_rows - 1) / j.piece_rows);
    }
    brig_team_run(b->setup.team, pieces, piece_main, &j);
}

static void visit_all(struct brig_block *b, struct brig_task *tasks, unsigned n)
{
    size_t visited = 0;
    for (unsigned i = 0; i < n; i++)
        brig_acts_visit(b, &tasks[i].w, &tasks[i].x, &visited);
}

void brig_tasks_run(struct brig_block *b, struct brig_task *tasks, unsigned n)
{
    visit_all(b, tasks, n);
    run(b, tasks, n);
}

/* How far the weights of some tasks have been taken. */
struct taking {
    const struct brig_task *tasks;
    unsigned n, at;
    uint64_t row; /* of tasks[at], the next */
};

/* What there is of the weights that follow, at least one piece: its number, or an error. */
static int take_lot(struct brig_block *b, struct taking *t, struct brig_task *lot, struct brig_fail *fail)
{
    unsigned k = 0;
    while (t->at < t->n && k < MAX_LOT) {
        const struct brig_task *of = &t->tasks[t->at];
        struct brig_task *part = &lot[k];
        int r = brig_weights_take(b->setup.weights, &of->w, t->row, k == 0, &part->w, fail);
        if (r < 0)
            return r;
        if (r == 0) /* work on what has come while the rest is read */
            break;
        part->x = of->x;
        part->y = of->y + t->row;
        part->y_stride = of->w.rows;
        t->row += part->w.rows;
        k++;
        if (t->row == of->w.rows) {
            t->at++;
            t->row = 0;
        }
    }
    return (int)k;
}

int brig_products(struct brig_block *b, const struct brig_product *p, unsigned n, const struct brig_acts *x,
                  uint32_t n_rows, struct brig_fail *fail)
{
    struct brig_task tasks[MAX_PRODUCTS], lot[MAX_LOT];
    struct taking t = {.tasks = tasks, .n = n};
    for (unsigned i = 0; i < n; i++)
        tasks[i] = (struct brig_task){.w = *p[i].w, .x = brig_acts_for(b, p[i].w, x, 0, n_rows), .y = p[i].y};
    visit_all(b, tasks, n);
    while (t.at < n) {
        int r = take_lot(b, &t, lot, fail);
        if (r < 0)
            return r;
        run(b, lot, (unsigned)r);
        brig_weights_give(b->setup.weights);
    }
    return 0;
}
