/* Values: making them, looking into them. */
#include <string.h>

#include "driver/chat/jinja_core.h"
#include "driver/chat/jinja_op.h"
#include "driver/chat/jinja_text.h"

struct brig_jv brig_jv_text(const char *literal)
{
    return brig_jv_str(literal, strlen(literal));
}

struct brig_jv brig_jv_str_copy(struct brig_jinja *j, const char *ptr, size_t len)
{
    if (len > j->limits.out_bytes)
        return brig_jinja_fail(j, BRIG_JINJA_LIMIT, "a string of more than %zu bytes", j->limits.out_bytes);
    char *copy = brig_jinja_alloc(j, len, 1);
    if (copy == NULL)
        return (struct brig_jv){.kind = BRIG_JV_UNDEFINED};
    if (len > 0)
        memcpy(copy, ptr, len);
    return brig_jv_str(copy, len);
}

struct brig_jv brig_jv_undefined(enum brig_jv_why why, enum brig_jv_kind of, struct brig_str name)
{
    return (struct brig_jv){.kind = BRIG_JV_UNDEFINED, .why = (uint8_t)why, .of = (uint8_t)of, .s = name};
}

struct brig_jv brig_jv_list(struct brig_jinja *j, enum brig_jv_kind kind)
{
    struct brig_jlist *list = brig_jinja_alloc(j, 1, sizeof *list);
    if (list == NULL)
        return (struct brig_jv){.kind = BRIG_JV_UNDEFINED};
    return (struct brig_jv){.kind = (uint8_t)kind, .list = list};
}

struct brig_jv brig_jv_dict(struct brig_jinja *j, enum brig_jv_kind kind)
{
    struct brig_jdict *dict = brig_jinja_alloc(j, 1, sizeof *dict);
    if (dict == NULL)
        return (struct brig_jv){.kind = BRIG_JV_UNDEFINED};
    return (struct brig_jv){.kind = (uint8_t)kind, .dict = dict};
}

void brig_jv_push(struct brig_jinja *j, struct brig_jlist *list, struct brig_jv v)
{
    if (j->failed)
        return;
    if (list->n == list->cap) {
        size_t cap = list->cap * 2 + 4;
        struct brig_jv *fresh = brig_jinja_alloc(j, cap, sizeof *fresh);
        if (fresh == NULL)
            return;
        if (list->n > 0)
            memcpy(fresh, list->v, list->n * sizeof *fresh);
        list->v = fresh;
        list->cap = cap;
    }
    list->v[list->n++] = v;
}

struct brig_jv brig_jv_pair(struct brig_jinja *j, struct brig_jv a, struct brig_jv b)
{
    struct brig_jv pair = brig_jv_list(j, BRIG_JV_TUPLE);
    if (!j->failed) {
        brig_jv_push(j, pair.list, a);
        brig_jv_push(j, pair.list, b);
    }
    return pair;
}

struct brig_jv *brig_jv_find_str(const struct brig_jdict *d, struct brig_str key)
{
    for (size_t i = 0; i < d->n; i++) {
        const struct brig_jv *k = &d->v[i].key;
        if (k->kind == BRIG_JV_STR && k->s.len == key.len && memcmp(k->s.ptr, key.ptr, key.len) == 0)
            return &d->v[i].value;
    }
    return NULL;
}

struct brig_jv *brig_jv_find(struct brig_jinja *j, const struct brig_jdict *d, struct brig_jv key)
{
    if (!brig_jinja_step(j, 1 + d->n / 16))
        return NULL;
    if (key.kind == BRIG_JV_STR)
        return brig_jv_find_str(d, key.s);
    for (size_t i = 0; i < d->n; i++)
        if (brig_jv_equal(j, d->v[i].key, key))
            return &d->v[i].value;
    return NULL;
}

bool brig_jv_hashable(struct brig_jinja *j, struct brig_jv v)
{
    bool good = v.kind != BRIG_JV_LIST && v.kind != BRIG_JV_DICT;
    if (v.kind == BRIG_JV_TUPLE && brig_jinja_enter(j)) {
        for (size_t i = 0; i < v.list->n && good; i++)
            good = brig_jv_hashable(j, v.list->v[i]);
        brig_jinja_leave(j);
    }
    return good;
}

