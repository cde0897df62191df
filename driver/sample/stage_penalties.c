/* Penalties: tokens that were said lately lose a little. */
#include <float.h>
#include <math.h>

#include "driver/sample/stage.h"

static float penalised(const struct brig_sample_opts *o, float logit, uint32_t count)
{
    double x = logit;
    x = x > 0 ? x / o->repeat_penalty : x * o->repeat_penalty;
    x -= o->presence_penalty + o->frequency_penalty * count;
    /* What was finite stays finite: a wild penalty makes a token first or last, and no infinities meet. */
    if (x > FLT_MAX)
        x = FLT_MAX;
    else if (x < -FLT_MAX && logit > -INFINITY)
        x = -FLT_MAX;
    return (float)x + 0.0f;
}

static void apply(const struct brig_sample_opts *o, struct brig_sample_list *list)
{
    if (list->counts == NULL)
        return;
    for (uint32_t i = 0; i < list->n; i++) {
        struct brig_sample_entry *e = &list->entries[i];
        uint32_t count = list->counts[e->id];
        if (count > 0)
            e->logit = penalised(o, e->logit, count);
    }
}

const struct brig_sample_stage brig_sample_penalties = {
    .name = "penalties",
    .help = "--repeat-penalty, --presence-penalty, --frequency-penalty over --repeat-last-n tokens",
    .apply = apply,
};
