/* Text from files and standard input, and text to standard output. */
#ifndef BRIG_DRIVER_FRONT_INPUT_H
#define BRIG_DRIVER_FRONT_INPUT_H

#include <stddef.h>

#include "driver/token/tokenizer.h"
#include "proto/base/buf.h"
#include "proto/base/err.h"

/* All of a file (path NULL: standard input), at most buf->max bytes. A signal ends it with -BRIG_ECANCELLED.
 */
int brig_input_read(struct brig_buf *buf, const char *path, struct brig_fail *fail);

/* Numbers separated by commas, white space or both; brackets around the list are allowed, so JSON works. what
 * names the source in failures. */
int brig_input_ids(struct brig_ids *ids, const char *text, size_t n, const char *what,
                   struct brig_fail *fail);

/* Bytes to standard output at once. When nobody reads any more, fail's text is empty: there is nobody to
 * tell. */
int brig_output_write(const char *bytes, size_t n, struct brig_fail *fail);

#endif
