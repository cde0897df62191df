/* Filters that give text. */
#include <stdio.h>
#include <string.h>

#include "driver/chat/jinja_fn.h"
#include "driver/chat/jinja_lines.h"
#include "driver/chat/jinja_op.h"
#include "driver/chat/jinja_text.h"

static struct brig_jv filter_case(struct brig_jinja *j, struct brig_jv self, enum brig_jinja_case how)
{
    struct brig_str s = brig_jinja_str(j, self);
    struct brig_buf inner, *outer = brig_jinja_capture(j, &inner);
    brig_jinja_put_case(j, s, how);
    return brig_jinja_captured(j, &inner, outer);
}

static struct brig_jv upper(struct brig_jinja *j, struct brig_jv self, const struct brig_jargs *args)
{
    (void)args;
    return filter_case(j, self, BRIG_JINJA_UPPER);
}

static struct brig_jv lower(struct brig_jinja *j, struct brig_jv self, const struct brig_jargs *args)
{
    (void)args;
    return filter_case(j, self, BRIG_JINJA_LOWER);
}

static struct brig_jv capitalize(struct brig_jinja *j, struct brig_jv self, const struct brig_jargs *args)
{
    (void)args;
    return brig_jinja_capitalize(j, brig_jinja_str(j, self));
}

/* A word begins after white space, - and an opening bracket. */
static struct brig_jv title(struct brig_jinja *j, struct brig_jv self, const struct brig_jargs *args)
{
    struct brig_str s = brig_jinja_str(j, self);
    struct brig_buf inner, *outer = brig_jinja_capture(j, &inner);
    bool begins = true;
    (void)args;
    for (size_t at = 0; at < s.len && !j->failed;) {
        size_t n = brig_jinja_char(s.ptr + at, s.len - at);
        uint32_t c = brig_jinja_code(s.ptr + at, n);
        brig_jinja_put_case(j, (struct brig_str){s.ptr + at, n},
                            begins ? BRIG_JINJA_UPPER : BRIG_JINJA_LOWER);
        begins = brig_jinja_is_space(c) || c == '-' || c == '(' || c == '{' || c == '[' || c == '<';
        at += n;
    }
    return brig_jinja_captured(j, &inner, outer);
}

static struct brig_jv trim(struct brig_jinja *j, struct brig_jv self, const struct brig_jargs *args)
{
    struct brig_str s = brig_jinja_str(j, self), chars;
    bool given = args->a[0].kind != BRIG_JV_ABSENT && args->a[0].kind != BRIG_JV_NONE;
    if (given)
        chars = brig_jarg_only_str(j, args->a[0]);
    s = brig_jinja_strip(s, given ? &chars : NULL, BRIG_JINJA_BOTH);
    return brig_jv_str(s.ptr, s.len);
}

static struct brig_jv replace(struct brig_jinja *j, struct brig_jv self, const struct brig_jargs *args)
{
    return brig_jinja_replace(j, brig_jinja_str(j, self), brig_jinja_str(j, args->a[0]),
                              brig_jinja_str(j, args->a[1]), brig_jarg_int(j, args->a[2], -1));
}

static struct brig_jv string(struct brig_jinja *j, struct brig_jv self, const struct brig_jargs *args)
{
    struct brig_str s = brig_jinja_str(j, self);
    (void)args;
    return brig_jv_str(s.ptr, s.len);
}

static struct brig_jv escape(struct brig_jinja *j, struct brig_jv self, const struct brig_jargs *args)
{
    static const char *const entities[] = {
        ['&'] = "&amp;", ['<'] = "&lt;", ['>'] = "&gt;", ['"'] = "&#34;", ['\''] = "&#39;"};
    struct brig_str s = brig_jinja_str(j, self);
    struct brig_buf inner, *outer = brig_jinja_capture(j, &inner);
    (void)args;
    for (size_t i = 0; i < s.len; i++) {
        unsigned char c = (unsigned char)s.ptr[i];
        const char *entity = c < sizeof entities / sizeof entities[0] ? entities[c] : NULL;
        brig_jinja_put(j, entity != NULL ? entity : &s.ptr[i], entity != NULL ? strlen(entity) : 1);
    }
    return brig_jinja_captured(j, &inner, outer);
}

static struct brig_jv indent(struct brig_jinja *j, struct brig_jv self, const struct brig_jargs *args)
{
    bool first = brig_jarg_bool(args->a[1], false), blank = brig_jarg_bool(args->a[2], false);
    struct brig_jv spaces = args->a[0];
    if (spaces.kind != BRIG_JV_STR)
        spaces =
            brig_jv_arithmetic(j, BRIG_JOP_MUL, brig_jv_text(" "), brig_jv_int(brig_jarg_int(j, spaces, 4)));
    self =
        brig_jv_arithmetic(j, BRIG_JOP_ADD, self, brig_jv_text("\n")); /* so that a last empty line counts */
    if (j->failed)
        return self;
    struct brig_str s = self.s, line;
    struct brig_buf inner, *outer = brig_jinja_capture(j, &inner);
    if (first)
        brig_jinja_put(j, spaces.s.ptr, spaces.s.len);
    for (size_t i = 0; brig_jinja_line(&s, false, &line) && brig_jinja_step(j, 1); i++) {
        if (i > 0)
            brig_jinja_put(j, "\n", 1);
        if (i > 0 && (blank || line.len > 0))
            brig_jinja_put(j, spaces.s.ptr, spaces.s.len);
        brig_jinja_put(j, line.ptr, line.len);
    }
    return brig_jinja_captured(j, &inner, outer);
}

