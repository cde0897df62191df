/*
 * Samples, percentiles and what the kernel says of this process's memory. The memory readers use the stack
 * only: a shard calls them inside a pass, where nothing is allocated.
 */
#include "proto/stat/stat.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "proto/base/err.h"
#include "proto/base/mem.h"
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

/* Reads at most n - 1 bytes of a small kernel file; false when there is nothing. */
static bool read_small(const char *path, char *out, size_t n)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    size_t len = 0;
    while (len < n - 1) {
        ssize_t r = read(fd, out + len, n - 1 - len);
        if (r < 0 && errno == EINTR)
            continue;
        if (r <= 0)
            break;
        len += (size_t)r;
    }
    close(fd);
    out[len] = '\0';
    return len > 0;
}

static uint64_t leading_number(const char *s)
{
    errno = 0;
    unsigned long long v = strtoull(s, NULL, 10);
    return errno == 0 ? v : 0;
}

/* The number in the line of a kernel file that begins with `start` (after a line feed). */
static uint64_t number_line(const char *path, const char *start)
{
    char text[4096];
    if (!read_small(path, text, sizeof text))
        return 0;
    const char *line = strstr(text, start);
    return line == NULL ? 0 : leading_number(line + strlen(start));
}

/* The same in KiB, as bytes. */
static uint64_t kib_line(const char *path, const char *start)
{
    return number_line(path, start) * 1024;
}

uint64_t brig_pss_bytes(void)
{
    return kib_line("/proc/self/smaps_rollup", "\nPss:");
}

uint64_t brig_peak_rss_bytes(void)
{
    return kib_line("/proc/self/status", "\nVmHWM:");
}

/* The rest of the line in /proc/self/cgroup that begins "<any number>:<controller>:". */
static bool cgroup_path(const char *text, const char *controller, char *out, size_t n)
{
    size_t want = strlen(controller);
    for (const char *line = text; line != NULL && *line != '\0';) {
        const char *end = strchrnul(line, '\n');
        const char *list = memchr(line, ':', (size_t)(end - line));
        const char *path = list == NULL ? NULL : memchr(list + 1, ':', (size_t)(end - list - 1));
        if (path != NULL && (size_t)(path - list - 1) == want && memcmp(list + 1, controller, want) == 0) {
            size_t len = (size_t)(end - path - 1);
            if (len >= n)
                return false;
            memcpy(out, path + 1, len);
            out[len] = '\0';
            return true;
        }
        line = *end == '\0' ? NULL : end + 1;
    }
    return false;
}

static uint64_t peak_in(const char *mount, const char *group, const char *file)
{
    char path[2048], text[64];
    int n = snprintf(path, sizeof path, "%s%s/%s", mount, group, file);
    if (n < 0 || (size_t)n >= sizeof path || !read_small(path, text, sizeof text))
        return 0;
    return leading_number(text);
}

uint64_t brig_cgroup_peak_bytes(void)
{
    char text[4096], group[1024];
    if (!read_small("/proc/self/cgroup", text, sizeof text))
        return 0;
    uint64_t peak = 0;
    /* Inside a container the path may be one of the outside: the mount's own root is then this group. */
    if (cgroup_path(text, "", group, sizeof group)) {
        peak = peak_in("/sys/fs/cgroup", group, "memory.peak");
        if (peak == 0)
            peak = peak_in("/sys/fs/cgroup", "", "memory.peak");
    }
    if (peak == 0 && cgroup_path(text, "memory", group, sizeof group)) {
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
    return number_line(path, "\nread_bytes:");
}
