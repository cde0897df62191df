/* Writing a bundle. Called by `brigade pack`. */
#ifndef BRIG_DRIVER_PACK_PACK_H
#define BRIG_DRIVER_PACK_PACK_H

#include <signal.h>

#include "driver/pack/plan.h"

/* How a caller hears of it; each may be NULL. */
struct brig_pack_watch {
    void (*progress)(void *arg, uint64_t done_bytes, uint64_t total_bytes);
    void (*part)(void *arg, const struct brig_pack_plan *p, unsigned part, uint64_t file_bytes,
                 bool was_there);
    void *arg;
    const volatile sig_atomic_t *cancel; /* not 0: stop soon */
};

/* Write the bundle into the folder `out`, which is made when it is not there. Parts that are there already,
 * finished by an earlier and interrupted pack of the same request, are kept; anything else in the folder is
 * refused. Each part appears under its name when it is whole and on the disk, manifest.json when all are.
 * Memory: the heads, and buffers of less than 2 MiB, however large a tensor is. *ret_file_bytes: of all
 * parts. -BRIG_ECANCELLED when it was asked to stop. */
int brig_pack(const struct brig_pack_plan *p, const char *out, const struct brig_pack_watch *watch,
              uint64_t *ret_file_bytes, struct brig_fail *fail);

#endif
