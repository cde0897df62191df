/*
 * A mixture of experts in the place of an MLP (docs/arithmetic.md, Experts). Every row chooses its experts;
 * each pair of a row and an expert gets a seat, in the order of experts and then of rows, so that the rows of
 * an expert lie side by side: one product does them all, and one run of the team does all experts.
 */
#include "shard/block/parts.h"

#include <math.h>
#include <string.h>

#include "shard/kernels/math.h"

#define CHUNK_COLS 1024u

struct job {
    struct brig_block *b;
    const struct brig_layer *layer;
    uint32_t chunks; /* of a row */
};

/* ---- the router ---- */

/* The order of choice: the larger logit, then the lower index; NaN comes last. */
static bool ranks_before(const float *x, uint32_t a, uint32_t b)
{
    if (isnan(x[a]) || isnan(x[b]))
        return isnan(x[a]) && isnan(x[b]) ? a < b : isnan(x[b]);
    return x[a] > x[b] || (x[a] == x[b] && a < b);
}

/* The best of those that rank after `after`; n: of all. */
static uint32_t next_best(const float *x, uint32_t n, uint32_t after)
{
    uint32_t best = n;
    for (uint32_t i = 0; i < n; i++)
        if ((after == n || ranks_before(x, after, i)) && (best == n || ranks_before(x, i, best)))
            best = i;
    return best;
}

void brig_experts_choose(const struct brig_desc *d, float *logits, uint32_t *chosen, float *weights)
{
    uint32_t n = d->n_experts, last = n;
    for (uint32_t k = 0; k < d->n_experts_used; k++) {
        uint32_t at = k;
        last = next_best(logits, n, last);
        for (; at > 0 && chosen[at - 1] > last; at--) /* ascending, which is the order of addition */
            chosen[at] = chosen[at - 1];
        chosen[at] = last;
    }
    float top = -INFINITY, sum = 0.0f, of_chosen = 0.0f;
    for (uint32_t i = 0; i < n; i++)
        top = logits[i] > top ? logits[i] : top;
    for (uint32_t i = 0; i < n; i++) {
        logits[i] = brig_expf(logits[i] - top);
        sum = sum + logits[i];
    }
    for (uint32_t k = 0; k < d->n_experts_used; k++) {
        weights[k] = logits[chosen[k]] / sum;
        of_chosen = of_chosen + weights[k];
    }
    if (d->expert_norm == BRIG_EXPERTS_SUM_TO_ONE)
        for (uint32_t k = 0; k < d->n_experts_used; k++)
            weights[k] = weights[k] / of_chosen;
}

void brig_block_record(struct brig_block *b, void *choices)
{
    b->choices = choices;
}

/* What the router chose, for people who ask: its place in the frame is that of the layer in the model. */
static void record(const struct brig_block *b, uint32_t layer)
{
    const struct brig_desc *d = b->desc;
    size_t used = d->n_experts_used;
    for (size_t row = 0; row < b->n_rows; row++) {
        uint8_t *to = b->choices + 2 * (row * d->n_layers + layer) * used;
        const uint32_t *from = b->routing.expert + row * used;
        for (size_t k = 0; k < used; k++, to += 2) {
            to[0] = (uint8_t)from[k];
            to[1] = (uint8_t)(from[k] >> 8);
        }
    }
}

static void choose_piece(void *ctx, unsigned thread, uint32_t row)
{
    struct brig_block *b = ctx;
    struct brig_routing *r = &b->routing;
    size_t at = (size_t)row * b->desc->n_experts_used;
    (void)thread;
    brig_experts_choose(b->desc, r->logits + (size_t)row * b->desc->n_experts, r->expert + at,
                        r->weight + at);
}

/* ---- seats ---- */

/* A counting sort of the pairs by expert; rows are met in order, so they stay in order. */
static void give_seats(struct brig_block *b)
{
    struct brig_routing *r = &b->routing;
    uint32_t used = b->desc->n_experts_used, n_experts = b->desc->n_experts, n = b->n_rows * used;
    memset(r->first, 0, (n_experts + 1) * sizeof *r->first);
    for (uint32_t i = 0; i < n; i++)
        r->first[r->expert[i] + 1]++;
    for (uint32_t e = 0; e < n_experts; e++)
        r->first[e + 1] += r->first[e];
    for (uint32_t i = 0; i < n; i++) {
        uint32_t seat = r->first[r->expert[i]]++; /* the place of the next row of this expert, for now */
        r->seat[i] = seat;
        r->row[seat] = i / used;
    }
    for (uint32_t e = n_experts; e > 0; e--)
        r->first[e] = r->first[e - 1];
    r->first[0] = 0;
}

