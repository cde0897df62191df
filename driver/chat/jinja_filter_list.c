/* Filters on what can be walked. Those that are generators in Jinja give an ITER, made at once. */
#include <string.h>

#include "driver/chat/jinja_fn.h"
#include "driver/chat/jinja_op.h"
#include "driver/chat/jinja_text.h"

static const struct brig_jv undefined = {.kind = BRIG_JV_UNDEFINED};

static struct brig_jv empty(const char *why)
{
    return brig_jv_undefined(BRIG_JV_WHY_TEXT, BRIG_JV_UNDEFINED, brig_jv_text(why).s);
}

/* What is compared: the attribute of v, in lower case unless case counts. */
static struct brig_jv key_of(struct brig_jinja *j, struct brig_jv v, struct brig_jv attribute,
                             bool case_sensitive)
{
    v = brig_jv_path(j, v, attribute, (struct brig_jv){.kind = BRIG_JV_ABSENT});
    return v.kind == BRIG_JV_STR && !case_sensitive ? brig_jinja_lower(j, v.s) : v;
}

/* As key_of, for "a,b": a list of keys. */
static struct brig_jv keys_of(struct brig_jinja *j, struct brig_jv v, struct brig_jv attribute,
                              bool case_sensitive)
{
    struct brig_jv keys = brig_jv_list(j, BRIG_JV_LIST);
    struct brig_str rest = attribute.kind == BRIG_JV_STR ? attribute.s : (struct brig_str){"", 0};
    const char *comma = memchr(rest.ptr, ',', rest.len);
    if (comma == NULL)
        return key_of(j, v, attribute, case_sensitive);
    for (; !j->failed; rest = (struct brig_str){comma + 1, rest.len - (size_t)(comma + 1 - rest.ptr)}) {
        comma = memchr(rest.ptr, ',', rest.len);
        size_t n = comma == NULL ? rest.len : (size_t)(comma - rest.ptr);
        brig_jv_push(j, keys.list, key_of(j, v, brig_jv_str(rest.ptr, n), case_sensitive));
        if (comma == NULL)
            break;
    }
    return keys;
}

static struct brig_jv copied(struct brig_jinja *j, struct brig_jv v, enum brig_jv_kind kind)
{
    const struct brig_jlist *list = brig_jv_elements(j, v);
    struct brig_jv made = brig_jv_list(j, kind);
    for (size_t i = 0; list != NULL && i < list->n && brig_jinja_step(j, 1); i++)
        brig_jv_push(j, made.list, list->v[i]);
    return made;
}

static struct brig_jv batch(struct brig_jinja *j, struct brig_jv self, const struct brig_jargs *args)
{
    struct brig_jv made = brig_jv_list(j, BRIG_JV_ITER), row = undefined, fill = args->a[1];
    int64_t n = brig_jarg_int(j, args->a[0], 0);
    const struct brig_jlist *list = brig_jv_elements(j, self);
    if (n < 1)
        return brig_jinja_fail(j, BRIG_JINJA_VALUE, "batch: a number of at least 1 is needed");
    for (size_t i = 0; list != NULL && i < list->n && brig_jinja_step(j, 1); i++) {
        if (i % (uint64_t)n == 0) {
            row = brig_jv_list(j, BRIG_JV_LIST);
            brig_jv_push(j, made.list, row);
        }
        if (!j->failed)
            brig_jv_push(j, row.list, list->v[i]);
    }
    bool fills = fill.kind != BRIG_JV_ABSENT && fill.kind != BRIG_JV_NONE && row.kind == BRIG_JV_LIST;
    while (fills && row.list->n < (uint64_t)n && brig_jinja_step(j, 1))
        brig_jv_push(j, row.list, fill);
    return made;
}

