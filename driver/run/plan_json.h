/* A plan as JSON: for `brigade plan --json`, and in the figures of a run beside what was measured. */
#ifndef BRIG_DRIVER_RUN_PLAN_JSON_H
#define BRIG_DRIVER_RUN_PLAN_JSON_H

#include <jansson.h>

#include "launcher/launcher.h"

/* The fields are listed in docs/memory.md. */
json_t *brig_plan_json(const struct brig_plan *p);

#endif
