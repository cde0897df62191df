/* The files of a group, and the groups of ours: made, joined, swept away. */
#include "launcher/cgroup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proto/base/parse.h"
#include "proto/base/proc.h"

#define PREFIX "brigade-"

const struct brig_cgroup_files brig_cgroup_files_1 = {
    .limit = "memory.limit_in_bytes",
    .usage = "memory.usage_in_bytes",
    .peak = "memory.max_usage_in_bytes",
    .events = "memory.oom_control",
    .events_key = "oom_kill",
};
const struct brig_cgroup_files brig_cgroup_files_2 = {
    .limit = "memory.max",
    .usage = "memory.current",
    .peak = "memory.peak",
    .swap = "memory.swap.current",
    .events = "memory.events",
    .events_key = "oom_kill",
};

bool brig_cgroup_read(const char *dir, const char *file, char *out, size_t cap)
{
    ssize_t n = brig_proc_read(out, cap, "%s/%s", dir, file);
    for (ssize_t end = n; end > 0 && out[end - 1] == '\n';)
        out[--end] = '\0';
    return n >= 0;
}

static bool number(const char *text, uint64_t *ret)
{
    if (strcmp(text, "max") != 0)
        return brig_parse_u64(text, ret);
    *ret = UINT64_MAX;
    return true;
}

bool brig_cgroup_number(const char *dir, const char *file, uint64_t *ret)
{
    char text[64];
    return brig_cgroup_read(dir, file, text, sizeof text) && number(text, ret);
}

bool brig_cgroup_line(const char *dir, const char *file, const char *key, uint64_t *ret)
{
    char text[8192], *save = NULL;
    size_t n = strlen(key);
    if (!brig_cgroup_read(dir, file, text, sizeof text))
        return false;
    for (char *line = strtok_r(text, "\n", &save); line != NULL; line = strtok_r(NULL, "\n", &save))
        if (strncmp(line, key, n) == 0 && line[n] == ' ')
            return number(line + n + 1, ret);
    return false;
}

bool brig_cgroup_word(const char *dir, const char *file, const char *word)
{
    char text[4096], *save = NULL;
    if (!brig_cgroup_read(dir, file, text, sizeof text))
        return false;
    for (char *w = strtok_r(text, " \n", &save); w != NULL; w = strtok_r(NULL, " \n", &save))
        if (strcmp(w, word) == 0)
            return true;
    return false;
}

static int open_to_write(const char *dir, const char *file)
{
    char path[PATH_MAX + 64];
    int n = snprintf(path, sizeof path, "%s/%s", dir, file);
    if (n < 0 || (size_t)n >= sizeof path) {
        errno = ENAMETOOLONG;
        return -1;
    }
    return open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);
}

int brig_cgroup_write(const char *dir, const char *file, const char *text, struct brig_fail *fail)
{
    int fd = open_to_write(dir, file);
    ssize_t want = (ssize_t)strlen(text), got = -1;
    if (fd >= 0) {
        do {
            got = write(fd, text, (size_t)want);
        } while (got < 0 && errno == EINTR);
        int kept = errno;
        close(fd);
        errno = kept;
    }
    if (got == want)
        return 0;
    if (got >= 0)
        errno = EIO;
    return brig_fail_errno(fail, BRIG_EIO, "%.200s/%s", dir, file);
}

int brig_cgroup_write_number(const char *dir, const char *file, uint64_t value, struct brig_fail *fail)
{
    char text[32];
    snprintf(text, sizeof text, "%" PRIu64, value);
    return brig_cgroup_write(dir, file, text, fail);
}

int brig_cgroup_join(const char *dir, struct brig_fail *fail)
{
    return brig_cgroup_write_number(dir, "cgroup.procs", (uint64_t)getpid(), fail);
}

/* ---- groups of ours ---- */

bool brig_cgroup_own_name(const char *root, char out[BRIG_CGROUP_NAME])
{
    uint64_t start;
    if (!brig_proc_start_ticks(root, getpid(), &start))
        return false;
    snprintf(out, BRIG_CGROUP_NAME, PREFIX "%ld-%" PRIu64, (long)getpid(), start);
    return true;
}

int brig_cgroup_make(const char *root, const char *parent, char dir[PATH_MAX], struct brig_fail *fail)
{
    char name[BRIG_CGROUP_NAME];
    brig_cgroup_sweep(root, parent);
    if (!brig_cgroup_own_name(root, name))
        return brig_fail_set(fail, BRIG_EIO, "/proc/self/stat: no start time");
    int n = snprintf(dir, PATH_MAX, "%s/%s", parent, name);
    if (n < 0 || n >= PATH_MAX)
        return brig_fail_set(fail, BRIG_ELIMIT, "%.200s: the path is too long", parent);
    /* One that is there has our own name: an earlier attempt of this very process. */
    if (mkdir(dir, 0755) < 0 && errno != EEXIST)
        return brig_fail_errno(fail, BRIG_EIO, "%.200s", dir);
    return 0;
}

/* "brigade-PID-START" of a process that is no more. */
static bool is_stale(const char *root, const char *name)
{
    char copy[BRIG_CGROUP_NAME], *save = NULL;
    uint64_t pid, start, now;
    if (strncmp(name, PREFIX, sizeof PREFIX - 1) != 0 || strlen(name) >= sizeof copy)
        return false;
    memcpy(copy, name, strlen(name) + 1);
    char *first = strtok_r(copy + sizeof PREFIX - 1, "-", &save);
    char *second = strtok_r(NULL, "", &save);
    if (first == NULL || second == NULL || !brig_parse_u64(first, &pid) || !brig_parse_u64(second, &start) ||
        pid == 0 || pid > INT_MAX)
        return false;
    return !brig_proc_start_ticks(root, (pid_t)pid, &now) || now != start;
}

unsigned brig_cgroup_sweep(const char *root, const char *parent)
{
    char dir[PATH_MAX];
    unsigned n = 0;
    DIR *d = opendir(parent);
    if (d == NULL)
        return 0;
    for (struct dirent *e; (e = readdir(d)) != NULL;) {
        int len = snprintf(dir, sizeof dir, "%s/%s", parent, e->d_name);
        /* The kernel refuses to remove a group that holds a process. */
        if (len > 0 && (size_t)len < sizeof dir && is_stale(root, e->d_name) && rmdir(dir) == 0)
            n++;
    }
    closedir(d);
    return n;
}
