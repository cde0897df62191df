/* Slots, the experts in them, and who makes room for whom. */
#include "shard/weights/expert_cache.h"

#include <sys/mman.h>

#include "proto/base/clock.h"
#include "proto/base/mem.h"
#include "proto/base/size.h"
#include "proto/model/experts.h"

#define NONE    UINT32_MAX
#define N_PARTS BRIG_EXPERT_PARTS

/* What is left of the worth of a use a turn later, and what a recent one is worth more. */
#define LONG_DECAY  0.97857206f /* half after 32 turns */
#define SHORT_DECAY 0.5f
#define SHORT_WORTH 8.0f

/*
 * When guesses are read. What is guessed and not here is counted whether it is read or not. A right guess is
 * read while something is computed, so it saves at most the time that is not spent waiting for the disk; a
 * wrong one costs a reading, the time that is. So the share of right ones must be larger than the share of
 * waiting.
 */
#define GUESS_SHARE  0.5  /* and this: a guess takes room from something */
#define GUESS_FIRST  64u  /* none is read before so many are known */
#define GUESS_NEWEST 512u /* older ones count half */
#define TIME_NEWEST  4e9  /* nanoseconds, the same */

/* A place in memory for one expert. */
struct slot {
    uint32_t home; /* whose matrices are in it or on their way, NONE: nobody's */
    struct brig_fetch fetch[N_PARTS];
    bool wanted; /* by work, now: it makes no room */
};

/* One expert of one layer. */
struct home {
    uint32_t slot; /* NONE: it is not here */
    bool streamed;
    bool fresh;   /* read and not used since */
    bool guessed; /* for the next turn of its layer, which has not come yet */
    bool missing; /* when it was guessed */
    float long_worth, short_worth;
};

struct brig_expert_cache {
    struct brig_weights *w;
    uint32_t first_layer, n_layers, n_experts;
    struct brig_expert_sizes sizes;
    uint8_t *area;
    uint32_t n_slots;
    struct slot *slots;
    struct home *homes; /* [n_layers, n_experts] */
    uint32_t layer;     /* whose turn it is, of the slice; NONE: none's yet in this pass */
    uint32_t *in_hand;  /* [n_in_hand] homes that are taken */
    uint32_t n_in_hand;
    bool refused; /* to be locked in memory */
    uint64_t n_used, n_hits, read_bytes;
    double n_guessed, n_right;    /* experts guessed that were missing, of them those that came; the newest */
    uint64_t seen_ns, stalled_ns; /* the clock, and waiting in all, when time was counted last */
    double run_ns, stall_ns; /* from turn to turn of layers, and of it waiting for the disk; the newest */
};

/* ---- experts in slots ---- */

static struct home *home_of(struct brig_expert_cache *c, uint32_t layer, uint32_t expert)
{
    return &c->homes[(size_t)(layer - c->first_layer) * c->n_experts + expert];
}

static struct brig_entry *entry_of(const struct brig_expert_cache *c, uint32_t home, unsigned part)
{
    return brig_weights_entry(c->w, brig_expert_part_role(part), c->first_layer + home / c->n_experts,
                              home % c->n_experts);
}

/* Single matrices of an expert may be held in another way. */
static bool is_streamed(const struct brig_expert_cache *c, uint32_t home, unsigned part)
{
    const struct brig_entry *e = entry_of(c, home, part);
    return e != NULL && e->matrix.type != NULL && e->hold == BRIG_HOLD_STREAM;
}

/* Where the matrices of its expert lie from now on; NULL: nowhere. */
static void place(const struct brig_expert_cache *c, uint32_t home, const struct slot *s)
{
    for (unsigned i = 0; i < N_PARTS; i++) {
        if (!is_streamed(c, home, i))
            continue;
        struct brig_entry *e = entry_of(c, home, i);
        const struct brig_slice_tensor *t = &c->w->slice->tensors[e->tensor];
        uint64_t at = (uint64_t)(s != NULL ? s - c->slots : 0) * c->sizes.slot_bytes + c->sizes.part_at[i];
        e->matrix.data = s != NULL ? c->area + at + (t->offset & (c->sizes.align - 1)) : NULL;
        if (e->matrix.packed != NULL)
            e->packed.words = e->matrix.data;
    }
}