static void add_pair(struct brig_jinja *j, struct brig_jdict *d, struct brig_jv key, struct brig_jv value)
{
    if (j->failed)
        return;
    if (d->n == d->cap) {
        size_t cap = d->cap * 2 + 4;
        struct brig_jpair *fresh = brig_jinja_alloc(j, cap, sizeof *fresh);
        if (fresh == NULL)
            return;
        if (d->n > 0)
            memcpy(fresh, d->v, d->n * sizeof *fresh);
        d->v = fresh;
        d->cap = cap;
    }
    d->v[d->n++] = (struct brig_jpair){key, value};
}

void brig_jv_put(struct brig_jinja *j, struct brig_jdict *d, struct brig_jv key, struct brig_jv value)
{
    if (!brig_jv_hashable(j, key)) {
        brig_jinja_fail(j, BRIG_JINJA_TYPE, "unhashable type: '%s'", brig_jv_type_name(key));
        return;
    }
    struct brig_jv *there = brig_jv_find(j, d, key);
    if (there != NULL)
        *there = value;
    else
        add_pair(j, d, key, value);
}

const char *brig_jv_type_name(struct brig_jv v)
{
    static const char *const names[BRIG_JV_COUNT] = {
        [BRIG_JV_UNDEFINED] = "Undefined",
        [BRIG_JV_ABSENT] = "NoneType",
        [BRIG_JV_NONE] = "NoneType",
        [BRIG_JV_BOOL] = "bool",
        [BRIG_JV_INT] = "int",
        [BRIG_JV_FLOAT] = "float",
        [BRIG_JV_STR] = "str",
        [BRIG_JV_LIST] = "list",
        [BRIG_JV_TUPLE] = "tuple",
        [BRIG_JV_VIEW] = "dict view",
        [BRIG_JV_ITER] = "generator",
        [BRIG_JV_RANGE] = "range",
        [BRIG_JV_DICT] = "dict",
        [BRIG_JV_NAMESPACE] = "Namespace",
        [BRIG_JV_LOOP] = "LoopContext",
        [BRIG_JV_MACRO] = "Macro",
        [BRIG_JV_FUNCTION] = "function",
        [BRIG_JV_METHOD] = "method",
    };
    return names[v.kind];
}

bool brig_jv_truth(struct brig_jv v)
{
    switch ((enum brig_jv_kind)v.kind) {
    case BRIG_JV_UNDEFINED:
    case BRIG_JV_ABSENT:
    case BRIG_JV_NONE:
        return false;
    case BRIG_JV_BOOL:
        return v.b;
    case BRIG_JV_INT:
        return v.i != 0;
    case BRIG_JV_FLOAT:
        return v.f != 0;
    case BRIG_JV_STR:
        return v.s.len != 0;
    case BRIG_JV_LIST:
    case BRIG_JV_TUPLE:
    case BRIG_JV_VIEW:
        return v.list->n != 0;
    case BRIG_JV_DICT:
        return v.dict->n != 0;
    case BRIG_JV_RANGE:
        return v.range->n != 0;
    default:
        return true;
    }
}

static void characters(struct brig_jinja *j, struct brig_jlist *list, struct brig_str s)
{
    for (size_t at = 0; at < s.len && brig_jinja_step(j, 1);) {
        size_t n = brig_jinja_char(s.ptr + at, s.len - at);
        brig_jv_push(j, list, brig_jv_str(s.ptr + at, n));
        at += n;
    }
}

