/* Do two vocabularies mean the same by every id? */
#ifndef BRIG_DRIVER_TOKEN_SAME_H
#define BRIG_DRIVER_TOKEN_SAME_H

#include "proto/base/err.h"
#include "proto/model/model.h"

/* Tokens, their types where both state them, and the ids of the beginning and the ends of a text where both
 * state them. 0, or -BRIG_EMISMATCH with the first difference in words; names says what they are called. */
int brig_vocab_same(const struct brig_vocab *a, const struct brig_vocab *b, const char *const names[2],
                    struct brig_fail *fail);

#endif
