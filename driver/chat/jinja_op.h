/* What operators and subscripts do with values: the meaning that Python and Jinja's sandbox give them. */
#ifndef BRIG_DRIVER_CHAT_JINJA_OP_H
#define BRIG_DRIVER_CHAT_JINJA_OP_H

#include "driver/chat/jinja_core.h"

enum brig_jop {
    BRIG_JOP_ADD,
    BRIG_JOP_SUB,
    BRIG_JOP_MUL,
    BRIG_JOP_DIV,
    BRIG_JOP_FLOORDIV,
    BRIG_JOP_MOD,
    BRIG_JOP_POW,
    BRIG_JOP_EQ,
    BRIG_JOP_NE,
    BRIG_JOP_LT,
    BRIG_JOP_LE,
    BRIG_JOP_GT,
    BRIG_JOP_GE,
    BRIG_JOP_IN,
    BRIG_JOP_NOT_IN,
};
const char *brig_jop_spelling(enum brig_jop op);

bool brig_jv_equal(struct brig_jinja *j, struct brig_jv a, struct brig_jv b);
/* op: EQ to NOT_IN. */
bool brig_jv_compare(struct brig_jinja *j, enum brig_jop op, struct brig_jv a, struct brig_jv b);
/* op: ADD to POW. */
struct brig_jv brig_jv_arithmetic(struct brig_jinja *j, enum brig_jop op, struct brig_jv a, struct brig_jv b);
struct brig_jv brig_jv_negative(struct brig_jinja *j, struct brig_jv v);
struct brig_jv brig_jv_positive(struct brig_jinja *j, struct brig_jv v);
/* Python's format % v */
struct brig_jv brig_jv_percent(struct brig_jinja *j, struct brig_str format, struct brig_jv v);
/* Python's format.format(*pos, **kw), without formats of single fields. */
struct brig_jv brig_jv_format(struct brig_jinja *j, struct brig_str format, const struct brig_jlist *pos,
                              const struct brig_jdict *kw);

/* value.name: a method or property first, then the element of that name. value[key]: the other way round. */
struct brig_jv brig_jv_attr(struct brig_jinja *j, struct brig_jv v, struct brig_str name);
struct brig_jv brig_jv_item(struct brig_jinja *j, struct brig_jv v, struct brig_jv key);
/* value[start:stop:step]; each may be None. */
struct brig_jv brig_jv_slice(struct brig_jinja *j, struct brig_jv v, struct brig_jv start,
                             struct brig_jv stop, struct brig_jv step);
/* item(item(v, "a"), 0) for the attribute "a.0"; absent or None: v. With a fallback for undefined ones. */
struct brig_jv brig_jv_path(struct brig_jinja *j, struct brig_jv v, struct brig_jv attribute,
                            struct brig_jv fallback);

/* Sort items by their keys (as many), stable, with <. */
void brig_jv_sort(struct brig_jinja *j, struct brig_jlist *items, struct brig_jlist *keys, bool reverse);

#endif
