/*
 * The weights of one slice in memory: its byte ranges of the files, mapped read-only, and nothing else.
 */
#ifndef BRIG_SHARD_WEIGHTS_WEIGHTS_H
#define BRIG_SHARD_WEIGHTS_WEIGHTS_H

#include "proto/model/slice.h"
#include "shard/kernels/kernel.h"

struct brig_weights;

/* The slice must live longer than the weights. fds[n] are its files (borrowed until return). Sizes are
 * checked against the description. */
int brig_weights_map(struct brig_weights **ret, const struct brig_slice *slice, const int *fds, unsigned n,
                     struct brig_fail *fail);
void brig_weights_unmap(struct brig_weights *w); /* NULL allowed */

/* The matrix of a role; unit_cols as docs/arithmetic.md says (attention output: brig_weights knows). A vector
 * has rows 1. false when the slice has none. */
bool brig_weights_matrix(const struct brig_weights *w, enum brig_role role, uint32_t layer,
                         struct brig_matrix *ret);
/* The same for one expert of an expert's role, expert < n_experts. */
bool brig_weights_expert(const struct brig_weights *w, enum brig_role role, uint32_t layer, uint32_t expert,
                         struct brig_matrix *ret);
/* A vector as f32, converted once at mapping (norm weights, biases). Where the description has norms of
 * 1 + w, the weight of a norm is that sum, one f32 addition. NULL when the slice has none. */
const float *brig_weights_vector(const struct brig_weights *w, enum brig_role role, uint32_t layer);

uint64_t brig_weights_mapped_bytes(const struct brig_weights *w); /* whole pages */

/* Bring the next MiB into memory and into the page tables; for the time before the first frame. False when
 * all was asked for. Never fails: what it cannot bring comes when it is used. */
bool brig_weights_prefetch(struct brig_weights *w);

#endif
