/* Interleaved matrices (proto/model/r16.h) read and written row by row, with one panel in memory. */
#ifndef BRIG_DRIVER_PACK_PANELS_H
#define BRIG_DRIVER_PACK_PANELS_H

#include "proto/model/model.h"

/* Of one matrix. For a type whose rows lie one by one it holds nothing. */
struct brig_pack_panels {
    const struct brig_type *type; /* NULL: rows lie one by one */
    uint64_t row_bytes;
    size_t panel_bytes;
    uint8_t *rows, *panel; /* [panel_bytes] each, of one allocation: native rows, and interleaved */
    uint64_t number;       /* reading: of the panel that is there */
    size_t used;           /* writing: bytes of rows that are there */
};

/* -BRIG_ENOMEM when there is no memory for two panels. Release also after a failure. */
int brig_pack_panels_open(struct brig_pack_panels *p, const struct brig_type *type,
                          const struct brig_tensor *t, struct brig_fail *fail);
void brig_pack_panels_release(struct brig_pack_panels *p);

/* Bytes [at, at + n) of t's rows, as they lie in native order. */
int brig_pack_panels_read(struct brig_pack_panels *p, const struct brig_model *m, const struct brig_tensor *t,
                          uint64_t at, void *dst, size_t n, struct brig_fail *fail);

/* The next bytes of the rows, at most n; how many were taken. *ret_panel: the panel that they completed, or
 * NULL. */
size_t brig_pack_panels_add(struct brig_pack_panels *p, const void *bytes, size_t n, const void **ret_panel);

#endif
