/* "%s" % x and "{}".format(x). */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "driver/chat/jinja_lines.h"
#include "driver/chat/jinja_op.h"
#include "driver/chat/jinja_text.h"

#define MAX_WIDTH 1000

struct spec { /* %(key)-05.3d */
    const char *p, *end;
    bool minus, plus, space, zero, alt;
    int width, precision; /* -1: not given */
    struct brig_str key;  /* ptr NULL: none */
};

struct values {
    struct brig_jv all;
    size_t used;
};

static struct brig_jv bad_format(struct brig_jinja *j)
{
    return brig_jinja_fail(j, BRIG_JINJA_VALUE, "a format that is not understood");
}

/* The value that the next conversion prints. */
static struct brig_jv take(struct brig_jinja *j, struct values *v, const struct spec *s)
{
    if (s->key.ptr != NULL) {
        const struct brig_jv *there =
            v->all.kind == BRIG_JV_DICT ? brig_jv_find_str(v->all.dict, s->key) : NULL;
        if (v->all.kind != BRIG_JV_DICT)
            return brig_jinja_fail(j, BRIG_JINJA_TYPE, "format requires a mapping");
        return there != NULL
                   ? *there
                   : brig_jinja_fail(j, BRIG_JINJA_VALUE, "the format names a key that is not there");
    }
    bool many = v->all.kind == BRIG_JV_TUPLE;
    if (v->used >= (many ? v->all.list->n : 1))
        return brig_jinja_fail(j, BRIG_JINJA_TYPE, "not enough arguments for format string");
    v->used++;
    return many ? v->all.list->v[v->used - 1] : v->all;
}

static int take_number(struct spec *s)
{
    int n = 0;
    for (; s->p < s->end && *s->p >= '0' && *s->p <= '9' && n <= MAX_WIDTH; s->p++)
        n = n * 10 + (*s->p - '0');
    return n;
}

static bool take_spec(struct brig_jinja *j, struct spec *s)
{
    s->width = s->precision = -1;
    if (s->p < s->end && *s->p == '(') {
        const char *close = memchr(s->p, ')', (size_t)(s->end - s->p));
        if (close == NULL)
            return false;
        s->key = (struct brig_str){s->p + 1, (size_t)(close - s->p - 1)};
        s->p = close + 1;
    }
    for (; s->p < s->end && *s->p != '\0' && strchr("-+ 0#", *s->p) != NULL; s->p++) {
        s->minus |= *s->p == '-';
        s->plus |= *s->p == '+';
        s->space |= *s->p == ' ';
        s->zero |= *s->p == '0';
        s->alt |= *s->p == '#';
    }
    s->width = take_number(s);
    if (s->p < s->end && *s->p == '.') {
        s->p++;
        s->precision = take_number(s);
    }
    if (s->width > MAX_WIDTH || s->precision > MAX_WIDTH)
        brig_jinja_fail(j, BRIG_JINJA_LIMIT, "a format wider than %d", MAX_WIDTH);
    while (s->p < s->end && (*s->p == 'l' || *s->p == 'h' || *s->p == 'L'))
        s->p++;
    return s->p < s->end && !j->failed;
}

static void put_padded(struct brig_jinja *j, struct brig_str text, const struct spec *s)
{
    struct brig_jv v = brig_jinja_pad(j, text, s->width, (struct brig_str){" ", 1},
                                      s->minus ? BRIG_JINJA_ALIGN_LEFT : BRIG_JINJA_ALIGN_RIGHT);
    if (!j->failed)
        brig_jinja_put(j, v.s.ptr, v.s.len);
}

/* A number by way of printf, whose rules Python's are; one format of its own kind is put together. */
static void put_number(struct brig_jinja *j, const struct spec *s, char kind, struct brig_jv v)
{
    char format[24], text[MAX_WIDTH + 400];
    bool is_float = strchr("eEfFgG", kind) != NULL;
    if (!brig_jv_is_number(v) || (strchr("xXo", kind) != NULL && v.kind == BRIG_JV_FLOAT)) {
        if (v.kind == BRIG_JV_UNDEFINED)
            brig_jinja_fail_undefined(j, v);
        else
            brig_jinja_fail(j, BRIG_JINJA_TYPE, "%%%c format: a number is required, not %s", kind,
                            brig_jv_type_name(v));
        return;
    }
    if (!is_float && v.kind == BRIG_JV_FLOAT && !(fabs(v.f) < 9.2e18)) {
        brig_jinja_fail(j, BRIG_JINJA_LIMIT, "a whole number of more than 64 bits");
        return;
    }
    snprintf(format, sizeof format, "%%%s%s%s%s%s*.*%s%c", s->minus ? "-" : "", s->plus ? "+" : "",
             s->space ? " " : "", s->zero ? "0" : "", s->alt ? "#" : "", is_float ? "" : "ll",
             kind == 'i' || kind == 'u' ? 'd' : kind);
    long long whole = v.kind == BRIG_JV_FLOAT ? (long long)v.f : (long long)brig_jv_as_int(v);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    if (is_float)
        snprintf(text, sizeof text, format, s->width, s->precision, brig_jv_as_float(v));
    else
        snprintf(text, sizeof text, format, s->width, s->precision, whole);
#pragma GCC diagnostic pop
    brig_jinja_put(j, text, strlen(text));
}

