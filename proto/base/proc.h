/*
 * What the kernel says in small text files (/proc, /sys, control groups), read into memory of the caller: a
 * shard reads some inside a pass, where nothing is allocated.
 */
#ifndef BRIG_PROTO_BASE_PROC_H
#define BRIG_PROTO_BASE_PROC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* At most cap - 1 bytes from the beginning of a file, then a NUL; the path is put together as by printf. How
 * many; -1 when there is no such file, or it cannot be read: out is "" then. */
ssize_t brig_proc_read(char *out, size_t cap, const char *path, ...) __attribute__((format(printf, 3, 4)));

/* The decimal number that stands, perhaps after blanks, behind `key` in the first line that begins with it.
 * False when there is none. key "": the number that the text begins with. */
bool brig_proc_number(const char *text, const char *key, uint64_t *ret);

/* Is `word` one of the words of a comma-separated list of n bytes? "" is the one word of an empty list. */
bool brig_proc_listed(const char *list, size_t n, const char *word);

/* Of the text of /proc/PID/cgroup, "number:controllers:path" a line: the path in the hierarchy of a
 * controller ("memory"), or, for "", in the unified one of version 2. False when there is none, or it does
 * not fit. */
bool brig_proc_group(const char *text, const char *controller, char *out, size_t cap);

/* When a process was started, in clock ticks since the machine was. root: the folder that /proc lies in, ""
 * outside tests. False: there is no such process. */
bool brig_proc_start_ticks(const char *root, pid_t pid, uint64_t *ret);

#endif
