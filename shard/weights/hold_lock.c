/*
 * Residency lock: private memory, filled by reads that pass by the page cache, so that nobody else's cache is
 * borrowed and nobody takes ours. All reads are asked for at the start; work waits only for what it uses.
 */
#include <sys/mman.h>

#include "proto/base/mem.h"
#include "proto/base/size.h"
#include "proto/model/load.h"
#include "shard/weights/parts.h"

struct lock {
    struct brig_feed *feed;
    const struct brig_slice *slice;
    struct brig_loads loads;
    uint8_t *area;
    uint64_t bytes;
    uint64_t *place;            /* [n_loads] in the area */
    struct brig_fetch *fetches; /* [n_loads] */
    bool refused;               /* to be locked in memory */
};

static int fetch(struct lock *k, uint32_t load, struct brig_fail *fail)
{
    const struct brig_load *l = &k->loads.loads[load];
    return brig_feed_fetch(k->feed, l->file, l->offset, l->bytes, k->area + k->place[load], false,
                           &k->fetches[load], fail);
}

static int make_area(struct lock *k, struct brig_fail *fail)
{
    for (uint32_t i = 0; i < k->loads.n_loads; i++) {
        k->place[i] = k->bytes;
        k->bytes += k->loads.loads[i].bytes;
    }
    k->area =
        mmap(NULL, k->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (k->area == MAP_FAILED) {
        k->area = NULL;
        return brig_fail_errno(fail, BRIG_ENOMEM, "no memory for %llu bytes of weights",
                               (unsigned long long)k->bytes);
    }
    madvise(k->area, k->bytes, MADV_HUGEPAGE);
    k->refused = mlock2(k->area, k->bytes, MLOCK_ONFAULT) < 0; /* private memory all the same */
    return 0;
}

static int lock_begin(struct lock *k, struct brig_fail *fail)
{
    int r = brig_loads_build(&k->loads, k->slice, BRIG_HOLD_LOCK, brig_feed_align(k->feed),
                             BRIG_LOAD_MAX_BYTES, fail);
    if (r < 0 || k->loads.n_loads == 0)
        return r;
    k->place = brig_alloc(k->loads.n_loads, sizeof *k->place);
    k->fetches = brig_alloc(k->loads.n_loads, sizeof *k->fetches);
    if (k->place == NULL || k->fetches == NULL)
        return brig_fail_set(fail, BRIG_ENOMEM, "out of memory for %u reads", k->loads.n_loads);
    r = make_area(k, fail);
    for (uint32_t i = 0; r == 0 && i < k->loads.n_loads; i++) {
        r = fetch(k, i, fail);
        if (r == -BRIG_ELIMIT) /* the rest when it is used */
            return 0;
    }
    return r;
}

static int lock_open(struct brig_weights *w, void **state, struct brig_fail *fail)
{
    if (w->feed == NULL)
        return 0;
    struct lock *k = brig_alloc(1, sizeof *k);
    if (k == NULL)
        return brig_fail_set(fail, BRIG_ENOMEM, "out of memory for the weights");
    k->feed = w->feed;
    k->slice = w->slice;
    *state = k;
    return lock_begin(k, fail);
}

static void lock_close(void *state)
{
    struct lock *k = state;
    if (k->area != NULL)
        munmap(k->area, k->bytes);
    brig_loads_release(&k->loads);
    brig_free(k->place);
    brig_free(k->fetches);
    brig_free(k);
}

static const uint8_t *lock_address(const void *state, uint32_t tensor, const struct brig_side *range)
{
    const struct lock *k = state;
    const struct brig_load_piece *p = &k->loads.pieces[k->loads.first[tensor]];
    (void)range;
    return k->area + k->place[p->load] + p->at;
}

static int lock_take(void *state, struct brig_entry *e, uint64_t row, bool wait, struct brig_matrix *ret,
                     struct brig_fail *fail)
{
    struct lock *k = state;
    uint32_t load = k->loads.pieces[k->loads.first[e->tensor]].load;
    struct brig_fetch *f = &k->fetches[load];
    (void)row;
    if (f->state == BRIG_FETCH_READING)
        brig_feed_poll(k->feed);
    if (f->state == BRIG_FETCH_READING && !wait)
        return 0;
    int r = f->state == BRIG_FETCH_IDLE ? fetch(k, load, fail) : 0;
    if (r == 0 && f->state != BRIG_FETCH_READY) {
        r = brig_feed_wait(k->feed, f, fail);
        if (f->state == BRIG_FETCH_FAILED) /* who comes again asks again */
            f->state = BRIG_FETCH_IDLE;
    }
    if (r < 0)
        return r;
    *ret = e->matrix;
    return 1;
}

static void lock_add_stats(const void *state, struct brig_weights_stats *s)
{
    const struct lock *k = state;
    s->held_bytes += k->bytes;
    s->unlocked_bytes += k->refused ? k->bytes : 0;
}

extern const struct brig_hold_ops brig_hold_lock;

const struct brig_hold_ops brig_hold_lock = {
    .hold = BRIG_HOLD_LOCK,
    .name = "lock",
    .open = lock_open,
    .close = lock_close,
    .address = lock_address,
    .take = lock_take,
    .add_stats = lock_add_stats,
};
