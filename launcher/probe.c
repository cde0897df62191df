/* Which machine and disk this is; measuring, or remembering what was measured. */
#include "launcher/probe_parts.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/utsname.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include "proto/base/buf.h"

/* Short ones: beside other work a few of them find all CPUs free. Each piece is larger than a cache, and has
 * left it when its turn comes again. */
#define MEMORY_PIECES  4u
#define MEMORY_SAMPLES (6u * MEMORY_PIECES)

/* Samples of an idle machine lie within a tenth of each other. */
#define MEMORY_SPREAD 1.5

static uint32_t count_cpus(void)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    int n = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 0;
    return n > 0 ? (uint32_t)n : 1;
}

static uint32_t count_online(void)
{
    long n = sysconf(_SC_NPROCESSORS_ONLN);
    return n > 0 ? (uint32_t)n : count_cpus();
}

static void name_host(struct brig_probe *p)
{
    struct utsname u;
    if (uname(&u) < 0)
        memset(&u, 0, sizeof u);
    snprintf(p->host, sizeof p->host, "%.64s %.64s %u CPUs", u.nodename, u.release, count_cpus());
}

static int name_device(struct brig_probe *p, const struct brig_disk_file *f, struct brig_fail *fail)
{
    struct stat st;
    struct statfs fs;
    char path[64], target[PATH_MAX];
    if (fstat(f->fd, &st) < 0 || fstatfs(f->fd, &fs) < 0)
        return brig_fail_errno(fail, BRIG_EIO, "%s", f->name);
    snprintf(p->device, sizeof p->device, "%lx:%x%x %u:%u", (unsigned long)fs.f_type,
             (unsigned)fs.f_fsid.__val[0], (unsigned)fs.f_fsid.__val[1], major(st.st_dev), minor(st.st_dev));
    snprintf(path, sizeof path, "/sys/dev/block/%u:%u", major(st.st_dev), minor(st.st_dev));
    ssize_t n = readlink(path, target, sizeof target - 1);
    target[n > 0 ? n : 0] = '\0';
    const char *slash = strrchr(target, '/');
    snprintf(p->disk, sizeof p->disk, "%.63s", slash != NULL ? slash + 1 : "");
    return 0;
}

/* The largest regular file of a folder. */
static int largest(const char *folder, struct brig_buf *ret, struct brig_fail *fail)
{
    uint64_t most = 0;
    DIR *d = opendir(folder);
    if (d == NULL)
        return brig_fail_errno(fail, BRIG_EIO, "%s", folder);
    int r = 0;
    for (const struct dirent *e; r == 0 && (e = readdir(d)) != NULL;) {
        struct stat st;
        if (fstatat(dirfd(d), e->d_name, &st, 0) < 0 || !S_ISREG(st.st_mode) || (uint64_t)st.st_size <= most)
            continue;
        most = (uint64_t)st.st_size;
        brig_buf_clear(ret);
        r = brig_buf_printf(ret, "%s/%s", folder, e->d_name);
    }
    closedir(d);
    if (r < 0)
        return brig_fail_set(fail, (enum brig_err) - r, "%s: no memory for a file's name", folder);
    return most > 0 ? 0
                    : brig_fail_set(fail, BRIG_EIO, "%s: no file in this folder that could be read", folder);
}

