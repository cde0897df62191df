/*
 * Making a plan: the smallest budget that works, then what the rest of a larger one is spent on.
 *
 * Each thing that takes memory for convenience (rows in a frame, context, ring) may take a fixed share of
 * what the budget has above the smallest one, up to what it can use; weights get the rest, and are taken in
 * a fixed order, each that still fits. Both rules together make the held bytes, and so the speed, grow with
 * the budget and never fall. (Two budgets that part at an item: the larger one has taken it, and what it
 * holds up to there alone is more than the smaller one's whole room.)
 */
#include "launcher/plan_parts.h"

#include <string.h>

#include "launcher/launcher.h"
#include "launcher/ram.h"
#include "proto/base/mem.h"

/* Shares of what a budget has above the smallest. */
#define SHARE_ROWS 32
#define SHARE_CTX  8
#define SHARE_RING 16

#define CTX_STEP 64u
#define SLACK    ((uint64_t)64 << 10) /* for the rounding of everything */

/* Processes that are started before their turn: how many are counted with all that a process takes, and how
 * many of these with their weights, wherever in the line they are. */
struct early {
    unsigned most, sure;
};

struct maker {
    const struct brig_plan_wish *wish;
    const struct brig_plan_line *line;
    struct brig_cells *cells; /* [n_cells], room for the finest cut */
    bool *lives;              /* [n_cells] does the process with this cell live from token to token? */
    struct brig_plan *p;
    uint32_t rows_least, rows_most, ctx_least, ctx_most;
    struct early early;
};

const char *brig_plan_kind_name(enum brig_plan_kind kind)
{
    static const char *const names[BRIG_PLAN_KINDS] = {"weights", "ring",      "experts", "kv",   "scratch",
                                                       "frames",  "processes", "driver",  "draft"};
    return names[kind];
}

const char *brig_plan_kind_help(enum brig_plan_kind kind)
{
    static const char *const helps[BRIG_PLAN_KINDS] = {
        "held from pass to pass",
        "buffers that streamed weights pass through",
        "cache of experts",
        "keys and values of the whole context",
        "activations, scores and logits",
        "messages and shared memory between processes",
        "programs, stacks, page tables and other kernel memory",
        "tokenizer, the model's metadata, the program that people type",
        "the draft model: weights, cache and process",
    };
    return helps[kind];
}

