/*
 * How many threads of a team work beside busy neighbours. A thread that the kernel takes off its CPU in the
 * middle of a piece holds up the whole team until the neighbour's turn is over, a tick of the clock or more,
 * which is half a token of a small model. So when one of them waits for a CPU a good part of the time and
 * another does not, one fewer works: there is then a CPU for each, and nobody is taken off. Where all wait,
 * or one alone still does, all work.
 *
 * The kernel counts the waiting (/proc/self/task/N/schedstat); where it does not say, all threads work.
 */
#ifndef BRIG_SHARD_KERNELS_CROWD_H
#define BRIG_SHARD_KERNELS_CROWD_H

#include <stdbool.h>
#include <stdint.h>

#define BRIG_CROWD_WINDOW_NS 32000000ull /* eight ticks of 250 Hz */

/* All zeros but n_threads and limit, which begin as the size of the team. */
struct brig_crowd {
    unsigned n_threads;
    unsigned limit;     /* threads that work */
    uint64_t until_ns;  /* the present limit stands until then */
    uint64_t stay_ns;   /* how long the next lowering stands */
    uint64_t raised_ns; /* when a thread was last let in again */
    uint64_t ready_ns;  /* what was seen before is of the time before the last change */
    bool full;          /* fewer did not help */
};

/* A window has ended: of the threads that work, the one that waited most for a CPU waited most_ns of it, the
 * one that waited least least_ns. Returns the limit from here on. */
unsigned brig_crowd_step(struct brig_crowd *c, uint64_t now_ns, uint64_t window_ns, uint64_t most_ns,
                         uint64_t least_ns);

/* Nanoseconds that thread tid of this process has waited for a CPU in its life; false where it is not told.
 */
bool brig_crowd_waited(int tid, uint64_t *ret_ns);

#endif