static bool is_read_into(const struct slot *s)
{
    for (unsigned i = 0; i < N_PARTS; i++)
        if (s->fetch[i].state == BRIG_FETCH_READING)
            return true;
    return false;
}

static bool is_ready(const struct slot *s)
{
    for (unsigned i = 0; i < N_PARTS; i++)
        if (s->fetch[i].state != BRIG_FETCH_READY)
            return false;
    return true;
}

static void forget(struct brig_expert_cache *c, struct slot *s)
{
    if (s->home == NONE)
        return;
    c->homes[s->home].slot = NONE;
    place(c, s->home, NULL);
    s->home = NONE;
}

/* Ask for what is not here and not on its way. */
static int ask(struct brig_expert_cache *c, struct slot *s, bool urgent, struct brig_fail *fail)
{
    for (unsigned i = 0; i < N_PARTS; i++) {
        const struct brig_entry *e = entry_of(c, s->home, i);
        const struct brig_slice_tensor *t = &c->w->slice->tensors[e->tensor];
        uint64_t begin = t->offset & ~(c->sizes.align - 1);
        uint64_t bytes = brig_align_up(t->offset + t->bytes, c->sizes.align) - begin;
        uint8_t *to = c->area + (uint64_t)(s - c->slots) * c->sizes.slot_bytes + c->sizes.part_at[i];
        if (s->fetch[i].state == BRIG_FETCH_READING || s->fetch[i].state == BRIG_FETCH_READY)
            continue;
        int r = brig_feed_fetch(c->w->feed, t->file, begin, bytes, to, urgent, &s->fetch[i], fail);
        if (r < 0)
            return r;
        c->read_bytes += bytes;
    }
    return 0;
}

/* How late its layer comes again: this one's last, when its turn is over. */
static uint32_t turns_ahead(const struct brig_expert_cache *c, uint32_t home)
{
    uint32_t layer = home / c->n_experts, now = c->layer != NONE ? c->layer : 0;
    return layer > now ? layer - now : layer + c->n_layers - now;
}

/* a makes room before b; nothing before something. */
static bool goes_before(const struct brig_expert_cache *c, const struct slot *a, const struct slot *b)
{
    if (a->home == NONE || b->home == NONE)
        return a->home == NONE && b->home != NONE;
    const struct home *x = &c->homes[a->home], *y = &c->homes[b->home];
    float worth = x->long_worth + x->short_worth, than = y->long_worth + y->short_worth;
    if (x->guessed != y->guessed)
        return y->guessed;
    return worth < than || (worth == than && turns_ahead(c, a->home) > turns_ahead(c, b->home));
}

/* The slot that makes room; NULL: all are wanted or being read into. */
static struct slot *make_room(struct brig_expert_cache *c)
{
    struct slot *best = NULL;
    for (uint32_t i = 0; i < c->n_slots; i++) {
        struct slot *s = &c->slots[i];
        if (!s->wanted && !is_read_into(s) && (best == NULL || goes_before(c, s, best)))
            best = s;
    }
    if (best != NULL)
        forget(c, best);
    return best;
}

/* Begin to read an expert that is not here. *ret NULL: no room. */
static int load(struct brig_expert_cache *c, struct home *h, bool urgent, struct slot **ret,
                struct brig_fail *fail)
{
    struct slot *s = make_room(c);
    *ret = s;
    if (s == NULL)
        return 0;
    for (unsigned i = 0; i < N_PARTS; i++)
        s->fetch[i].state = is_streamed(c, (uint32_t)(h - c->homes), i) ? BRIG_FETCH_IDLE : BRIG_FETCH_READY;
    s->home = (uint32_t)(h - c->homes);
    h->slot = (uint32_t)(s - c->slots);
    h->fresh = true;
    place(c, s->home, s);
    return ask(c, s, urgent, fail);
}

