/* Pre-tokenizers: text cut into pieces that tokens never cross, by the steps of a row (pretoken.def) or of a
 * tokenizer.json. */
#ifndef BRIG_DRIVER_TOKEN_PRETOKEN_H
#define BRIG_DRIVER_TOKEN_PRETOKEN_H

#include <stdbool.h>
#include <stddef.h>

#include "driver/token/rules.h"
#include "proto/base/buf.h"
#include "proto/base/err.h"
#include "proto/base/str.h"

struct brig_pretoken;

/* kind: a row of the table; anything else fails and lists the rows. */
int brig_pretoken_new(struct brig_pretoken **ret, struct brig_str kind, struct brig_fail *fail);
/* The steps SPLIT, PREFIX, PREPEND and REPLACE; the strings in them are borrowed. BYTES is left to the kind.
 */
int brig_pretoken_from_steps(struct brig_pretoken **ret, const struct brig_steps *steps,
                             struct brig_fail *fail);
void brig_pretoken_free(struct brig_pretoken *p); /* NULL allowed */

/* A piece that is itself a token becomes that token, whatever the merges say. */
bool brig_pretoken_whole_first(const struct brig_pretoken *p);

/* The text that is split: in NFC when this row asks for it. As brig_nfc. */
int brig_pretoken_normalise(const struct brig_pretoken *p, const char *text, size_t n, struct brig_buf *out,
                            const char **ret_text, size_t *ret_n, struct brig_fail *fail);

/* The first pattern of a row that there is. */
const char *brig_pretoken_pattern(const char *row);

/* Called for each piece in order; a negative return ends the split with it. */
typedef int (*brig_pretoken_fn)(void *ctx, const char *piece, size_t n, struct brig_fail *fail);

/* Split well-formed UTF-8; with a row the pieces joined are the text. at_start: nothing stands before it. */
int brig_pretoken_split(struct brig_pretoken *p, const char *text, size_t n, bool at_start,
                        brig_pretoken_fn fn, void *ctx, struct brig_fail *fail);

#endif
