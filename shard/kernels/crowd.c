/* The policy of how many threads work, and the kernel's figures that it needs. Used by team.c. */
#include "shard/kernels/crowd.h"

#include <inttypes.h>
#include <stdio.h>

#include "proto/base/clock.h"
#include "proto/base/proc.h"

#define STAY_MIN_NS (100 * BRIG_NS_PER_MS)
#define STAY_MAX_NS (1600 * BRIG_NS_PER_MS)
#define FULL_NS     (1600 * BRIG_NS_PER_MS)
#define SOON_NS     (4 * BRIG_CROWD_WINDOW_NS) /* a wait so soon after a thread was let in is by that thread */

static void lower(struct brig_crowd *c, uint64_t now_ns)
{
    bool again = c->raised_ns != 0 && now_ns - c->raised_ns < SOON_NS;
    c->stay_ns = again && c->stay_ns * 2 <= STAY_MAX_NS ? c->stay_ns * 2 : again ? STAY_MAX_NS : STAY_MIN_NS;
    c->limit--;
    c->until_ns = now_ns + c->stay_ns;
}

unsigned brig_crowd_step(struct brig_crowd *c, uint64_t now_ns, uint64_t window_ns, uint64_t most_ns,
                         uint64_t least_ns)
{
    /* One that is alone should not wait at all. Where all of several wait, fewer would only leave more to
     * neighbours, or they got into each other's way, and the kernel is about to spread them. */
    bool alone = c->limit == 1;
    bool taken_off = now_ns >= c->ready_ns && most_ns > window_ns / (alone ? 10 : 4) &&
                     (alone || least_ns < window_ns / 8);
    unsigned before = c->limit;
    if (c->full) {
        c->full = now_ns < c->until_ns;
    } else if (taken_off && c->limit > 1) {
        lower(c, now_ns);
    } else if (taken_off && c->n_threads > 1) {
        c->full = true;
        c->limit = c->n_threads;
        c->until_ns = now_ns + FULL_NS;
    } else if (c->limit < c->n_threads && now_ns >= c->until_ns) {
        c->limit++;
        c->until_ns = now_ns + c->stay_ns;
        c->raised_ns = now_ns;
    }
    if (c->limit != before) /* the kernel needs a moment to spread the threads anew */
        c->ready_ns = now_ns + BRIG_CROWD_WINDOW_NS * 3 / 2;
    return c->limit;
}

bool brig_crowd_waited(int tid, uint64_t *ret_ns)
{
    char text[96];
    uint64_t ran_ns, waited_ns;
    if (brig_proc_read(text, sizeof text, "/proc/self/task/%d/schedstat", tid) <= 0 ||
        sscanf(text, "%" SCNu64 " %" SCNu64, &ran_ns, &waited_ns) != 2)
        return false;
    *ret_ns = waited_ns;
    return true;
}