static void gather_piece(void *ctx, unsigned thread, uint32_t seat)
{
    const struct job *j = ctx;
    struct brig_block *b = j->b;
    const struct brig_acts *from = &b->norm, *to = &b->routing.rows;
    size_t cols = b->desc->hidden, stride = brig_act_stride(b->desc->hidden), row = b->routing.row[seat];
    size_t in = row * stride, out = seat * stride;
    (void)thread;
    if (j->layer->experts_take_floats)
        memcpy(to->f + seat * cols, from->f + row * cols, cols * sizeof *to->f);
    if (!j->layer->experts_take_quants)
        return;
    memcpy(to->q + out, from->q + in, cols);
    memcpy(to->d + out / BRIG_ACT_GROUP, from->d + in / BRIG_ACT_GROUP,
           cols / BRIG_ACT_GROUP * sizeof *to->d);
    memcpy(to->sum + out / 16, from->sum + in / 16, cols / 16 * sizeof *to->sum);
}

/* ---- products ---- */

/* Some of the experts that have rows. */
struct some {
    uint32_t layer;
    const uint32_t *experts;
    uint32_t n;
};

/* Of these experts: the matrix of a role times x, row `first seat` on, or row 0 for all when x is that of one
 * row. y has w.rows columns. Returns the new number of tasks. */
static unsigned add_tasks(struct brig_block *b, const struct some *s, enum brig_role role,
                          const struct brig_acts *x, bool shared, float *y, unsigned n)
{
    struct brig_routing *r = &b->routing;
    for (uint32_t i = 0; i < s->n; i++) {
        uint32_t e = s->experts[i], first = r->first[e], count = r->first[e + 1] - first;
        struct brig_task *t = &r->tasks[n];
        if (!brig_weights_expert(b->setup.weights, role, s->layer, e, &t->w))
            continue;
        t->x = brig_acts_for(b, &t->w, x, shared ? 0 : first, count);
        t->y = y + (size_t)first * t->w.rows;
        t->y_stride = t->w.rows;
        n++;
    }
    return n;
}

/* Rows of gate and up to what goes into down, of all seats of these experts; those of neighbours at once. */
static void gate_some(struct brig_block *b, const struct some *s)
{
    const struct brig_desc *d = b->desc;
    const uint32_t *first = b->routing.first;
    for (uint32_t i = 0, end; i < s->n; i = end) {
        for (end = i + 1; end < s->n && first[s->experts[end]] == first[s->experts[end - 1] + 1]; end++)
            ;
        const struct brig_gating gating = {.first_row = first[s->experts[i]],
                                           .n_rows = first[s->experts[end - 1] + 1] - first[s->experts[i]],
                                           .cols = d->expert_ffn,
                                           .quantize =
                                               !b->setup.exact && d->expert_ffn % BRIG_ACT_GROUP == 0};
        brig_rows_gate(b, &gating);
    }
}

/* r->y of all seats of these experts, which are in memory. x: the normed rows; of one row, where it lies. */
static void run_some(struct brig_block *b, const struct some *s, const struct brig_acts *x, bool one)
{
    struct brig_routing *r = &b->routing;
    unsigned n = add_tasks(b, s, BRIG_ROLE_EXPERT_GATE, x, one, b->gate, 0);
    n = add_tasks(b, s, BRIG_ROLE_EXPERT_UP, x, one, b->up, n);
    brig_tasks_run(b, r->tasks, n);
    gate_some(b, s);
    n = add_tasks(b, s, BRIG_ROLE_EXPERT_DOWN, &b->wide, false, r->y, 0);
    brig_tasks_run(b, r->tasks, n);
}

static uint32_t list_active(struct brig_block *b)
{
    struct brig_routing *r = &b->routing;
    uint32_t n = 0;
    for (uint32_t e = 0; e < b->desc->n_experts; e++)
        if (r->first[e + 1] > r->first[e])
            r->active[n++] = e;
    return n;
}

/* What the next layer will choose is guessed from what this one adds to: its router is asked before this
 * layer's experts have had their say. Only for one row: several want most experts anyway, and the buffers of
 * a second row are free then. */
static void guess_next(struct brig_block *b, uint32_t layer)
{
    const struct brig_desc *d = b->desc;
    struct brig_routing *r = &b->routing;
    uint32_t next = layer + 1 - b->first_layer;
    const struct brig_layer *l = next < b->n_layers ? &b->layers[next] : NULL;
    struct brig_matrix w;
    struct brig_fail fail;
    if (l == NULL || l->router.data == NULL || !brig_weights_experts_guessed(b->setup.weights) ||
        brig_weights_take(b->setup.weights, &l->router, 0, false, &w, &fail) != 1)
        return;
    struct brig_task router = {.w = w,
                               .x = brig_acts_for(b, &w, &r->rows, 0, 1),
                               .y = r->logits + d->n_experts,
                               .y_stride = d->n_experts};
    brig_row_norm(b, b->h, l->ffn_norm, r->rows.f);
    brig_acts_quantize(b, &r->rows, 0, d->hidden);
    brig_tasks_run(b, &router, 1);
    brig_experts_choose(d, router.y, r->expert + d->n_experts_used, r->weight + d->n_experts_used);
    brig_weights_experts_guess(b->setup.weights, layer + 1, r->expert + d->n_experts_used, d->n_experts_used);
}

