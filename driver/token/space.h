/* Spaces as SentencePiece writes them, and the words between them. */
#ifndef BRIG_DRIVER_TOKEN_SPACE_H
#define BRIG_DRIVER_TOKEN_SPACE_H

#include <stdbool.h>
#include <stddef.h>

#include "proto/base/buf.h"
#include "proto/base/str.h"

#define BRIG_SPACE       "\xe2\x96\x81" /* U+2581 */
#define BRIG_SPACE_BYTES 3u

bool brig_is_space(const char *s, size_t n); /* s[n] begins with one */

/* A space that follows something that is none. When no token is spelt like that, each word stands alone. */
bool brig_crosses_words(struct brig_str s);

/* Where the word at the start of s ends: before a space that follows something else. */
size_t brig_word(const char *s, size_t n);

/* The byte that a token stands for, spelt <0xHH>, or -1. */
int brig_byte_of_spelling(struct brig_str s);

/* Append a spelling with its spaces as spaces; as brig_buf_add. */
int brig_space_piece(struct brig_str s, struct brig_buf *out);

#endif
