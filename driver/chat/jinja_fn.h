/*
 * What is built in: filters, tests, methods of values, functions. Each is a row in a table; its parameters
 * are written in the row and bound to the arguments of a call in one place.
 */
#ifndef BRIG_DRIVER_CHAT_JINJA_FN_H
#define BRIG_DRIVER_CHAT_JINJA_FN_H

#include "driver/chat/jinja_core.h"

#define BRIG_JFN_MAX_PARAMS 5u

struct brig_jargs {
    struct brig_jlist pos;
    struct brig_jdict kw; /* keys are strings */
    struct brig_jv
        a[BRIG_JFN_MAX_PARAMS]; /* bound: in the order of the row's parameters; ABSENT: not given */
};

struct brig_jfn {
    const char *name;
    const char
        *params; /* names with spaces between them, ? behind optional ones; "*": takes pos and kw itself */
    /* self: what is filtered or tested, whose method it is. NULL: a method that would change a value. */
    struct brig_jv (*call)(struct brig_jinja *j, struct brig_jv self, const struct brig_jargs *args);
};

/* NULL when there is none. */
const struct brig_jfn *brig_jfn_filter(struct brig_str name);
const struct brig_jfn *brig_jfn_test(struct brig_str name);
const struct brig_jfn *brig_jfn_method(enum brig_jv_kind kind, struct brig_str name);
const struct brig_jfn *brig_jfn_global(struct brig_str name);

/* Bind *args (its pos and kw are filled) and call. */
struct brig_jv brig_jfn_call(struct brig_jinja *j, const struct brig_jfn *fn, struct brig_jv self,
                             struct brig_jargs *args);
/* A filter or test by name, with the arguments of `args` from the position `from` on: what map and select do.
 */
struct brig_jv brig_jfn_call_named(struct brig_jinja *j, bool test, struct brig_jv name, struct brig_jv self,
                                   const struct brig_jargs *args, size_t from);

/* Arguments as C values; *_or: when absent (or None, for an integer). Wrong ones fail. */
int64_t brig_jarg_int(struct brig_jinja *j, struct brig_jv v, int64_t otherwise);
struct brig_str brig_jarg_str(struct brig_jinja *j, struct brig_jv v,
                              const char *otherwise); /* any value's str() */
bool brig_jarg_bool(struct brig_jv v, bool otherwise);
struct brig_str brig_jarg_only_str(struct brig_jinja *j, struct brig_jv v); /* a string, or it fails */

/* The tables; each ends with a row without a name. */
extern const struct brig_jfn brig_jfn_text_filters[], brig_jfn_list_filters[], brig_jfn_value_filters[],
    brig_jfn_tests[], brig_jfn_str_methods[], brig_jfn_dict_methods[], brig_jfn_list_methods[],
    brig_jfn_tuple_methods[], brig_jfn_loop_methods[], brig_jfn_globals[];

#endif
