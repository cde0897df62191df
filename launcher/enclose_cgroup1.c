/* cgroup1: a group below our own in the memory hierarchy of version 1; root, or a folder that was given to
 * us. */
#include "launcher/enclose_way.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

extern const struct brig_way_ops brig_way_cgroup1;

/* Memory and memory + swap at the same size: nothing goes to swap. A kernel that does not count swap is asked
 * not to use it. */
static int set_limits(const char *dir, uint64_t bytes, struct brig_fail *why)
{
    uint64_t unused;
    int r = brig_cgroup_write_number(dir, brig_cgroup_files_1.limit, bytes, why);
    if (r < 0)
        return r;
    if (brig_cgroup_number(dir, "memory.memsw.limit_in_bytes", &unused))
        return brig_cgroup_write_number(dir, "memory.memsw.limit_in_bytes", bytes, why);
    return brig_cgroup_write_number(dir, "memory.swappiness", 0, why);
}

static int enter(const char *root, struct brig_enclosure *e, struct brig_fail *why)
{
    struct brig_cgroup own;
    int r = brig_cgroup_find(root, 1, &own, why);
    if (r < 0)
        return r;
    r = brig_way_join(root, own.dir, e, set_limits, why);
    if (r == 0)
        memcpy(e->home, own.dir, sizeof e->home);
    return r;
}

static void leave(const char *root, struct brig_enclosure *e)
{
    (void)root;
    if (brig_cgroup_join(e->home, NULL) == 0)
        rmdir(e->dir);
}

const struct brig_way_ops brig_way_cgroup1 = {
    .way = {.name = "cgroup1",
            .help = "a memory cgroup of version 1: memory and memory + swap limited to the budget"},
    .version = 1,
    .files = &brig_cgroup_files_1,
    .enter = enter,
    .leave = leave,
};
