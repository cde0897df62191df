/* One file of a bundle: written under a temporary name, or found finished. */
#ifndef BRIG_DRIVER_PACK_PART_H
#define BRIG_DRIVER_PACK_PART_H

#include "driver/pack/pack.h"

#define BRIG_PACK_TEMP ".part" /* added to the name while it is written */

struct brig_pack_part {
    char sha256[65]; /* hex */
    uint64_t bytes;  /* of the file */
    bool was_there;
};

/* Part `part` of the plan as a file in the folder that `dir` (a descriptor) and `folder` (for messages) name.
 * done counts bytes of tensors over all parts, for the watch. */
int brig_pack_part(const struct brig_pack_plan *p, unsigned part, int dir, const char *folder,
                   const struct brig_pack_watch *watch, uint64_t *done, struct brig_pack_part *ret,
                   struct brig_fail *fail);

#endif
