/* The tables of a tokenizer.json. */
#include "driver/token/jsontab.h"

#include <string.h>

#include "driver/token/utf8.h"
#include "proto/base/buf.h"
#include "proto/base/parse.h"
#include "proto/model/desc.h"
#include "proto/model/json.h"

#define MAX_MERGES   ((uint32_t)1 << 24)
#define NUMBER_BYTES 64u

struct scan {
    char *base, *p, *end;
    struct brig_fail *fail;
    struct brig_json_tables *t;
    struct brig_buf tokens, pairs; /* arrays while they grow */
    struct brig_buf rest;
    char *kept; /* rest holds all before this that is no table */
};

static int bad(const struct scan *s, const char *what)
{
    size_t line = 1;
    for (const char *c = s->base; c < s->p; c++)
        line += *c == '\n';
    return brig_fail_set(s->fail, BRIG_EFORMAT, "line %zu: %s", line, what);
}

static void white(struct scan *s)
{
    while (s->p < s->end && (*s->p == ' ' || *s->p == '\n' || *s->p == '\r' || *s->p == '\t'))
        s->p++;
}

/* White space, and then this character. */
static bool take(struct scan *s, char c)
{
    white(s);
    if (s->p == s->end || *s->p != c)
        return false;
    s->p++;
    return true;
}

/* Four hexadecimal digits, or -1. */
static int32_t hex4(const char *p, const char *end)
{
    int32_t value = 0;
    if (end - p < 4)
        return -1;
    for (int i = 0; i < 4; i++) {
        char c = p[i];
        int digit = c >= '0' && c <= '9'   ? c - '0'
                    : c >= 'a' && c <= 'f' ? c - 'a' + 10
                    : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                           : -1;
        if (digit < 0)
            return -1;
        value = value << 4 | digit;
    }
    return value;
}

static char *put_utf8(char *to, uint32_t c)
{
    if (c < 0x80) {
        *to++ = (char)c;
    } else if (c < 0x800) {
        *to++ = (char)(0xc0 | c >> 6);
        *to++ = (char)(0x80 | (c & 0x3f));
    } else {
        if (c < 0x10000) {
            *to++ = (char)(0xe0 | c >> 12);
        } else {
            *to++ = (char)(0xf0 | c >> 18);
            *to++ = (char)(0x80 | (c >> 12 & 0x3f));
        }
        *to++ = (char)(0x80 | (c >> 6 & 0x3f));
        *to++ = (char)(0x80 | (c & 0x3f));
    }
    return to;
}

/* One escape at s->p, after its backslash, to *to, which lies before it: none grows. */
static bool escape(struct scan *s, char **to)
{
    static const char plain[] = "\"\\/bfnrt", means[] = "\"\\/\b\f\n\r\t";
    if (s->p == s->end)
        return false;
    char c = *s->p++;
    const char *at = c != '\0' ? strchr(plain, c) : NULL;
    if (at != NULL) {
        *(*to)++ = means[at - plain];
        return true;
    }
    int32_t high = c == 'u' ? hex4(s->p, s->end) : -1;
    if (high < 0 || (high & 0xfc00) == 0xdc00)
        return false;
    s->p += 4;
    if ((high & 0xfc00) == 0xd800) {
        int32_t low = s->end - s->p >= 6 && s->p[0] == '\\' && s->p[1] == 'u' ? hex4(s->p + 2, s->end) : -1;
        if (low < 0 || (low & 0xfc00) != 0xdc00)
            return false;
        s->p += 6;
        high = 0x10000 + ((high & 0x3ff) << 10) + (low & 0x3ff);
    }
    *to = put_utf8(*to, (uint32_t)high);
    return true;
}

/* The rest of a string from its first escape or its end on. */
static int string_rest(struct scan *s, char *start, bool ascii, struct brig_str *ret)
{
    char *to = s->p;
    while (s->p < s->end && *s->p != '"') {
        unsigned char c = (unsigned char)*s->p++;
        if (c < 0x20)
            return bad(s, "a control character in a string");
        ascii = ascii && c < 0x80;
        if (c != '\\')
            *to++ = (char)c;
        else if (!escape(s, &to))
            return bad(s, "a damaged escape in a string");
    }
    if (s->p == s->end)
        return bad(s, "the file ends in a string");
    s->p++;
    *ret = (struct brig_str){start, (size_t)(to - start)};
    return ascii || brig_utf8_valid(ret->ptr, ret->len) ? 0 : bad(s, "a string that is no UTF-8");
}

