/* The lexer. The source is copied with \n for every kind of line end and without the last one. */
#include "driver/chat/jinja_lex.h"

#include <stdlib.h>
#include <string.h>

#include "driver/chat/jinja_text.h"
#include "driver/token/utf8.h"

#define MAX_NESTING 200u /* of brackets */

struct lexer {
    struct brig_jinja *j;
    const char *at, *end, *begin;
    uint32_t line;
    bool line_starting; /* the last thing taken ended with a line end */
    struct brig_jtoken *tokens;
    size_t n, cap;
    char open[MAX_NESTING]; /* closing brackets that are awaited */
    unsigned n_open;
};

static struct brig_jtoken *add(struct lexer *l, enum brig_jtoken_kind kind, struct brig_str s)
{
    if (l->n == l->cap) {
        size_t cap = l->cap * 2 + 64;
        struct brig_jtoken *fresh = brig_jinja_alloc(l->j, cap, sizeof *fresh);
        if (fresh == NULL)
            return NULL;
        if (l->n > 0)
            memcpy(fresh, l->tokens, l->n * sizeof *fresh);
        l->tokens = fresh;
        l->cap = cap;
    }
    struct brig_jtoken *t = &l->tokens[l->n++];
    *t = (struct brig_jtoken){.kind = kind, .line = l->line, .s = s};
    return t;
}

static bool error(struct lexer *l, const char *what)
{
    add(l, BRIG_JT_ERROR, (struct brig_str){what, strlen(what)});
    return false;
}

static size_t left(const struct lexer *l)
{
    return (size_t)(l->end - l->at);
}

static bool begins(const struct lexer *l, const char *what)
{
    size_t n = strlen(what);
    return left(l) >= n && memcmp(l->at, what, n) == 0;
}

/* Move to p, counting lines. */
static void take_to(struct lexer *l, const char *p)
{
    for (; l->at < p; l->at++)
        l->line += *l->at == '\n';
    l->line_starting = l->at > l->begin && l->at[-1] == '\n';
}

static const char *after_spaces(const struct lexer *l, const char *p)
{
    struct brig_str rest = {p, (size_t)(l->end - p)};
    return brig_jinja_strip(rest, NULL, BRIG_JINJA_LEFT).ptr;
}

/* `what` at p: the place after it, else NULL. */
static const char *after(const struct lexer *l, const char *p, const char *what)
{
    size_t n = strlen(what);
    return p != NULL && (size_t)(l->end - p) >= n && memcmp(p, what, n) == 0 ? p + n : NULL;
}

/* The end of a tag or comment at p ("%}", "-%}", "+%}"): the place after it and what it swallows. */
static const char *tag_end(const struct lexer *l, const char *p, const char *close, bool trims)
{
    const char *q;
    if (p < l->end && *p == '-' && (q = after(l, p + 1, close)) != NULL)
        return after_spaces(l, q);
    if (trims && p < l->end && *p == '+' && (q = after(l, p + 1, close)) != NULL)
        return q;
    q = after(l, p, close);
    return q != NULL && trims && q < l->end && *q == '\n' ? q + 1 : q;
}

/* Text before a tag whose sign is `sign`, as what is left of it. */
static struct brig_str text_before(const struct lexer *l, struct brig_str text, char sign, bool lstrips)
{
    if (sign == '-')
        return brig_jinja_strip(text, NULL, BRIG_JINJA_RIGHT);
    if (sign == '+' || !lstrips)
        return text;
    const char *newline = memrchr(text.ptr, '\n', text.len);
    const char *from = newline == NULL ? text.ptr : newline + 1;
    if (newline == NULL && !l->line_starting)
        return text;
    struct brig_str tail = {from, (size_t)(text.ptr + text.len - from)};
    if (brig_jinja_strip(tail, NULL, BRIG_JINJA_BOTH).len == 0)
        text.len -= tail.len;
    return text;
}

static void add_text(struct lexer *l, struct brig_str text)
{
    if (text.len > 0)
        add(l, BRIG_JT_TEXT, text);
}

