/*
 * Room in a ring of bytes: runs of it are handed out in a cycle and come back in the order that they were
 * handed out in. A run never wraps around the end; what is left there is skipped.
 */
#ifndef BRIG_SHARD_WEIGHTS_RING_H
#define BRIG_SHARD_WEIGHTS_RING_H

#include <stdbool.h>
#include <stdint.h>

/* {.bytes = its size} */
struct brig_ring {
    uint64_t bytes;
    uint64_t next; /* where the last run ends */
    uint64_t old;  /* where the oldest run begins */
    uint32_t n;    /* runs that are out */
};

/* A run of n bytes, 0 < n <= bytes. False: no room until older ones come back. */
static inline bool brig_ring_take(struct brig_ring *r, uint64_t n, uint64_t *ret_at)
{
    if (r->n == 0)
        r->next = r->old = 0;
    bool wrapped = r->n > 0 && r->next <= r->old; /* next == old: full */
    uint64_t room = wrapped ? r->old - r->next : r->bytes - r->next;
    if (n > room && (wrapped || n > r->old))
        return false;
    *ret_at = n > room ? 0 : r->next;
    r->next = *ret_at + n;
    r->n++;
    return true;
}

/* The oldest run is back; the one after it, if there is one, begins at `following`. */
static inline void brig_ring_give(struct brig_ring *r, uint64_t following)
{
    r->n--;
    r->old = following;
}

#endif
