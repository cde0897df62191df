/*
 * Samples, percentiles and what the kernel says of this process's memory. The memory readers use the stack
 * only: a shard calls them inside a pass, where nothing is allocated.
 */
#include "proto/stat/stat.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base/err.h"
#include "proto/base/mem.h"
#include "proto/base/proc.h"
#include "proto/base/size.h"

#define PERCENTILE_MAX 65536u

int brig_samples_init(struct brig_samples *s, unsigned cap)
{
    uint64_t *v = brig_alloc(cap, sizeof *v);
    if (v == NULL)
        return -BRIG_ENOMEM;
    *s = (struct brig_samples){.v = v, .cap = cap};
    return 0;
}

void brig_samples_release(struct brig_samples *s)
{
    brig_free(s->v);
    memset(s, 0, sizeof *s);
}

void brig_samples_add(struct brig_samples *s, uint64_t v)
{
    if (s->cap == 0)
        return;
    s->v[s->next] = v;
    s->next = (s->next + 1) % s->cap;
    if (s->n < s->cap)
        s->n++;
}

static int by_value(const void *a, const void *b)
{
    uint64_t x, y;
    memcpy(&x, a, sizeof x);
    memcpy(&y, b, sizeof y);
    return (x > y) - (x < y);
}

uint64_t brig_percentile(const uint64_t *v, unsigned n, double p)
{
    if (n > PERCENTILE_MAX)
        n = PERCENTILE_MAX;
    if (n == 0)
        return 0;
    uint64_t *copy = brig_alloc(n, sizeof *copy);
    if (copy == NULL)
        return 0;
    memcpy(copy, v, n * sizeof *copy);
    qsort(copy, n, sizeof *copy, by_value);
    double rank = ceil(p / 100.0 * (double)n); /* nearest rank: the smallest value with p % at or below it */
    unsigned i = !(rank >= 1) ? 0 : rank >= (double)n ? n - 1 : (unsigned)rank - 1;
    uint64_t r = copy[i];
    brig_free(copy);
    return r;
}

/* The number in the line of a kernel file that begins with `key`; 0 when there is none. */
static uint64_t number_line(const char *path, const char *key)
{
    char text[4096];
    uint64_t v;
    return brig_proc_read(text, sizeof text, "%s", path) > 0 && brig_proc_number(text, key, &v) ? v : 0;
}

uint64_t brig_pss_bytes(void)
{
    return number_line("/proc/self/smaps_rollup", "Pss:") * 1024;
}

uint64_t brig_peak_rss_bytes(void)
{
    return number_line("/proc/self/status", "VmHWM:") * 1024;
}

static uint64_t peak_in(const char *mount, const char *group, const char *file)
{
    char text[64];
    uint64_t v;
    return brig_proc_read(text, sizeof text, "%s%s/%s", mount, group, file) > 0 &&
                   brig_proc_number(text, "", &v)
               ? v
               : 0;
}

uint64_t brig_cgroup_peak_bytes(void)
{
    char text[4096], group[1024];
    if (brig_proc_read(text, sizeof text, "/proc/self/cgroup") <= 0)
        return 0;
    uint64_t peak = 0;
    /* Inside a container the path may be one of the outside: the mount's own root is then this group. */
    if (brig_proc_group(text, "", group, sizeof group)) {
        peak = peak_in("/sys/fs/cgroup", group, "memory.peak");
        if (peak == 0)
            peak = peak_in("/sys/fs/cgroup", "", "memory.peak");
    }
    if (peak == 0 && brig_proc_group(text, "memory", group, sizeof group)) {
        peak = peak_in("/sys/fs/cgroup/memory", group, "memory.max_usage_in_bytes");
        if (peak == 0)
            peak = peak_in("/sys/fs/cgroup/memory", "", "memory.max_usage_in_bytes");
    }
    return peak;
}

uint64_t brig_disk_read_bytes(pid_t pid)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%ld/io", (long)pid);
    return number_line(path, "read_bytes:");
}
