/*
 * The head: final norm and output product of a few rows, and what an answer needs of their logits. The
 * vocabulary is cut into strips of what log-sum-exp takes together, these into pieces of work; whoever has
 * made a piece looks for candidates in it while it is near, and who ends a strip adds up its exponentials.
 */
#include "shard/block/parts.h"

#include <math.h>
#include <string.h>

#define PIECES_PER_THREAD 16u
#define PIECE_MAX_ROWS    256u /* and BRIG_PANEL_ROWS: powers of two, so that a strip is whole pieces */

struct norm_job {
    struct brig_block *b;
    const float *h;
    const uint32_t *rows;
};

static void norm_piece(void *ctx, unsigned thread, uint32_t i)
{
    const struct norm_job *j = ctx;
    struct brig_block *b = j->b;
    uint32_t hidden = b->desc->hidden;
    (void)thread;
    brig_row_norm(b, j->h + (size_t)j->rows[i] * hidden, b->output_norm, b->norm.f + (size_t)i * hidden);
    brig_acts_quantize(b, &b->norm, i, hidden);
}

int brig_head_logits(struct brig_block *b, const float *h, const uint32_t *want_rows, uint32_t n_want,
                     float *logits, struct brig_fail *fail)
{
    struct norm_job j = {b, h, want_rows};
    const struct brig_product output[] = {{&b->output, logits}};
    brig_team_run(b->setup.team, n_want, norm_piece, &j);
    brig_weights_begin(b->setup.weights, BRIG_PART_HEAD);
    return brig_products(b, output, 1, &b->norm, n_want, fail);
}

void brig_head_normed(struct brig_block *b, const float *h, const uint32_t *want_rows, uint32_t n_want,
                      float *out)
{
    struct norm_job j = {b, h, want_rows};
    brig_team_run(b->setup.team, n_want, norm_piece, &j);
    memcpy(out, b->norm.f, (size_t)n_want * b->desc->hidden * sizeof *out);
}

/* ---- candidates ---- */

/* a stands before b in (logit descending, id ascending) order, NaN last. */
static bool before(struct brig_candidate a, struct brig_candidate b)
{
    bool a_nan = a.logit != a.logit, b_nan = b.logit != b.logit;
    if (a_nan != b_nan)
        return b_nan;
    if (!a_nan && a.logit != b.logit)
        return a.logit > b.logit;
    return a.id < b.id;
}

/* A heap whose root is the last in order: let v[at] sink to its place among n. */
static void sink(struct brig_candidate *v, uint32_t n, uint32_t at)
{
    struct brig_candidate c = v[at];
    for (;;) {
        uint32_t child = 2 * at + 1;
        if (child >= n)
            break;
        if (child + 1 < n && before(v[child], v[child + 1]))
            child++;
        if (!before(c, v[child]))
            break;
        v[at] = v[child];
        at = child;
    }
    v[at] = c;
}

void brig_best_add(struct brig_best *best, uint32_t top, struct brig_candidate c)
{
    if (best->n == top) {
        if (before(c, best->v[0])) {
            best->v[0] = c;
            sink(best->v, top, 0);
        }
        return;
    }
    uint32_t at = best->n++;
    for (; at > 0 && before(best->v[(at - 1) / 2], c); at = (at - 1) / 2)
        best->v[at] = best->v[(at - 1) / 2];
    best->v[at] = c;
}

void brig_best_scan(struct brig_best *best, uint32_t top, const float *logits, uint32_t first, uint32_t n)
{
    enum { TOGETHER = 16 };
    uint32_t i = 0;
    for (; best->n < top && i < n; i++)
        brig_best_add(best, top, (struct brig_candidate){first + i, logits[i]});
    while (i < n) {
        /* Most entries end here: all of a vector below the worst one kept. */
        uint32_t end = n - i < TOGETHER ? n : i + TOGETHER, some = 0;
        float worst = best->v[0].logit;
        for (uint32_t k = i; k < end; k++)
            some |= !(logits[k] < worst);
        for (; some && i < end; i++)
            brig_best_add(best, top, (struct brig_candidate){first + i, logits[i]});
        i = end;
    }
}

uint32_t brig_best_sort(struct brig_best *best)
{
    for (uint32_t left = best->n; left-- > 1;) {
        struct brig_candidate worst = best->v[0];
        best->v[0] = best->v[left];
        best->v[left] = worst;
        sink(best->v, left, 0);
    }
    return best->n;
}

/* ---- product, candidates and log-sum-exp together ---- */

/* Some rows of the table at a time: all of them when they are there. Pieces of work lie between multiples of
 * piece_rows in the vocabulary, and within those rows. */
struct top_job {
    struct brig_block *b;
    struct brig_act x;
    uint32_t top, piece_rows;
    struct brig_matrix w; /* rows [first, end) of the table */
    uint32_t first, end;
};

static struct brig_best *best_of(const struct brig_block *b, unsigned thread, uint32_t row)
{
    return &b->best[thread * BRIG_HEAD_ROWS + row];
}

static uint32_t strip_rows(const struct brig_block *b, uint32_t strip)
{
    uint32_t left = b->desc->vocab - strip * BRIG_LSE_BLOCK;
    return left < BRIG_LSE_BLOCK ? left : BRIG_LSE_BLOCK;
}

