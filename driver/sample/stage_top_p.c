/* Top-p (Holtzman et al. 2019): the shortest beginning of the list that holds the share p of its probability.
 */
#include "driver/sample/stage.h"

static void apply(const struct brig_sample_opts *o, struct brig_sample_list *list)
{
    if (o->top_p >= 1)
        return;
    double sum = 0, kept = 0;
    for (uint32_t i = 0; i < list->n; i++)
        sum += list->weights[i];
    for (uint32_t i = 0; i < list->n; i++) {
        kept += list->weights[i];
        if (kept >= o->top_p * sum) {
            list->n = i + 1;
            return;
        }
    }
}

const struct brig_sample_stage brig_sample_top_p = {
    .name = "top-p",
    .help = "--top-p: keep the best until they hold this share of the probability",
    .apply = apply,
};