static struct brig_jv slice(struct brig_jinja *j, struct brig_jv self, const struct brig_jargs *args)
{
    struct brig_jv made = brig_jv_list(j, BRIG_JV_ITER), fill = args->a[1];
    int64_t n = brig_jarg_int(j, args->a[0], 0);
    const struct brig_jlist *list = brig_jv_elements(j, self);
    if (n < 1)
        return brig_jinja_fail(j, BRIG_JINJA_VALUE, "slice: a number of at least 1 is needed");
    bool fills = fill.kind != BRIG_JV_ABSENT && fill.kind != BRIG_JV_NONE;
    size_t at = 0;
    for (uint64_t k = 0; list != NULL && k < (uint64_t)n && brig_jinja_step(j, 1); k++) {
        size_t extra = list->n % (uint64_t)n, end = at + list->n / (uint64_t)n + (k < extra);
        struct brig_jv row = brig_jv_list(j, BRIG_JV_LIST);
        for (; at < end && brig_jinja_step(j, 1); at++)
            brig_jv_push(j, row.list, list->v[at]);
        if (fills && k >= extra && !j->failed)
            brig_jv_push(j, row.list, fill);
        brig_jv_push(j, made.list, row);
    }
    return made;
}

static struct brig_jv first(struct brig_jinja *j, struct brig_jv self, const struct brig_jargs *args)
{
    const struct brig_jlist *list = brig_jv_elements(j, self);
    (void)args;
    return list != NULL && list->n > 0 ? list->v[0] : empty("No first item, sequence was empty.");
}

static struct brig_jv last(struct brig_jinja *j, struct brig_jv self, const struct brig_jargs *args)
{
    (void)args;
    if (self.kind == BRIG_JV_ITER)
        return brig_jinja_fail(j, BRIG_JINJA_TYPE, "'generator' object is not reversible");
    const struct brig_jlist *list = brig_jv_elements(j, self);
    return list != NULL && list->n > 0 ? list->v[list->n - 1] : empty("No last item, sequence was empty.");
}

static struct brig_jv length(struct brig_jinja *j, struct brig_jv self, const struct brig_jargs *args)
{
    (void)args;
    switch ((enum brig_jv_kind)self.kind) {
    case BRIG_JV_UNDEFINED:
        return brig_jv_int(0);
    case BRIG_JV_STR:
        brig_jinja_step(j, self.s.len / 256);
        return brig_jv_int((int64_t)brig_jinja_count(self.s));
    case BRIG_JV_LIST:
    case BRIG_JV_TUPLE:
    case BRIG_JV_VIEW:
        return brig_jv_int((int64_t)self.list->n);
    case BRIG_JV_DICT:
        return brig_jv_int((int64_t)self.dict->n);
    case BRIG_JV_RANGE:
        return brig_jv_int((int64_t)self.range->n);
    default:
        return brig_jinja_fail(j, BRIG_JINJA_TYPE, "object of type '%s' has no len()",
                               brig_jv_type_name(self));
    }
}

static struct brig_jv list(struct brig_jinja *j, struct brig_jv self, const struct brig_jargs *args)
{
    (void)args;
    return copied(j, self, BRIG_JV_LIST);
}

static struct brig_jv join(struct brig_jinja *j, struct brig_jv self, const struct brig_jargs *args)
{
    struct brig_str between = brig_jarg_str(j, args->a[0], "");
    const struct brig_jlist *items = brig_jv_elements(j, self);
    struct brig_buf inner, *outer = brig_jinja_capture(j, &inner);
    for (size_t i = 0; items != NULL && i < items->n && brig_jinja_step(j, 1); i++) {
        if (i > 0)
            brig_jinja_put(j, between.ptr, between.len);
        brig_jinja_put_str(
            j, brig_jv_path(j, items->v[i], args->a[1], (struct brig_jv){.kind = BRIG_JV_ABSENT}));
    }
    return brig_jinja_captured(j, &inner, outer);
}

static struct brig_jv reverse(struct brig_jinja *j, struct brig_jv self, const struct brig_jargs *args)
{
    struct brig_jv minus = brig_jv_int(-1), none = brig_jv_none();
    (void)args;
    if (self.kind == BRIG_JV_STR)
        return brig_jv_slice(j, self, none, none, minus);
    if (self.kind == BRIG_JV_NONE || brig_jv_is_number(self))
        return brig_jinja_fail(j, BRIG_JINJA_VALUE, "argument must be iterable");
    struct brig_jv made = copied(j, self, self.kind == BRIG_JV_ITER ? BRIG_JV_LIST : BRIG_JV_ITER);
    for (size_t i = 0; !j->failed && i < made.list->n / 2; i++) {
        struct brig_jv *a = &made.list->v[i], *b = &made.list->v[made.list->n - 1 - i], t = *a;
        *a = *b;
        *b = t;
    }
    return made;
}

