/* Experts of a layer, brought near for the rows that chose them. */
#include "shard/weights/parts.h"

static const enum brig_role EXPERT_ROLES[] = {BRIG_ROLE_EXPERT_GATE, BRIG_ROLE_EXPERT_UP,
                                              BRIG_ROLE_EXPERT_DOWN};

/* Those that are read in at the start may still be on their way. */
static int await(struct brig_weights *w, uint32_t layer, uint32_t expert, struct brig_fail *fail)
{
    for (unsigned i = 0; i < sizeof EXPERT_ROLES / sizeof EXPERT_ROLES[0]; i++) {
        const struct brig_entry *e = brig_weights_entry(w, EXPERT_ROLES[i], layer, expert);
        struct brig_matrix m;
        int r = e != NULL ? brig_weights_take(w, &e->matrix, 0, true, &m, fail) : 0;
        if (r < 0)
            return r;
    }
    return 0;
}

int brig_weights_experts_take(struct brig_weights *w, uint32_t layer, const uint32_t *experts, uint32_t n,
                              uint32_t *ret_n, struct brig_fail *fail)
{
    for (uint32_t i = 0; i < n; i++) {
        int r = await(w, layer, experts[i], fail);
        if (r < 0)
            return r;
    }
    *ret_n = n;
    return 0;
}

void brig_weights_experts_give(struct brig_weights *w, uint32_t layer)
{
    (void)layer;
    brig_weights_give(w);
}
