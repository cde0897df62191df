/*
 * A cursor over msgpack bytes: takes one value of the kind that must come next, or says no. Allocates
 * nothing, never looks past the end, and counts are checked against the bytes that are left. Private to this
 * room.
 */
#ifndef BRIG_PROTO_MODEL_UNPACK_H
#define BRIG_PROTO_MODEL_UNPACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/base/str.h"

struct brig_unpack {
    const uint8_t *p;
    size_t left;
};

/* True and the value; false, and the cursor is not to be used further. */
bool brig_unpack_u64(struct brig_unpack *u, uint64_t *ret); /* any unsigned width */
bool brig_unpack_f32(struct brig_unpack *u, float *ret);
bool brig_unpack_bool(struct brig_unpack *u, bool *ret);
bool brig_unpack_str(struct brig_unpack *u, struct brig_str *ret); /* borrowed */
bool brig_unpack_bin(struct brig_unpack *u, struct brig_str *ret); /* borrowed */
bool brig_unpack_array(struct brig_unpack *u, uint32_t *ret_n);    /* n elements follow */

#endif
