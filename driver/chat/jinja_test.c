/* Tests: x is y. */
#include <math.h>

#include <utf8proc.h>

#include "driver/chat/jinja_fn.h"
#include "driver/chat/jinja_op.h"
#include "driver/chat/jinja_text.h"

#define TEST(name)                                                                                           \
    static struct brig_jv name(struct brig_jinja *j, struct brig_jv self, const struct brig_jargs *args)
#define KIND_TEST(name, condition)                                                                           \
    TEST(name)                                                                                               \
    {                                                                                                        \
        (void)j;                                                                                             \
        (void)self;                                                                                          \
        (void)args;                                                                                          \
        return brig_jv_bool(condition);                                                                      \
    }

KIND_TEST(is_boolean, self.kind == BRIG_JV_BOOL)
KIND_TEST(is_callable, self.kind == BRIG_JV_MACRO || self.kind == BRIG_JV_FUNCTION ||
                           self.kind == BRIG_JV_METHOD || self.kind == BRIG_JV_LOOP ||
                           self.kind == BRIG_JV_UNDEFINED)
KIND_TEST(is_defined, self.kind != BRIG_JV_UNDEFINED)
KIND_TEST(is_undefined, self.kind == BRIG_JV_UNDEFINED)
KIND_TEST(is_none, self.kind == BRIG_JV_NONE)
KIND_TEST(is_true, self.kind == BRIG_JV_BOOL && self.b)
KIND_TEST(is_false, self.kind == BRIG_JV_BOOL && !self.b)
KIND_TEST(is_integer, self.kind == BRIG_JV_INT)
KIND_TEST(is_float, self.kind == BRIG_JV_FLOAT)
KIND_TEST(is_number, brig_jv_is_number(self))
KIND_TEST(is_string, self.kind == BRIG_JV_STR)
KIND_TEST(is_mapping, self.kind == BRIG_JV_DICT)
KIND_TEST(is_iterable,
          self.kind == BRIG_JV_UNDEFINED || self.kind == BRIG_JV_STR || self.kind == BRIG_JV_DICT ||
              (self.kind >= BRIG_JV_LIST && self.kind <= BRIG_JV_RANGE) || self.kind == BRIG_JV_LOOP)
KIND_TEST(is_sequence, self.kind == BRIG_JV_UNDEFINED || self.kind == BRIG_JV_STR ||
                           self.kind == BRIG_JV_DICT || brig_jv_is_sequence(self) ||
                           self.kind == BRIG_JV_RANGE)
KIND_TEST(is_escaped, false)
KIND_TEST(is_filter, self.kind == BRIG_JV_STR && brig_jfn_filter(self.s) != NULL)
KIND_TEST(is_test, self.kind == BRIG_JV_STR && brig_jfn_test(self.s) != NULL)

/* v % n, a whole number or it fails. */
static int64_t rest(struct brig_jinja *j, struct brig_jv v, struct brig_jv n)
{
    struct brig_jv r = brig_jv_arithmetic(j, BRIG_JOP_MOD, v, n);
    return r.kind == BRIG_JV_INT                 ? r.i
           : r.kind == BRIG_JV_FLOAT && r.f == 0 ? 0
           : r.kind == BRIG_JV_FLOAT && r.f == 1 ? 1
                                                 : 2;
}

TEST(is_odd)
{
    (void)args;
    return brig_jv_bool(rest(j, self, brig_jv_int(2)) == 1);
}

TEST(is_even)
{
    (void)args;
    return brig_jv_bool(rest(j, self, brig_jv_int(2)) == 0);
}

TEST(is_divisibleby)
{
    return brig_jv_bool(rest(j, self, args->a[0]) == 0);
}

/* All letters that have a case have this one, and there is one. */
static bool all_in_case(struct brig_str s, utf8proc_category_t wanted)
{
    bool some = false;
    for (size_t at = 0; at < s.len;) {
        size_t n = brig_jinja_char(s.ptr + at, s.len - at);
        utf8proc_category_t c = utf8proc_category((int32_t)brig_jinja_code(s.ptr + at, n));
        if (c == wanted)
            some = true;
        else if (c == UTF8PROC_CATEGORY_LU || c == UTF8PROC_CATEGORY_LL || c == UTF8PROC_CATEGORY_LT)
            return false;
        at += n;
    }
    return some;
}

TEST(is_lower)
{
    (void)args;
    return brig_jv_bool(all_in_case(brig_jinja_str(j, self), UTF8PROC_CATEGORY_LL));
}

TEST(is_upper)
{
    (void)args;
    return brig_jv_bool(all_in_case(brig_jinja_str(j, self), UTF8PROC_CATEGORY_LU));
}

TEST(is_sameas)
{
    bool singleton = self.kind == BRIG_JV_NONE || self.kind == BRIG_JV_BOOL || self.kind == BRIG_JV_INT;
    bool same = self.kind == args->a[0].kind &&
                (singleton ? brig_jv_equal(j, self, args->a[0]) : self.list == args->a[0].list);
    return brig_jv_bool(same);
}

#define COMPARISON(name, op)                                                                                 \
    TEST(name)                                                                                               \
    {                                                                                                        \
        return brig_jv_bool(brig_jv_compare(j, op, self, args->a[0]));                                       \
    }

COMPARISON(is_in, BRIG_JOP_IN)
COMPARISON(is_eq, BRIG_JOP_EQ)
COMPARISON(is_ne, BRIG_JOP_NE)
COMPARISON(is_lt, BRIG_JOP_LT)
COMPARISON(is_le, BRIG_JOP_LE)
COMPARISON(is_gt, BRIG_JOP_GT)
COMPARISON(is_ge, BRIG_JOP_GE)

const struct brig_jfn brig_jfn_tests[] = {
    {"boolean", "", is_boolean},
    {"callable", "", is_callable},
    {"defined", "", is_defined},
    {"divisibleby", "num", is_divisibleby},
    {"escaped", "", is_escaped},
    {"even", "", is_even},
    {"false", "", is_false},
    {"filter", "", is_filter},
    {"float", "", is_float},
    {"in", "seq", is_in},
    {"integer", "", is_integer},
    {"iterable", "", is_iterable},
    {"lower", "", is_lower},
    {"mapping", "", is_mapping},
    {"none", "", is_none},
    {"number", "", is_number},
    {"odd", "", is_odd},
    {"sameas", "other", is_sameas},
    {"sequence", "", is_sequence},
    {"string", "", is_string},
    {"test", "", is_test},
    {"true", "", is_true},
    {"undefined", "", is_undefined},
    {"upper", "", is_upper},
    {"==", "b", is_eq},
    {"eq", "b", is_eq},
    {"equalto", "b", is_eq},
    {"!=", "b", is_ne},
    {"ne", "b", is_ne},
    {"<", "b", is_lt},
    {"lt", "b", is_lt},
    {"lessthan", "b", is_lt},
    {"<=", "b", is_le},
    {"le", "b", is_le},
    {">", "b", is_gt},
    {"gt", "b", is_gt},
    {"greaterthan", "b", is_gt},
    {">=", "b", is_ge},
    {"ge", "b", is_ge},
    {NULL, NULL, NULL},
};
