/* Decoders: the steps of a tokenizer.json that make bytes of a token's spelling. */
#ifndef BRIG_DRIVER_TOKEN_DECODER_H
#define BRIG_DRIVER_TOKEN_DECODER_H

#include "driver/token/rules.h"
#include "proto/base/buf.h"
#include "proto/base/err.h"

struct brig_decoder;

/* The strings in the rules are borrowed. */
int brig_decoder_new(struct brig_decoder **ret, const struct brig_rules *rules, struct brig_fail *fail);
void brig_decoder_free(struct brig_decoder *d); /* NULL allowed */

/* Bytes of a token with this spelling, wherever it stands; borrowed until the next call or the spelling's
 * own. *ret_lead: how many of them go when it is the first of a text. */
int brig_decoder_piece(struct brig_decoder *d, struct brig_str spelling, struct brig_str *ret,
                       size_t *ret_lead, struct brig_fail *fail);

#endif
