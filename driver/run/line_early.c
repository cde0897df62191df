/* Processes that work once and are started before their turn: as many as the mode says, or as the plan has
 * room for. */
#include "driver/run/line_parts.h"

static unsigned most_early(const struct brig_line *l)
{
    return l->opts.plan != NULL ? l->opts.plan->n_ahead : l->opts.mode->ahead;
}

static uint64_t turn_bytes(const struct brig_line *l)
{
    return l->opts.turn_bytes != 0 || l->opts.plan == NULL ? l->opts.turn_bytes : l->opts.plan->turn_bytes;
}

struct brig_early brig_line_early_none(const struct brig_line *l, unsigned stage)
{
    return (struct brig_early){
        .bytes = brig_line_lives(l, stage) ? 0 : brig_launcher_slice_bytes(l->launcher, stage)};
}

bool brig_line_early(const struct brig_line *l, unsigned i, struct brig_early *e)
{
    uint64_t bytes = e->bytes + brig_launcher_slice_bytes(l->launcher, i), most = turn_bytes(l);
    if (e->n >= most_early(l) || (most != 0 && bytes > most))
        return false;
    *e = (struct brig_early){e->n + 1, bytes};
    return true;
}

bool brig_line_frugal(const struct brig_line *l)
{
    return l->opts.turn_bytes != 0 || (l->opts.plan != NULL && l->opts.plan->budget_bytes != 0);
}
