/* Pre-tokenizers: text cut into pieces that tokens never cross, by patterns (pretoken.def) run by PCRE2. */
#ifndef BRIG_DRIVER_TOKEN_PRETOKEN_H
#define BRIG_DRIVER_TOKEN_PRETOKEN_H

#include <stdbool.h>
#include <stddef.h>

#include "proto/base/buf.h"
#include "proto/base/err.h"
#include "proto/base/str.h"

struct brig_pretoken;

/* kind: a row of the table; anything else fails and lists the rows. */
int brig_pretoken_new(struct brig_pretoken **ret, struct brig_str kind, struct brig_fail *fail);
void brig_pretoken_free(struct brig_pretoken *p); /* NULL allowed */

/* A piece that is itself a token becomes that token, whatever the merges say. */
bool brig_pretoken_whole_first(const struct brig_pretoken *p);

/* The text that is split: in NFC when this kind asks for it. As brig_nfc. */
int brig_pretoken_normalise(const struct brig_pretoken *p, const char *text, size_t n, struct brig_buf *out,
                            const char **ret_text, size_t *ret_n, struct brig_fail *fail);

/* Called for each piece in order; a negative return ends the split with it. */
typedef int (*brig_pretoken_fn)(void *ctx, const char *piece, size_t n, struct brig_fail *fail);

/* Split well-formed UTF-8; the pieces joined are the text. */
int brig_pretoken_split(struct brig_pretoken *p, const char *text, size_t n, brig_pretoken_fn fn, void *ctx,
                        struct brig_fail *fail);

#endif