/* ---- taking ---- */

static void start_clock(struct brig_expert_cache *c)
{
    c->seen_ns = brig_clock_ns();
    c->stalled_ns = brig_feed_stats(c->w->feed).stall_ns;
}

static void count_time(struct brig_expert_cache *c)
{
    uint64_t began = c->seen_ns, stalled = c->stalled_ns;
    start_clock(c);
    c->run_ns += (double)(c->seen_ns - began);
    c->stall_ns += (double)(c->stalled_ns - stalled);
    if (c->run_ns > TIME_NEWEST) {
        c->run_ns /= 2;
        c->stall_ns /= 2;
    }
}

/* The turn of a layer begins: what its experts are worth is a turn older. */
static void turn_to(struct brig_expert_cache *c, uint32_t layer, const uint32_t *experts, uint32_t n)
{
    if (c->layer == layer - c->first_layer)
        return;
    count_time(c);
    for (uint32_t i = 0; i < n; i++)
        c->n_right += home_of(c, layer, experts[i])->missing;
    c->layer = layer - c->first_layer;
    for (uint32_t e = 0; e < c->n_experts; e++) {
        struct home *h = home_of(c, layer, e);
        h->long_worth *= LONG_DECAY;
        h->short_worth *= SHORT_DECAY;
        c->n_guessed += h->missing;
        h->guessed = h->missing = false;
    }
    if (c->n_guessed > GUESS_NEWEST) {
        c->n_guessed /= 2;
        c->n_right /= 2;
    }
}

/* What is here or comes makes no room for the others. Returns how many come. */
static uint32_t want_present(struct brig_expert_cache *c, uint32_t layer, const uint32_t *experts, uint32_t n)
{
    uint32_t coming = 0;
    for (uint32_t i = 0; i < n; i++) {
        const struct home *h = home_of(c, layer, experts[i]);
        if (!h->streamed || h->slot == NONE)
            continue;
        c->slots[h->slot].wanted = true;
        coming += !is_ready(&c->slots[h->slot]);
    }
    return coming;
}

/* Those that are not here come, as long as there is room. Of many, not all at once: they would take the room
 * of what is worth more than having them early. */
static int want(struct brig_expert_cache *c, uint32_t layer, const uint32_t *experts, uint32_t n,
                struct brig_fail *fail)
{
    uint32_t coming = want_present(c, layer, experts, n), most = 2 * c->w->desc->n_experts_used;
    for (uint32_t i = 0; i < n; i++) {
        struct home *h = home_of(c, layer, experts[i]);
        struct slot *s = h->slot != NONE ? &c->slots[h->slot] : NULL;
        int r = 0;
        if (!h->streamed)
            continue;
        if (s != NULL)
            r = ask(c, s, true, fail); /* of a guess, perhaps, whose reading failed */
        else if (coming < most)
            r = load(c, h, true, &s, fail);
        if (r < 0)
            return r;
        if (s == NULL)
            return 0;
        coming += !s->wanted;
        s->wanted = true;
    }
    return 0;
}

/* Those that are here to the front, else in their order. Returns how many. */
static uint32_t ready_first(struct brig_expert_cache *c, uint32_t layer, uint32_t *experts, uint32_t n)
{
    uint32_t ready = 0;
    for (uint32_t i = 0; i < n; i++) {
        const struct home *h = home_of(c, layer, experts[i]);
        uint32_t expert = experts[i];
        if (h->streamed && (h->slot == NONE || !is_ready(&c->slots[h->slot])))
            continue;
        for (uint32_t k = i; k > ready; k--)
            experts[k] = experts[k - 1];
        experts[ready++] = expert;
    }
    return ready;
}

