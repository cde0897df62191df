/* EXPERIMENT */
#include "shard/kernels/turns.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "proto/base/clock.h"

struct attr {
    uint32_t size, policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t runtime, deadline, period;
    uint32_t umin, umax;
};
static int mode = -1;
static unsigned look_us, rest_us, lost_us, belief_ms, slice_us;
unsigned brig_turns_debug[8];

static unsigned env(const char *n, unsigned d)
{
    const char *s = getenv(n);
    return s ? (unsigned)strtoul(s, NULL, 10) : d;
}
int brig_turns_mode(void)
{
    if (mode < 0) {
        look_us = env("T_LOOK", 200);
        rest_us = env("T_REST", 200);
        lost_us = env("T_LOST", 1000);
        belief_ms = env("T_BELIEF", 100);
        slice_us = env("T_SLICE", 100);
        mode = (int)env("T_MODE", 0);
    }
    return mode;
}

void brig_turns_init(void)
{
    brig_turns_mode();
    if (mode & 1) {
        struct attr a = {.size = sizeof a,
                         .policy = (mode & 8) ? SCHED_BATCH : SCHED_OTHER,
                         .runtime = slice_us * 1000ull};
        syscall(SYS_sched_setattr, 0, &a, 0);
    }
    if (mode & 2)
        prctl(PR_SET_TIMERSLACK, 1000ul);
}

static uint64_t cpu_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * BRIG_NS_PER_S + (uint64_t)t.tv_nsec;
}

void brig_turns_begin(struct brig_turns *t)
{
    t->wall_ns = brig_clock_ns();
    t->cpu_ns = cpu_now();
}

bool brig_turns_shared(const struct brig_turns *t)
{
    return t->shared_until_ns != 0 && brig_clock_ns() < t->shared_until_ns;
}

bool brig_turns_pause(struct brig_turns *t, bool may_rest)
{
    if ((mode & 22) == 0)
        return false;
    uint64_t now = brig_clock_ns();
    if (now - t->wall_ns < look_us * 1000ull)
        return false;
    if (mode & 4) {
        sched_yield();
        t->wall_ns = brig_clock_ns();
        return false;
    }
    uint64_t cpu = cpu_now();
    bool lost = now - t->wall_ns > cpu - t->cpu_ns + lost_us * 1000ull;
    if (lost) {
        t->shared_until_ns = now + belief_ms * BRIG_NS_PER_MS;
        brig_turns_debug[0]++;
    }
    t->wall_ns = now;
    t->cpu_ns = cpu;
    if (now > t->shared_until_ns || !may_rest || !(mode & 2))
        return lost;
    struct timespec r = {.tv_nsec = (long)rest_us * 1000};
    nanosleep(&r, NULL);
    brig_turns_debug[1]++;
    brig_turns_begin(t);
    return lost;
}