/* All experts that have rows, as many at a time as there are in memory. */
static int run_active(struct brig_block *b, uint32_t layer, const struct brig_acts *x, bool one,
                      struct brig_fail *fail)
{
    uint32_t n = list_active(b), got = 0;
    for (uint32_t i = 0; i < n; i += got) {
        uint32_t *list = b->routing.active + i;
        int r = brig_weights_experts_take(b->setup.weights, layer, list, n - i, &got, fail);
        if (r < 0)
            return r;
        if (one && i == 0) /* after what this layer itself must have read */
            guess_next(b, layer);
        run_some(b, &(struct some){layer, list, got}, x, one);
        brig_weights_experts_give(b->setup.weights, layer);
    }
    return 0;
}

static void combine_piece(void *ctx, unsigned thread, uint32_t piece)
{
    const struct job *j = ctx;
    struct brig_block *b = j->b;
    const struct brig_routing *r = &b->routing;
    uint32_t row = piece / j->chunks, hidden = b->desc->hidden, used = b->desc->n_experts_used;
    uint32_t first = piece % j->chunks * CHUNK_COLS;
    uint32_t n = hidden - first < CHUNK_COLS ? hidden - first : CHUNK_COLS;
    float *y = b->y + (size_t)row * hidden + first;
    (void)thread;
    memset(y, 0, n * sizeof *y);
    for (size_t i = (size_t)row * used; i < (size_t)(row + 1) * used; i++)
        b->setup.kernel->add_scaled(y, r->weight[i], r->y + (size_t)r->seat[i] * hidden + first, n);
}

int brig_experts(struct brig_block *b, uint32_t layer, struct brig_fail *fail)
{
    const struct brig_desc *d = b->desc;
    const struct brig_layer *l = &b->layers[layer - b->first_layer];
    struct job j = {b, l, (d->hidden + CHUNK_COLS - 1) / CHUNK_COLS};
    const struct brig_product router[] = {{&l->router, b->routing.logits}};
    bool one = b->n_rows == 1; /* all of its experts read it where it lies */
    int r = brig_products(b, router, 1, &b->norm, b->n_rows, fail);
    if (r < 0)
        return r;
    brig_team_run(b->setup.team, b->n_rows, choose_piece, b);
    if (b->choices != NULL)
        record(b, layer);
    give_seats(b);
    if (!one)
        brig_team_run(b->setup.team, b->n_rows * d->n_experts_used, gather_piece, &j);
    r = run_active(b, layer, one ? &b->norm : &b->routing.rows, one, fail);
    if (r < 0)
        return r;
    brig_team_run(b->setup.team, b->n_rows * j.chunks, combine_piece, &j);
    return 0;
}

/* ---- at the start ---- */

int brig_experts_find(struct brig_block *b, uint32_t layer, struct brig_fail *fail)
{
    const struct brig_desc *d = b->desc;
    struct brig_layer *l = &b->layers[layer - b->first_layer];
    const struct {
        enum brig_role role;
        uint64_t rows, cols;
    } wanted[] = {
        {BRIG_ROLE_EXPERT_GATE, d->expert_ffn, d->hidden},
        {BRIG_ROLE_EXPERT_UP, d->expert_ffn, d->hidden},
        {BRIG_ROLE_EXPERT_DOWN, d->hidden, d->expert_ffn},
    };
    for (unsigned i = 0; i < sizeof wanted / sizeof wanted[0]; i++)
        for (uint32_t e = 0; e < brig_desc_count(d, wanted[i].role, layer); e++) {
            struct brig_matrix m;
            if (!brig_weights_expert(b->setup.weights, wanted[i].role, layer, e, &m) ||
                m.rows != wanted[i].rows || m.cols != wanted[i].cols)
                return brig_fail_set(fail, BRIG_EFORMAT,
                                     "tensor %s %u of layer %u is missing or has another shape",
                                     brig_role_name(wanted[i].role), e, layer);
            bool floats = b->setup.exact || m.type->group == 0;
            l->experts_take_floats = l->experts_take_floats || floats;
            l->experts_take_quants = l->experts_take_quants || !floats;
        }
    return 0;
}
