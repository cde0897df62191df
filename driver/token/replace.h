/* Each match of a pattern becomes something else. */
#ifndef BRIG_DRIVER_TOKEN_REPLACE_H
#define BRIG_DRIVER_TOKEN_REPLACE_H

#include "driver/token/pattern.h"
#include "proto/base/buf.h"

/* *out is cleared first; its data is not NULL afterwards. text lies outside of it. */
int brig_replace(struct brig_pattern *pattern, struct brig_str content, const char *text, size_t n,
                 struct brig_buf *out, struct brig_fail *fail);

#endif
