/* Which draft, and how long. */
#include "driver/run/spec.h"

#include "driver/run/sched.h"
#include "driver/run/spec_cost.h"
#include "driver/run/spec_odds.h"
#include "proto/base/clock.h"
#include "proto/base/mem.h"

/* The account: what a frame pays in, and how much of what was saved can be lost again, in frames of one row.
 */
#define INCOME 0.02
#define SAVED  16.0
/* What it begins with, in frames of one row. A person who names a draft model wants it tried; where a disk
 * decides, a wrong draft costs nearly nothing. */
#define BEGIN_MODEL 4.0
#define BEGIN_DISK  1.0

/* Frames of one row that must be known before anything is drafted: some may have been slow. Where a disk
 * decides each of them is dear, and what a wrong draft costs is nearly nothing. */
#define ENOUGH      4u
#define ENOUGH_DISK 1u

/* A frame that took more than so many times what was expected did so for a reason that is no draft's; if it
 * was one, more is expected next time. */
#define SURPRISE 2.0

/* Drafts that the time of making one is learned from. */
#define MADE_MEMORY 8u

struct drafter {
    const struct brig_draft *kind;
    void *state;
    struct brig_spec_odds odds[BRIG_DRAFT_CLASSES];
    double token_ns; /* making one token of a draft, when n_made > 0 */
    unsigned n_made;
    bool tried; /* the first draft of a model reads all of the prompt: it tells nothing of the next ones */
    struct brig_spec_stats stats;
};

/* A draft that could be sent. */
struct choice {
    struct drafter *d; /* NULL: none */
    unsigned class;
    uint32_t n;
    double rate; /* tokens a nanosecond that are expected */
    double ns;   /* expected of the frame, without making the draft */
};

struct brig_spec {
    struct brig_spec_opts o;
    struct drafter drafters[2];
    unsigned n_drafters;
    struct brig_spec_cost cost;
    double account_ns;
    bool begun; /* the account has what it begins with */
    /* The frame under way, or the last one when all its tokens are drawn. */
    bool under_way;
    struct choice sent;
    uint32_t ids[BRIG_SCHED_MAX_DRAFT];
    uint32_t n_drawn, n_held;
    uint64_t sent_ns, frame_ns, made_ns;
};

static int add(struct brig_spec *s, const struct brig_draft *kind, const struct brig_draft_opts *o,
               struct brig_fail *fail)
{
    struct drafter *d = &s->drafters[s->n_drafters];
    int r = kind->open(&d->state, o, fail);
    if (r < 0)
        return r;
    d->kind = d->stats.kind = kind;
    s->n_drafters++;
    return 0;
}

int brig_spec_new(struct brig_spec **ret, const struct brig_spec_opts *o, struct brig_fail *fail)
{
    struct brig_spec *s = brig_alloc(1, sizeof *s);
    const struct brig_draft_opts none = {0};
    int r = 0;
    if (s == NULL)
        return brig_fail_set(fail, BRIG_ENOMEM, "out of memory for drafts");
    s->o = *o;
    s->cost.disk_bound = o->disk_bound;
    if (o->lookup)
        r = add(s, &brig_draft_lookup, &none, fail);
    if (r == 0 && o->draft != NULL)
        r = add(s, &brig_draft_model, o->draft, fail);
    if (r < 0) {
        brig_spec_free(s);
        return r;
    }
    *ret = s;
    return 0;
}

void brig_spec_free(struct brig_spec *s)
{
    if (s == NULL)
        return;
    for (unsigned i = 0; i < s->n_drafters; i++)
        s->drafters[i].kind->close(s->drafters[i].state);
    brig_free(s);
}

void brig_spec_prompt(struct brig_spec *s, uint32_t rows, uint64_t ns)
{
    brig_spec_cost_prompt(&s->cost, rows, ns);
}

/* ---- what the last frame came to ---- */

static void settle(struct brig_spec *s)
{
    struct drafter *d = s->sent.d;
    uint32_t n = s->sent.n;
    if (!s->under_way || s->n_drawn == 0)
        return;
    s->under_way = false;
    brig_spec_cost_frame(&s->cost, 1 + n, s->frame_ns);
    if (!s->begun)
        s->account_ns +=
            s->cost.one.ns * ((s->o.draft != NULL ? BEGIN_MODEL : 0) + (s->o.disk_bound ? BEGIN_DISK : 0));
    s->begun = true;
    s->account_ns += INCOME * s->cost.one.ns;
    if (d == NULL)
        return;
    brig_spec_odds_add(&d->odds[s->sent.class], n, s->n_held);
    d->stats.drafted += n;
    d->stats.accepted += s->n_held;
    d->stats.frames++;
    double took = (double)s->frame_ns < SURPRISE * s->sent.ns ? (double)s->frame_ns : SURPRISE * s->sent.ns;
    double lost = took + (double)s->made_ns - s->cost.one.ns;
    /* One that was faster than a frame of one row saved what held, and no more. */
    s->account_ns += s->cost.one.ns * s->n_held - (lost > 0 ? lost : 0);
    if (s->account_ns > SAVED * s->cost.one.ns)
        s->account_ns = SAVED * s->cost.one.ns;
}

