/* Methods of dicts, lists, tuples and loops, and the functions that every template has. */
#include <string.h>
#include <time.h>

#include "driver/chat/jinja_eval.h"
#include "driver/chat/jinja_op.h"
#include "driver/chat/jinja_text.h"

#define MAX_RANGE 100000u /* of Jinja's sandbox */

static struct brig_jv dict_get(struct brig_jinja *j, struct brig_jv self, const struct brig_jargs *args)
{
    if (!brig_jv_hashable(j, args->a[0]))
        return brig_jinja_fail(j, BRIG_JINJA_TYPE, "unhashable type: '%s'", brig_jv_type_name(args->a[0]));
    const struct brig_jv *v = brig_jv_find(j, self.dict, args->a[0]);
    if (v != NULL)
        return *v;
    return args->a[1].kind == BRIG_JV_ABSENT ? brig_jv_none() : args->a[1];
}

enum view { KEYS, VALUES, ITEMS };

static struct brig_jv view(struct brig_jinja *j, const struct brig_jdict *d, enum view what)
{
    struct brig_jv made = brig_jv_list(j, BRIG_JV_VIEW);
    made.why = (uint8_t)what;
    for (size_t i = 0; i < d->n && brig_jinja_step(j, 1); i++)
        brig_jv_push(j, made.list,
                     what == KEYS     ? d->v[i].key
                     : what == VALUES ? d->v[i].value
                                      : brig_jv_pair(j, d->v[i].key, d->v[i].value));
    return made;
}

static struct brig_jv dict_keys(struct brig_jinja *j, struct brig_jv self, const struct brig_jargs *args)
{
    (void)args;
    return view(j, self.dict, KEYS);
}

static struct brig_jv dict_values(struct brig_jinja *j, struct brig_jv self, const struct brig_jargs *args)
{
    (void)args;
    return view(j, self.dict, VALUES);
}

static struct brig_jv dict_items(struct brig_jinja *j, struct brig_jv self, const struct brig_jargs *args)
{
    (void)args;
    return view(j, self.dict, ITEMS);
}

static void add_all(struct brig_jinja *j, struct brig_jdict *to, const struct brig_jdict *from)
{
    for (size_t i = 0; i < from->n && brig_jinja_step(j, 1); i++)
        brig_jv_put(j, to, from->v[i].key, from->v[i].value);
}

static struct brig_jv dict_copy(struct brig_jinja *j, struct brig_jv self, const struct brig_jargs *args)
{
    struct brig_jv made = brig_jv_dict(j, BRIG_JV_DICT);
    (void)args;
    if (!j->failed)
        add_all(j, made.dict, self.dict);
    return made;
}

static struct brig_jv list_index(struct brig_jinja *j, struct brig_jv self, const struct brig_jargs *args)
{
    const struct brig_jlist *list = brig_jv_elements(j, self);
    for (size_t i = 0; list != NULL && i < list->n && brig_jinja_step(j, 1); i++)
        if (brig_jv_equal(j, list->v[i], args->a[0]))
            return brig_jv_int((int64_t)i);
    return brig_jinja_fail(j, BRIG_JINJA_VALUE, "index: the value is not in the %s", brig_jv_type_name(self));
}

static struct brig_jv list_count(struct brig_jinja *j, struct brig_jv self, const struct brig_jargs *args)
{
    const struct brig_jlist *list = brig_jv_elements(j, self);
    int64_t n = 0;
    for (size_t i = 0; list != NULL && i < list->n && brig_jinja_step(j, 1); i++)
        n += brig_jv_equal(j, list->v[i], args->a[0]);
    return brig_jv_int(n);
}

static struct brig_jv list_copy(struct brig_jinja *j, struct brig_jv self, const struct brig_jargs *args)
{
    (void)args;
    return brig_jv_slice(j, self, brig_jv_none(), brig_jv_none(), brig_jv_none());
}

static struct brig_jv loop_cycle(struct brig_jinja *j, struct brig_jv self, const struct brig_jargs *args)
{
    if (args->pos.n == 0)
        return brig_jinja_fail(j, BRIG_JINJA_TYPE, "no items for cycling given");
    return args->pos.v[self.loop->i % args->pos.n];
}

static struct brig_jv loop_changed(struct brig_jinja *j, struct brig_jv self, const struct brig_jargs *args)
{
    struct brig_jv now = brig_jv_list(j, BRIG_JV_TUPLE);
    struct brig_jv *kept = brig_jinja_alloc(j, 1, sizeof *kept);
    if (kept == NULL)
        return now;
    *now.list = args->pos;
    bool changed = self.loop->last_changed == NULL || !brig_jv_equal(j, *self.loop->last_changed, now);
    *kept = now;
    self.loop->last_changed = kept;
    return brig_jv_bool(changed);
}

