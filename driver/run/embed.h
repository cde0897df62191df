/*
 * The embedding: rows of the token table, scaled where the model does so, and of the table of learned
 * positions where it has one, read one by one from the checkpoint. The tables belong to the driver; no shard
 * holds them for this purpose.
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

/* The rows of n ids, which stand at positions from pos on, into h [n, hidden] f32. An id or a position
 * outside its table and a file that has become shorter fail. */
int brig_embed_rows(struct brig_embed *e, const uint32_t *ids, size_t n, uint32_t pos, float *h,
                    struct brig_fail *fail);

/* Bytes read for one token that no shard reads too: the row of a tied table counts with the head. */
uint64_t brig_embed_row_bytes(const struct brig_embed *e);

#endif
