/* Characters, white space, case; str() and repr(). */
#include "driver/chat/jinja_text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <utf8proc.h>

#include "driver/token/utf8.h"

size_t brig_jinja_char(const char *s, size_t n)
{
    if ((unsigned char)s[0] < 0x80)
        return 1;
    int step = brig_utf8_step(s, n);
    return step == 0 ? n : (size_t)(step < 0 ? -step : step);
}

uint32_t brig_jinja_code(const char *s, size_t n)
{
    if ((unsigned char)s[0] < 0x80)
        return (unsigned char)s[0];
    return brig_utf8_step(s, n) == (int)n ? brig_utf8_code_point(s, (int)n) : 0xfffd;
}

size_t brig_jinja_last_char(const char *s, size_t n)
{
    /* A character has at most four bytes; the one that ends exactly at the end is it. */
    for (size_t k = n < 4 ? n : 4; k > 1; k--)
        if (((unsigned char)s[n - k] & 0xc0) == 0xc0 && brig_jinja_char(s + n - k, k) == k)
            return k;
    return 1;
}

size_t brig_jinja_count(struct brig_str s)
{
    size_t count = 0;
    for (size_t at = 0; at < s.len; count++)
        at += brig_jinja_char(s.ptr + at, s.len - at);
    return count;
}

struct brig_str brig_jinja_cut(struct brig_str s, size_t first, size_t last)
{
    size_t at = 0, i = 0;
    for (; i < first && at < s.len; i++)
        at += brig_jinja_char(s.ptr + at, s.len - at);
    size_t begin = at;
    for (; i < last && at < s.len; i++)
        at += brig_jinja_char(s.ptr + at, s.len - at);
    return (struct brig_str){s.ptr + begin, at - begin};
}

