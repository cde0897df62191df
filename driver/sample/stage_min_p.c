/* Min-p: what is at least a given part of the best one's probability. The best one weighs 1. */
#include "driver/sample/stage.h"

static void apply(const struct brig_sample_opts *o, struct brig_sample_list *list)
{
    uint32_t n = 1;
    while (n < list->n && list->weights[n] >= o->min_p)
        n++;
    list->n = n;
}

const struct brig_sample_stage brig_sample_min_p = {
    .name = "min-p",
    .help = "--min-p: drop what is less likely than this part of the best",
    .apply = apply,
};
