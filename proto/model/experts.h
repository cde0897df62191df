/*
 * How large a cache of streamed experts is: shards make it so, plans count it so. A slot holds the matrices
 * of any one expert of the slice, each read as the aligned run of the file that it lies in.
 */
#ifndef BRIG_PROTO_MODEL_EXPERTS_H
#define BRIG_PROTO_MODEL_EXPERTS_H

#include "proto/model/slice.h"

#define BRIG_EXPERT_PARTS (BRIG_ROLE_LAYER_COUNT - BRIG_ROLE_EXPERT_FIRST)

static inline enum brig_role brig_expert_part_role(unsigned part)
{
    return (enum brig_role)(BRIG_ROLE_EXPERT_FIRST + part);
}

struct brig_expert_sizes {
    uint64_t align;
    uint64_t slot_bytes;                 /* of an expert */
    uint64_t part_at[BRIG_EXPERT_PARTS]; /* in a slot */
    uint64_t n_experts;                  /* streamed, of all layers of the slice together; 0: none */
};

/* False: the slice streams no experts. align is a power of two. */
bool brig_slice_expert_sizes(const struct brig_slice *s, uint64_t align, struct brig_expert_sizes *ret);

/* Slots of the cache that the slice states, at most one for each expert; when it states none (0 bytes), for a
 * quarter of the experts, at least for what a row uses in a layer twice. Fails when not even one has room. */
int brig_slice_expert_slots(const struct brig_slice *s, const struct brig_expert_sizes *sizes, uint32_t *ret,
                            struct brig_fail *fail);

#endif