/* Of one row's strip; a strip without anything above minus infinity adds nothing. */
static float strip_lse(const struct brig_block *b, const float *x, uint32_t n)
{
    float lse = b->setup.kernel->log_sum_exp(x, n);
    bool nothing = lse != lse;
    for (uint32_t i = 0; nothing && i < n; i++)
        nothing = x[i] == -INFINITY;
    return nothing ? -INFINITY : lse;
}

static void end_strip(const struct top_job *j, uint32_t strip)
{
    struct brig_block *b = j->b;
    uint32_t vocab = b->desc->vocab, first = strip * BRIG_LSE_BLOCK, n = strip_rows(b, strip);
    for (uint32_t row = 0; row < j->x.n_rows; row++)
        b->strip_lse[(size_t)row * b->n_strips + strip] =
            strip_lse(b, b->logits + (size_t)row * vocab + first, n);
}

static void top_piece(void *ctx, unsigned thread, uint32_t piece)
{
    const struct top_job *j = ctx;
    struct brig_block *b = j->b;
    uint32_t vocab = b->desc->vocab, begin = (j->first / j->piece_rows + piece) * j->piece_rows;
    uint32_t end = j->end - begin < j->piece_rows ? j->end : begin + j->piece_rows;
    uint32_t strip = begin / BRIG_LSE_BLOCK;
    begin = begin < j->first ? j->first : begin;
    b->setup.kernel->matmul(&j->w, begin - j->first, end - j->first, &j->x, b->logits + j->first, vocab);
    for (uint32_t row = 0; row < j->x.n_rows; row++)
        brig_best_scan(best_of(b, thread, row), j->top, b->logits + (size_t)row * vocab + begin, begin,
                       end - begin);
    if (atomic_fetch_add(&b->strip_done[strip], end - begin) + (end - begin) == strip_rows(b, strip))
        end_strip(j, strip);
}

struct join_job {
    struct brig_block *b;
    uint32_t top;
    struct brig_head_answer *out;
};

/* The threads' candidates of a row joined, and its strips' sums. */
static void join_piece(void *ctx, unsigned thread, uint32_t row)
{
    const struct join_job *j = ctx;
    struct brig_block *b = j->b;
    struct brig_best *all = best_of(b, 0, row);
    (void)thread;
    for (unsigned t = 1; t < b->n_threads; t++) {
        const struct brig_best *other = best_of(b, t, row);
        for (uint32_t i = 0; i < other->n; i++)
            brig_best_add(all, j->top, other->v[i]);
    }
    j->out[row].n = brig_best_sort(all);
    j->out[row].best = all->v;
    j->out[row].lse = b->setup.kernel->log_sum_exp(b->strip_lse + (size_t)row * b->n_strips, b->n_strips);
}

/* Pieces small enough that a thread which is kept busy elsewhere holds up no other. */
static uint32_t rows_of_piece(const struct brig_block *b)
{
    uint32_t rows = PIECE_MAX_ROWS;
    while (rows > BRIG_PANEL_ROWS && b->desc->vocab / rows < PIECES_PER_THREAD * b->n_threads)
        rows /= 2;
    return rows;
}

static void begin_best(struct brig_block *b, uint32_t n_want)
{
    for (unsigned t = 0; t < b->n_threads; t++)
        for (uint32_t row = 0; row < n_want; row++)
            best_of(b, t, row)->n = 0;
    for (uint32_t i = 0; i < b->n_strips; i++)
        atomic_store(&b->strip_done[i], 0);
}

/* The whole table, in as many runs of the team as it comes in pieces. */
static int run_top(struct top_job *j, struct brig_fail *fail)
{
    struct brig_block *b = j->b;
    for (j->first = 0; j->first < b->desc->vocab; j->first = j->end) {
        int r = brig_weights_take(b->setup.weights, &b->output, j->first, true, &j->w, fail);
        if (r < 0)
            return r;
        j->end = j->first + (uint32_t)j->w.rows;
        brig_team_run(b->setup.team, (j->end + j->piece_rows - 1) / j->piece_rows - j->first / j->piece_rows,
                      top_piece, j);
        brig_weights_give(b->setup.weights);
    }
    return 0;
}

int brig_head_best(struct brig_block *b, const float *h, const uint32_t *want_rows, uint32_t n_want,
                   uint32_t top, struct brig_head_answer *out, struct brig_fail *fail)
{
    struct norm_job norm = {b, h, want_rows};
    size_t visited = 0;
    brig_team_run(b->setup.team, n_want, norm_piece, &norm);
    struct top_job j = {.b = b,
                        .x = brig_acts_for(b, &b->output, &b->norm, 0, n_want),
                        .top = top,
                        .piece_rows = rows_of_piece(b)};
    brig_acts_visit(b, &b->output, &j.x, &visited);
    begin_best(b, n_want);
    brig_weights_begin(b->setup.weights, BRIG_PART_HEAD);
    int r = run_top(&j, fail);
    if (r < 0)
        return r;
    struct join_job join = {b, top, out};
    brig_team_run(b->setup.team, n_want, join_piece, &join);
    return 0;
}
