/* The table of ways to enclose, the choice of one, and what those that make a group share. */
#include "launcher/enclose_way.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define BRIG_WAY(object) extern const struct brig_way_ops object;
#include "launcher/enclose.def"
#undef BRIG_WAY

static const struct brig_way_ops *const ways[] = {
#define BRIG_WAY(object) &object,
#include "launcher/enclose.def"
#undef BRIG_WAY
};
#define N_WAYS (sizeof ways / sizeof *ways)

const struct brig_way *brig_way_at(unsigned i)
{
    return i < N_WAYS ? &ways[i]->way : NULL;
}

const struct brig_way_ops *brig_way_ops_by_name(const char *name)
{
    for (unsigned i = 0; i < N_WAYS; i++)
        if (strcmp(ways[i]->way.name, name) == 0)
            return ways[i];
    return NULL;
}

static void add_reason(struct brig_enclosure *e, const char *name, const struct brig_fail *why)
{
    size_t at = strlen(e->note);
    snprintf(e->note + at, sizeof e->note - at, "%s%s: %.130s", at == 0 ? "" : "; ", name, why->text);
}

int brig_way_join(const char *root, const char *parent, struct brig_enclosure *e, brig_way_limit_fn limit,
                  struct brig_fail *why)
{
    int r = brig_cgroup_make(root, parent, e->dir, why);
    if (r < 0)
        return r;
    r = limit(e->dir, e->bytes, why);
    if (r == 0)
        r = brig_cgroup_join(e->dir, why);
    if (r < 0)
        rmdir(e->dir);
    return r;
}

const struct brig_way_ops *brig_way_choose(const char *root, struct brig_enclosure *e)
{
    e->note[0] = '\0';
    for (unsigned i = 0; i < N_WAYS; i++) {
        struct brig_fail why = {0};
        e->dir[0] = e->home[0] = '\0';
        if (ways[i]->enter(root, e, &why) == 0) {
            e->way = &ways[i]->way;
            if (ways[i]->files != NULL)
                e->note[0] = '\0';
            return ways[i];
        }
        add_reason(e, ways[i]->way.name, &why);
    }
    return NULL; /* the last row does not fail */
}
