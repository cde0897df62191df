/* Merging of pairs in one piece: always the pair of lowest rank, the leftmost of those, in n log n time. */
#ifndef BRIG_DRIVER_TOKEN_MERGE_H
#define BRIG_DRIVER_TOKEN_MERGE_H

#include <stddef.h>
#include <stdint.h>

#define BRIG_NO_RANK   UINT32_MAX       /* the two do not merge */
#define BRIG_MERGE_END (UINT32_MAX - 1) /* next of the last symbol, prev of the first */

/* Working memory, kept from piece to piece. {0} is valid. */
struct brig_merge {
    size_t cap;
    uint32_t *ids;  /* [cap] what the caller knows of a symbol; it fills the first n */
    uint32_t *prev; /* [cap] neighbours that are still there */
    uint32_t *next; /* [cap] */
    uint32_t *rank; /* [cap] of the pair (i, next[i]); BRIG_NO_RANK: none */
    uint64_t *heap; /* [3 * cap] rank << 32 | position */
    size_t n_heap;
};

/* Room for a piece of n symbols, n < 2^31; 0 or -BRIG_ENOMEM. */
int brig_merge_reserve(struct brig_merge *m, size_t n);
void brig_merge_release(struct brig_merge *m);

/* The rank of the pair of symbols at i and right, or BRIG_NO_RANK. */
typedef uint32_t (*brig_merge_rank_fn)(const void *ctx, const struct brig_merge *m, uint32_t i,
                                       uint32_t right);

/* Merge ids[n] in place. made[rank]: the id that the left one of a pair gets; NULL: it keeps its own. Returns
 * how many are left. */
size_t brig_merge_run(struct brig_merge *m, size_t n, brig_merge_rank_fn rank, const void *ctx,
                      const uint32_t *made);

#endif
