/* none: no group. The plan counts what is allocated, and nothing holds it to that. */
#include "launcher/enclose_way.h"

extern const struct brig_way_ops brig_way_none;

static int enter(const char *root, struct brig_enclosure *e, struct brig_fail *why)
{
    (void)root;
    (void)e;
    (void)why;
    return 0;
}

const struct brig_way_ops brig_way_none = {
    .way = {.name = "none", .help = "the budget is counted and not enforced: where no group is allowed"},
    .enter = enter,
};
