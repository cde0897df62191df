/* The description as bytes: a msgpack array of the architecture's name and then the fields of struct
 * brig_desc in the order of the table in desc_wire.c. Part of the slice description (slice_wire.c). */
#ifndef BRIG_PROTO_MODEL_DESC_WIRE_H
#define BRIG_PROTO_MODEL_DESC_WIRE_H

#include <msgpack.h>

#include "proto/base/unpack.h"
#include "proto/model/desc.h"

/* 0, or what the packer's writer returned. */
int brig_desc_pack(msgpack_packer *p, const struct brig_desc *d);

/* False when the bytes are no description; the numbers are not checked. */
bool brig_desc_unpack(struct brig_unpack *u, struct brig_desc *ret);

#endif
