/*
 * Reads the affinity mask and the cgroup files that limit CPU time. Called once at a shard's start, to choose
 * the number of threads. A file that is missing or not understood limits nothing: this is a default, which
 * people override with a flag.
 */
#include "shard/kernels/cpus.h"

#include <inttypes.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>

#include "proto/base/mem.h"
#include "proto/base/proc.h"

enum { PATH_BYTES = 4096, MASK_CPUS_MAX = 1 << 20 };

unsigned brig_cpus_affinity(void)
{
    for (size_t n = 1024; n <= MASK_CPUS_MAX; n *= 2) { /* the kernel refuses a mask that is too short */
        cpu_set_t *set = CPU_ALLOC(n);
        if (set == NULL)
            return 1;
        int rc = sched_getaffinity(0, CPU_ALLOC_SIZE(n), set);
        int count = rc == 0 ? CPU_COUNT_S(CPU_ALLOC_SIZE(n), set) : 0;
        CPU_FREE(set);
        if (rc == 0)
            return count > 0 ? (unsigned)count : 1;
    }
    return 1;
}

static unsigned smaller(unsigned a, unsigned b)
{
    return a == 0 || (b != 0 && b < a) ? b : a;
}

static unsigned whole_cpus(int64_t quota_us, int64_t period_us)
{
    if (quota_us <= 0 || period_us <= 0)
        return 0;
    int64_t n = quota_us / period_us + (quota_us % period_us != 0);
    return n < MASK_CPUS_MAX ? (unsigned)n : 0;
}

/* The quota that one cgroup folder sets, 0 for none. */
static unsigned folder_quota(const char *dir, bool v2)
{
    char line[128];
    int64_t quota_us = 0, period_us = 0;
    if (v2) {
        if (brig_proc_read(line, sizeof line, "%s/cpu.max", dir) <= 0 ||
            sscanf(line, "%" SCNd64 " %" SCNd64, &quota_us, &period_us) != 2) /* "max 100000" */
            return 0;
        return whole_cpus(quota_us, period_us);
    }
    if (brig_proc_read(line, sizeof line, "%s/cpu.cfs_quota_us", dir) <= 0 ||
        sscanf(line, "%" SCNd64, &quota_us) != 1 ||
        brig_proc_read(line, sizeof line, "%s/cpu.cfs_period_us", dir) <= 0 ||
        sscanf(line, "%" SCNd64, &period_us) != 1)
        return 0;
    return whole_cpus(quota_us, period_us);
}

/* root/path and each folder above it down to root itself. Inside a container the path may not exist below
 * root; root is then the container's own group. */
static unsigned path_quota(const char *root, const char *path, bool v2)
{
    char dir[PATH_BYTES];
    int n = snprintf(dir, sizeof dir, "%s%s", root, path);
    if (n < 0 || (size_t)n >= sizeof dir)
        return 0;
    unsigned least = 0;
    for (size_t root_len = strlen(root);;) {
        least = smaller(least, folder_quota(dir, v2));
        char *slash = strrchr(dir, '/');
        if (slash == NULL || slash < dir + root_len)
            return least;
        *slash = '\0';
    }
}

/* One line "number:controllers:path"; version 2 has no controllers. */
static unsigned line_quota(char *line, const char *root)
{
    line[strcspn(line, "\n")] = '\0';
    char *controllers = strchr(line, ':');
    char *path = controllers != NULL ? strchr(controllers + 1, ':') : NULL;
    if (path == NULL)
        return 0;
    *path++ = '\0';
    controllers++;
    if (*controllers == '\0')
        return path_quota(root, path, true);
    if (!brig_proc_listed(controllers, strlen(controllers), "cpu"))
        return 0;
    /* The mount is named after all controllers on it, with "cpu" alone as a link. */
    char mount[PATH_BYTES];
    unsigned least = 0;
    const char *names[] = {"cpu", controllers};
    for (size_t i = 0; i < 2; i++) {
        int n = snprintf(mount, sizeof mount, "%s/%s", root, names[i]);
        if (n > 0 && (size_t)n < sizeof mount)
            least = smaller(least, path_quota(mount, path, false));
    }
    return least;
}

unsigned brig_cpus_quota(const char *membership, const char *root)
{
    FILE *f = fopen(membership, "re");
    if (f == NULL)
        return 0;
    char *line = brig_alloc(1, PATH_BYTES);
    unsigned least = 0;
    while (line != NULL && fgets(line, PATH_BYTES, f) != NULL)
        least = smaller(least, line_quota(line, root));
    brig_free(line);
    fclose(f);
    return least;
}
