/* The draw: one number of the counter-based stream decides; what it chose is left alone in the list. */
#include "driver/sample/philox.h"
#include "driver/sample/stage.h"

static void apply(const struct brig_sample_opts *o, struct brig_sample_list *list)
{
    double sum = 0, passed = 0;
    for (uint32_t i = 0; i < list->n; i++)
        sum += list->weights[i];
    double target = brig_philox_uniform(o->seed, list->index) * sum;
    uint32_t chosen = 0;
    for (uint32_t i = 0; i < list->n; i++) {
        passed += list->weights[i];
        if (list->weights[i] > 0)
            chosen = i;
        if (target < passed)
            break;
    }
    list->entries[0] = list->entries[chosen];
    list->n = 1;
}

const struct brig_sample_stage brig_sample_draw = {
    .name = "draw",
    .help = "--seed: one number a token, of a stream keyed by seed and token index",
    .apply = apply,
};