static bool comment(struct lexer *l)
{
    for (const char *p = l->at; p < l->end; p++) {
        const char *q = tag_end(l, p, "#}", true);
        if (q == NULL)
            continue;
        take_to(l, q);
        return true;
    }
    return l->at == l->end || error(l, "a comment without an end");
}

/* "{%", a sign, spaces, `word`, spaces: the place after them when they are at p. */
static const char *word_tag(const struct lexer *l, const char *p, const char *word, char *sign)
{
    p = after(l, p, "{%");
    if (p == NULL)
        return NULL;
    *sign = p < l->end && (*p == '-' || *p == '+') ? *p++ : '\0';
    p = after(l, after_spaces(l, p), word);
    return p == NULL ? NULL : after_spaces(l, p);
}

/* The text of {% raw %} up to its end tag; l->at is behind the begin tag. */
static bool raw(struct lexer *l)
{
    char sign;
    for (const char *p = l->at; (p = memchr(p, '{', (size_t)(l->end - p))) != NULL; p++) {
        const char *q = word_tag(l, p, "endraw", &sign);
        q = q == NULL ? NULL : tag_end(l, q, "%}", true);
        if (q == NULL)
            continue;
        add_text(l, text_before(l, (struct brig_str){l->at, (size_t)(p - l->at)}, sign, true));
        take_to(l, q);
        return true;
    }
    return l->at == l->end || error(l, "raw without endraw");
}

