/* Ways to enclose, inside the launcher. One row in enclose.def, one file each. */
#ifndef BRIG_LAUNCHER_ENCLOSE_WAY_H
#define BRIG_LAUNCHER_ENCLOSE_WAY_H

#include "launcher/cgroup.h"
#include "launcher/enclose.h"

#define BRIG_WAY_PREFIX 16
#define BRIG_WAY_TEXT   512

struct brig_way_ops {
    struct brig_way way;
    unsigned version;                      /* of cgroups: 1 or 2; 0: no group */
    const struct brig_cgroup_files *files; /* NULL: no group */
    /*
     * Make the group e->bytes large and move this process into it: 0, with e->dir and e->home set. Or undo
     * what was done and say in *why what is not allowed here. One that leaves the work to a program which
     * executes ours (`prefix` below) only tries whether that would work. root: of cgroup.h.
     */
    int (*enter)(const char *root, struct brig_enclosure *e, struct brig_fail *why);
    /* Move this process to e->home and remove e->dir. NULL: there is nothing to do. */
    void (*leave)(const char *root, struct brig_enclosure *e);
    /* Optional: words that come before the program's own arguments when it is executed anew; at most
     * BRIG_WAY_PREFIX with the NULL after the last, in `words`, their text in `text`. */
    void (*prefix)(const struct brig_enclosure *e, char text[BRIG_WAY_TEXT], char *words[BRIG_WAY_PREFIX]);
};

/* Make a group below parent, after those of dead runs there were removed; limit it and join it: e->dir is
 * set. What half succeeded is undone. `limit` holds a group to so many bytes, as its version does. */
typedef int (*brig_way_limit_fn)(const char *dir, uint64_t bytes, struct brig_fail *why);
int brig_way_join(const char *root, const char *parent, struct brig_enclosure *e, brig_way_limit_fn limit,
                  struct brig_fail *why);

/* Try all ways in their order: the first that works, which has then been entered. The last row always works;
 * e->note says why the others did not. */
const struct brig_way_ops *brig_way_choose(const char *root, struct brig_enclosure *e);
const struct brig_way_ops *brig_way_ops_by_name(const char *name);

#endif
