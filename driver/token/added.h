/* Added tokens (control and user defined): found in text as a whole, before anything else looks at it. */
#ifndef BRIG_DRIVER_TOKEN_ADDED_H
#define BRIG_DRIVER_TOKEN_ADDED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/base/err.h"
#include "proto/model/model.h"

struct brig_added {
    const struct brig_str *tokens; /* the vocabulary's, borrowed */
    uint32_t *ids;                 /* sorted by spelling, [n] */
    uint32_t n;
    bool first[256]; /* some added token begins with this byte */
};

/* *a need not be initialised; release accepts a zeroed one. */
int brig_added_init(struct brig_added *a, const struct brig_vocab *vocab, struct brig_fail *fail);
void brig_added_release(struct brig_added *a);

/* The first place at or after `from` where an added token stands, and the longest one there. */
bool brig_added_find(const struct brig_added *a, const char *text, size_t n, size_t from, size_t *ret_at,
                     size_t *ret_bytes, uint32_t *ret_id);

#endif
