/* The two things that everything written as JSON needs: text of any bytes, and a file that appears whole. */
#ifndef BRIG_DRIVER_RUN_JSON_H
#define BRIG_DRIVER_RUN_JSON_H

#include <stddef.h>

#include <jansson.h>

#include "proto/base/err.h"

/* A JSON string of n bytes; invalid UTF-8 becomes U+FFFD. NULL when memory is out: the library's setters
 * refuse it and leave that field out. */
json_t *brig_json_text(const char *bytes, size_t n);

/* Write to a file that appears whole or not at all. */
int brig_json_write(const json_t *root, const char *path, struct brig_fail *fail);
/* To stdout, with a newline. */
int brig_json_print(const json_t *root, struct brig_fail *fail);

#endif