static struct brig_jv center(struct brig_jinja *j, struct brig_jv self, const struct brig_jargs *args)
{
    return brig_jinja_pad(j, brig_jinja_str(j, self), brig_jarg_int(j, args->a[0], 80),
                          (struct brig_str){" ", 1}, BRIG_JINJA_ALIGN_CENTER);
}

static struct brig_jv format(struct brig_jinja *j, struct brig_jv self, const struct brig_jargs *args)
{
    struct brig_jv values = brig_jv_list(j, BRIG_JV_TUPLE);
    if (j->failed)
        return values;
    if (args->kw.n > 0 && args->pos.n > 0)
        return brig_jinja_fail(j, BRIG_JINJA_VALUE,
                               "can't handle positional and keyword arguments at the same time");
    *values.list = args->pos;
    if (args->kw.n > 0) {
        values = brig_jv_dict(j, BRIG_JV_DICT);
        for (size_t i = 0; i < args->kw.n; i++)
            brig_jv_put(j, values.dict, args->kw.v[i].key, args->kw.v[i].value);
    }
    return brig_jv_percent(j, brig_jinja_str(j, self), values);
}

static struct brig_jv urlencode(struct brig_jinja *j, struct brig_jv self, const struct brig_jargs *args)
{
    struct brig_str s = brig_jinja_str(j, self);
    struct brig_buf inner, *outer = brig_jinja_capture(j, &inner);
    char text[4];
    (void)args;
    for (size_t i = 0; i < s.len && !j->failed; i++) {
        unsigned char c = (unsigned char)s.ptr[i];
        bool plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                     (c != '\0' && strchr("_.-~/", c) != NULL);
        snprintf(text, sizeof text, plain ? "%c" : "%%%02X", c);
        brig_jinja_put(j, text, strlen(text));
    }
    return brig_jinja_captured(j, &inner, outer);
}

static struct brig_jv wordcount(struct brig_jinja *j, struct brig_jv self, const struct brig_jargs *args)
{
    struct brig_str s = brig_jinja_str(j, self);
    int64_t words = 0;
    bool inside = false;
    (void)args;
    for (size_t i = 0; i < s.len; i++) {
        unsigned char c = (unsigned char)s.ptr[i];
        bool word =
            c == '_' || c >= 0x80 || (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z');
        words += word && !inside;
        inside = word;
    }
    return brig_jv_int(words);
}

/* (", ", ": ") or None. */
static void take_separators(struct brig_jinja *j, struct brig_jv v, struct brig_jinja_json *o)
{
    if (v.kind == BRIG_JV_ABSENT || v.kind == BRIG_JV_NONE)
        return;
    if (!brig_jv_is_sequence(v) || v.list->n != 2) {
        brig_jinja_fail(j, BRIG_JINJA_VALUE, "tojson: two separators are expected");
        return;
    }
    o->comma = brig_jarg_only_str(j, v.list->v[0]);
    o->colon = brig_jarg_only_str(j, v.list->v[1]);
}

static struct brig_jv tojson(struct brig_jinja *j, struct brig_jv self, const struct brig_jargs *args)
{
    struct brig_jinja_json o = {.comma = {", ", 2}, .colon = {": ", 2}};
    struct brig_jv spaces = args->a[1];
    o.ascii = brig_jarg_bool(args->a[0], false);
    o.sort_keys = brig_jarg_bool(args->a[3], false);
    if (spaces.kind != BRIG_JV_ABSENT && spaces.kind != BRIG_JV_NONE) {
        if (spaces.kind != BRIG_JV_STR)
            spaces = brig_jv_arithmetic(j, BRIG_JOP_MUL, brig_jv_text(" "),
                                        brig_jv_int(brig_jarg_int(j, spaces, 0)));
        o.indent = brig_jarg_only_str(j, spaces);
        o.comma.len = 1;
    }
    take_separators(j, args->a[2], &o);
    struct brig_buf inner, *outer = brig_jinja_capture(j, &inner);
    brig_jinja_put_json(j, self, &o);
    return brig_jinja_captured(j, &inner, outer);
}

const struct brig_jfn brig_jfn_text_filters[] = {
    {"capitalize", "", capitalize},
    {"center", "width?", center},
    {"e", "", escape},
    {"escape", "", escape},
    {"forceescape", "", escape},
    {"format", "*", format},
    {"indent", "width? first? blank?", indent},
    {"lower", "", lower},
    {"replace", "old new count?", replace},
    {"safe", "", string},
    {"string", "", string},
    {"title", "", title},
    {"tojson", "ensure_ascii? indent? separators? sort_keys?", tojson},
    {"trim", "chars?", trim},
    {"upper", "", upper},
    {"urlencode", "", urlencode},
    {"wordcount", "", wordcount},
    {NULL, NULL, NULL},
};
