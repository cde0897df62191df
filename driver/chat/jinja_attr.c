/* Attributes, elements, slices. */
#include <string.h>

#include "driver/chat/jinja_eval.h"
#include "driver/chat/jinja_fn.h"
#include "driver/chat/jinja_op.h"
#include "driver/chat/jinja_text.h"

static bool special(struct brig_str name)
{
    return name.len > 4 && memcmp(name.ptr, "__", 2) == 0 && memcmp(name.ptr + name.len - 2, "__", 2) == 0;
}

/* What Python calls getattr: true when there is something of that name. */
static bool property(struct brig_jinja *j, struct brig_jv v, struct brig_str name, struct brig_jv *ret)
{
    if (v.kind == BRIG_JV_NAMESPACE) {
        const struct brig_jv *there = brig_jv_find_str(v.dict, name);
        if (there != NULL)
            *ret = *there;
        return there != NULL;
    }
    if (v.kind == BRIG_JV_LOOP && brig_jinja_loop_property(j, v.loop, name, ret))
        return true;
    if (v.kind == BRIG_JV_TUPLE && v.why != 0 && v.list->n == 2) { /* of groupby */
        *ret = v.list->v[brig_str_eq(name, "list")];
        if (brig_str_eq(name, "list") || brig_str_eq(name, "grouper"))
            return true;
    }
    const struct brig_jfn *fn = brig_jfn_method((enum brig_jv_kind)v.kind, name);
    if ((fn != NULL && fn->call == NULL) || special(name)) {
        *ret = brig_jv_undefined(BRIG_JV_WHY_UNSAFE, (enum brig_jv_kind)v.kind, name);
        return true;
    }
    if (fn == NULL)
        return false;
    struct brig_jmethod *method = brig_jinja_alloc(j, 1, sizeof *method);
    if (method == NULL)
        return false;
    *method = (struct brig_jmethod){v, fn};
    *ret = (struct brig_jv){.kind = BRIG_JV_METHOD, .method = method};
    return true;
}

/* What Python calls getitem. */
static bool element(struct brig_jinja *j, struct brig_jv v, struct brig_jv key, struct brig_jv *ret)
{
    if (v.kind == BRIG_JV_DICT) {
        const struct brig_jv *there = brig_jv_hashable(j, key) ? brig_jv_find(j, v.dict, key) : NULL;
        if (there != NULL)
            *ret = *there;
        return there != NULL;
    }
    if (key.kind != BRIG_JV_INT && key.kind != BRIG_JV_BOOL)
        return false;
    size_t n = brig_jv_is_sequence(v)    ? v.list->n
               : v.kind == BRIG_JV_STR   ? brig_jinja_count(v.s)
               : v.kind == BRIG_JV_RANGE ? v.range->n
                                         : 0;
    int64_t i = brig_jv_as_int(key);
    if (i < 0)
        i += (int64_t)n;
    if (i < 0 || (uint64_t)i >= n)
        return false;
    if (v.kind == BRIG_JV_STR) {
        struct brig_str s = brig_jinja_cut(v.s, (size_t)i, (size_t)i + 1);
        brig_jinja_step(j, v.s.len / 256);
        *ret = brig_jv_str(s.ptr, s.len);
    } else if (v.kind == BRIG_JV_RANGE) {
        *ret = brig_jv_int(v.range->start + i * v.range->step);
    } else {
        *ret = v.list->v[i];
    }
    return true;
}

static struct brig_jv nothing(struct brig_jv v, struct brig_jv key)
{
    struct brig_jv u = brig_jv_undefined(BRIG_JV_WHY_TEXT, (enum brig_jv_kind)v.kind, (struct brig_str){0});
    if (key.kind == BRIG_JV_STR) {
        u.why = BRIG_JV_WHY_ATTR;
        u.s = key.s;
    } else if (key.kind == BRIG_JV_INT) {
        u.why = BRIG_JV_WHY_ELEMENT;
        u.i = key.i;
    } else {
        u.s = brig_jv_text("there is no such element").s;
    }
    return u;
}

struct brig_jv brig_jv_attr(struct brig_jinja *j, struct brig_jv v, struct brig_str name)
{
    struct brig_jv r, key = brig_jv_str(name.ptr, name.len);
    if (v.kind == BRIG_JV_UNDEFINED)
        return brig_jinja_fail_undefined(j, v);
    return property(j, v, name, &r) || element(j, v, key, &r) ? r : nothing(v, key);
}

struct brig_jv brig_jv_item(struct brig_jinja *j, struct brig_jv v, struct brig_jv key)
{
    struct brig_jv r;
    if (v.kind == BRIG_JV_UNDEFINED)
        return brig_jinja_fail_undefined(j, v);
    bool found = element(j, v, key, &r) || (key.kind == BRIG_JV_STR && property(j, v, key.s, &r));
    return found ? r : nothing(v, key);
}

static struct brig_jv part_of_path(struct brig_jinja *j, struct brig_jv v, struct brig_str part)
{
    int64_t i = 0;
    bool number = part.len > 0 && part.len < 10;
    for (size_t k = 0; k < part.len && number; k++) {
        number = part.ptr[k] >= '0' && part.ptr[k] <= '9';
        i = i * 10 + (part.ptr[k] - '0');
    }
    return brig_jv_item(j, v, number ? brig_jv_int(i) : brig_jv_str(part.ptr, part.len));
}