/* Until a slot has less to wait for. */
static int wait_for(struct brig_expert_cache *c, const struct slot *s, struct brig_fail *fail)
{
    for (unsigned i = 0; i < N_PARTS; i++)
        if (s->fetch[i].state == BRIG_FETCH_READING)
            return brig_feed_wait(c->w->feed, &s->fetch[i], fail);
    return 0;
}

/* None of the experts is here yet: wait for the first of them that comes, or else for room. */
static int wait_for_one(struct brig_expert_cache *c, uint32_t layer, const uint32_t *experts, uint32_t n,
                        struct brig_fail *fail)
{
    for (uint32_t i = 0; i < n; i++) {
        const struct home *h = home_of(c, layer, experts[i]);
        struct slot *s = h->slot != NONE ? &c->slots[h->slot] : NULL;
        int r = s != NULL ? wait_for(c, s, fail) : 0;
        if (s == NULL)
            continue;
        if (r == 0)
            return 0;
        s->wanted = false;
        forget(c, s); /* who comes again asks again */
        return brig_fail_prefix(fail, "expert %u of layer %u", experts[i], layer);
    }
    for (uint32_t i = 0; i < c->n_slots; i++) {
        struct slot *s = &c->slots[i];
        if (s->wanted || !is_read_into(s))
            continue;
        int r = wait_for(c, s, fail); /* a guess that failed is of no interest */
        return is_read_into(s) ? r : 0;
    }
    return brig_fail_set(fail, BRIG_EINTERNAL, "no room for an expert of layer %u", layer);
}

int brig_expert_cache_take(struct brig_expert_cache *c, uint32_t layer, uint32_t *experts, uint32_t n,
                           uint32_t *ret_n, struct brig_fail *fail)
{
    uint32_t ready = 0;
    turn_to(c, layer, experts, n);
    brig_feed_poll(c->w->feed);
    while (ready == 0) {
        int r = want(c, layer, experts, n, fail);
        ready = r == 0 ? ready_first(c, layer, experts, n) : 0;
        if (r == 0 && ready == 0)
            r = wait_for_one(c, layer, experts, n, fail);
        if (r < 0)
            return r;
    }
    for (uint32_t i = 0; i < ready; i++) {
        struct home *h = home_of(c, layer, experts[i]);
        if (!h->streamed)
            continue;
        c->in_hand[c->n_in_hand++] = (uint32_t)(h - c->homes);
        c->n_used++;
        c->n_hits += !h->fresh;
        h->fresh = false;
    }
    *ret_n = ready;
    return 0;
}

/* ---- giving back ---- */

void brig_expert_cache_give(struct brig_expert_cache *c)
{
    for (uint32_t i = 0; i < c->n_in_hand; i++) {
        struct home *h = &c->homes[c->in_hand[i]];
        h->long_worth += 1;
        h->short_worth += SHORT_WORTH;
        c->slots[h->slot].wanted = false;
    }
    c->n_in_hand = 0;
}

void brig_expert_cache_begin(struct brig_expert_cache *c)
{
    brig_expert_cache_give(c);
    for (uint32_t i = 0; i < c->n_slots; i++) /* left behind by a pass that failed */
        c->slots[i].wanted = false;
    c->layer = NONE;
    start_clock(c); /* what lies between passes is nobody's waiting */
}

static bool guesses_pay(const struct brig_expert_cache *c)
{
    return c->n_guessed >= GUESS_FIRST && c->n_right >= GUESS_SHARE * c->n_guessed &&
           c->n_right * c->run_ns > c->stall_ns * c->n_guessed;
}

