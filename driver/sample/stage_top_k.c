/* Top-k: the k best, in order; all when k is 0, one when the draw is greedy. Weighs what it keeps. */
#include <math.h>

#include "driver/sample/stage.h"

static void apply(const struct brig_sample_opts *o, struct brig_sample_list *list)
{
    uint32_t k = o->temp == 0 ? 1 : o->top_k;
    if (k == 0 || k > list->n)
        k = list->n;
    brig_sample_order(list, k);
    list->n = k;
    list->weights[0] = 1; /* also when it is infinitely small: something is always drawn */
    double best = list->entries[0].logit;
    for (uint32_t i = 1; i < k; i++)
        list->weights[i] = exp(list->entries[i].logit - best);
}

const struct brig_sample_stage brig_sample_top_k = {
    .name = "top-k",
    .help = "--top-k: keep the k best",
    .apply = apply,
};
