/* What steps look for in text: a regular expression, run by PCRE2 within limits, or a string as it is. */
#ifndef BRIG_DRIVER_TOKEN_PATTERN_H
#define BRIG_DRIVER_TOKEN_PATTERN_H

#include <stdbool.h>
#include <stddef.h>

#include "proto/base/err.h"
#include "proto/base/str.h"

struct brig_pattern;

/* text is borrowed when it is no regular expression. The dialect is the one that tokenizers are published in
 * (Oniguruma's); what PCRE2 would read differently is refused. */
int brig_pattern_new(struct brig_pattern **ret, struct brig_str text, bool regex, struct brig_fail *fail);
void brig_pattern_free(struct brig_pattern *p); /* NULL allowed */

/* The first match at or after `from` that is not empty, in well-formed UTF-8. 1 found, 0 none, negative: the
 * pattern gave up, which bounds the time that a text can take. */
int brig_pattern_find(struct brig_pattern *p, const char *text, size_t n, size_t from, size_t *ret_start,
                      size_t *ret_end, struct brig_fail *fail);

#endif
