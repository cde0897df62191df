/* Monotonic time. Clocks of two machines are never compared. */
#ifndef BRIG_PROTO_BASE_CLOCK_H
#define BRIG_PROTO_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

#define BRIG_NS_PER_S  1000000000ull
#define BRIG_NS_PER_MS 1000000ull

static inline uint64_t brig_clock_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * BRIG_NS_PER_S + (uint64_t)t.tv_nsec;
}

/* When this process was started, on the same clock (from /proc/self/stat, to a hundredth of a second; falls
 * back to the time of the first call). */
uint64_t brig_clock_process_start_ns(void);

#endif
