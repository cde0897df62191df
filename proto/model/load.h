/*
 * Loads: what is read in one go when weights are not mapped. A load is an aligned run of bytes of a file with
 * one or several pieces in it; a piece is a matrix, or some rows of one. Pieces are in the order that a pass
 * uses them in, loads in the order of their first pieces.
 *
 * Whoever knows the loads of a slice knows how many bytes a pass reads and how small a ring can be: shards
 * read by them, plans count them.
 */
#ifndef BRIG_PROTO_MODEL_LOAD_H
#define BRIG_PROTO_MODEL_LOAD_H

#include "proto/model/slice.h"

#define BRIG_LOAD_MAX_BYTES                                                                                  \
    ((uint64_t)8 << 20)    /* small tensors are joined and large ones cut, up to this                        \
                            */
#define BRIG_RING_PARTS 4u /* a ring has room for at least so many loads */

struct brig_load {
    uint32_t file;
    uint64_t offset, bytes; /* multiples of the alignment; the end may pass the end of the file by less */
    uint32_t last_piece;    /* after which it is done with */
};

struct brig_load_piece {
    uint32_t tensor; /* of the slice */
    uint32_t load;
    uint64_t first_row, n_rows;
    uint64_t at; /* where it begins in the load */
};

struct brig_loads {
    uint32_t n_loads, n_pieces;
    uint32_t head_load, head_piece; /* the first ones of the head: the numbers of the layers' */
    struct brig_load *loads;
    struct brig_load_piece *pieces;
    uint32_t *first; /* [n_tensors] a tensor's first piece, where it has any; its pieces follow one another */
    uint64_t most;   /* bytes of the largest load */
    uint64_t bytes;  /* of all */
};

/* The loads of all matrices of a slice that are held so: STREAM without experts, cut at max_bytes where rows
 * allow it; LOCK never cut. align is a power of two. -BRIG_E...; release takes {0} too. */
int brig_loads_build(struct brig_loads *ret, const struct brig_slice *s, enum brig_hold hold, uint64_t align,
                     uint64_t max_bytes, struct brig_fail *fail);
void brig_loads_release(struct brig_loads *l);

/* The smallest ring that the streamed matrices of a slice pass through; 0: none is streamed. */
uint64_t brig_slice_ring_min(const struct brig_slice *s, uint64_t align);
/* One that holds the two layers with the most streamed bytes, at least the smallest one. */
uint64_t brig_slice_ring_default(const struct brig_slice *s, uint64_t align);
/* The size that loads are cut at for a ring. */
uint64_t brig_ring_load_bytes(uint64_t ring_bytes);

#endif
