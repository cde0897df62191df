/*
 * Which experts every row chose, written as JSON lines while frames come back: a line that says what the
 * model has, then one for each row. docs/running.md has the fields.
 */
#ifndef BRIG_DRIVER_RUN_ROUTES_H
#define BRIG_DRIVER_RUN_ROUTES_H

#include "proto/base/err.h"
#include "proto/model/model.h"
#include "proto/wire/frame.h"

struct brig_routes;

/* -BRIG_EUSAGE when the model has no experts. The model is borrowed. */
int brig_routes_open(struct brig_routes **ret, const char *path, const struct brig_model *model,
                     struct brig_fail *fail);
/* The rows of a frame that came back from the end of the line, decoded from msg. sent: as it went out. */
int brig_routes_add(struct brig_routes *r, const struct brig_frame *sent, const struct brig_frame *got,
                    const void *msg, struct brig_fail *fail);
/* Makes the file whole under its name, and frees; NULL allowed. */
int brig_routes_close(struct brig_routes *r, struct brig_fail *fail);

#endif