static struct brig_jv make_range(struct brig_jinja *j, struct brig_jv self, const struct brig_jargs *args)
{
    struct brig_jrange *r = brig_jinja_alloc(j, 1, sizeof *r);
    bool one = args->a[1].kind == BRIG_JV_ABSENT;
    int64_t difference;
    (void)self;
    if (r == NULL)
        return self;
    for (size_t i = 0; i < 3; i++)
        if (args->a[i].kind == BRIG_JV_NONE)
            return brig_jinja_fail(j, BRIG_JINJA_TYPE,
                                   "'NoneType' object cannot be interpreted as an integer");
    r->start = one ? 0 : brig_jarg_int(j, args->a[0], 0);
    r->stop = brig_jarg_int(j, one ? args->a[0] : args->a[1], 0);
    r->step = brig_jarg_int(j, args->a[2], 1);
    if (j->failed)
        return self;
    if (r->step == 0)
        return brig_jinja_fail(j, BRIG_JINJA_VALUE, "range() arg 3 must not be zero");
    bool fits = !__builtin_sub_overflow(r->stop, r->start, &difference) && difference != INT64_MIN &&
                r->step != INT64_MIN;
    bool some = fits && (r->step > 0) == (difference > 0) && difference != 0;
    if (some) {
        uint64_t distance = (uint64_t)(difference < 0 ? -difference : difference);
        r->n = (size_t)((distance - 1) / (uint64_t)(r->step < 0 ? -r->step : r->step) + 1);
    }
    if (!fits || r->n > MAX_RANGE)
        return brig_jinja_fail(j, BRIG_JINJA_LIMIT, "a range of more than %u numbers", MAX_RANGE);
    return (struct brig_jv){.kind = BRIG_JV_RANGE, .range = r};
}

/* dict() and namespace(): a mapping or pairs, and names. */
static struct brig_jv make_mapping(struct brig_jinja *j, const struct brig_jargs *args,
                                   enum brig_jv_kind kind)
{
    struct brig_jv made = brig_jv_dict(j, kind);
    if (j->failed)
        return made;
    if (args->pos.n > 1)
        return brig_jinja_fail(j, BRIG_JINJA_TYPE, "at most one argument without a name is taken");
    if (args->pos.n == 1 && args->pos.v[0].kind == BRIG_JV_DICT) {
        add_all(j, made.dict, args->pos.v[0].dict);
    } else if (args->pos.n == 1) {
        const struct brig_jlist *pairs = brig_jv_elements(j, args->pos.v[0]);
        for (size_t i = 0; pairs != NULL && i < pairs->n && brig_jinja_step(j, 1); i++) {
            const struct brig_jlist *pair = brig_jv_elements(j, pairs->v[i]);
            if (pair != NULL && pair->n != 2)
                brig_jinja_fail(j, BRIG_JINJA_VALUE, "pairs are expected");
            if (!j->failed)
                brig_jv_put(j, made.dict, pair->v[0], pair->v[1]);
        }
    }
    add_all(j, made.dict, &args->kw);
    return made;
}

static struct brig_jv make_dict(struct brig_jinja *j, struct brig_jv self, const struct brig_jargs *args)
{
    (void)self;
    return make_mapping(j, args, BRIG_JV_DICT);
}

static struct brig_jv make_namespace(struct brig_jinja *j, struct brig_jv self, const struct brig_jargs *args)
{
    (void)self;
    return make_mapping(j, args, BRIG_JV_NAMESPACE);
}

static struct brig_jv raise_exception(struct brig_jinja *j, struct brig_jv self,
                                      const struct brig_jargs *args)
{
    struct brig_str s = brig_jinja_str(j, args->a[0]);
    (void)self;
    return brig_jinja_fail(j, BRIG_JINJA_RAISED, "%.*s", (int)(s.len < 400 ? s.len : 400), s.ptr);
}

/* The only thing that a template could learn of the outside would be the time, and that stands still. */
static struct brig_jv strftime_now(struct brig_jinja *j, struct brig_jv self, const struct brig_jargs *args)
{
    struct brig_jv format =
        brig_jv_arithmetic(j, BRIG_JOP_ADD, args->a[0], brig_jv_str("", 1)); /* and its NUL */
    time_t now = BRIG_JINJA_NOW;
    struct tm tm;
    char text[1024];
    (void)self;
    if (j->failed)
        return format;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    size_t n = strftime(text, sizeof text, format.s.ptr, gmtime_r(&now, &tm));
#pragma GCC diagnostic pop
    return brig_jv_str_copy(j, text, n);
}

const struct brig_jfn brig_jfn_dict_methods[] = {
    {"clear", "", NULL},         {"copy", "", dict_copy},  {"get", "key default?", dict_get},
    {"items", "", dict_items},   {"keys", "", dict_keys},  {"pop", "", NULL},
    {"popitem", "", NULL},       {"setdefault", "", NULL}, {"update", "", NULL},
    {"values", "", dict_values}, {NULL, NULL, NULL},
};

const struct brig_jfn brig_jfn_list_methods[] = {
    {"append", "", NULL},           {"clear", "", NULL},  {"copy", "", list_copy},
    {"count", "value", list_count}, {"extend", "", NULL}, {"index", "value", list_index},
    {"insert", "", NULL},           {"pop", "", NULL},    {"remove", "", NULL},
    {"reverse", "", NULL},          {"sort", "", NULL},   {NULL, NULL, NULL},
};

const struct brig_jfn brig_jfn_tuple_methods[] = {
    {"count", "value", list_count},
    {"index", "value", list_index},
    {NULL, NULL, NULL},
};

const struct brig_jfn brig_jfn_loop_methods[] = {
    {"changed", "*", loop_changed},
    {"cycle", "*", loop_cycle},
    {NULL, NULL, NULL},
};

const struct brig_jfn brig_jfn_globals[] = {
    {"dict", "*", make_dict},
    {"namespace", "*", make_namespace},
    {"raise_exception", "message", raise_exception},
    {"range", "start stop? step?", make_range},
    {"strftime_now", "format", strftime_now},
    {NULL, NULL, NULL},
};
