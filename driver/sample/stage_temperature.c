/* Temperature: flattens or sharpens what is left. 0 leaves the best alone, which top-k has seen to. */
#include <math.h>

#include "driver/sample/stage.h"

static void apply(const struct brig_sample_opts *o, struct brig_sample_list *list)
{
    double best = list->entries[0].logit;
    for (uint32_t i = 1; i < list->n; i++)
        list->weights[i] = exp((list->entries[i].logit - best) / o->temp);
}

const struct brig_sample_stage brig_sample_temperature = {
    .name = "temperature",
    .help = "--temp: 1 as the model says, lower is bolder, 0 always takes the best",
    .apply = apply,
};
