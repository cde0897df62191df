/* Finding and calling what is built in. */
#include "driver/chat/jinja_fn.h"

#include <string.h>

#include "driver/chat/jinja_text.h"

static const struct brig_jfn *find(const struct brig_jfn *rows, struct brig_str name)
{
    for (; rows->name != NULL; rows++)
        if (brig_str_eq(name, rows->name))
            return rows;
    return NULL;
}

const struct brig_jfn *brig_jfn_filter(struct brig_str name)
{
    const struct brig_jfn *const tables[] = {brig_jfn_text_filters, brig_jfn_list_filters,
                                             brig_jfn_value_filters};
    const struct brig_jfn *fn = NULL;
    for (size_t i = 0; i < sizeof tables / sizeof tables[0] && fn == NULL; i++)
        fn = find(tables[i], name);
    return fn;
}

const struct brig_jfn *brig_jfn_test(struct brig_str name)
{
    return find(brig_jfn_tests, name);
}

const struct brig_jfn *brig_jfn_global(struct brig_str name)
{
    return find(brig_jfn_globals, name);
}

const struct brig_jfn *brig_jfn_method(enum brig_jv_kind kind, struct brig_str name)
{
    static const struct brig_jfn *const tables[BRIG_JV_COUNT] = {
        [BRIG_JV_STR] = brig_jfn_str_methods,     [BRIG_JV_DICT] = brig_jfn_dict_methods,
        [BRIG_JV_LIST] = brig_jfn_list_methods,   [BRIG_JV_TUPLE] = brig_jfn_tuple_methods,
        [BRIG_JV_RANGE] = brig_jfn_tuple_methods, [BRIG_JV_LOOP] = brig_jfn_loop_methods,
    };
    return tables[kind] == NULL ? NULL : find(tables[kind], name);
}

/* The parameter at *p: its name, whether it is optional; *p moves to the next. */
static struct brig_str parameter(const char **p, bool *optional)
{
    size_t n = strcspn(*p, " ");
    struct brig_str name = {*p, n};
    *p += n + ((*p)[n] == ' ');
    *optional = n > 0 && name.ptr[n - 1] == '?';
    name.len -= *optional;
    return name;
}

static bool bind(struct brig_jinja *j, const struct brig_jfn *fn, struct brig_jargs *args)
{
    size_t i = 0, named = 0;
    const char *p = fn->params;
    for (; *p != '\0'; i++) {
        bool optional;
        struct brig_str name = parameter(&p, &optional);
        const struct brig_jv *by_name = brig_jv_find_str(&args->kw, name);
        args->a[i].kind = BRIG_JV_ABSENT;
        if (i < args->pos.n)
            args->a[i] = args->pos.v[i];
        if (by_name != NULL && i < args->pos.n) {
            brig_jinja_fail(j, BRIG_JINJA_TYPE, "%s: the argument '%.*s' is given twice", fn->name,
                            (int)name.len, name.ptr);
            return false;
        }
        if (by_name != NULL) {
            args->a[i] = *by_name;
            named++;
        }
        if (!optional && args->a[i].kind == BRIG_JV_ABSENT) {
            brig_jinja_fail(j, BRIG_JINJA_TYPE, "%s: the argument '%.*s' is missing", fn->name, (int)name.len,
                            name.ptr);
            return false;
        }
    }
    if (args->pos.n > i)
        brig_jinja_fail(j, BRIG_JINJA_TYPE, "%s: at most %zu arguments are taken, not %zu", fn->name, i,
                        args->pos.n);
    else if (named < args->kw.n)
        brig_jinja_fail(j, BRIG_JINJA_TYPE, "%s: an argument with a name that it does not have", fn->name);
    return !j->failed;
}

struct brig_jv brig_jfn_call(struct brig_jinja *j, const struct brig_jfn *fn, struct brig_jv self,
                             struct brig_jargs *args)
{
    struct brig_jv r = {.kind = BRIG_JV_UNDEFINED};
    if (!brig_jinja_enter(j))
        return r;
    if (strcmp(fn->params, "*") == 0 || bind(j, fn, args))
        r = fn->call(j, self, args);
    brig_jinja_leave(j);
    return j->failed ? (struct brig_jv){.kind = BRIG_JV_UNDEFINED} : r;
}

struct brig_jv brig_jfn_call_named(struct brig_jinja *j, bool test, struct brig_jv name, struct brig_jv self,
                                   const struct brig_jargs *args, size_t from)
{
    struct brig_jargs rest = {.kw = args->kw};
    const struct brig_jfn *fn = NULL;
    if (name.kind == BRIG_JV_STR)
        fn = test ? brig_jfn_test(name.s) : brig_jfn_filter(name.s);
    if (fn == NULL)
        return brig_jinja_fail(j, BRIG_JINJA_VALUE, "there is no %s named '%.*s'", test ? "test" : "filter",
                               name.kind != BRIG_JV_STR ? 0
                               : name.s.len < 60        ? (int)name.s.len
                                                        : 60,
                               name.kind == BRIG_JV_STR ? name.s.ptr : "");
    if (from < args->pos.n)
        rest.pos = (struct brig_jlist){.v = args->pos.v + from, .n = args->pos.n - from};
    return brig_jfn_call(j, fn, self, &rest);
}

int64_t brig_jarg_int(struct brig_jinja *j, struct brig_jv v, int64_t otherwise)
{
    if (v.kind == BRIG_JV_ABSENT || v.kind == BRIG_JV_NONE)
        return otherwise;
    if (v.kind == BRIG_JV_INT || v.kind == BRIG_JV_BOOL)
        return brig_jv_as_int(v);
    if (v.kind == BRIG_JV_UNDEFINED)
        brig_jinja_fail_undefined(j, v);
    else
        brig_jinja_fail(j, BRIG_JINJA_TYPE, "'%s' object cannot be interpreted as an integer",
                        brig_jv_type_name(v));
    return otherwise;
}

struct brig_str brig_jarg_str(struct brig_jinja *j, struct brig_jv v, const char *otherwise)
{
    if (v.kind == BRIG_JV_ABSENT)
        return (struct brig_str){otherwise, strlen(otherwise)};
    return brig_jinja_str(j, v);
}

struct brig_str brig_jarg_only_str(struct brig_jinja *j, struct brig_jv v)
{
    if (v.kind == BRIG_JV_STR)
        return v.s;
    if (v.kind == BRIG_JV_UNDEFINED && v.why == BRIG_JV_WHY_UNSAFE)
        brig_jinja_fail_undefined(j, v);
    else
        brig_jinja_fail(j, BRIG_JINJA_TYPE, "a string is expected, not '%s'", brig_jv_type_name(v));
    return (struct brig_str){"", 0};
}

bool brig_jarg_bool(struct brig_jv v, bool otherwise)
{
    return v.kind == BRIG_JV_ABSENT ? otherwise : brig_jv_truth(v);
}
