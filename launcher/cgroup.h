/*
 * Control groups as folders of files: where this process is, what limits hold there, groups of our own below.
 *
 * Nothing is assumed of paths: /proc/self/cgroup names the group, /proc/self/mountinfo where its hierarchy is
 * mounted and which part of it, and the folder must exist. `root` is the folder that /proc and /sys lie in:
 * "" outside tests.
 */
#ifndef BRIG_LAUNCHER_CGROUP_H
#define BRIG_LAUNCHER_CGROUP_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "proto/base/err.h"

/* What the files of a version are called. */
struct brig_cgroup_files {
    const char *limit, *usage, *peak;
    const char *swap;                /* bytes in swap; NULL: a line of memory.stat */
    const char *events, *events_key; /* the file and the line that count kills */
};
extern const struct brig_cgroup_files brig_cgroup_files_1, brig_cgroup_files_2;

struct brig_cgroup {
    char dir[PATH_MAX]; /* of the group, with root in front */
    size_t mount_len;   /* the mount point is that much of dir */
};

/* The memory group of this process in the hierarchy of that version (1 or 2). */
int brig_cgroup_find(const char *root, unsigned version, struct brig_cgroup *ret, struct brig_fail *fail);

/* The folder above, within the mount; false when dir is the mount point. */
bool brig_cgroup_parent(const struct brig_cgroup *g, struct brig_cgroup *ret);

/* Files of a group. Text has no newline at its end. A number may be "max": UINT64_MAX. */
bool brig_cgroup_read(const char *dir, const char *file, char *out, size_t cap);
bool brig_cgroup_number(const char *dir, const char *file, uint64_t *ret);
bool brig_cgroup_line(const char *dir, const char *file, const char *key, uint64_t *ret); /* "key number" */
bool brig_cgroup_word(const char *dir, const char *file, const char *word);
int brig_cgroup_write(const char *dir, const char *file, const char *text, struct brig_fail *fail);
int brig_cgroup_write_number(const char *dir, const char *file, uint64_t value, struct brig_fail *fail);
/* Move this process into the group. */
int brig_cgroup_join(const char *dir, struct brig_fail *fail);

/* The least limit of the group and all above it; where (a folder) is written when there is one. */
uint64_t brig_cgroup_least(const struct brig_cgroup *g, const struct brig_cgroup_files *files,
                           char where[PATH_MAX]);

/* Does this one group of version 2 limit memory or CPU time? Who leaves it would escape that. */
bool brig_cgroup_confines(const char *dir);

/* Groups of ours are called "brigade-PID-START", after the process (START: its start time in clock ticks), so
 * that those of dead runs are known. */
#define BRIG_CGROUP_NAME 64
bool brig_cgroup_own_name(const char *root, char out[BRIG_CGROUP_NAME]);
/* Our own below parent, after those of dead runs there were removed. */
int brig_cgroup_make(const char *root, const char *parent, char dir[PATH_MAX], struct brig_fail *fail);
/* Remove the groups of dead runs below parent; how many. One that still holds a process stays. */
unsigned brig_cgroup_sweep(const char *root, const char *parent);

#endif