bool brig_jinja_is_space(uint32_t c)
{
    return (c >= 9 && c <= 13) || (c >= 0x1c && c <= 0x20) || c == 0x85 || c == 0xa0 || c == 0x1680 ||
           (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 || c == 0x202f || c == 0x205f ||
           c == 0x3000;
}

static bool strips(const char *s, size_t n, const struct brig_str *chars)
{
    if (chars == NULL)
        return brig_jinja_is_space(brig_jinja_code(s, n));
    for (size_t at = 0; at < chars->len;) {
        size_t k = brig_jinja_char(chars->ptr + at, chars->len - at);
        if (k == n && memcmp(chars->ptr + at, s, n) == 0)
            return true;
        at += k;
    }
    return false;
}

struct brig_str brig_jinja_strip(struct brig_str s, const struct brig_str *chars, enum brig_jinja_side side)
{
    while ((side & BRIG_JINJA_LEFT) != 0 && s.len > 0) {
        size_t n = brig_jinja_char(s.ptr, s.len);
        if (!strips(s.ptr, n, chars))
            break;
        s.ptr += n;
        s.len -= n;
    }
    while ((side & BRIG_JINJA_RIGHT) != 0 && s.len > 0) {
        size_t n = brig_jinja_last_char(s.ptr, s.len);
        if (!strips(s.ptr + s.len - n, n, chars))
            break;
        s.len -= n;
    }
    return s;
}

/* The few letters whose upper case is more than one letter and that are met in words. */
static const char *special_upper(uint32_t code)
{
    switch (code) {
    case 0xdf:
        return "SS";
    case 0x149:
        return "\xca\xbcN";
    case 0xfb00:
        return "FF";
    case 0xfb01:
        return "FI";
    case 0xfb02:
        return "FL";
    default:
        return NULL;
    }
}

void brig_jinja_put_case(struct brig_jinja *j, struct brig_str s, enum brig_jinja_case how)
{
    for (size_t at = 0; at < s.len && !j->failed;) {
        size_t n = brig_jinja_char(s.ptr + at, s.len - at);
        uint32_t code = brig_jinja_code(s.ptr + at, n);
        utf8proc_uint8_t bytes[4];
        if (code == 0xfffd) { /* perhaps no character at all */
            brig_jinja_put(j, s.ptr + at, n);
        } else {
            int32_t upper = utf8proc_toupper((int32_t)code), lower = utf8proc_tolower((int32_t)code);
            bool up = how == BRIG_JINJA_UPPER || (how == BRIG_JINJA_SWAP && lower == (int32_t)code);
            const char *special = up ? special_upper(code) : NULL;
            if (special != NULL)
                brig_jinja_put(j, special, strlen(special));
            else
                brig_jinja_put(j, bytes, (size_t)utf8proc_encode_char(up ? upper : lower, bytes));
        }
        at += n;
    }
}

struct brig_jv brig_jinja_lower(struct brig_jinja *j, struct brig_str s)
{
    struct brig_buf inner, *outer = brig_jinja_capture(j, &inner);
    brig_jinja_put_case(j, s, BRIG_JINJA_LOWER);
    return brig_jinja_captured(j, &inner, outer);
}

/* The shortest digits that read back as f, laid out as Python does it. */
static void finite_text(double f, char out[32])
{
    char digits[32];
    int precision = 0;
    do
        snprintf(digits, sizeof digits, "%.*e", precision, f);
    while (strtod(digits, NULL) != f && ++precision < 17);
    int exponent = (int)strtol(strchr(digits, 'e') + 1, NULL, 10);
    if (exponent >= -4 && exponent < 16) {
        int after = precision - exponent;
        snprintf(out, 32, "%.*f", after > 0 ? after : 1, f);
        return;
    }
    *strchr(digits, 'e') = '\0';
    snprintf(out, 32, "%.20se%c%02u", digits, exponent < 0 ? '-' : '+', (unsigned)abs(exponent) % 1000);
}

void brig_jinja_float_text(double f, bool json, char out[32])
{
    if (isnan(f))
        snprintf(out, 32, "%s", json ? "NaN" : "nan");
    else if (isinf(f))
        snprintf(out, 32, "%s%s", f < 0 ? "-" : "", json ? "Infinity" : "inf");
    else
        finite_text(f, out);
}

static bool printable(uint32_t code)
{
    if (code < 0x80)
        return code >= 0x20 && code != 0x7f;
    switch (utf8proc_category((int32_t)code)) {
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
    case UTF8PROC_CATEGORY_ZS:
        return false;
    default:
        return true;
    }
}

static void put_escape(struct brig_jinja *j, uint32_t code)
{
    char text[16];
    if (code == '\n' || code == '\t' || code == '\r')
        snprintf(text, sizeof text, "\\%c", code == '\n' ? 'n' : code == '\t' ? 't' : 'r');
    else if (code < 0x100)
        snprintf(text, sizeof text, "\\x%02x", code);
    else
        snprintf(text, sizeof text, code < 0x10000 ? "\\u%04x" : "\\U%08x", code);
    brig_jinja_put(j, text, strlen(text));
}

static void put_quoted(struct brig_jinja *j, struct brig_str s)
{
    bool single = memchr(s.ptr, '\'', s.len) != NULL, twice = memchr(s.ptr, '"', s.len) != NULL;
    char quote = single && !twice ? '"' : '\'';
    brig_jinja_put(j, &quote, 1);
    for (size_t at = 0; at < s.len && !j->failed;) {
        size_t n = brig_jinja_char(s.ptr + at, s.len - at);
        uint32_t code = brig_jinja_code(s.ptr + at, n);
        if (code == (uint32_t)quote || code == '\\')
            brig_jinja_put(j, "\\", 1);
        if (printable(code))
            brig_jinja_put(j, s.ptr + at, n);
        else
            put_escape(j, code);
        at += n;
    }
    brig_jinja_put(j, &quote, 1);
}

static void put_list(struct brig_jinja *j, const struct brig_jlist *list, const char *open, const char *close)
{
    brig_jinja_put(j, open, strlen(open));
    for (size_t i = 0; i < list->n && !j->failed; i++) {
        if (i > 0)
            brig_jinja_put(j, ", ", 2);
        brig_jinja_put_repr(j, list->v[i]);
    }
    brig_jinja_put(j, close, strlen(close));
}

static void put_dict(struct brig_jinja *j, const struct brig_jdict *d)
{
    brig_jinja_put(j, "{", 1);
    for (size_t i = 0; i < d->n && !j->failed; i++) {
        if (i > 0)
            brig_jinja_put(j, ", ", 2);
        brig_jinja_put_repr(j, d->v[i].key);
        brig_jinja_put(j, ": ", 2);
        brig_jinja_put_repr(j, d->v[i].value);
    }
    brig_jinja_put(j, "}", 1);
}

static void put_range(struct brig_jinja *j, const struct brig_jrange *r)
{
    char text[96];
    snprintf(text, sizeof text, "range(%lld, %lld", (long long)r->start, (long long)r->stop);
    brig_jinja_put(j, text, strlen(text));
    snprintf(text, sizeof text, r->step == 1 ? ")" : ", %lld)", (long long)r->step);
    brig_jinja_put(j, text, strlen(text));
}

static void put_container(struct brig_jinja *j, struct brig_jv v)
{
    switch ((enum brig_jv_kind)v.kind) {
    case BRIG_JV_LIST:
        put_list(j, v.list, "[", "]");
        break;
    case BRIG_JV_TUPLE:
        put_list(j, v.list, "(", v.list->n == 1 ? ",)" : ")");
        break;
    case BRIG_JV_VIEW:
        put_list(j, v.list, v.why == 0 ? "dict_keys([" : v.why == 1 ? "dict_values([" : "dict_items([", "])");
        break;
    case BRIG_JV_DICT:
        put_dict(j, v.dict);
        break;
    default:
        brig_jinja_put(j, "<Namespace ", 11);
        put_dict(j, v.dict);
        brig_jinja_put(j, ">", 1);
    }
}

static void put_number(struct brig_jinja *j, struct brig_jv v)
{
    char text[32];
    if (v.kind == BRIG_JV_FLOAT)
        brig_jinja_float_text(v.f, false, text);
    else if (v.kind == BRIG_JV_INT)
        snprintf(text, sizeof text, "%lld", (long long)v.i);
    else
        snprintf(text, sizeof text, "%s", v.b ? "True" : "False");
    brig_jinja_put(j, text, strlen(text));
}

void brig_jinja_put_repr(struct brig_jinja *j, struct brig_jv v)
{
    if (!brig_jinja_enter(j))
        return;
    switch ((enum brig_jv_kind)v.kind) {
    case BRIG_JV_UNDEFINED:
        brig_jinja_put(j, "Undefined", 9);
        break;
    case BRIG_JV_ABSENT:
    case BRIG_JV_NONE:
        brig_jinja_put(j, "None", 4);
        break;
    case BRIG_JV_BOOL:
    case BRIG_JV_INT:
    case BRIG_JV_FLOAT:
        put_number(j, v);
        break;
    case BRIG_JV_STR:
        put_quoted(j, v.s);
        break;
    case BRIG_JV_LIST:
    case BRIG_JV_TUPLE:
    case BRIG_JV_VIEW:
    case BRIG_JV_DICT:
    case BRIG_JV_NAMESPACE:
        put_container(j, v);
        break;
    case BRIG_JV_RANGE:
        put_range(j, v.range);
        break;
    default: /* Python has an address here */
        brig_jinja_put(j, "<", 1);
        brig_jinja_put(j, brig_jv_type_name(v), strlen(brig_jv_type_name(v)));
        brig_jinja_put(j, ">", 1);
    }
    brig_jinja_leave(j);
}

void brig_jinja_put_str(struct brig_jinja *j, struct brig_jv v)
{
    if (v.kind == BRIG_JV_STR)
        brig_jinja_put(j, v.s.ptr, v.s.len);
    else if (v.kind != BRIG_JV_UNDEFINED)
        brig_jinja_put_repr(j, v);
}

struct brig_str brig_jinja_str(struct brig_jinja *j, struct brig_jv v)
{
    if (v.kind == BRIG_JV_STR)
        return v.s;
    struct brig_buf inner, *outer = brig_jinja_capture(j, &inner);
    brig_jinja_put_str(j, v);
    v = brig_jinja_captured(j, &inner, outer);
    return v.kind == BRIG_JV_STR ? v.s : (struct brig_str){"", 0};
}
