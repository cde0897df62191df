/* A bar on standard error for what takes long: only on a terminal, and only after a second. */
#ifndef BRIG_DRIVER_FRONT_PROGRESS_H
#define BRIG_DRIVER_FRONT_PROGRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct brig_progress {
    const char *what;
    bool on;    /* standard error is a terminal, and not quiet */
    bool drawn; /* there is a bar on the line now */
    uint64_t begin_ns, drawn_ns;
};

void brig_progress_init(struct brig_progress *p, const char *what, bool quiet);
void brig_progress_update(struct brig_progress *p, size_t done, size_t total); /* done == total wipes it */
void brig_progress_wipe(struct brig_progress *p);

#endif
