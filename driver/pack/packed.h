/* A packed matrix (GPTQ, AWQ) of a checkpoint, read whole, for its rows as floats. */
#ifndef BRIG_DRIVER_PACK_PACKED_H
#define BRIG_DRIVER_PACK_PACKED_H

#include "proto/model/model.h"
#include "proto/model/packed.h"

struct brig_pack_packed {
    struct brig_packed matrix;
    uint8_t *bytes; /* words, scales, zeros, groups, one after the other */
    uint32_t *order, *starts;
    float *visits, *row; /* [cols] in the order of visits, and as columns lie */
};

/* Release also after a failure. Memory: the tensor and what lies beside it. */
int brig_pack_packed_open(struct brig_pack_packed *p, const struct brig_model *m, const struct brig_tensor *t,
                          struct brig_fail *fail);
void brig_pack_packed_release(struct brig_pack_packed *p);

/* Row r, [cols], valid until the next call. */
const float *brig_pack_packed_row(struct brig_pack_packed *p, uint64_t r);

#endif