static int string(struct scan *s, struct brig_str *ret)
{
    if (!take(s, '"'))
        return bad(s, "a string is wanted");
    char *start = s->p;
    unsigned char all = 0;
    for (; s->p < s->end && *s->p != '"' && *s->p != '\\' && (unsigned char)*s->p >= 0x20; s->p++)
        all |= (unsigned char)*s->p;
    return string_rest(s, start, all < 0x80, ret);
}

/* The characters of a number as a C string. */
static int number(struct scan *s, char ret[NUMBER_BYTES])
{
    size_t n = 0;
    white(s);
    while (s->p < s->end && *s->p != '\0' && strchr("+-.0123456789eE", *s->p) != NULL && n + 1 < NUMBER_BYTES)
        ret[n++] = *s->p++;
    ret[n] = '\0';
    return n > 0 ? 0 : bad(s, "a number is wanted");
}

/* After an element: another one (1), the end (0), or neither. */
static int more(struct scan *s, char closing)
{
    if (take(s, ','))
        return 1;
    return take(s, closing) ? 0 : bad(s, "a comma or the end of a table is wanted");
}

static int add(struct scan *s, struct brig_buf *to, const void *entry, size_t bytes, uint32_t *n,
               uint32_t most, const char *what)
{
    if (*n == most)
        return brig_fail_set(s->fail, BRIG_ELIMIT, "more than %u %s", most, what);
    int r = brig_buf_add(to, entry, bytes);
    if (r < 0)
        return brig_fail_set(s->fail, (enum brig_err) - r, "out of memory for %u %s", *n + 1, what);
    (*n)++;
    return 0;
}

static int token(struct scan *s)
{
    struct brig_json_token token = {0};
    char digits[NUMBER_BYTES];
    uint64_t id = 0;
    int r;
    if (s->t->scored && !take(s, '['))
        return bad(s, "a token and its score in a list are wanted");
    if ((r = string(s, &token.text)) < 0)
        return r;
    if (!take(s, s->t->scored ? ',' : ':'))
        return bad(s, "a token without a number");
    if ((r = number(s, digits)) < 0)
        return r;
    if (s->t->scored) {
        if (!brig_parse_f64(digits, &token.score) || !take(s, ']'))
            return bad(s, "the score of a token is damaged");
    } else {
        if (!brig_parse_u64(digits, &id) || id >= BRIG_MAX_VOCAB)
            return bad(s, "the id of a token is no id");
        token.id = (uint32_t)id;
    }
    return add(s, &s->tokens, &token, sizeof token, &s->t->n_tokens, BRIG_MAX_VOCAB, "tokens");
}

static int merge(struct scan *s)
{
    struct brig_str pair[2] = {{0}};
    int r;
    if (take(s, '[')) {
        if ((r = string(s, &pair[0])) < 0)
            return r;
        if (!take(s, ','))
            return bad(s, "a merge is not two tokens");
        if ((r = string(s, &pair[1])) < 0)
            return r;
        if (!take(s, ']'))
            return bad(s, "a merge is not two tokens");
    } else {
        struct brig_str both;
        if ((r = string(s, &both)) < 0)
            return r;
        const char *space = memchr(both.ptr, ' ', both.len);
        if (space == NULL || memchr(space + 1, ' ', both.len - (size_t)(space + 1 - both.ptr)) != NULL)
            return bad(s, "a merge is not two tokens with a space between");
        pair[0] = (struct brig_str){both.ptr, (size_t)(space - both.ptr)};
        pair[1] = (struct brig_str){space + 1, both.len - pair[0].len - 1};
    }
    return add(s, &s->pairs, pair, sizeof pair, &s->t->n_pairs, MAX_MERGES, "merges");
}

