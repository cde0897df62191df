/*
 * The embedding: rows of the token table, read one by one from the checkpoint. The table belongs to the
 * driver; no shard holds it for this purpose.
 */
#ifndef BRIG_DRIVER_RUN_EMBED_H
#define BRIG_DRIVER_RUN_EMBED_H

#include <stddef.h>
#include <stdint.h>

#include "proto/base/err.h"
#include "proto/model/model.h"

struct brig_embed;

/* The model is borrowed and must live longer. */
int brig_embed_open(struct brig_embed **ret, const struct brig_model *m, struct brig_fail *fail);
void brig_embed_close(struct brig_embed *e); /* NULL allowed */

/* The rows of n ids into h [n, hidden] f32. An id outside the table and a file that has become shorter fail.
 */
int brig_embed_rows(struct brig_embed *e, const uint32_t *ids, size_t n, float *h, struct brig_fail *fail);

/* Bytes of one stored row. */
uint64_t brig_embed_row_bytes(const struct brig_embed *e);

#endif