static int open_file(struct brig_disk_file *ret, const char *path, struct brig_fail *fail)
{
    struct stat st;
    struct brig_buf inside = {0};
    if (stat(path, &st) < 0)
        return brig_fail_errno(fail, BRIG_EIO, "%s", path);
    int r = S_ISDIR(st.st_mode) ? largest(path, &inside, fail) : 0;
    if (r == 0)
        r = brig_disk_file_open(ret, inside.data != NULL ? inside.data : path, false, fail);
    brig_buf_release(&inside);
    return r;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static int measure_memory(struct brig_probe *p, uint32_t threads, struct brig_fail *fail)
{
    double v[MEMORY_SAMPLES];
    p->memory_threads = threads != 0 ? threads : count_cpus();
    p->cpus = count_online();
    if (getloadavg(&p->load, 1) != 1)
        p->load = 0;
    int r = brig_probe_memory(p->memory_threads, MEMORY_SAMPLES, MEMORY_PIECES, v, fail);
    if (r < 0)
        return r;
    qsort(v, MEMORY_SAMPLES, sizeof *v, by_size);
    p->memory_bytes_s = v[MEMORY_SAMPLES - 1];
    p->memory_median_bytes_s = v[MEMORY_SAMPLES / 2];
    return 0;
}

bool brig_probe_busy(const struct brig_probe *p)
{
    return p->load > p->cpus || p->memory_bytes_s > MEMORY_SPREAD * p->memory_median_bytes_s;
}

uint32_t brig_probe_age_s(struct brig_probe *p)
{
    bool noisy = brig_probe_noisy(p);
    if (!brig_probe_busy(p))
        return noisy ? BRIG_PROBE_NOISY_AGE_S : BRIG_PROBE_MAX_AGE_S;
    if (p->note[0] == '\0' || noisy)
        snprintf(p->note, sizeof p->note,
                 "the machine had other work (load %.1f with %u CPUs; memory %.1f GB/s at best, half of the "
                 "samples "
                 "below %.1f): measure again when it is idle",
                 p->load, p->cpus, p->memory_bytes_s / 1e9, p->memory_median_bytes_s / 1e9);
    return BRIG_PROBE_BUSY_AGE_S;
}

static int measure(struct brig_probe *p, const struct brig_disk_file *f, const struct brig_probe_opts *o,
                   uint64_t now_s, struct brig_fail *fail)
{
    int r = measure_memory(p, o->threads, fail);
    if (r == 0)
        r = brig_probe_disk(p, f, o, fail);
    if (r < 0)
        return r;
    p->measured_s = now_s;
    brig_probe_age_s(p); /* for its note */
    if (p->disk_bytes_s == 0 || p->rough)
        return 0;
    struct brig_fail why;
    if (brig_probe_remember(p, &why) < 0)
        snprintf(p->note, sizeof p->note, "not remembered: %.230s", why.text);
    return 0;
}

/* What is remembered, unless it was of other threads than are asked for. */
static bool recall(struct brig_probe *p, const struct brig_probe_opts *o, uint64_t now_s)
{
    struct brig_probe old = *p;
    if (o->fresh || !brig_probe_recall(&old, now_s) || (o->threads != 0 && old.memory_threads != o->threads))
        return false;
    *p = old;
    return true;
}

static int probe_file(struct brig_probe *p, const char *path, const struct brig_probe_opts *o, uint64_t now_s,
                      struct brig_fail *fail)
{
    struct brig_disk_file f;
    int r = open_file(&f, path, fail);
    if (r < 0)
        return r;
    r = name_device(p, &f, fail);
    bool known = r == 0 && recall(p, o, now_s);
    if (r == 0 && !known && !o->only_remembered)
        r = measure(p, &f, o, now_s, fail);
    brig_disk_file_close(&f);
    return r;
}

int brig_probe_cached(struct brig_probe *ret, const char *path, const struct brig_probe_opts *opts,
                      struct brig_fail *fail)
{
    static const struct brig_probe_opts defaults;
    const struct brig_probe_opts *o = opts != NULL ? opts : &defaults;
    uint64_t now_s = (uint64_t)time(NULL);
    memset(ret, 0, sizeof *ret);
    name_host(ret);
    if (path != NULL)
        return probe_file(ret, path, o, now_s, fail);
    ret->measured_s = now_s;
    snprintf(ret->why, sizeof ret->why, "no file was named whose disk could be read");
    int r = measure_memory(ret, o->threads, fail);
    if (r == 0)
        brig_probe_age_s(ret); /* for its note */
    return r;
}
