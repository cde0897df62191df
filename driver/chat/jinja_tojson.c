/* Values as JSON, laid out as Python's json module does it. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "driver/chat/jinja_op.h"
#include "driver/chat/jinja_text.h"

static void put_text(struct brig_jinja *j, const char *text)
{
    brig_jinja_put(j, text, strlen(text));
}

static void put_unit(struct brig_jinja *j, uint32_t unit)
{
    char text[8];
    snprintf(text, sizeof text, "\\u%04x", unit & 0xffff);
    put_text(j, text);
}

/* One character of a string. */
static void put_char(struct brig_jinja *j, const char *s, size_t n, bool ascii)
{
    static const char named[][3] = {['"'] = "\\\"", ['\\'] = "\\\\", ['\n'] = "\\n", ['\r'] = "\\r",
                                    ['\t'] = "\\t", ['\f'] = "\\f",  ['\b'] = "\\b"};
    uint32_t code = brig_jinja_code(s, n);
    if (code < sizeof named / sizeof named[0] && named[code][0] != '\0')
        put_text(j, named[code]);
    else if (code < 0x20 || (ascii && code >= 0x7f && code < 0x10000))
        put_unit(j, code);
    else if (ascii && code >= 0x10000) {
        put_unit(j, 0xd800 + ((code - 0x10000) >> 10));
        put_unit(j, 0xdc00 + ((code - 0x10000) & 0x3ff));
    } else
        brig_jinja_put(j, s, n);
}

static void put_string(struct brig_jinja *j, struct brig_str s, bool ascii)
{
    put_text(j, "\"");
    for (size_t at = 0; at < s.len && !j->failed;) {
        size_t n = brig_jinja_char(s.ptr + at, s.len - at);
        put_char(j, s.ptr + at, n, ascii);
        at += n;
    }
    put_text(j, "\"");
}

static void put_scalar(struct brig_jinja *j, struct brig_jv v)
{
    char text[32];
    switch ((enum brig_jv_kind)v.kind) {
    case BRIG_JV_NONE:
        put_text(j, "null");
        break;
    case BRIG_JV_BOOL:
        put_text(j, v.b ? "true" : "false");
        break;
    case BRIG_JV_FLOAT:
        brig_jinja_float_text(v.f, true, text);
        put_text(j, text);
        break;
    case BRIG_JV_INT:
        snprintf(text, sizeof text, "%lld", (long long)v.i);
        put_text(j, text);
        break;
    default:
        brig_jinja_fail(j, BRIG_JINJA_TYPE, "Object of type %s is not JSON serializable",
                        brig_jv_type_name(v));
    }
}

static void put_value(struct brig_jinja *j, struct brig_jv v, const struct brig_jinja_json *o, size_t level);

static void put_line(struct brig_jinja *j, const struct brig_jinja_json *o, size_t level)
{
    if (o->indent.ptr == NULL)
        return;
    put_text(j, "\n");
    for (size_t i = 0; i < level && brig_jinja_step(j, 1); i++)
        brig_jinja_put(j, o->indent.ptr, o->indent.len);
}

static void put_array(struct brig_jinja *j, const struct brig_jlist *list, const struct brig_jinja_json *o,
                      size_t level)
{
    put_text(j, "[");
    for (size_t i = 0; i < list->n && !j->failed; i++) {
        if (i > 0)
            brig_jinja_put(j, o->comma.ptr, o->comma.len);
        put_line(j, o, level + 1);
        put_value(j, list->v[i], o, level + 1);
    }
    if (list->n > 0)
        put_line(j, o, level);
    put_text(j, "]");
}

/* A key that is no string is written as its value would be, in quotes. */
static void put_key(struct brig_jinja *j, struct brig_jv key, bool ascii)
{
    if (key.kind == BRIG_JV_STR) {
        put_string(j, key.s, ascii);
    } else if (key.kind == BRIG_JV_NONE || brig_jv_is_number(key)) {
        put_text(j, "\"");
        put_scalar(j, key);
        put_text(j, "\"");
    } else {
        brig_jinja_fail(j, BRIG_JINJA_TYPE, "keys must be str, int, float, bool or None, not %s",
                        brig_jv_type_name(key));
    }
}

static void put_object(struct brig_jinja *j, const struct brig_jdict *d, const struct brig_jinja_json *o,
                       size_t level)
{
    struct brig_jv pairs = brig_jv_list(j, BRIG_JV_LIST), keys = brig_jv_list(j, BRIG_JV_LIST);
    for (size_t i = 0; i < d->n && brig_jinja_step(j, 1); i++) {
        brig_jv_push(j, keys.list, d->v[i].key);
        brig_jv_push(j, pairs.list, brig_jv_pair(j, d->v[i].key, d->v[i].value));
    }
    if (o->sort_keys && !j->failed)
        brig_jv_sort(j, pairs.list, keys.list, false);
    put_text(j, "{");
    for (size_t i = 0; !j->failed && i < d->n; i++) {
        const struct brig_jv *pair = pairs.list->v[i].list->v;
        if (i > 0)
            brig_jinja_put(j, o->comma.ptr, o->comma.len);
        put_line(j, o, level + 1);
        put_key(j, pair[0], o->ascii);
        brig_jinja_put(j, o->colon.ptr, o->colon.len);
        put_value(j, pair[1], o, level + 1);
    }
    if (d->n > 0)
        put_line(j, o, level);
    put_text(j, "}");
}

static void put_value(struct brig_jinja *j, struct brig_jv v, const struct brig_jinja_json *o, size_t level)
{
    if (!brig_jinja_enter(j))
        return;
    if (v.kind == BRIG_JV_STR)
        put_string(j, v.s, o->ascii);
    else if (brig_jv_is_sequence(v))
        put_array(j, v.list, o, level);
    else if (v.kind == BRIG_JV_DICT)
        put_object(j, v.dict, o, level);
    else
        put_scalar(j, v);
    brig_jinja_leave(j);
}

void brig_jinja_put_json(struct brig_jinja *j, struct brig_jv v, const struct brig_jinja_json *o)
{
    put_value(j, v, o, 0);
}
