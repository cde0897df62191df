/*
 * A team's manners beside busy neighbours. A thread that the kernel takes off its CPU in the middle of a
 * piece holds up the whole team until the neighbour's turn is over, which is a tick of the clock or more (4
 * ms with HZ=250: half a token of a small model). So a thread that finds itself taken off gives its CPU away
 * of its own accord, for moments, between two pieces, when it holds none: as one that wakes, it then gets its
 * turn at once.
 */
#ifndef BRIG_SHARD_KERNELS_TURNS_H
#define BRIG_SHARD_KERNELS_TURNS_H

#include <stdbool.h>
#include <stdint.h>

/* Of one thread, used by that thread alone. All zeros is a good start. */
struct brig_turns {
    uint64_t wall_ns, cpu_ns; /* at the beginning of the present stretch of work */
    uint64_t shared_until_ns; /* a neighbour is believed to be there until then */
};

/* Once by each thread: ask the kernel for short turns that come soon. */
void brig_turns_init(void);
/* The thread has slept or will begin: what lies behind is not counted. */
void brig_turns_begin(struct brig_turns *t);
/* Between two pieces: rests for a moment when it is time. True when it has slept. */
bool brig_turns_pause(struct brig_turns *t, bool may_rest);
int brig_turns_mode(void);
bool brig_turns_shared(const struct brig_turns *t);
extern unsigned brig_turns_debug[8];

#endif
