/*
 * The files of a tokenizer that lies beside its model instead of inside: a bundle takes them along as they
 * are, so that it needs nothing else. Each is listed in the manifest with the SHA-256 of its bytes.
 */
#ifndef BRIG_DRIVER_PACK_BESIDE_H
#define BRIG_DRIVER_PACK_BESIDE_H

#include <stdbool.h>

#include <jansson.h>

#include "proto/base/err.h"
#include "proto/model/model.h"

/* The name of such a file, or of one that was being written when a pack was interrupted. */
bool brig_pack_beside_is(const char *name);

/* Copy those that the model needs into the folder `out`, and list them in the array. One that is there
 * already with other bytes is refused. Nothing is done for a model that has its vocabulary in its own file.
 */
int brig_pack_beside(const struct brig_model *m, const char *out, json_t *list, struct brig_fail *fail);

/* Compare the files in a bundle's folder with what its manifest lists; *ret_n: how many. */
int brig_pack_beside_verify(const struct brig_model *m, unsigned *ret_n, struct brig_fail *fail);

#endif
