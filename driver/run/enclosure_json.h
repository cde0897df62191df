/* The memory cgroup of a run as JSON; the fields are listed in docs/running.md. */
#ifndef BRIG_DRIVER_RUN_ENCLOSURE_JSON_H
#define BRIG_DRIVER_RUN_ENCLOSURE_JSON_H

#include <jansson.h>

#include "launcher/launcher.h"

/* As it is now. null when e is NULL or there is no budget. The caller owns it. */
json_t *brig_enclosure_json(const struct brig_enclosure *e);

#endif