static struct brig_jv sort(struct brig_jinja *j, struct brig_jv self, const struct brig_jargs *args)
{
    struct brig_jv made = copied(j, self, BRIG_JV_LIST), keys = brig_jv_list(j, BRIG_JV_LIST);
    for (size_t i = 0; !j->failed && i < made.list->n; i++)
        brig_jv_push(j, keys.list,
                     keys_of(j, made.list->v[i], args->a[2], brig_jarg_bool(args->a[1], false)));
    if (!j->failed)
        brig_jv_sort(j, made.list, keys.list, brig_jarg_bool(args->a[0], false));
    return made;
}

static struct brig_jv items(struct brig_jinja *j, struct brig_jv self, const struct brig_jargs *args)
{
    struct brig_jv made = brig_jv_list(j, BRIG_JV_ITER);
    (void)args;
    if (self.kind != BRIG_JV_DICT && self.kind != BRIG_JV_UNDEFINED)
        return brig_jinja_fail(j, BRIG_JINJA_TYPE, "Can only get item pairs from a mapping.");
    for (size_t i = 0; self.kind == BRIG_JV_DICT && i < self.dict->n && brig_jinja_step(j, 1); i++)
        brig_jv_push(j, made.list, brig_jv_pair(j, self.dict->v[i].key, self.dict->v[i].value));
    return made;
}

static struct brig_jv dictsort(struct brig_jinja *j, struct brig_jv self, const struct brig_jargs *args)
{
    struct brig_jv made = brig_jv_list(j, BRIG_JV_LIST), keys = brig_jv_list(j, BRIG_JV_LIST);
    struct brig_str by = brig_jarg_str(j, args->a[1], "key");
    bool value = brig_str_eq(by, "value"), exact = brig_jarg_bool(args->a[0], false);
    struct brig_jv absent = {.kind = BRIG_JV_ABSENT};
    if (!value && !brig_str_eq(by, "key"))
        return brig_jinja_fail(j, BRIG_JINJA_VALUE, "You can only sort by either \"key\" or \"value\"");
    if (self.kind == BRIG_JV_UNDEFINED)
        return brig_jinja_fail_undefined(j, self);
    if (self.kind != BRIG_JV_DICT)
        return brig_jinja_fail(j, BRIG_JINJA_TYPE, "dictsort: a mapping is expected, not '%s'",
                               brig_jv_type_name(self));
    for (size_t i = 0; i < self.dict->n && brig_jinja_step(j, 1); i++) {
        const struct brig_jpair *p = &self.dict->v[i];
        brig_jv_push(j, made.list, brig_jv_pair(j, p->key, p->value));
        brig_jv_push(j, keys.list, key_of(j, value ? p->value : p->key, absent, exact));
    }
    if (!j->failed)
        brig_jv_sort(j, made.list, keys.list, brig_jarg_bool(args->a[2], false));
    return made;
}

static struct brig_jv extreme(struct brig_jinja *j, struct brig_jv self, const struct brig_jargs *args,
                              enum brig_jop op)
{
    const struct brig_jlist *list = brig_jv_elements(j, self);
    struct brig_jv best = empty("No aggregated item, sequence was empty."), best_key = best;
    for (size_t i = 0; list != NULL && i < list->n && brig_jinja_step(j, 1); i++) {
        struct brig_jv key = key_of(j, list->v[i], args->a[1], brig_jarg_bool(args->a[0], false));
        if (i > 0 && !brig_jv_compare(j, op, key, best_key))
            continue;
        best = list->v[i];
        best_key = key;
    }
    return best;
}

static struct brig_jv minimum(struct brig_jinja *j, struct brig_jv self, const struct brig_jargs *args)
{
    return extreme(j, self, args, BRIG_JOP_LT);
}

