/* Time of process start, for "seconds since the program was started" figures. */
#include "proto/base/clock.h"

#include <unistd.h>

#include "proto/base/proc.h"

static uint64_t read_start_ns(void)
{
    uint64_t ticks;
    if (!brig_proc_start_ticks("", getpid(), &ticks))
        return 0;
    long hz = sysconf(_SC_CLK_TCK);
    struct timespec boot, mono;
    clock_gettime(CLOCK_BOOTTIME, &boot);
    clock_gettime(CLOCK_MONOTONIC, &mono);
    uint64_t asleep = (uint64_t)(boot.tv_sec - mono.tv_sec) * BRIG_NS_PER_S;
    uint64_t start = ticks * (BRIG_NS_PER_S / (uint64_t)(hz > 0 ? hz : 100));
    return start > asleep ? start - asleep : 0;
}

uint64_t brig_clock_process_start_ns(void)
{
    static uint64_t start;
    if (start == 0) {
        uint64_t now = brig_clock_ns();
        start = read_start_ns();
        if (start == 0 || start > now)
            start = now;
    }
    return start;
}
