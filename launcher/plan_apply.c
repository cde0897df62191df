/* A plan, told to the slices of its line. */
#include "launcher/plan.h"

static bool is_expert(enum brig_role role)
{
    return role >= BRIG_ROLE_EXPERT_FIRST && role < BRIG_ROLE_LAYER_COUNT;
}

/* Of all experts of the line, the share that a slice has: by layers with experts, which are alike. */
static double expert_share(const struct brig_plan *p, const struct brig_slice *s)
{
    uint32_t all = 0, here = 0;
    for (uint32_t i = 0; i < p->desc->n_layers; i++) {
        bool has = brig_desc_count(p->desc, BRIG_ROLE_EXPERT_UP, i) > 0;
        all += has;
        here += has && i >= s->cells.first && i < s->cells.last;
    }
    return all > 0 ? (double)here / all : 0;
}

void brig_plan_apply(const struct brig_plan *p, struct brig_slice *s)
{
    bool streams = false;
    for (unsigned i = 0; i < s->n_tensors; i++) {
        struct brig_slice_tensor *t = &s->tensors[i];
        uint32_t layer = t->role < BRIG_ROLE_LAYER_COUNT ? t->layer : p->desc->n_layers;
        bool expert = is_expert(t->role);
        t->hold = p->hold;
        if (p->hold == BRIG_HOLD_STREAM && !expert &&
            (t->rows == 1 || brig_plan_holds(p, t->role, layer, t->expert)))
            t->hold = BRIG_HOLD_LOCK;
        streams = streams || (t->hold == BRIG_HOLD_STREAM && !expert);
    }
    s->stream = p->speed.reading;
    s->stream.ring_bytes = streams ? p->ring_bytes : 0;
    s->stream.expert_cache_bytes =
        (uint64_t)((double)p->expert_cache_bytes * expert_share(p, s)) & ~(uint64_t)4095;
}
