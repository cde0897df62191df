/*
 * cgroup2: a group in the unified hierarchy. A group there holds either processes or groups whose memory is
 * limited, never both, so where ours can lie depends on where we are:
 *   - below our own group when its children may have limits (the root of the hierarchy);
 *   - below our own group when nobody else is in it: we step down and let children have limits (a container,
 * a service that may manage its groups);
 *   - beside our own group when that has no limit itself, so that nothing is escaped (a login session).
 * The kernel says whether we may write there; a part of the tree that was given to us needs no root.
 */
#include "launcher/enclose_way.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "proto/base/parse.h"

extern const struct brig_way_ops brig_way_cgroup2;

#define CHILDREN "cgroup.subtree_control"

static bool alone_in(const char *dir)
{
    char text[64];
    uint64_t pid;
    return brig_cgroup_read(dir, "cgroup.procs", text, sizeof text) && brig_parse_u64(text, &pid) &&
           pid == (uint64_t)getpid();
}

static int set_limits(const char *dir, uint64_t bytes, struct brig_fail *why)
{
    uint64_t unused;
    int r = brig_cgroup_write_number(dir, brig_cgroup_files_2.limit, bytes, why);
    /* A kernel without swap has no such file. */
    if (r == 0 && brig_cgroup_number(dir, "memory.swap.max", &unused))
        r = brig_cgroup_write_number(dir, "memory.swap.max", 0, why);
    return r;
}

/* Join first: a group with a process in it cannot let its children have limits. */
static int step_down(const char *root, const char *own, struct brig_enclosure *e, struct brig_fail *why)
{
    int r = brig_cgroup_make(root, own, e->dir, why);
    if (r < 0)
        return r;
    r = brig_cgroup_join(e->dir, why);
    if (r == 0) {
        r = brig_cgroup_write(own, CHILDREN, "+memory", why);
        if (r == 0)
            r = set_limits(e->dir, e->bytes, why);
        if (r < 0) {
            brig_cgroup_write(own, CHILDREN, "-memory", NULL);
            brig_cgroup_join(own, NULL);
        }
    }
    if (r < 0)
        rmdir(e->dir);
    return r;
}

static int beside(const char *root, const struct brig_cgroup *own, struct brig_enclosure *e,
                  struct brig_fail *why)
{
    struct brig_cgroup up;
    if (!brig_cgroup_parent(own, &up))
        return brig_fail_set(why, BRIG_EUNSUPPORTED,
                             "other processes are in the group of this one, which is the topmost");
    if (!brig_cgroup_word(up.dir, CHILDREN, "memory"))
        return brig_fail_set(why, BRIG_EUNSUPPORTED, "%.200s: its groups cannot have a limit of memory",
                             up.dir);
    if (brig_cgroup_confines(own->dir))
        return brig_fail_set(why, BRIG_EUNSUPPORTED,
                             "%.200s holds other processes and has a limit that is not to be escaped",
                             own->dir);
    return brig_way_join(root, up.dir, e, set_limits, why);
}

static int enter(const char *root, struct brig_enclosure *e, struct brig_fail *why)
{
    struct brig_cgroup own;
    int r = brig_cgroup_find(root, 2, &own, why);
    if (r < 0)
        return r;
    if (!brig_cgroup_word(own.dir, "cgroup.controllers", "memory"))
        return brig_fail_set(why, BRIG_EUNSUPPORTED, "%.200s has no control over memory", own.dir);
    if (brig_cgroup_word(own.dir, CHILDREN, "memory"))
        r = brig_way_join(root, own.dir, e, set_limits, why);
    else if (alone_in(own.dir))
        r = step_down(root, own.dir, e, why);
    else
        r = beside(root, &own, e, why);
    if (r == 0)
        memcpy(e->home, own.dir, sizeof e->home);
    return r;
}

/* Does a folder lie directly in another? */
static bool lies_in(const char *dir, const char *parent)
{
    size_t n = strlen(parent);
    return strncmp(dir, parent, n) == 0 && dir[n] == '/' && strchr(dir + n + 1, '/') == NULL;
}

static void leave(const char *root, struct brig_enclosure *e)
{
    struct brig_fail why;
    (void)root;
    int r = brig_cgroup_join(e->home, &why);
    if (r < 0 && lies_in(e->dir, e->home)) { /* we had stepped down: up again, unless others still need it */
        r = brig_cgroup_write(e->home, CHILDREN, "-memory", &why);
        if (r == 0)
            r = brig_cgroup_join(e->home, &why);
    }
    if (r == 0)
        rmdir(e->dir);
}

const struct brig_way_ops brig_way_cgroup2 = {
    .way = {.name = "cgroup2", .help = "a memory cgroup of version 2: memory limited to the budget, no swap"},
    .version = 2,
    .files = &brig_cgroup_files_2,
    .enter = enter,
    .leave = leave,
};
