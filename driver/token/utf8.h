/* UTF-8 by the byte: what is a character, what can never become one, what may still become one. */
#ifndef BRIG_DRIVER_TOKEN_UTF8_H
#define BRIG_DRIVER_TOKEN_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BRIG_UTF8_REPLACEMENT       "\xef\xbf\xbd" /* U+FFFD */
#define BRIG_UTF8_REPLACEMENT_BYTES 3u

/* Look at the start of s[n], n >= 1. Positive: the bytes of the character there. Negative: minus the bytes of
 * the longest prefix that no following byte can mend (Unicode's maximal subpart, at least 1). 0: all n bytes
 * are the beginning of a character. */
int brig_utf8_step(const char *s, size_t n);

/* The whole of s is well-formed. */
bool brig_utf8_valid(const char *s, size_t n);

/* The code point of a character of `n` bytes (what brig_utf8_step returned). */
uint32_t brig_utf8_code_point(const char *s, int n);

/* Where the last character of s[n], n >= 1, begins; s is well-formed. */
size_t brig_utf8_before(const char *s, size_t n);

/* Unicode's White_Space. */
bool brig_utf8_is_white(uint32_t code_point);

#endif