static struct brig_jv maximum(struct brig_jinja *j, struct brig_jv self, const struct brig_jargs *args)
{
    return extreme(j, self, args, BRIG_JOP_GT);
}

static struct brig_jv sum(struct brig_jinja *j, struct brig_jv self, const struct brig_jargs *args)
{
    const struct brig_jlist *list = brig_jv_elements(j, self);
    struct brig_jv total = args->a[1].kind == BRIG_JV_ABSENT ? brig_jv_int(0) : args->a[1];
    if (total.kind == BRIG_JV_STR)
        return brig_jinja_fail(j, BRIG_JINJA_TYPE, "sum() can't sum strings");
    for (size_t i = 0; list != NULL && i < list->n && brig_jinja_step(j, 1); i++) {
        struct brig_jv v = brig_jv_path(j, list->v[i], args->a[0], (struct brig_jv){.kind = BRIG_JV_ABSENT});
        total = brig_jv_arithmetic(j, BRIG_JOP_ADD, total, v);
    }
    return total;
}

static struct brig_jv unique(struct brig_jinja *j, struct brig_jv self, const struct brig_jargs *args)
{
    struct brig_jv made = brig_jv_list(j, BRIG_JV_ITER), seen = brig_jv_dict(j, BRIG_JV_DICT);
    const struct brig_jlist *list = brig_jv_elements(j, self);
    for (size_t i = 0; list != NULL && i < list->n && brig_jinja_step(j, 1); i++) {
        struct brig_jv key = key_of(j, list->v[i], args->a[1], brig_jarg_bool(args->a[0], false));
        size_t before = seen.dict->n;
        brig_jv_put(j, seen.dict, key, key);
        if (seen.dict->n > before)
            brig_jv_push(j, made.list, list->v[i]);
    }
    return made;
}

static struct brig_jv groupby(struct brig_jinja *j, struct brig_jv self, const struct brig_jargs *args)
{
    struct brig_jv made = brig_jv_list(j, BRIG_JV_LIST), sorted = copied(j, self, BRIG_JV_LIST),
                   group = undefined;
    struct brig_jv keys = brig_jv_list(j, BRIG_JV_LIST), last_key = undefined;
    bool exact = brig_jarg_bool(args->a[2], false);
    struct brig_jv absent = {.kind = BRIG_JV_ABSENT};
    for (size_t i = 0; !j->failed && i < sorted.list->n; i++) {
        struct brig_jv v = brig_jv_path(j, sorted.list->v[i], args->a[0], args->a[1]);
        brig_jv_push(j, keys.list, key_of(j, v, absent, exact));
    }
    if (!j->failed)
        brig_jv_sort(j, sorted.list, keys.list, false);
    for (size_t i = 0; !j->failed && i < sorted.list->n; i++) {
        struct brig_jv v = brig_jv_path(j, sorted.list->v[i], args->a[0], args->a[1]);
        struct brig_jv key = key_of(j, v, absent, exact);
        if (i == 0 || !brig_jv_equal(j, key, last_key)) {
            group = brig_jv_pair(j, v, brig_jv_list(j, BRIG_JV_LIST));
            group.why = 1; /* has .grouper and .list */
            brig_jv_push(j, made.list, group);
        }
        last_key = key;
        if (!j->failed)
            brig_jv_push(j, group.list->v[1].list, sorted.list->v[i]);
    }
    return made;
}

static struct brig_jv map_attribute(struct brig_jinja *j, const struct brig_jlist *list,
                                    const struct brig_jargs *args)
{
    const struct brig_jv *attribute = brig_jv_find_str(&args->kw, (struct brig_str){"attribute", 9});
    const struct brig_jv *fallback = brig_jv_find_str(&args->kw, (struct brig_str){"default", 7});
    struct brig_jv made = brig_jv_list(j, BRIG_JV_ITER);
    if (args->kw.n != 1u + (fallback != NULL))
        return brig_jinja_fail(j, BRIG_JINJA_VALUE, "map: an unexpected argument with a name");
    for (size_t i = 0; list != NULL && i < list->n && brig_jinja_step(j, 1); i++)
        brig_jv_push(j, made.list,
                     brig_jv_path(j, list->v[i], *attribute, fallback != NULL ? *fallback : brig_jv_none()));
    return made;
}

