/* Normalisers: the steps of a tokenizer.json that change text before it is cut. */
#ifndef BRIG_DRIVER_TOKEN_NORMAL_H
#define BRIG_DRIVER_TOKEN_NORMAL_H

#include "driver/token/rules.h"
#include "proto/base/buf.h"
#include "proto/base/err.h"

struct brig_normal;

/* The strings in steps are borrowed. */
int brig_normal_new(struct brig_normal **ret, const struct brig_steps *steps, struct brig_fail *fail);
void brig_normal_free(struct brig_normal *m); /* NULL allowed */

/* Well-formed UTF-8 through all steps. The result is the text itself or belongs to *m until the next call. */
int brig_normal_run(struct brig_normal *m, const char *text, size_t n, const char **ret_text, size_t *ret_n,
                    struct brig_fail *fail);

#endif
