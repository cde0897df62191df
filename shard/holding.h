/* What a shard process holds from start to end: its slice, weights, cache, kernel and thread team. */
#ifndef BRIG_SHARD_HOLDING_H
#define BRIG_SHARD_HOLDING_H

#include "proto/model/slice.h"
#include "proto/wire/control.h"
#include "shard/args.h"
#include "shard/cache/kv.h"
#include "shard/kernels/kernel.h"
#include "shard/kernels/team.h"
#include "shard/weights/weights.h"

struct brig_holding {
    const struct brig_shard_args *args; /* borrowed */
    struct brig_slice slice;
    struct brig_weights *weights;
    struct brig_kv *kv;
    const struct brig_kernel *kernel;
    struct brig_team *team; /* NULL until the first run: a start does not wait for threads */
    unsigned threads;
    struct brig_kv_shape shape;
    char numeric_class[BRIG_CLASS_MAX];
    char what[64]; /* "layers 9:12, head" */
};

/* From a launcher's descriptors or from a model that is opened. Release accepts a half-built one. */
int brig_holding_init(struct brig_holding *h, const struct brig_shard_args *args, struct brig_fail *fail);
void brig_holding_release(struct brig_holding *h);

bool brig_holding_has_head(const struct brig_holding *h);

#endif
