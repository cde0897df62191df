/* The steps of a tokenizer.json: normalizer, pre_tokenizer, decoder. */
#ifndef BRIG_DRIVER_TOKEN_RULES_JSON_H
#define BRIG_DRIVER_TOKEN_RULES_JSON_H

#include <jansson.h>

#include "driver/token/rules.h"
#include "proto/base/err.h"

/* Fills the three chains of *rules from the whole of the file; strings are borrowed from it. A type or a key
 * of one that is not known is refused by name: nothing that a file states is passed over. */
int brig_rules_read(struct brig_rules *rules, const json_t *root, struct brig_fail *fail);

/* Every key of an object is one of `known`, words between single spaces. */
int brig_rules_only(const json_t *object, const char *what, const char *known, struct brig_fail *fail);

#endif
