/*
 * Residencies: how weights are in the memory of the process that computes with them. One row each in
 * residency.def. A slice description has one for each tensor, so that they mix within a shard.
 */
#ifndef BRIG_PROTO_MODEL_RESIDENCY_H
#define BRIG_PROTO_MODEL_RESIDENCY_H

enum brig_hold {
#define BRIG_RESIDENCY(hold, name, help) BRIG_HOLD_##hold,
#include "proto/model/residency.def"
#undef BRIG_RESIDENCY
    BRIG_HOLD_COUNT
};

struct brig_residency {
    const char *name; /* "map" */
    const char *help;
    enum brig_hold hold;
};

const struct brig_residency *brig_residency_at(unsigned i); /* NULL after the last row */
const struct brig_residency *brig_residency_by_name(const char *name);

#endif