void brig_expert_cache_guess(struct brig_expert_cache *c, uint32_t layer, const uint32_t *experts, uint32_t n)
{
    struct brig_fail fail; /* what cannot be read now is read when it is needed, and fails then */
    bool reads = guesses_pay(c);
    if (layer < c->first_layer || layer - c->first_layer >= c->n_layers)
        return;
    for (uint32_t i = 0; i < n; i++) {
        struct home *h = home_of(c, layer, experts[i]);
        struct slot *s;
        h->guessed = h->streamed; /* also those that are here: they stay */
        h->missing = h->streamed && h->slot == NONE;
        if (reads && h->streamed && h->slot == NONE && (load(c, h, false, &s, &fail) < 0 || s == NULL))
            reads = false;
    }
}

void brig_expert_cache_add_stats(const struct brig_expert_cache *c, struct brig_weights_stats *s)
{
    s->held_bytes += (uint64_t)c->n_slots * c->sizes.slot_bytes;
    s->unlocked_bytes += c->refused ? (uint64_t)c->n_slots * c->sizes.slot_bytes : 0;
    s->experts_used += c->n_used;
    s->expert_hits += c->n_hits;
    s->expert_read_bytes += c->read_bytes;
}

/* ---- open and close ---- */

static int make_slots(struct brig_expert_cache *c, struct brig_fail *fail)
{
    uint64_t bytes = c->n_slots * c->sizes.slot_bytes;
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED)
        return brig_fail_errno(fail, BRIG_ENOMEM, "no memory for a cache of experts (%llu bytes)",
                               (unsigned long long)bytes);
    c->area = p;
    madvise(p, bytes, MADV_HUGEPAGE);
    c->refused = mlock2(p, bytes, MLOCK_ONFAULT) < 0; /* private memory all the same */
    c->slots = brig_alloc(c->n_slots, sizeof *c->slots);
    c->homes = brig_alloc((size_t)c->n_layers * c->n_experts, sizeof *c->homes);
    c->in_hand = brig_alloc(c->n_experts, sizeof *c->in_hand);
    if (c->slots == NULL || c->homes == NULL || c->in_hand == NULL)
        return brig_fail_set(fail, BRIG_ENOMEM, "out of memory for a cache of %u experts", c->n_slots);
    return 0;
}

static void start(struct brig_expert_cache *c)
{
    c->layer = NONE;
    for (uint32_t i = 0; i < c->n_slots; i++)
        c->slots[i].home = NONE;
    for (uint32_t i = 0; i < c->n_layers * c->n_experts; i++) {
        c->homes[i].slot = NONE;
        for (unsigned part = 0; part < N_PARTS; part++)
            c->homes[i].streamed = c->homes[i].streamed || is_streamed(c, i, part);
    }
}

int brig_expert_cache_open(struct brig_expert_cache **ret, struct brig_weights *w, struct brig_fail *fail)
{
    struct brig_expert_sizes sizes;
    uint32_t n_slots;
    *ret = NULL;
    if (w->feed == NULL || !brig_slice_expert_sizes(w->slice, brig_feed_align(w->feed), &sizes))
        return 0;
    int r = brig_slice_expert_slots(w->slice, &sizes, &n_slots, fail);
    if (r < 0)
        return r;
    struct brig_expert_cache *c = brig_alloc(1, sizeof *c);
    if (c == NULL)
        return brig_fail_set(fail, BRIG_ENOMEM, "out of memory for a cache of experts");
    uint32_t last = w->cells.last < w->n_layers ? w->cells.last : w->n_layers;
    c->w = w;
    c->sizes = sizes;
    c->first_layer = w->cells.first;
    c->n_layers = last - w->cells.first;
    c->n_experts = w->desc->n_experts;
    c->n_slots = n_slots;
    r = make_slots(c, fail);
    if (r < 0) {
        brig_expert_cache_close(c);
        return r;
    }
    start(c);
    *ret = c;
    return 0;
}

void brig_expert_cache_close(struct brig_expert_cache *c)
{
    if (c == NULL)
        return;
    if (c->area != NULL)
        munmap(c->area, c->n_slots * c->sizes.slot_bytes);
    brig_free(c->slots);
    brig_free(c->homes);
    brig_free(c->in_hand);
    brig_free(c);
}