/* A table from its bracket to its end; the rest gets null for it. */
static int table(struct scan *s, int (*element)(struct scan *), char closing)
{
    int r = brig_buf_add(&s->rest, s->kept, (size_t)(s->p - s->kept));
    if (r == 0)
        r = brig_buf_add(&s->rest, "null", 4);
    if (r < 0)
        return brig_fail_set(s->fail, (enum brig_err) - r, "out of memory for its text");
    s->p++;
    int go_on = take(s, closing) ? 0 : 1;
    while (go_on > 0) {
        r = element(s);
        go_on = r < 0 ? r : more(s, closing);
    }
    s->kept = s->p;
    return go_on;
}

/* Over a string without looking into it. */
static void skip_string(struct scan *s)
{
    for (s->p++; s->p < s->end && *s->p != '"'; s->p++)
        if (*s->p == '\\' && s->p + 1 < s->end)
            s->p++;
    if (s->p < s->end)
        s->p++;
}

/* Over a value of any depth. Whether it is well formed is jansson's to say. */
static void skip_value(struct scan *s)
{
    size_t depth = 0;
    white(s);
    while (s->p < s->end) {
        char c = *s->p;
        if (c == '"') {
            skip_string(s);
            continue;
        }
        if (depth == 0 && (c == ',' || c == '}' || c == ']'))
            return;
        depth += c == '{' || c == '[';
        depth -= c == '}' || c == ']';
        s->p++;
    }
}

static int member(struct scan *s, const char *key, size_t n, bool in_model);

/* The members of the object at s->p. Where it is not well formed the walk ends, and jansson says why. */
static int members(struct scan *s, bool in_model)
{
    if (!take(s, '{'))
        return 0;
    for (;;) {
        white(s);
        if (s->p == s->end || *s->p != '"')
            return 0;
        const char *key = s->p + 1;
        skip_string(s);
        size_t n = (size_t)(s->p - key);
        if (!take(s, ':'))
            return 0;
        white(s);
        int r = member(s, key, n > 0 ? n - 1 : 0, in_model);
        if (r < 0)
            return r;
        if (!take(s, ','))
            return take(s, '}'), 0;
    }
}

static bool is_key(const char *key, size_t n, const char *name)
{
    return n == strlen(name) && memcmp(key, name, n) == 0;
}

static int member(struct scan *s, const char *key, size_t n, bool in_model)
{
    struct brig_json_tables *t = s->t;
    char c = s->p < s->end ? *s->p : '\0';
    if (!in_model && is_key(key, n, "model") && c == '{')
        return members(s, true);
    if (in_model && is_key(key, n, "vocab") && (c == '{' || c == '[') && !t->has_vocab) {
        t->has_vocab = true;
        t->scored = c == '[';
        return table(s, token, c == '{' ? '}' : ']');
    }
    if (in_model && is_key(key, n, "merges") && c == '[' && !t->has_merges) {
        t->has_merges = true;
        return table(s, merge, ']');
    }
    skip_value(s);
    return 0;
}

int brig_json_tables_read(struct brig_json_tables *ret, char *text, size_t n, struct brig_fail *fail)
{
    struct brig_json_tables t = {0};
    struct scan s = {.base = text, .p = text, .end = text + n, .kept = text, .fail = fail, .t = &t};
    int r = members(&s, false);
    if (r == 0 && (r = brig_buf_add(&s.rest, s.kept, (size_t)(s.end - s.kept))) < 0)
        r = brig_fail_set(fail, (enum brig_err) - r, "out of memory for its text");
    if (r == 0)
        r = brig_json_parse(&t.rest, s.rest.data, s.rest.len, fail);
    brig_buf_release(&s.rest);
    t.tokens = (struct brig_json_token *)(void *)s.tokens.data;
    t.pairs = (struct brig_str(*)[2])(void *)s.pairs.data;
    if (r < 0) {
        brig_json_tables_release(&t);
        return r;
    }
    *ret = t;
    return 0;
}

void brig_json_tables_release(struct brig_json_tables *t)
{
    struct brig_buf tokens = {.data = (char *)t->tokens}, pairs = {.data = (char *)t->pairs};
    brig_buf_release(&tokens);
    brig_buf_release(&pairs);
    json_decref(t->rest);
    *t = (struct brig_json_tables){0};
}