static void put_conversion(struct brig_jinja *j, const struct spec *s, char kind, struct brig_jv v)
{
    struct brig_buf inner, *outer;
    if (kind == 'd' || kind == 'i' || kind == 'u' || (kind != '\0' && strchr("xXoeEfFgG", kind) != NULL)) {
        put_number(j, s, kind, v);
        return;
    }
    if (kind != 's' && kind != 'r' && kind != 'a') {
        bad_format(j);
        return;
    }
    outer = brig_jinja_capture(j, &inner);
    (kind == 's' ? brig_jinja_put_str : brig_jinja_put_repr)(j, v);
    v = brig_jinja_captured(j, &inner, outer);
    if (j->failed)
        return;
    put_padded(j, s->precision >= 0 ? brig_jinja_cut(v.s, 0, (size_t)s->precision) : v.s, s);
}

/* One conversion behind a %; the place after it, or NULL. */
static const char *convert(struct brig_jinja *j, struct values *v, const char *p, const char *end)
{
    struct spec s = {.p = p, .end = end};
    if (!take_spec(j, &s)) {
        bad_format(j);
        return NULL;
    }
    if (*s.p == '%')
        brig_jinja_put(j, "%", 1);
    else
        put_conversion(j, &s, *s.p, take(j, v, &s));
    return j->failed ? NULL : s.p + 1;
}

struct brig_jv brig_jv_percent(struct brig_jinja *j, struct brig_str format, struct brig_jv v)
{
    struct values values = {.all = v};
    struct brig_buf inner, *outer = brig_jinja_capture(j, &inner);
    const char *p = format.ptr, *end = format.ptr + format.len;
    while (p != NULL && p < end && brig_jinja_step(j, 1)) {
        const char *percent = memchr(p, '%', (size_t)(end - p));
        brig_jinja_put(j, p, (size_t)((percent != NULL ? percent : end) - p));
        p = percent == NULL ? NULL : convert(j, &values, percent + 1, end);
    }
    /* What can be subscribed may be there for its names only. */
    bool named = v.kind == BRIG_JV_DICT || v.kind == BRIG_JV_LIST || v.kind == BRIG_JV_UNDEFINED;
    size_t n = v.kind == BRIG_JV_TUPLE ? v.list->n : named ? 0 : 1;
    if (values.used < n)
        brig_jinja_fail(j, BRIG_JINJA_TYPE, "not all arguments converted during string formatting");
    return brig_jinja_captured(j, &inner, outer);
}

/* What {name} or {0} or {} stands for. */
static struct brig_jv field(struct brig_jinja *j, struct brig_str name, const struct brig_jlist *pos,
                            const struct brig_jdict *kw, size_t *next)
{
    size_t i = 0;
    bool number = true;
    for (size_t k = 0; k < name.len && number; k++) {
        number = name.ptr[k] >= '0' && name.ptr[k] <= '9' && i < 100000;
        i = i * 10 + (size_t)(name.ptr[k] - '0');
    }
    if (number) {
        i = name.len == 0 ? (*next)++ : i;
        return i < pos->n ? pos->v[i]
                          : brig_jinja_fail(j, BRIG_JINJA_VALUE, "Replacement index %zu out of range", i);
    }
    const struct brig_jv *v = brig_jv_find_str(kw, name);
    return v != NULL ? *v : brig_jinja_fail(j, BRIG_JINJA_VALUE, "format: there is no argument for a field");
}

/* One {...}; the place after it. Fields with a format behind a colon, or with attributes, are not known. */
static const char *replacement(struct brig_jinja *j, const char *p, const char *end,
                               const struct brig_jlist *pos, const struct brig_jdict *kw, size_t *next)
{
    const char *close = memchr(p, '}', (size_t)(end - p));
    if (close == NULL) {
        brig_jinja_fail(j, BRIG_JINJA_VALUE, "expected '}' before end of string");
        return end;
    }
    struct brig_str name = {p, (size_t)(close - p)};
    bool repr = name.len >= 2 && memcmp(close - 2, "!r", 2) == 0,
         str = name.len >= 2 && memcmp(close - 2, "!s", 2) == 0;
    name.len -= repr || str ? 2 : 0;
    for (size_t i = 0; i < name.len; i++)
        if (strchr("!:.[{", name.ptr[i]) != NULL && !j->failed)
            brig_jinja_fail(j, BRIG_JINJA_VALUE, "format: only {}, {0} and {name} are known");
    if (!j->failed)
        (repr ? brig_jinja_put_repr : brig_jinja_put_str)(j, field(j, name, pos, kw, next));
    return close + 1;
}

struct brig_jv brig_jv_format(struct brig_jinja *j, struct brig_str format, const struct brig_jlist *pos,
                              const struct brig_jdict *kw)
{
    struct brig_buf inner, *outer = brig_jinja_capture(j, &inner);
    size_t next = 0;
    for (const char *p = format.ptr, *end = p + format.len; p < end && brig_jinja_step(j, 1);) {
        size_t n = 0;
        while (p + n < end && p[n] != '{' && p[n] != '}')
            n++;
        brig_jinja_put(j, p, n);
        p += n;
        if (p == end)
            break;
        bool twice = p + 1 < end && p[1] == *p;
        if (twice)
            brig_jinja_put(j, p, 1);
        else if (*p == '}')
            brig_jinja_fail(j, BRIG_JINJA_VALUE, "Single '}' encountered in format string");
        p = twice ? p + 2 : j->failed ? end : replacement(j, p + 1, end, pos, kw, &next);
    }
    return brig_jinja_captured(j, &inner, outer);
}
