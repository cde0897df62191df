/* Bytes written as printable characters, as the vocabularies of byte-level BPE have it (GPT-2). */
#ifndef BRIG_DRIVER_TOKEN_BYTECHARS_H
#define BRIG_DRIVER_TOKEN_BYTECHARS_H

#include <stddef.h>
#include <stdint.h>

#include "proto/base/buf.h"

#define BRIG_N_BYTECHARS 0x144u /* characters that stand for bytes lie below */

struct brig_bytechars {
    uint16_t char_of[256];
    int16_t byte_of[BRIG_N_BYTECHARS]; /* -1: stands for no byte */
};

void brig_bytechars_init(struct brig_bytechars *c);

/* The character of a byte in UTF-8: 1 or 2 bytes, how many is returned. */
size_t brig_bytechar_spell(const struct brig_bytechars *c, uint32_t byte, char ret[2]);

/* Append the bytes that a spelling stands for, or the spelling when it is not all written in these
 * characters. As brig_buf_add. */
int brig_bytechars_piece(const struct brig_bytechars *c, const char *s, size_t n, struct brig_buf *out);

#endif
