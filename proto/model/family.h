/*
 * Families: how a kind of checkpoint maps onto the description. One row in family.def, one file each
 * (family_<name>.c exporting one const object).
 */
#ifndef BRIG_PROTO_MODEL_FAMILY_H
#define BRIG_PROTO_MODEL_FAMILY_H

#include "proto/model/format.h"
#include "proto/model/model.h"

struct brig_family {
    const char *name; /* as general.architecture says it: "llama" */
    const char *help; /* one line for `brigade list families` */
    /* Fill m->desc from metadata, give each known tensor its role and layer, check shapes, set m->vocab's
     * fit. Names what is missing or wrong. */
    int (*describe)(struct brig_model *m, const struct brig_meta *meta, struct brig_fail *fail);
};

const struct brig_family *brig_family_at(unsigned i); /* NULL after the last row */
const struct brig_family *brig_family_by_name(struct brig_str name);

#endif
