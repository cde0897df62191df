/* The inside of frames, shared by proto/wire/frame*.c only. */
#ifndef BRIG_PROTO_WIRE_FRAME_PARTS_H
#define BRIG_PROTO_WIRE_FRAME_PARTS_H

#include "proto/wire/frame.h"

#define BRIG_FRAME_FIELDS 19u /* elements of the header's array */

/* The first fields have a fixed width, so that `stage` lies at the same place in every message: array head
 * (3 bytes), version (1), run id (9), frame id (9), epoch (5), then stage (5). */
#define BRIG_FRAME_STAGE_AT 27u

/* The n bytes at head are exactly the header that encode writes for *f. */
bool brig_frame_head_is(const struct brig_frame *f, const void *head, size_t n);

#endif
