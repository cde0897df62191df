/* Byte-pair merging of one piece: always the pair of lowest rank, the leftmost of those, in n log n time. */
#ifndef BRIG_DRIVER_TOKEN_MERGE_H
#define BRIG_DRIVER_TOKEN_MERGE_H

#include <stddef.h>
#include <stdint.h>

#include "driver/token/strmap.h"

/* Working memory, kept from piece to piece. {0} is valid. */
struct brig_merge {
    size_t cap;
    uint32_t *ids;  /* [cap] the caller fills the first n */
    uint32_t *prev; /* [cap] neighbours that are still there */
    uint32_t *next; /* [cap] */
    uint32_t *rank; /* [cap] of the pair (i, next[i]); BRIG_NO_ID: none */
    uint64_t *heap; /* [3 * cap] rank << 32 | position */
    size_t n_heap;
};

/* Room for a piece of n symbols, n < 2^31; 0 or -BRIG_ENOMEM. */
int brig_merge_reserve(struct brig_merge *m, size_t n);
void brig_merge_release(struct brig_merge *m);

/* Merge ids[n] in place; ranks: pair -> rank, made[rank]: the id that it becomes. Returns how many are left.
 */
size_t brig_merge_run(struct brig_merge *m, size_t n, const struct brig_pairmap *ranks, const uint32_t *made);

#endif
