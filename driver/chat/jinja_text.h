/*
 * Text as Python sees it: a string is a row of characters (code points; what is no UTF-8 counts as one
 * character for each sequence that cannot be mended), white space and case are Unicode's, and every value has
 * a str() and a repr().
 */
#ifndef BRIG_DRIVER_CHAT_JINJA_TEXT_H
#define BRIG_DRIVER_CHAT_JINJA_TEXT_H

#include "driver/chat/jinja_core.h"

/* Bytes of the character at s[0..n), n >= 1. */
size_t brig_jinja_char(const char *s, size_t n);
/* The code point of a character of n bytes; U+FFFD for what is none. */
uint32_t brig_jinja_code(const char *s, size_t n);
/* Bytes of the last character of s[0..n), n >= 1. */
size_t brig_jinja_last_char(const char *s, size_t n);
size_t brig_jinja_count(struct brig_str s); /* characters */
/* The characters from `first` up to `last` (both at most the count). */
struct brig_str brig_jinja_cut(struct brig_str s, size_t first, size_t last);
bool brig_jinja_is_space(uint32_t code);

enum brig_jinja_side { BRIG_JINJA_LEFT = 1, BRIG_JINJA_RIGHT = 2, BRIG_JINJA_BOTH = 3 };
/* Without white space, or without the characters of *chars, at its ends. */
struct brig_str brig_jinja_strip(struct brig_str s, const struct brig_str *chars, enum brig_jinja_side side);

enum brig_jinja_case { BRIG_JINJA_UPPER, BRIG_JINJA_LOWER, BRIG_JINJA_SWAP };
/* Put s in another case into the current output. */
void brig_jinja_put_case(struct brig_jinja *j, struct brig_str s, enum brig_jinja_case how);
struct brig_jv brig_jinja_lower(struct brig_jinja *j, struct brig_str s);

/* Put str(v) or repr(v) into the current output. */
void brig_jinja_put_str(struct brig_jinja *j, struct brig_jv v);
void brig_jinja_put_repr(struct brig_jinja *j, struct brig_jv v);
/* str(v) as a string; a string is itself. */
struct brig_str brig_jinja_str(struct brig_jinja *j, struct brig_jv v);

/* A double as Python prints it, at most 32 bytes with the NUL; nan and inf as Python or as JSON. */
void brig_jinja_float_text(double f, bool json, char out[32]);

struct brig_jinja_json {
    struct brig_str indent; /* ptr NULL: one line */
    struct brig_str comma, colon;
    bool ascii, sort_keys;
};
/* Put v as JSON into the current output; what JSON does not have fails. */
void brig_jinja_put_json(struct brig_jinja *j, struct brig_jv v, const struct brig_jinja_json *o);

#endif
