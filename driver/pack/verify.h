/* Checking what lies on the disk against the hashes that it carries. Called by `brigade verify`. */
#ifndef BRIG_DRIVER_PACK_VERIFY_H
#define BRIG_DRIVER_PACK_VERIFY_H

#include <signal.h>
#include <stdbool.h>

#include "proto/base/err.h"
#include "proto/model/model.h"

struct brig_verify_watch {
    void (*progress)(void *arg, uint64_t done_bytes, uint64_t total_bytes);
    void *arg;
    const volatile sig_atomic_t *cancel; /* not 0: stop soon */
};

/* Reads every file of an open model that carries its hash, and compares. *ret_hashed: how many did; a file
 * without one is only read whole, so that a disk that cannot is found. A failure names the file. */
int brig_verify(const struct brig_model *m, const struct brig_verify_watch *watch, unsigned *ret_hashed,
                struct brig_fail *fail);

#endif