static bool is_name(char c, bool first)
{
    return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (unsigned char)c >= 0x80 ||
           (!first && c >= '0' && c <= '9');
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Digits with single underscores between them; the place after them. */
static const char *digits(const struct lexer *l, const char *p)
{
    while (p < l->end && (is_digit(*p) || (*p == '_' && p + 1 < l->end && is_digit(p[1]))))
        p++;
    return p;
}

static bool add_number(struct lexer *l, const char *from, const char *end, int base, bool is_float)
{
    char text[64];
    size_t n = 0;
    for (const char *p = from; p < end; p++) {
        if (*p == '_')
            continue;
        if (n + 1 >= sizeof text)
            return error(l, "a number with too many digits");
        text[n++] = *p;
    }
    text[n] = '\0';
    char *stop;
    uint64_t whole = strtoull(text, &stop, base);
    if (!is_float && (*stop != '\0' || n == 0 || whole > INT64_MAX))
        return error(l, "a number that is too large");
    struct brig_jtoken *t = add(l, BRIG_JT_NUMBER, (struct brig_str){from, (size_t)(end - from)});
    if (t != NULL)
        t->value = is_float ? brig_jv_float(strtod(text, NULL)) : brig_jv_int((int64_t)whole);
    l->at = end;
    return t != NULL;
}

static int digit_value(char c)
{
    return is_digit(c) ? c - '0' : (c | 0x20) >= 'a' && (c | 0x20) <= 'f' ? (c | 0x20) - 'a' + 10 : -1;
}

static bool based_number(struct lexer *l, int base)
{
    const char *p = l->at + 2;
    while (p < l->end && (*p == '_' || is_digit(*p) || (base == 16 && digit_value(*p) >= 0)))
        p++;
    return add_number(l, l->at + 2, p, base, false);
}

static bool number(struct lexer *l)
{
    const char *p = digits(l, l->at), *from = l->at;
    bool is_float = false;
    if (*from == '0' && from + 1 < l->end && p == from + 1) {
        char c = (char)(from[1] | 0x20);
        if ((c == 'x' || c == 'o' || c == 'b') && from + 2 < l->end)
            return based_number(l, c == 'x' ? 16 : c == 'o' ? 8 : 2);
    }
    /* After a dot, as in x.0.5, it is no float. */
    bool may_be_float = from == l->begin || from[-1] != '.';
    if (may_be_float && p + 1 < l->end && *p == '.' && is_digit(p[1])) {
        p = digits(l, p + 1);
        is_float = true;
    }
    if (may_be_float && p < l->end && (*p | 0x20) == 'e') {
        const char *q = p + 1;
        q += q < l->end && (*q == '+' || *q == '-');
        if (q < l->end && is_digit(*q)) {
            p = digits(l, q);
            is_float = true;
        }
    }
    if (!is_float && *from == '0') /* 012 is 0 and 12 */
        for (p = from; p < l->end && (*p == '0' || *p == '_'); p++)
            continue;
    return add_number(l, from, p, 10, is_float);
}

/* \x41 \u0041 \U00000041 and octal: the code; *p moves past it. -1: malformed. */
static int64_t escape_code(const char **p, const char *end, char kind)
{
    size_t want = kind == 'x' ? 2 : kind == 'u' ? 4 : kind == 'U' ? 8 : 3;
    bool octal = kind >= '0' && kind <= '7';
    int64_t code = 0;
    size_t n = 0;
    for (; n < want && *p < end; n++, (*p)++) {
        int digit = digit_value(**p);
        if (digit < 0 || (octal && digit > 7))
            break;
        code = code * (octal ? 8 : 16) + digit;
    }
    bool surrogate = code >= 0xd800 && code <= 0xdfff; /* half a character */
    return n == 0 || (!octal && n < want) || surrogate || code > 0x10ffff ? -1 : code;
}

static size_t put_utf8(uint32_t code, char *out)
{
    if (code < 0x80) {
        out[0] = (char)code;
        return 1;
    }
    size_t n = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    for (size_t i = n - 1; i > 0; i--, code >>= 6)
        out[i] = (char)(0x80 | (code & 0x3f));
    out[0] = (char)((0xf00u >> n & 0xffu) | code);
    return n;
}

/* One escape; p is behind the backslash. The place after it, or NULL. */
static const char *unescape(const char *p, const char *end, char *out, size_t *n)
{
    static const char from[] = "nrtabfv\\'\"", to[] = "\n\r\t\a\b\f\v\\'\"";
    char c = *p;
    const char *found = c == '\0' ? NULL : strchr(from, c);
    if (found != NULL) {
        out[(*n)++] = to[found - from];
        return p + 1;
    }
    if (c == '\n') /* nothing: the literal goes on in the next line */
        return p + 1;
    if (c == 'x' || c == 'u' || c == 'U' || (c >= '0' && c <= '7')) {
        p += c == 'x' || c == 'u' || c == 'U';
        int64_t code = escape_code(&p, end, c);
        if (code < 0)
            return NULL;
        *n += put_utf8((uint32_t)code, out + *n);
        return p;
    }
    if (c == 'N')
        return NULL;
    out[(*n)++] = '\\';
    return p;
}

static bool string(struct lexer *l)
{
    char quote = *l->at;
    const char *p = l->at + 1;
    while (p < l->end && *p != quote)
        p += *p == '\\' && p + 1 < l->end ? 2 : 1;
    if (p >= l->end)
        return error(l, "a string without an end");
    const char *from = l->at + 1;
    /* No escape makes more bytes than it has itself, but "\d" keeps its backslash. */
    char *text = brig_jinja_alloc(l->j, (size_t)(p - from), 1);
    size_t n = 0;
    if (text == NULL)
        return false;
    while (from < p) {
        if (*from != '\\') {
            text[n++] = *from++;
            continue;
        }
        from = unescape(from + 1, p, text, &n);
        if (from == NULL)
            return error(l, "a malformed escape in a string");
    }
    if (add(l, BRIG_JT_STRING, (struct brig_str){text, n}) == NULL)
        return false;
    take_to(l, p + 1);
    return true;
}

static bool balance(struct lexer *l, char c)
{
    static const char opening[] = "([{", closing[] = ")]}";
    const char *found = strchr(opening, c);
    if (found != NULL) {
        if (l->n_open == MAX_NESTING)
            return error(l, "too many brackets inside each other");
        l->open[l->n_open++] = closing[found - opening];
    } else if (strchr(closing, c) != NULL && (l->n_open == 0 || l->open[--l->n_open] != c)) {
        return error(l, "a closing bracket that does not match");
    }
    return true;
}

static bool operator_token(struct lexer *l)
{
    static const char *const two[] = {"==", "!=", ">=", "<=", "//", "**"};
    size_t n = 1;
    for (size_t i = 0; i < sizeof two / sizeof two[0]; i++)
        if (begins(l, two[i]))
            n = 2;
    if (n == 1 && (*l->at == '\0' || strchr("+-/*%~[](){}><=.:|,;", *l->at) == NULL))
        return error(l, "an unexpected character");
    if (n == 1 && !balance(l, *l->at))
        return false;
    if (add(l, BRIG_JT_OPERATOR, (struct brig_str){l->at, n}) == NULL)
        return false;
    l->at += n;
    return true;
}

static bool name(struct lexer *l)
{
    const char *p = l->at;
    while (p < l->end && is_name(*p, p == l->at))
        p++;
    if (add(l, BRIG_JT_NAME, (struct brig_str){l->at, (size_t)(p - l->at)}) == NULL)
        return false;
    l->at = p;
    return true;
}

/* What is between {{ and }} or {% and %}, with the end. */
static bool inside(struct lexer *l, bool block)
{
    l->n_open = 0;
    while (l->at < l->end) {
        const char *q = l->n_open > 0 ? NULL : tag_end(l, l->at, block ? "%}" : "}}", block);
        bool good = true;
        if (q != NULL) {
            good = add(l, block ? BRIG_JT_BLOCK_END : BRIG_JT_PRINT_END, (struct brig_str){"", 0}) != NULL;
            take_to(l, q);
            return good;
        }
        q = after_spaces(l, l->at);
        if (q != l->at)
            take_to(l, q);
        else if (is_digit(*l->at))
            good = number(l);
        else if (is_name(*l->at, true))
            good = name(l);
        else if (*l->at == '\'' || *l->at == '"')
            good = string(l);
        else
            good = operator_token(l);
        if (!good)
            return false;
    }
    return error(l, "the template ends inside a tag");
}

/* Text up to the next tag, and the tag. false at the end or after an error. */
static bool outside(struct lexer *l)
{
    const char *p = l->at;
    while ((p = memchr(p, '{', (size_t)(l->end - p))) != NULL &&
           !(p + 1 < l->end && (p[1] == '{' || p[1] == '%' || p[1] == '#')))
        p++;
    if (p == NULL) {
        add_text(l, (struct brig_str){l->at, left(l)});
        take_to(l, l->end);
        return false;
    }
    char sign = '\0', kind = p[1];
    const char *raw_tag = word_tag(l, p, "raw", &sign), *raw_end = NULL;
    if (raw_tag != NULL)
        raw_end = tag_end(l, raw_tag, "%}", false);
    sign = p + 2 < l->end && (p[2] == '-' || p[2] == '+') ? p[2] : '\0';
    add_text(l, text_before(l, (struct brig_str){l->at, (size_t)(p - l->at)}, sign, kind != '{'));
    take_to(l, p);
    if (raw_end != NULL) {
        take_to(l, raw_end);
        return raw(l);
    }
    take_to(l, p + 2 + (sign != '\0'));
    if (kind == '#')
        return comment(l);
    return add(l, kind == '%' ? BRIG_JT_BLOCK_BEGIN : BRIG_JT_PRINT_BEGIN, (struct brig_str){"", 0}) !=
               NULL &&
           inside(l, kind == '%');
}

/* Line ends as \n; the last one belongs to the file. */
static bool normalise(struct lexer *l, struct brig_str source)
{
    char *copy = brig_jinja_alloc(l->j, source.len, 1);
    size_t n = 0;
    if (copy == NULL)
        return false;
    for (size_t i = 0; i < source.len; i++) {
        if (source.ptr[i] == '\r' && i + 1 < source.len && source.ptr[i + 1] == '\n')
            continue;
        copy[n++] = source.ptr[i] == '\r' ? '\n' : source.ptr[i];
    }
    n -= n > 0 && copy[n - 1] == '\n';
    l->begin = l->at = copy;
    l->end = copy + n;
    return true;
}

struct brig_jtoken *brig_jinja_lex(struct brig_jinja *j, struct brig_str source)
{
    struct lexer l = {.j = j, .line = 1, .line_starting = true};
    if (!normalise(&l, source))
        return NULL;
    while (l.at < l.end && brig_jinja_step(j, 1) && outside(&l))
        continue;
    if (l.n == 0 || l.tokens[l.n - 1].kind != BRIG_JT_ERROR)
        add(&l, BRIG_JT_END, (struct brig_str){"", 0});
    return j->failed ? NULL : l.tokens;
}
