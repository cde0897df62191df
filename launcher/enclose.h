/*
 * The enclosure: a memory cgroup of the size of the budget around all processes of a run, so that the kernel
 * holds Brigade to its word and counts page cache and its own memory too.
 *
 * A process that has allocated before it joins a group leaves those bytes with the group that it came from.
 * So the driver makes the group, joins it and executes itself anew; its shards are born inside. Where no way
 * of enclose.def is allowed the budget is counted and not enforced, and a line says why.
 *
 * Part of the launcher's public header (launcher/launcher.h), which the driver includes. All functions are
 * called from the main thread.
 */
#ifndef BRIG_LAUNCHER_ENCLOSE_H
#define BRIG_LAUNCHER_ENCLOSE_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "proto/base/err.h"

/* Ways to enclose. One row each in enclose.def, in the order in which they are tried. */
struct brig_way {
    const char *name; /* "cgroup1" */
    const char *help;
};
const struct brig_way *brig_way_at(unsigned i); /* NULL after the last row */

struct brig_enclosure {
    const struct brig_way *way; /* NULL: there is no budget */
    uint64_t bytes;             /* the budget; what the kernel holds us to, unless the way is "none" */
    uint64_t room_bytes; /* the least of the budget, the limits of groups above and the machine's memory */
    uint64_t oom_kills;  /* of the group before this process began */
    char dir[PATH_MAX];  /* folder of the group; "" with way "none" */
    char home[PATH_MAX]; /* folder of the group that the process was in before */
    char note[480];      /* one line for people, no newline; "" when there is nothing to say */
};

/*
 * Put this process into a group of `bytes` (rounded down to whole pages, at least one) and execute
 * /proc/self/exe anew with argv; it comes here again, finds itself inside and fills *ret. So 0 means: inside,
 * or no way was allowed (ret->way is "none" then). An environment variable tells the second call from the
 * first; it names this process by pid and start time, is good for one call, and is never inherited.
 *
 * Call it before anything is read from standard input and before threads are started. Groups that dead runs
 * left behind are removed on the way. Fails only when the program cannot be executed anew.
 */
int brig_enclose(struct brig_enclosure *ret, uint64_t bytes, char *const argv[], struct brig_fail *fail);

/* The budget that this process was executed anew for, 0 if it was not (or brig_enclose has been called):
 * what `--ram auto` meant the first time. */
uint64_t brig_enclosed_bytes(void);

/* Back to the group that the process came from, and the group of the budget is removed. All children have
 * been waited for. Does nothing where there is no group; called twice it does nothing the second time. A
 * process that was executed anew and fails before it calls brig_enclose leaves too: with {0}. */
void brig_enclosure_leave(struct brig_enclosure *e);

#define BRIG_ENCLOSURE_UNKNOWN UINT64_MAX /* the kernel does not say, or there is no group */

struct brig_enclosure_figures {
    uint64_t peak_bytes; /* most that the group has had, page cache and kernel memory included */
    uint64_t now_bytes;
    uint64_t swap_bytes; /* in swap now */
    uint64_t oom_kills;  /* processes of the group that were killed for memory since this process began */
};
void brig_enclosure_read(const struct brig_enclosure *e, struct brig_enclosure_figures *ret);

/* A shard of ours: when memory runs out it is to be killed before the driver, which can say what happened. */
void brig_enclosure_expose(const struct brig_enclosure *e, pid_t pid);

/* Was a process of ours that ended so (wait status) killed for memory? Then fills fail with a line that names
 * it and the budget, and returns true; else leaves fail alone. */
bool brig_enclosure_blame(const struct brig_enclosure *e, const char *name, int wait_status,
                          struct brig_fail *fail);

#endif