struct brig_jv brig_jv_path(struct brig_jinja *j, struct brig_jv v, struct brig_jv attribute,
                            struct brig_jv fallback)
{
    if (attribute.kind == BRIG_JV_ABSENT || attribute.kind == BRIG_JV_NONE)
        return v;
    bool text = attribute.kind == BRIG_JV_STR;
    struct brig_str rest = text ? attribute.s : (struct brig_str){"", 0};
    for (bool more = true; more && brig_jinja_step(j, 1);) {
        const char *dot = text && rest.len > 0 ? memchr(rest.ptr, '.', rest.len) : NULL;
        struct brig_str part = {rest.ptr, dot != NULL ? (size_t)(dot - rest.ptr) : rest.len};
        v = text ? part_of_path(j, v, part) : brig_jv_item(j, v, attribute);
        if (v.kind == BRIG_JV_UNDEFINED && fallback.kind != BRIG_JV_ABSENT && fallback.kind != BRIG_JV_NONE)
            v = fallback;
        more = dot != NULL;
        if (more) {
            rest.ptr += part.len + 1;
            rest.len -= part.len + 1;
        }
    }
    return v;
}

/* Python's rule for the ends of a slice. */
static int64_t slice_end(struct brig_jinja *j, struct brig_jv v, int64_t n, int64_t otherwise, bool backwards)
{
    if (v.kind == BRIG_JV_NONE)
        return otherwise;
    if (v.kind != BRIG_JV_INT && v.kind != BRIG_JV_BOOL) {
        brig_jinja_fail(j, BRIG_JINJA_TYPE, "slice indices must be integers or None");
        return 0;
    }
    int64_t i = brig_jv_as_int(v), low = backwards ? -1 : 0, high = backwards ? n - 1 : n;
    if (i < 0)
        i += n;
    return i < low ? low : i > high ? high : i;
}

static struct brig_jv pick(struct brig_jinja *j, const struct brig_jlist *from, enum brig_jv_kind kind,
                           int64_t start, int64_t stop, int64_t step)
{
    struct brig_jv made = brig_jv_list(j, kind);
    for (int64_t i = start; (step > 0 ? i < stop : i > stop) && brig_jinja_step(j, 1);) {
        brig_jv_push(j, made.list, from->v[i]);
        if (__builtin_add_overflow(i, step, &i))
            break;
    }
    return made;
}

static struct brig_jv slice_range(struct brig_jinja *j, const struct brig_jrange *r, int64_t start,
                                  int64_t stop, int64_t step)
{
    struct brig_jrange *made = brig_jinja_alloc(j, 1, sizeof *made);
    int64_t n = step > 0 ? (stop - start + step - 1) / step : (start - stop - step - 1) / -step;
    if (made == NULL || __builtin_mul_overflow(r->step, step, &made->step))
        return brig_jinja_fail(j, BRIG_JINJA_LIMIT, "a whole number of more than 64 bits");
    made->start = r->start + start * r->step;
    made->stop = r->start + stop * r->step;
    made->n = n > 0 ? (size_t)n : 0;
    return (struct brig_jv){.kind = BRIG_JV_RANGE, .range = made};
}

static struct brig_jv join_characters(struct brig_jinja *j, const struct brig_jlist *list)
{
    struct brig_buf inner, *outer = brig_jinja_capture(j, &inner);
    for (size_t i = 0; list != NULL && i < list->n; i++)
        brig_jinja_put(j, list->v[i].s.ptr, list->v[i].s.len);
    return brig_jinja_captured(j, &inner, outer);
}

struct brig_jv brig_jv_slice(struct brig_jinja *j, struct brig_jv v, struct brig_jv start,
                             struct brig_jv stop, struct brig_jv step)
{
    if (v.kind == BRIG_JV_UNDEFINED)
        return brig_jinja_fail_undefined(j, v);
    if (!brig_jv_is_sequence(v) && v.kind != BRIG_JV_STR && v.kind != BRIG_JV_RANGE)
        return brig_jinja_fail(j, BRIG_JINJA_TYPE, "'%s' object has no slices", brig_jv_type_name(v));
    int64_t by = brig_jarg_int(j, step, 1);
    if (by == 0)
        return brig_jinja_fail(j, BRIG_JINJA_VALUE, "slice step cannot be zero");
    if (by > INT32_MAX || by < -INT32_MAX) /* no sequence is that long */
        by = by < 0 ? -INT32_MAX : INT32_MAX;
    brig_jinja_step(j, v.kind == BRIG_JV_STR ? v.s.len / 256 : 0);
    int64_t n = (int64_t)(v.kind == BRIG_JV_STR     ? brig_jinja_count(v.s)
                          : v.kind == BRIG_JV_RANGE ? v.range->n
                                                    : v.list->n);
    int64_t from = slice_end(j, start, n, by > 0 ? 0 : n - 1, by < 0);
    int64_t to = slice_end(j, stop, n, by > 0 ? n : -1, by < 0);
    if (j->failed)
        return (struct brig_jv){.kind = BRIG_JV_UNDEFINED};
    if (v.kind == BRIG_JV_RANGE)
        return slice_range(j, v.range, from, to, by);
    if (v.kind == BRIG_JV_STR && by == 1) {
        struct brig_str s = brig_jinja_cut(v.s, (size_t)from, to > from ? (size_t)to : (size_t)from);
        return brig_jv_str(s.ptr, s.len);
    }
    const struct brig_jlist *list = brig_jv_elements(j, v);
    if (list == NULL)
        return (struct brig_jv){.kind = BRIG_JV_UNDEFINED};
    struct brig_jv made = pick(j, list, v.kind == BRIG_JV_TUPLE ? BRIG_JV_TUPLE : BRIG_JV_LIST, from, to, by);
    return v.kind == BRIG_JV_STR && !j->failed ? join_characters(j, made.list) : made;
}
