/*
 * A cache of streamed experts: slots of memory, each for the matrices of one expert, fewer than there are
 * experts of all layers together. Who makes room was decided by replaying recorded choices (docs/experts.md):
 * the expert that is worth least, where a use is worth 1, half of it after 32 turns of its layer, and 8 more
 * for a while, half of them after each turn; of equals, the one whose layer comes again last.
 *
 * Called by brig_weights alone, from the compute thread.
 */
#ifndef BRIG_SHARD_WEIGHTS_EXPERT_CACHE_H
#define BRIG_SHARD_WEIGHTS_EXPERT_CACHE_H

#include "shard/weights/parts.h"

struct brig_expert_cache;

/* For the streamed experts of the slice, whose entries are made; *ret is NULL when it has none. Nothing is
 * read yet, and nothing is allocated later. */
int brig_expert_cache_open(struct brig_expert_cache **ret, struct brig_weights *w, struct brig_fail *fail);
/* After the feed, as the residencies. NULL allowed. */
void brig_expert_cache_close(struct brig_expert_cache *c);

/* A pass begins; whatever was taken is given back. */
void brig_expert_cache_begin(struct brig_expert_cache *c);

/* As brig_weights_experts_take and give. Experts that are not streamed count as being there. */
int brig_expert_cache_take(struct brig_expert_cache *c, uint32_t layer, uint32_t *experts, uint32_t n,
                           uint32_t *ret_n, struct brig_fail *fail);
void brig_expert_cache_give(struct brig_expert_cache *c);

/* As brig_weights_experts_guess. */
void brig_expert_cache_guess(struct brig_expert_cache *c, uint32_t layer, const uint32_t *experts,
                             uint32_t n);

void brig_expert_cache_add_stats(const struct brig_expert_cache *c, struct brig_weights_stats *s);

#endif
