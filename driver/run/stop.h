/*
 * Stop strings: text passes through, except what may still turn out to be the beginning of a stop string. A
 * stop string may span tokens; nothing of it is ever let through.
 */
#ifndef BRIG_DRIVER_RUN_STOP_H
#define BRIG_DRIVER_RUN_STOP_H

#include <stdbool.h>
#include <stddef.h>

#include "proto/base/buf.h"

struct brig_stop {
    const char *const *strings; /* borrowed, none empty */
    unsigned n_strings;
    struct brig_buf held;
    bool hit; /* a stop string has come: no more text passes */
};

void brig_stop_init(struct brig_stop *s, const char *const *strings, unsigned n_strings);
void brig_stop_release(struct brig_stop *s);

/* n bytes of text; what is certain to come before any stop string is added to out. */
int brig_stop_add(struct brig_stop *s, const char *text, size_t n, struct brig_buf *out);
/* The text has ended: what was held back is no stop string. */
int brig_stop_finish(struct brig_stop *s, struct brig_buf *out);

#endif