/* map("filter", ...) or map(attribute="..."). */
static struct brig_jv map(struct brig_jinja *j, struct brig_jv self, const struct brig_jargs *args)
{
    struct brig_jv made = brig_jv_list(j, BRIG_JV_ITER);
    if (!brig_jv_truth(self)) /* nothing, whatever it is */
        return made;
    const struct brig_jlist *list = brig_jv_elements(j, self);
    if (args->pos.n == 0 && brig_jv_find_str(&args->kw, (struct brig_str){"attribute", 9}) != NULL)
        return map_attribute(j, list, args);
    if (args->pos.n == 0)
        return brig_jinja_fail(j, BRIG_JINJA_VALUE, "map requires a filter argument");
    for (size_t i = 0; list != NULL && i < list->n && brig_jinja_step(j, 1); i++)
        brig_jv_push(j, made.list, brig_jfn_call_named(j, false, args->pos.v[0], list->v[i], args, 1));
    return made;
}

/* Keep those whose value (or attribute) passes a test, or is true without one; `want` false: the others. */
static struct brig_jv choose(struct brig_jinja *j, struct brig_jv self, const struct brig_jargs *args,
                             bool by_attribute, bool want)
{
    struct brig_jv made = brig_jv_list(j, BRIG_JV_ITER), absent = {.kind = BRIG_JV_ABSENT};
    size_t off = by_attribute;
    if (!brig_jv_truth(self))
        return made;
    const struct brig_jlist *list = brig_jv_elements(j, self);
    if (args->pos.n < off)
        return brig_jinja_fail(j, BRIG_JINJA_VALUE, "Missing parameter for attribute name");
    for (size_t i = 0; list != NULL && i < list->n && brig_jinja_step(j, 1); i++) {
        struct brig_jv v = by_attribute ? brig_jv_path(j, list->v[i], args->pos.v[0], absent) : list->v[i];
        if (args->pos.n > off)
            v = brig_jfn_call_named(j, true, args->pos.v[off], v, args, off + 1);
        if (brig_jv_truth(v) == want)
            brig_jv_push(j, made.list, list->v[i]);
    }
    return made;
}

static struct brig_jv choose_good(struct brig_jinja *j, struct brig_jv self, const struct brig_jargs *args)
{
    return choose(j, self, args, false, true);
}

static struct brig_jv choose_bad(struct brig_jinja *j, struct brig_jv self, const struct brig_jargs *args)
{
    return choose(j, self, args, false, false);
}

static struct brig_jv selectattr(struct brig_jinja *j, struct brig_jv self, const struct brig_jargs *args)
{
    return choose(j, self, args, true, true);
}

static struct brig_jv rejectattr(struct brig_jinja *j, struct brig_jv self, const struct brig_jargs *args)
{
    return choose(j, self, args, true, false);
}

const struct brig_jfn brig_jfn_list_filters[] = {
    {"batch", "linecount fill_with?", batch},
    {"count", "", length},
    {"dictsort", "case_sensitive? by? reverse?", dictsort},
    {"first", "", first},
    {"groupby", "attribute default? case_sensitive?", groupby},
    {"items", "", items},
    {"join", "d? attribute?", join},
    {"last", "", last},
    {"length", "", length},
    {"list", "", list},
    {"map", "*", map},
    {"max", "case_sensitive? attribute?", maximum},
    {"min", "case_sensitive? attribute?", minimum},
    {"reject", "*", choose_bad},
    {"rejectattr", "*", rejectattr},
    {"reverse", "", reverse},
    {"select", "*", choose_good},
    {"selectattr", "*", selectattr},
    {"slice", "slices fill_with?", slice},
    {"sort", "reverse? case_sensitive? attribute?", sort},
    {"sum", "attribute? start?", sum},
    {"unique", "case_sensitive? attribute?", unique},
    {NULL, NULL, NULL},
};
