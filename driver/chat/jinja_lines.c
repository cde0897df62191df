/* Searching and cutting strings. */
#include "driver/chat/jinja_lines.h"

#include <string.h>

#include "driver/chat/jinja_text.h"

static bool ends_line(uint32_t c)
{
    return (c >= 10 && c <= 13) || (c >= 0x1c && c <= 0x1e) || c == 0x85 || c == 0x2028 || c == 0x2029;
}

bool brig_jinja_line(struct brig_str *rest, bool with_end, struct brig_str *ret)
{
    size_t at = 0, end = 0;
    if (rest->len == 0)
        return false;
    while (at < rest->len && end == 0) {
        size_t n = brig_jinja_char(rest->ptr + at, rest->len - at);
        if (ends_line(brig_jinja_code(rest->ptr + at, n))) {
            bool both = rest->ptr[at] == '\r' && at + 1 < rest->len && rest->ptr[at + 1] == '\n';
            end = both ? 2 : n;
        } else {
            at += n;
        }
    }
    *ret = (struct brig_str){rest->ptr, with_end ? at + end : at};
    rest->ptr += at + end;
    rest->len -= at + end;
    return true;
}

/* An empty string is found before each character and at the end. */
static void replace_empty(struct brig_jinja *j, struct brig_str s, struct brig_str to, int64_t count)
{
    size_t at = 0;
    for (; at < s.len && count != 0 && brig_jinja_step(j, 1); count--) {
        size_t n = brig_jinja_char(s.ptr + at, s.len - at);
        brig_jinja_put(j, to.ptr, to.len);
        brig_jinja_put(j, s.ptr + at, n);
        at += n;
    }
    brig_jinja_put(j, s.ptr + at, s.len - at);
    if (count != 0)
        brig_jinja_put(j, to.ptr, to.len);
}

struct brig_jv brig_jinja_replace(struct brig_jinja *j, struct brig_str s, struct brig_str from,
                                  struct brig_str to, int64_t count)
{
    struct brig_buf inner, *outer = brig_jinja_capture(j, &inner);
    const char *at = s.ptr, *end = s.ptr + s.len, *found;
    if (from.len == 0) {
        replace_empty(j, s, to, count);
        return brig_jinja_captured(j, &inner, outer);
    }
    brig_jinja_step(j, s.len / 256);
    for (; count != 0 && brig_jinja_step(j, 1); count--) {
        found = memmem(at, (size_t)(end - at), from.ptr, from.len);
        if (found == NULL)
            break;
        brig_jinja_put(j, at, (size_t)(found - at));
        brig_jinja_put(j, to.ptr, to.len);
        at = found + from.len;
    }
    brig_jinja_put(j, at, (size_t)(end - at));
    return brig_jinja_captured(j, &inner, outer);
}

static void put_fill(struct brig_jinja *j, struct brig_str fill, int64_t n)
{
    for (; n > 0 && !j->failed; n--)
        brig_jinja_put(j, fill.ptr, fill.len);
}

struct brig_jv brig_jinja_pad(struct brig_jinja *j, struct brig_str s, int64_t width, struct brig_str fill,
                              enum brig_jinja_align side)
{
    int64_t count = (int64_t)brig_jinja_count(s), missing = width > count ? width - count : 0;
    if (brig_jinja_count(fill) != 1)
        return brig_jinja_fail(j, BRIG_JINJA_TYPE, "the fill character must be exactly one character long");
    struct brig_buf inner, *outer = brig_jinja_capture(j, &inner);
    /* Which side has one more is Python's choice. */
    int64_t before = side == BRIG_JINJA_ALIGN_LEFT    ? 0
                     : side == BRIG_JINJA_ALIGN_RIGHT ? missing
                                                      : missing / 2 + (missing & width & 1);
    put_fill(j, fill, before);
    brig_jinja_put(j, s.ptr, s.len);
    put_fill(j, fill, missing - before);
    return brig_jinja_captured(j, &inner, outer);
}

struct brig_jv brig_jinja_capitalize(struct brig_jinja *j, struct brig_str s)
{
    struct brig_buf inner, *outer = brig_jinja_capture(j, &inner);
    size_t n = s.len > 0 ? brig_jinja_char(s.ptr, s.len) : 0;
    brig_jinja_put_case(j, (struct brig_str){s.ptr, n}, BRIG_JINJA_UPPER);
    brig_jinja_put_case(j, (struct brig_str){s.ptr + n, s.len - n}, BRIG_JINJA_LOWER);
    return brig_jinja_captured(j, &inner, outer);
}
