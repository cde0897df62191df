/* Experts of a layer, brought near for the rows that chose them: those that are streamed from their cache,
 * the others as any matrix. */
#include "proto/model/experts.h"
#include "shard/weights/expert_cache.h"

/* Those that are read in at the start may still be on their way. */
static int await(struct brig_weights *w, uint32_t layer, uint32_t expert, struct brig_fail *fail)
{
    for (unsigned i = 0; i < BRIG_EXPERT_PARTS; i++) {
        const struct brig_entry *e = brig_weights_entry(w, brig_expert_part_role(i), layer, expert);
        struct brig_matrix m;
        int r = e != NULL && e->hold != BRIG_HOLD_STREAM ? brig_weights_take(w, &e->matrix, 0, true, &m, fail)
                                                         : 0;
        if (r < 0)
            return r;
    }
    return 0;
}

int brig_weights_experts_take(struct brig_weights *w, uint32_t layer, uint32_t *experts, uint32_t n,
                              uint32_t *ret_n, struct brig_fail *fail)
{
    for (uint32_t i = 0; i < n; i++) {
        int r = await(w, layer, experts[i], fail);
        if (r < 0)
            return r;
    }
    *ret_n = n;
    return w->experts != NULL ? brig_expert_cache_take(w->experts, layer, experts, n, ret_n, fail) : 0;
}

void brig_weights_experts_give(struct brig_weights *w, uint32_t layer)
{
    (void)layer;
    if (w->experts != NULL)
        brig_expert_cache_give(w->experts);
    brig_weights_give(w);
}

bool brig_weights_experts_guessed(const struct brig_weights *w)
{
    return w->experts != NULL;
}

void brig_weights_experts_guess(struct brig_weights *w, uint32_t layer, const uint32_t *experts, uint32_t n)
{
    if (w->experts != NULL)
        brig_expert_cache_guess(w->experts, layer, experts, n);
}
