/*
 * A ring of frames in memory that two processes of one machine share: slots that the sender fills and the
 * receiver empties in order, and futex words to wait at. The memory is a memfd, sealed so that it cannot
 * become shorter.
 *
 * Each side trusts only its own copies: every number that the other side writes is read once and checked, and
 * a frame is copied out before anybody looks into it. What a peer that scribbles can do is to have its own
 * frames refused, and to make the other wake too often or sleep to its deadline.
 */
#ifndef BRIG_PROTO_LINK_RING_H
#define BRIG_PROTO_LINK_RING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/base/err.h"

/* ---- bells ---- */

/* A word to sleep at. One may sleep; who rings pays for a system call only when somebody does. */
struct brig_bell {
    _Atomic uint32_t word, sleepers;
};
uint32_t brig_bell_look(const struct brig_bell *b); /* before looking for what one waits for */
void brig_bell_ring(struct brig_bell *b);
/* Until the bell has been rung since `seen` or the time has come (clock of brig_clock_ns), whichever is
 * first; may also return for no reason. */
void brig_bell_wait(struct brig_bell *b, uint32_t seen, uint64_t until_ns);

/* ---- the ring ---- */

#define BRIG_RING_SLOTS      4u
#define BRIG_RING_SLOT_BYTES ((size_t)128 << 10) /* longer frames travel beside it */

enum brig_ring_state { BRIG_RING_OFFERED, BRIG_RING_ACCEPTED, BRIG_RING_DECLINED };

/* What the sender tells the receiver of it. */
struct brig_ring_offer {
    uint32_t fd; /* in the sender's process */
    uint64_t nonce;
};

struct brig_ring_mem; /* what is shared */

struct brig_ring {
    struct brig_ring_mem *mem; /* NULL: there is none */
    uint32_t count;            /* frames put or taken so far: this side's own number */
    int fd;                    /* the sender's, open until the offer is answered; else -1 */
};

/* A new ring, offered. */
int brig_ring_new(struct brig_ring *r, struct brig_ring_offer *ret, struct brig_fail *fail);
/* The ring that process `pid` of this user offers, found good and accepted. */
int brig_ring_accept(struct brig_ring *r, uint64_t pid, const struct brig_ring_offer *offer,
                     struct brig_fail *fail);
/* Say no to an offer that was not accepted; the ring stays NULL. Best effort. */
void brig_ring_decline(uint64_t pid, const struct brig_ring_offer *offer);
/* Unmap. What the other side has mapped stays. NULL rings are allowed. */
void brig_ring_release(struct brig_ring *r);

/* The sender: wait until the offer is answered; true when it is accepted. At the deadline it is withdrawn. */
bool brig_ring_answered(struct brig_ring *r, uint64_t until_ns);

/* The sender: is there a free slot? 1, 0, or -BRIG_EPROTO when the other side's number makes no sense. */
int brig_ring_room(const struct brig_ring *r);
/* After room: the frame, of at most BRIG_RING_SLOT_BYTES, or NULL for one that is sent beside the ring. */
void brig_ring_put(struct brig_ring *r, const void *bytes, size_t n);
/* The bell that is rung when a slot becomes free. */
struct brig_bell *brig_ring_freed(const struct brig_ring *r);

/* The receiver: what is next? 0 for nothing, BRIG_RING_HERE with its length, BRIG_RING_BESIDE, or
 * -BRIG_EPROTO when what the other side wrote makes no sense. */
enum { BRIG_RING_HERE = 1, BRIG_RING_BESIDE = 2 };
int brig_ring_next(const struct brig_ring *r, size_t *ret_bytes);
/* Take it: n bytes of it, as next told, into out. For one beside the ring n is 0. */
void brig_ring_take(struct brig_ring *r, void *out, size_t n);
/* The bell that is rung when a frame was put. */
struct brig_bell *brig_ring_filled(const struct brig_ring *r);

#endif