struct brig_jlist *brig_jv_elements(struct brig_jinja *j, struct brig_jv v)
{
    if (v.kind == BRIG_JV_LIST || v.kind == BRIG_JV_TUPLE || v.kind == BRIG_JV_VIEW)
        return j->failed ? NULL : v.list;
    struct brig_jv made = brig_jv_list(j, BRIG_JV_LIST);
    if (j->failed)
        return NULL;
    switch ((enum brig_jv_kind)v.kind) {
    case BRIG_JV_UNDEFINED:
        break;
    case BRIG_JV_ITER:
        *made.list = *v.list;
        *v.list = (struct brig_jlist){0};
        break;
    case BRIG_JV_STR:
        characters(j, made.list, v.s);
        break;
    case BRIG_JV_RANGE:
        for (size_t i = 0; i < v.range->n && brig_jinja_step(j, 1); i++)
            brig_jv_push(j, made.list, brig_jv_int(v.range->start + (int64_t)i * v.range->step));
        break;
    case BRIG_JV_DICT:
        for (size_t i = 0; i < v.dict->n && brig_jinja_step(j, 1); i++)
            brig_jv_push(j, made.list, v.dict->v[i].key);
        break;
    default:
        brig_jinja_fail(j, BRIG_JINJA_TYPE, "'%s' object is not iterable", brig_jv_type_name(v));
    }
    return j->failed ? NULL : made.list;
}

struct brig_jv brig_jinja_fail_undefined(struct brig_jinja *j, struct brig_jv v)
{
    struct brig_jv of = {.kind = v.of};
    int n = v.s.len < 200 ? (int)v.s.len : 200;
    switch ((enum brig_jv_why)v.why) {
    case BRIG_JV_WHY_NAME:
        return brig_jinja_fail(j, BRIG_JINJA_UNDEFINED, "'%.*s' is undefined", n, v.s.ptr);
    case BRIG_JV_WHY_ATTR:
        return brig_jinja_fail(j, BRIG_JINJA_UNDEFINED, "'%s object' has no attribute '%.*s'",
                               brig_jv_type_name(of), n, v.s.ptr);
    case BRIG_JV_WHY_ELEMENT:
        return brig_jinja_fail(j, BRIG_JINJA_UNDEFINED, "%s object has no element %lld",
                               brig_jv_type_name(of), (long long)v.i);
    case BRIG_JV_WHY_UNSAFE:
        return brig_jinja_fail(j, BRIG_JINJA_UNSAFE, "access to attribute '%.*s' of '%s' object is unsafe", n,
                               v.s.ptr, brig_jv_type_name(of));
    default:
        return brig_jinja_fail(j, BRIG_JINJA_UNDEFINED, "%.*s", n, v.s.ptr);
    }
}

static struct brig_jv from_container(struct brig_jinja *j, const json_t *json)
{
    bool array = json_is_array(json);
    struct brig_jv v = array ? brig_jv_list(j, BRIG_JV_LIST) : brig_jv_dict(j, BRIG_JV_DICT);
    size_t i;
    json_t *element;
    if (array) {
        json_array_foreach(json, i, element)
        {
            if (!brig_jinja_step(j, 1))
                break;
            brig_jv_push(j, v.list, brig_jv_from_json(j, element));
        }
        return v;
    }
    void *at = json_object_iter((json_t *)(uintptr_t)json);
    for (; at != NULL && brig_jinja_step(j, 1); at = json_object_iter_next((json_t *)(uintptr_t)json, at)) {
        const char *key = json_object_iter_key(at);
        add_pair(j, v.dict, brig_jv_text(key), brig_jv_from_json(j, json_object_iter_value(at)));
    }
    return v;
}

struct brig_jv brig_jv_from_json(struct brig_jinja *j, const json_t *json)
{
    struct brig_jv v = brig_jv_none();
    switch (json_typeof(json)) {
    case JSON_OBJECT:
    case JSON_ARRAY:
        if (brig_jinja_enter(j)) {
            v = from_container(j, json);
            brig_jinja_leave(j);
        }
        return v;
    case JSON_STRING:
        return brig_jv_str(json_string_value(json), json_string_length(json));
    case JSON_INTEGER:
        return brig_jv_int(json_integer_value(json));
    case JSON_REAL:
        return brig_jv_float(json_real_value(json));
    case JSON_TRUE:
    case JSON_FALSE:
        return brig_jv_bool(json_is_true(json));
    default:
        return v;
    }
}
