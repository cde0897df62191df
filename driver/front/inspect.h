/* The parts of `brigade inspect` that its two forms share, and its JSON form. */
#ifndef BRIG_DRIVER_FRONT_INSPECT_H
#define BRIG_DRIVER_FRONT_INSPECT_H

#include <jansson.h>

#include "proto/base/err.h"
#include "proto/model/model.h"

/* out has room for 2 n + 1. */
void brig_inspect_hex(const uint8_t *bytes, size_t n, char *out);
/* "none", "known" (run and chat can use it) or "unknown" (it fails for a simple conversation). */
const char *brig_inspect_template(const struct brig_model *m);

/* The description, line by line, and as an object of the caller's. */
void brig_inspect_desc(const struct brig_desc *d);
json_t *brig_inspect_desc_json(const struct brig_desc *d);

/* To standard output. token_bytes: weights read for one decoded token. */
int brig_inspect_json(const struct brig_model *m, uint64_t token_bytes, struct brig_fail *fail);

#endif
