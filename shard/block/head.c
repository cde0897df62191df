/* The head: final norm and output product of a few rows; the best of a row of logits. */
#include "shard/block/parts.h"

#include <string.h>

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

void brig_head_logits(struct brig_block *b, const float *h, const uint32_t *want_rows, uint32_t n_want,
                      float *logits)
{
    struct norm_job j = {b, h, want_rows};
    const struct brig_product output[] = {{&b->output, logits}};
    brig_team_run(b->setup.team, n_want, norm_piece, &j);
    brig_products(b, output, 1, &b->norm, n_want);
}

void brig_head_normed(struct brig_block *b, const float *h, const uint32_t *want_rows, uint32_t n_want,
                      float *out)
{
    struct norm_job j = {b, h, want_rows};
    brig_team_run(b->setup.team, n_want, norm_piece, &j);
    memcpy(out, b->norm.f, (size_t)n_want * b->desc->hidden * sizeof *out);
}

float *brig_head_scratch(struct brig_block *b)
{
    return b->logits;
}

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

/* A heap whose root is the last in order: let heap[at] sink to its place among n. */
static void sink(struct brig_candidate *heap, uint32_t n, uint32_t at)
{
    struct brig_candidate c = heap[at];
    for (;;) {
        uint32_t child = 2 * at + 1;
        if (child >= n)
            break;
        if (child + 1 < n && before(heap[child], heap[child + 1]))
            child++;
        if (!before(c, heap[child]))
            break;
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = c;
}

uint32_t brig_head_top(const float *logits, uint32_t vocab, uint32_t top, struct brig_candidate *out)
{
    uint32_t n = top < vocab ? top : vocab;
    if (n == 0)
        return 0;
    for (uint32_t i = 0; i < n; i++)
        out[i] = (struct brig_candidate){i, logits[i]};
    for (uint32_t i = n / 2; i-- > 0;)
        sink(out, n, i);
    for (uint32_t id = n; id < vocab; id++) {
        float x = logits[id];
        /* Most ids end here: not above the worst one kept (ids ascend, so a tie loses), or NaN. */
        if (x <= out[0].logit || x != x)
            continue;
        out[0] = (struct brig_candidate){id, x};
        sink(out, n, 0);
    }
    for (uint32_t left = n - 1; left > 0; left--) {
        struct brig_candidate worst = out[0];
        out[0] = out[left];
        out[left] = worst;
        sink(out, left, 0);
    }
    return n;
}