static unsigned min_of(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

static unsigned keep(const struct maker *m, unsigned n_shards)
{
    return m->wish->keep != 0 ? min_of(m->wish->keep, n_shards) : (n_shards + 1) / 2;
}

static bool stage_lives(const struct maker *m, unsigned stage, unsigned n_shards)
{
    return m->wish->mode->lives(stage, n_shards, keep(m, n_shards));
}

static unsigned living(const struct maker *m, unsigned n_shards)
{
    unsigned n = 0;
    for (unsigned i = 0; i < n_shards; i++)
        n += stage_lives(m, i, n_shards);
    return n;
}

/* At once: those that live, the one whose turn it is and those that are started early. */
static unsigned alive(const struct maker *m, unsigned n_shards)
{
    unsigned n = living(m, n_shards);
    return n + min_of(n_shards - n, 1 + m->early.most);
}

static struct brig_plan_shape shape_of(const struct maker *m, unsigned n_shards, uint32_t rows, uint32_t ctx)
{
    const struct brig_plan_wish *w = m->wish;
    return (struct brig_plan_shape){.desc = &w->model->desc,
                                    .n_shards = n_shards,
                                    .n_alive = alive(m, n_shards),
                                    .ctx = ctx,
                                    .slots = w->slots,
                                    .rows = rows,
                                    .threads = w->speed.threads,
                                    .exact = w->exact,
                                    .kv = w->kv,
                                    .whole_rows = w->whole_rows,
                                    .draft_pages = m->line->draft_pages};
}

/* All but weights, ring and experts, without and with the page tables of those three. */
static uint64_t fixed(const struct maker *m, unsigned n_shards, uint32_t rows, uint32_t ctx)
{
    struct brig_plan_shape s = shape_of(m, n_shards, rows, ctx);
    uint64_t bytes[BRIG_PLAN_KINDS], sum = SLACK;
    brig_plan_sizes(&s, m->wish, bytes);
    for (unsigned i = 0; i < BRIG_PLAN_KINDS; i++)
        sum += bytes[i];
    return sum;
}

static uint64_t with_tables(uint64_t bytes)
{
    return bytes + brig_plan_page_tables(bytes);
}

static uint64_t slice_pages(const struct maker *m, unsigned stage)
{
    uint64_t sum = 0;
    for (uint32_t c = m->cells[stage].first; c < m->cells[stage].last; c++)
        sum += m->line->cell_pages[c];
    return sum;
}

#define MOST_AHEAD 15u

/* The most weights that live at once when whole slices are mapped or locked: of the processes that live, and
 * of as many neighbours as are sure to be started for their turns at once. Also says which cells live. */
static int whole_weights(const struct maker *m, unsigned n_shards, uint64_t *ret, struct brig_fail *fail)
{
    uint64_t window[MOST_AHEAD + 1] = {0}, for_turns = 0, most = 0, stay = 0;
    unsigned at = 0, n = 1 + m->early.sure;
    int r = brig_slice_cut_sizes(m->line->cell_bytes, m->line->n_cells, n_shards, m->cells, fail);
    for (unsigned i = 0; r == 0 && i < n_shards; i++) {
        uint64_t pages = slice_pages(m, i);
        bool lives = stage_lives(m, i, n_shards);
        for (uint32_t c = m->cells[i].first; c < m->cells[i].last; c++)
            m->lives[c] = lives;
        if (lives) {
            stay += pages;
            continue;
        }
        for_turns += pages - window[at];
        window[at] = pages;
        at = (at + 1) % n;
        most = for_turns > most ? for_turns : most;
    }
    *ret = r == 0 ? stay + most : 0;
    return r;
}

/* A cache that holds what one token takes of one layer, and the same once more. */
static uint64_t experts_least(const struct maker *m)
{
    const struct brig_desc *d = &m->wish->model->desc;
    if (m->line->expert_pages == 0)
        return 0;
    uint64_t layer = m->line->expert_pages / d->n_layers, two = 2 * layer / d->n_experts * d->n_experts_used;
    return brig_plan_pages(two < layer ? two : layer);
}

/* The smallest budget of a number of processes and a way to hold. */
static int least_of(const struct maker *m, unsigned n_shards, enum brig_hold hold, uint64_t *ret,
                    struct brig_fail *fail)
{
    uint64_t weights = 0, sum = fixed(m, n_shards, m->rows_least, m->ctx_least);
    int r = 0;
    if (hold == BRIG_HOLD_STREAM)
        weights =
            m->line->vector_pages + alive(m, n_shards) * (brig_plan_ring_least(m->line) + experts_least(m));
    else
        r = whole_weights(m, n_shards, &weights, fail);
    *ret = brig_plan_pages(sum + with_tables(weights));
    return r;
}

/* The largest number from least to most, in steps, whose cost above the least one's is at most `afford`. */
static uint32_t afford(const struct maker *m, bool rows, uint32_t least, uint32_t most, uint32_t step,
                       uint64_t room)
{
    unsigned n = m->p->n_shards;
    uint64_t base = fixed(m, n, m->rows_least, m->ctx_least);
    uint32_t lo = 0, hi = (most - least + step - 1) / step;
    while (lo < hi) {
        uint32_t mid = lo + (hi - lo + 1) / 2, v = most - least < mid * step ? most : least + mid * step;
        uint64_t cost = rows ? fixed(m, n, v, m->ctx_least) : fixed(m, n, m->rows_least, v);
        if (cost - base <= room)
            lo = mid;
        else
            hi = mid - 1;
    }
    return most - least < lo * step ? most : least + lo * step;
}

static uint64_t at_most(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Choose rows and context out of room for each; returns what they are charged with: their share, or what the
 * most that they can use costs. What they leave of a share is smaller than a step. */
static uint64_t choose_rows_and_ctx(struct maker *m, uint64_t room_rows, uint64_t room_ctx)
{
    struct brig_plan *p = m->p;
    uint64_t base = fixed(m, p->n_shards, m->rows_least, m->ctx_least);
    uint64_t rows_cost = fixed(m, p->n_shards, m->rows_most, m->ctx_least) - base;
    uint64_t ctx_cost = fixed(m, p->n_shards, m->rows_least, m->ctx_most) - base;
    p->max_rows = afford(m, true, m->rows_least, m->rows_most, BRIG_PLAN_ROWS, room_rows);
    p->ctx = afford(m, false, m->ctx_least, m->ctx_most, CTX_STEP, room_ctx);
    if (p->max_rows > p->ctx)
        p->max_rows = p->ctx;
    return at_most(rows_cost, room_rows) + at_most(ctx_cost, room_ctx);
}

static size_t place_of(const struct brig_desc *d, enum brig_role role, uint32_t layer, uint32_t expert)
{
    if (role < BRIG_ROLE_LAYER_COUNT)
        return (size_t)layer * brig_desc_places(d) + brig_desc_place(d, role, expert);
    return (size_t)d->n_layers * brig_desc_places(d) + (role - BRIG_ROLE_LAYER_COUNT);
}

bool brig_plan_holds(const struct brig_plan *p, enum brig_role role, uint32_t layer, uint32_t expert)
{
    return p->held[place_of(p->desc, role, layer, expert)] != 0;
}

/* Of the bytes of experts that a token needs, those that lie in processes that live. */
static uint64_t living_experts(const struct maker *m)
{
    uint64_t all = 0, here = 0;
    for (unsigned i = 0; i < m->line->n_items; i++) {
        const struct brig_plan_item *t = &m->line->items[i];
        all += t->of_expert ? t->bytes : 0;
        here += t->of_expert && m->lives[t->cell] ? t->bytes : 0;
    }
    return all == 0 ? 0 : (uint64_t)((double)m->line->expert_token_bytes * ((double)here / (double)all));
}

/* Take what fits of weights; vectors always. */
static void pin(struct maker *m, uint64_t room)
{
    struct brig_plan *p = m->p;
    uint64_t used = 0, held = 0;
    bool whole = p->hold != BRIG_HOLD_STREAM;
    for (unsigned i = 0; i < m->line->n_items; i++) {
        const struct brig_plan_item *t = &m->line->items[i];
        bool may_stay = whole || (m->lives[t->cell] && !t->of_expert);
        if (!t->vector && (!may_stay || t->pages > room - at_most(used, room)))
            continue;
        p->held[place_of(p->desc, t->role, t->cell, t->expert)] = 1;
        used += t->pages;
        held += t->of_expert || !m->lives[t->cell] ? 0 : t->bytes;
    }
    p->bytes[BRIG_PLAN_WEIGHTS] = used;
    p->held_bytes = held + (whole ? living_experts(m) : 0);
}

/* What is left after the dense weights, for experts. */
static void cache_experts(struct maker *m, uint64_t room)
{
    struct brig_plan *p = m->p;
    uint64_t all = m->line->expert_pages, bytes = at_most(room & ~(BRIG_PLAN_PAGE - 1), all);
    if (all == 0)
        return;
    p->bytes[BRIG_PLAN_EXPERTS] = p->expert_cache_bytes = bytes;
    p->hit_rate = (double)bytes / (double)all;
    p->held_bytes += (uint64_t)((double)living_experts(m) * p->hit_rate);
}

/* Rows of a frame beyond which a prompt is no faster: a pass that reads everything from the disk then takes
 * half as long as the computation. More rows would only take memory from weights. */
static uint32_t useful_rows(const struct maker *m)
{
    const struct brig_plan_speed *v = &m->wish->speed;
    double row_s = m->line->core_s / v->threads / BRIG_PLAN_ROWS_GAIN;
    if (v->disk_bytes_s <= 0 || row_s <= 0)
        return m->wish->max_rows;
    double rows = 2 * (double)m->line->token_bytes / v->disk_bytes_s / row_s;
    rows = rows < BRIG_PLAN_ROWS_USEFUL ? BRIG_PLAN_ROWS_USEFUL : rows;
    return rows < m->wish->max_rows ? (uint32_t)rows : m->wish->max_rows;
}

static void stream(struct maker *m, uint64_t least)
{
    struct brig_plan *p = m->p;
    uint64_t spare = p->budget_bytes == 0 ? 0 : p->budget_bytes - least;
    uint64_t ring = brig_plan_ring_least(m->line), best = brig_plan_ring_best(m->line);
    uint64_t more = at_most(spare / SHARE_RING / p->n_alive, best - ring) & ~(BRIG_PLAN_PAGE - 1);
    m->rows_most = useful_rows(m);
    uint64_t charged = choose_rows_and_ctx(m, spare / SHARE_ROWS, spare / SHARE_CTX);
    p->ring_bytes = ring + more;
    p->bytes[BRIG_PLAN_RING] = p->n_alive * p->ring_bytes;
    charged += p->n_alive * more + brig_plan_page_tables(spare) + BRIG_PLAN_PAGE;
    uint64_t room = m->line->vector_pages + (spare > charged ? spare - charged : 0);
    uint64_t cache = p->n_alive * experts_least(m);
    pin(m, room);
    cache_experts(m, cache + (room > p->bytes[BRIG_PLAN_WEIGHTS] ? room - p->bytes[BRIG_PLAN_WEIGHTS] : 0));
}

/* More are started early where that fits: the weights of those whose turn it is get all that is left. In
 * bytes of weights, so without what whole pages add to them. */
static void limit_turns(struct maker *m, uint64_t left)
{
    struct brig_plan *p = m->p;
    uint64_t bytes = 0, stay = 0, more = left - at_most(left, brig_plan_page_tables(left) + BRIG_PLAN_PAGE);
    for (unsigned c = 0; c < m->line->n_cells; c++) {
        bytes += m->line->cell_bytes[c];
        stay += m->lives[c] ? m->line->cell_pages[c] : 0;
    }
    uint64_t turns = p->bytes[BRIG_PLAN_WEIGHTS] - stay + more, rounding = m->line->pages - bytes;
    p->bytes[BRIG_PLAN_WEIGHTS] += more;
    p->turn_bytes = turns > rounding ? turns - rounding : 1;
}

/* Everything is in memory, or as much as lives at once is. */
static int whole(struct maker *m, uint64_t least, struct brig_fail *fail)
{
    struct brig_plan *p = m->p;
    uint64_t spare = p->budget_bytes == 0 ? UINT64_MAX / 4 : p->budget_bytes - least;
    uint64_t weights, charged = choose_rows_and_ctx(m, spare / 2, spare / 2);
    pin(m, UINT64_MAX / 2);
    int r = whole_weights(m, p->n_shards, &weights, fail);
    p->bytes[BRIG_PLAN_WEIGHTS] = weights;
    if (r == 0 && m->early.most > m->early.sure)
        limit_turns(m, spare - charged);
    /* What a process has read that ends lives on in the page cache, where there is room for all of it. */
    if (p->hold == BRIG_HOLD_MAP && m->line->pages - weights <= spare - charged)
        p->held_bytes = m->line->token_bytes;
    if (m->wish->residency == NULL && m->wish->mode->keeps && p->budget_bytes != 0 &&
        spare - charged < weights / 16)
        p->hold = BRIG_HOLD_LOCK;
    return r;
}

static bool may(const struct maker *m, enum brig_hold hold)
{
    const struct brig_plan_wish *w = m->wish;
    return w->residency == NULL ? hold != BRIG_HOLD_LOCK : hold == w->residency->hold;
}

/* Of one number of processes: the first way to hold that fits, else the one that needs least. */
static int choose_hold(struct maker *m, unsigned n_shards, enum brig_hold *ret, uint64_t *ret_least,
                       struct brig_fail *fail)
{
    static const enum brig_hold ways[] = {BRIG_HOLD_MAP, BRIG_HOLD_LOCK, BRIG_HOLD_STREAM};
    uint64_t budget = m->p->budget_bytes, best = UINT64_MAX;
    bool chosen_fits = false, sure = m->early.most == m->early.sure;
    for (unsigned i = 0; i < 3; i++) {
        uint64_t least;
        if (!may(m, ways[i]) || (ways[i] == BRIG_HOLD_STREAM && !sure)) /* a ring is a ring */
            continue;
        int r = least_of(m, n_shards, ways[i], &least, fail);
        if (r < 0)
            return r;
        bool fits = budget == 0 || least <= budget;
        if (!chosen_fits && (fits || least < best)) {
            best = least;
            chosen_fits = fits;
            *ret = ways[i];
        }
    }
    *ret_least = best;
    return 0;
}

static unsigned first_number(const struct maker *m)
{
    return m->wish->n_shards != 0 ? m->wish->n_shards : 1;
}

static unsigned last_number(const struct maker *m)
{
    return m->wish->n_shards == 0 && !m->wish->mode->keeps ? m->line->n_cells : first_number(m);
}

/* The smallest budget of all: with nothing started early. */
static int find_least(struct maker *m, struct brig_fail *fail)
{
    m->early = (struct early){0, 0};
    m->p->least_bytes = UINT64_MAX;
    for (unsigned n = first_number(m); n <= last_number(m); n++) {
        for (unsigned hold = 0; hold < BRIG_HOLD_COUNT; hold++) {
            uint64_t least = UINT64_MAX;
            int r = may(m, (enum brig_hold)hold) ? least_of(m, n, (enum brig_hold)hold, &least, fail) : 0;
            if (r < 0)
                return r;
            m->p->least_bytes = at_most(m->p->least_bytes, least);
        }
    }
    return 0;
}

/* The number of processes: as wished, else one; where processes do not live on, as few as make what lives at
 * once fit. */
static int choose_number(struct maker *m, uint64_t *least, struct brig_fail *fail)
{
    struct brig_plan *p = m->p;
    *least = UINT64_MAX;
    for (unsigned n = first_number(m); n <= last_number(m); n++) {
        enum brig_hold hold = BRIG_HOLD_MAP;
        uint64_t needs;
        int r = choose_hold(m, n, &hold, &needs, fail);
        if (r < 0)
            return r;
        bool fits = p->budget_bytes == 0 || needs <= p->budget_bytes;
        bool whole_fits = fits && hold != BRIG_HOLD_STREAM;
        if (whole_fits || *least == UINT64_MAX || (*least > p->budget_bytes && needs < *least)) {
            p->n_shards = n;
            p->hold = hold;
            *least = needs;
        }
        if (whole_fits)
            break;
    }
    return 0;
}

/* How many are started early: as many as the mode says; where that does not fit, as many as are sure to, and
 * then as many more as may where there is room. */
static int choose(struct maker *m, uint64_t *least, struct brig_fail *fail)
{
    struct brig_plan *p = m->p;
    unsigned most = min_of(m->wish->mode->ahead, MOST_AHEAD);
    int r = find_least(m, fail);
    bool found = false;
    *least = p->least_bytes;
    if (r < 0 || (p->budget_bytes != 0 && *least > p->budget_bytes))
        return r;
    for (unsigned sure = most + 1; r == 0 && !found && sure-- > 0;)
        for (unsigned n = most + 1; r == 0 && !found && n-- > sure;) {
            m->early = (struct early){n, sure};
            r = choose_number(m, least, fail);
            found = p->budget_bytes == 0 || *least <= p->budget_bytes;
        }
    uint64_t unused;
    p->n_ahead = m->early.most;
    p->n_alive = alive(m, p->n_shards);
    return r < 0 ? r : whole_weights(m, p->n_shards, &unused, fail); /* lives is of this from here on */
}

/* What the budget lacks, the smallest that would do, and how fast that would be. */
static int refuse(const struct maker *m, struct brig_fail *fail)
{
    struct brig_plan_wish wish = *m->wish;
    struct brig_plan least;
    char has[BRIG_RAM_TEXT], needs[BRIG_RAM_TEXT], speed[64] = "";
    wish.budget_bytes = m->p->least_bytes;
    if (m->p->least_bytes > m->p->budget_bytes && brig_plan_from_line(&least, &wish, m->line, fail) == 0) {
        if (least.seconds_a_token > 0)
            snprintf(speed, sizeof speed, ", and make about %.3g tokens a second", 1 / least.seconds_a_token);
        brig_plan_release(&least);
    }
    return brig_fail_set(
        fail, BRIG_ELIMIT,
        "a budget of %s is too little for %s%s%s: %s (%llu bytes) would do, with a context of "
        "%u%s",
        brig_ram_text(m->p->budget_bytes, has), m->wish->model->path,
        wish.draft != NULL ? " and the draft model " : "", wish.draft != NULL ? wish.draft->path : "",
        brig_ram_text(m->p->least_bytes, needs), (unsigned long long)m->p->least_bytes, m->ctx_least, speed);
}

static int finish(struct maker *m, struct brig_fail *fail)
{
    struct brig_plan *p = m->p;
    struct brig_plan_shape s = shape_of(m, p->n_shards, p->max_rows, p->ctx);
    uint64_t bytes[BRIG_PLAN_KINDS];
    brig_plan_sizes(&s, m->wish, bytes);
    for (unsigned i = BRIG_PLAN_KV; i < BRIG_PLAN_KINDS; i++)
        p->bytes[i] = bytes[i];
    p->bytes[BRIG_PLAN_PROCESSES] += brig_plan_page_tables(
        p->bytes[BRIG_PLAN_WEIGHTS] + p->bytes[BRIG_PLAN_RING] + p->bytes[BRIG_PLAN_EXPERTS]);
    p->total_bytes = 0;
    for (unsigned i = 0; i < BRIG_PLAN_KINDS; i++)
        p->total_bytes += p->bytes[i];
    if (p->budget_bytes != 0 && p->total_bytes > p->budget_bytes)
        return brig_fail_set(fail, BRIG_EINTERNAL, "the plan needs %llu bytes where the budget has %llu",
                             (unsigned long long)p->total_bytes, (unsigned long long)p->budget_bytes);
    if (m->wish->draft != NULL) {
        p->draft_ctx = brig_plan_draft_ctx(m->wish->draft, p->ctx);
        p->draft_rows = brig_plan_draft_rows(m->wish->draft, p->ctx);
    }
    p->token_bytes = m->line->token_bytes;
    p->speed = m->wish->speed;
    brig_plan_predict(p, m->line, m->wish->mode->keeps ? p->n_shards + 1 : 2 * p->n_shards,
                      p->n_shards - living(m, p->n_shards));
    return 0;
}

static int make(struct maker *m, struct brig_fail *fail)
{
    struct brig_plan *p = m->p;
    const struct brig_desc *d = &m->wish->model->desc;
    uint64_t least;
    p->held = brig_alloc(place_of(d, BRIG_ROLE_COUNT, 0, 0), sizeof *p->held);
    m->cells = brig_alloc(m->line->n_cells, sizeof *m->cells);
    m->lives = brig_alloc(m->line->n_cells, sizeof *m->lives);
    if (p->held == NULL || m->cells == NULL || m->lives == NULL)
        return brig_fail_set(fail, BRIG_ENOMEM, "out of memory for a plan");
    int r = choose(m, &least, fail);
    if (r < 0)
        return r;
    if (p->budget_bytes != 0 && least > p->budget_bytes)
        return refuse(m, fail);
    if (p->hold == BRIG_HOLD_STREAM)
        stream(m, least);
    else
        r = whole(m, least, fail);
    return r < 0 ? r : finish(m, fail);
}

int brig_plan_from_line(struct brig_plan *ret, const struct brig_plan_wish *wish,
                        const struct brig_plan_line *line, struct brig_fail *fail)
{
    const struct brig_desc *d = &wish->model->desc;
    uint32_t trained = d->ctx_trained;
    struct brig_plan p = {.budget_bytes = wish->budget_bytes & ~(BRIG_PLAN_PAGE - 1),
                          .slots = wish->slots,
                          .kv = wish->kv,
                          .desc = d};
    struct maker m = {.wish = wish, .line = line, .p = &p};
    if (wish->budget_bytes != 0 && p.budget_bytes == 0) /* less than a page is a budget, and not none */
        p.budget_bytes = BRIG_PLAN_PAGE;
    m.ctx_most = trained != 0 && trained < BRIG_PLAN_CTX_MOST ? trained : BRIG_PLAN_CTX_MOST;
    m.ctx_least = (uint32_t)at_most(m.ctx_most, BRIG_PLAN_CTX_LEAST);
    if (wish->ctx != 0)
        m.ctx_least = m.ctx_most = wish->ctx;
    m.rows_least = (uint32_t)at_most(wish->max_rows, BRIG_PLAN_ROWS);
    m.rows_most = wish->max_rows;
    int r = make(&m, fail);
    brig_free(m.cells);
    brig_free(m.lives);
    if (r < 0) {
        brig_plan_release(&p);
        ret->least_bytes = p.least_bytes;
        return r;
    }
    *ret = p;
    return 0;
}

int brig_plan_make(struct brig_plan *ret, const struct brig_plan_wish *wish, struct brig_fail *fail)
{
    struct brig_plan_line line, draft = {0};
    int r = brig_plan_line_make(&line, wish->model, fail);
    if (r < 0)
        return r;
    if (wish->draft != NULL)
        r = brig_plan_line_make(&draft, wish->draft, fail);
    line.draft_pages = draft.pages;
    if (r == 0)
        r = brig_plan_from_line(ret, wish, &line, fail);
    brig_plan_line_release(&draft);
    brig_plan_line_release(&line);
    return r;
}

void brig_plan_release(struct brig_plan *p)
{
    brig_free(p->held);
    p->held = NULL;
}