void brig_spec_drawn(struct brig_spec *s, uint32_t id)
{
    if (!s->under_way)
        return;
    if (s->n_drawn == 0)
        s->frame_ns = brig_clock_ns() - s->sent_ns;
    /* All tokens of a frame but the last are those of the draft, or the frame would have ended before. */
    s->n_held += s->n_drawn < s->sent.n && s->n_held == s->n_drawn && s->ids[s->n_drawn] == id;
    s->n_drawn++;
}

/* ---- what goes with the next one ---- */

/* The length with the most tokens a second, of those that the account can bear. */
static void choose_length(const struct brig_spec *s, struct drafter *d, unsigned class, uint32_t most,
                          struct choice *best)
{
    double held = 1, tokens = 1;
    uint32_t bold = 2 * s->cost.most + 1; /* what longer ones cost is a guess */
    /* What it takes to make is learned on a short one. */
    if (d->n_made == 0)
        bold = 1;
    for (uint32_t n = 1; n <= most && n <= bold; n++) {
        double make_ns = n * d->token_ns, ns = brig_spec_cost_ns(&s->cost, n);
        double hoped_ns = brig_spec_cost_hoped_ns(&s->cost, n) + make_ns;
        held *= brig_spec_odds_at(&d->odds[class], n);
        tokens += held;
        if (ns + make_ns - s->cost.one.ns <= s->account_ns && tokens / hoped_ns > best->rate)
            *best = (struct choice){.d = d, .class = class, .n = n, .rate = tokens / hoped_ns, .ns = ns};
    }
}

static struct choice choose(struct brig_spec *s, const struct brig_draft_seq *seq, uint32_t most)
{
    struct choice best = {0};
    bool known = s->cost.one.n >= (s->o.disk_bound ? ENOUGH_DISK : ENOUGH) && s->cost.one.ns > 0;
    if (known)
        best.rate = 1 / s->cost.one.ns;
    for (unsigned i = 0; i < s->n_drafters; i++) {
        struct drafter *d = &s->drafters[i];
        uint32_t can = 0;
        unsigned class = d->kind->look(d->state, seq, &can);
        can = can < most ? can : most;
        if (can == 0)
            continue;
        if (s->o.length > 0 && best.d == NULL)
            best = (struct choice){.d = d, .class = class, .n = s->o.length < can ? s->o.length : can};
        if (s->o.length == 0 && known)
            choose_length(s, d, class, can, &best);
        if (s->o.length == 0)
            brig_spec_odds_fade(&d->odds[class]);
    }
    return best;
}

static int make(struct brig_spec *s, const struct brig_draft_seq *seq, struct brig_fail *fail)
{
    struct drafter *d = s->sent.d;
    uint64_t begin = brig_clock_ns();
    uint32_t n = 0, good = 0;
    int r = d->kind->propose(d->state, seq, s->sent.n, s->ids, &n, fail);
    if (r < 0)
        return r;
    s->made_ns = brig_clock_ns() - begin;
    d->stats.ns += s->made_ns;
    if (!d->tried) {
        s->made_ns = 0;
    } else if (n > 0) {
        d->n_made += d->n_made < MADE_MEMORY;
        d->token_ns += ((double)s->made_ns / n - d->token_ns) / d->n_made;
    }
    d->tried = true;
    while (good < n && s->ids[good] < s->o.vocab)
        good++;
    s->sent.n = good;
    if (good == 0) {
        s->account_ns -= (double)s->made_ns; /* made for nothing */
        s->sent.d = NULL;
    }
    return 0;
}

int brig_spec_propose(struct brig_spec *s, const struct brig_draft_seq *seq, uint32_t most, uint32_t *ids,
                      uint32_t *n, struct brig_fail *fail)
{
    settle(s);
    s->sent = choose(s, seq, most < BRIG_SCHED_MAX_DRAFT ? most : BRIG_SCHED_MAX_DRAFT);
    s->n_drawn = s->n_held = 0;
    s->frame_ns = s->made_ns = 0;
    int r = s->sent.d != NULL ? make(s, seq, fail) : 0;
    if (r < 0)
        return r;
    for (uint32_t i = 0; i < s->sent.n; i++)
        ids[i] = s->ids[i];
    *n = s->sent.n;
    s->under_way = true;
    s->sent_ns = brig_clock_ns();
    return 0;
}

bool brig_spec_stats(struct brig_spec *s, unsigned i, struct brig_spec_stats *ret)
{
    settle(s);
    if (i >= s->n_drafters)
        return false;
    *ret = s->drafters[i].stats;
    return true;
}
