/* Arithmetic. Integers have 64 bits; a result beyond them is refused, never wrapped. */
#include "driver/chat/jinja_op.h"

#include <math.h>
#include <string.h>

#include "proto/base/size.h"

static const char *const spellings[] = {
    [BRIG_JOP_ADD] = "+",       [BRIG_JOP_SUB] = "-", [BRIG_JOP_MUL] = "*",         [BRIG_JOP_DIV] = "/",
    [BRIG_JOP_FLOORDIV] = "//", [BRIG_JOP_MOD] = "%", [BRIG_JOP_POW] = "**",        [BRIG_JOP_EQ] = "==",
    [BRIG_JOP_NE] = "!=",       [BRIG_JOP_LT] = "<",  [BRIG_JOP_LE] = "<=",         [BRIG_JOP_GT] = ">",
    [BRIG_JOP_GE] = ">=",       [BRIG_JOP_IN] = "in", [BRIG_JOP_NOT_IN] = "not in",
};

const char *brig_jop_spelling(enum brig_jop op)
{
    return spellings[op];
}

static struct brig_jv wrong_operands(struct brig_jinja *j, enum brig_jop op, struct brig_jv a,
                                     struct brig_jv b)
{
    if (a.kind == BRIG_JV_UNDEFINED || b.kind == BRIG_JV_UNDEFINED)
        return brig_jinja_fail_undefined(j, a.kind == BRIG_JV_UNDEFINED ? a : b);
    if (op == BRIG_JOP_ADD && a.kind == BRIG_JV_STR)
        return brig_jinja_fail(j, BRIG_JINJA_TYPE, "can only concatenate str (not \"%s\") to str",
                               brig_jv_type_name(b));
    return brig_jinja_fail(j, BRIG_JINJA_TYPE, "unsupported operand type(s) for %s: '%s' and '%s'",
                           brig_jop_spelling(op), brig_jv_type_name(a), brig_jv_type_name(b));
}

static struct brig_jv too_large(struct brig_jinja *j)
{
    return brig_jinja_fail(j, BRIG_JINJA_LIMIT, "a whole number of more than 64 bits");
}

static struct brig_jv int_power(struct brig_jinja *j, int64_t a, int64_t b)
{
    int64_t r = 1;
    if (b < 0)
        return a == 0 ? brig_jinja_fail(j, BRIG_JINJA_VALUE, "0.0 cannot be raised to a negative power")
                      : brig_jv_float(pow((double)a, (double)b));
    for (; b > 0; b >>= 1) {
        if ((b & 1) != 0 && __builtin_mul_overflow(r, a, &r))
            return too_large(j);
        if (b > 1 && __builtin_mul_overflow(a, a, &a))
            return too_large(j);
    }
    return brig_jv_int(r);
}

/* Python's // and %: rounded down, the remainder has the sign of the divisor. */
static struct brig_jv int_division(struct brig_jinja *j, enum brig_jop op, int64_t a, int64_t b)
{
    if (b == 0)
        return brig_jinja_fail(j, BRIG_JINJA_VALUE, "integer division or modulo by zero");
    if (b == -1) /* INT64_MIN / -1 does not exist */
        return op == BRIG_JOP_MOD ? brig_jv_int(0) : a == INT64_MIN ? too_large(j) : brig_jv_int(-a);
    int64_t q = a / b, r = a % b;
    if (r != 0 && (r < 0) != (b < 0)) {
        q--;
        r += b;
    }
    return brig_jv_int(op == BRIG_JOP_MOD ? r : q);
}

static struct brig_jv int_arithmetic(struct brig_jinja *j, enum brig_jop op, int64_t a, int64_t b)
{
    int64_t r = 0;
    bool bad;
    switch (op) {
    case BRIG_JOP_ADD:
        bad = __builtin_add_overflow(a, b, &r);
        break;
    case BRIG_JOP_SUB:
        bad = __builtin_sub_overflow(a, b, &r);
        break;
    case BRIG_JOP_MUL:
        bad = __builtin_mul_overflow(a, b, &r);
        break;
    case BRIG_JOP_POW:
        return int_power(j, a, b);
    default:
        return int_division(j, op, a, b);
    }
    return bad ? too_large(j) : brig_jv_int(r);
}

static struct brig_jv float_division(enum brig_jop op, double a, double b)
{
    double r = fmod(a, b), q = (a - r) / b;
    if (r != 0 && (r < 0) != (b < 0)) {
        r += b;
        q -= 1;
    }
    if (op == BRIG_JOP_MOD)
        return brig_jv_float(r == 0 ? copysign(0, b) : r);
    double down = floor(q);
    return brig_jv_float(q == 0 ? copysign(0, a / b) : q - down > 0.5 ? down + 1 : down);
}

static struct brig_jv float_arithmetic(struct brig_jinja *j, enum brig_jop op, double a, double b)
{
    double r;
    if (b == 0 && (op == BRIG_JOP_DIV || op == BRIG_JOP_FLOORDIV || op == BRIG_JOP_MOD))
        return brig_jinja_fail(j, BRIG_JINJA_VALUE, "division by zero");
    switch (op) {
    case BRIG_JOP_ADD:
        return brig_jv_float(a + b);
    case BRIG_JOP_SUB:
        return brig_jv_float(a - b);
    case BRIG_JOP_MUL:
        return brig_jv_float(a * b);
    case BRIG_JOP_DIV:
        return brig_jv_float(a / b);
    case BRIG_JOP_POW:
        if (a == 0 && b < 0)
            return brig_jinja_fail(j, BRIG_JINJA_VALUE, "0.0 cannot be raised to a negative power");
        r = pow(a, b);
        if (isinf(r) && isfinite(a) && isfinite(b))
            return brig_jinja_fail(j, BRIG_JINJA_VALUE, "a result too large for a float");
        return brig_jv_float(r);
    default:
        return float_division(op, a, b);
    }
}

static struct brig_jv join_strings(struct brig_jinja *j, struct brig_str a, struct brig_str b)
{
    if (a.len > j->limits.out_bytes || b.len > j->limits.out_bytes - a.len)
        return brig_jinja_fail(j, BRIG_JINJA_LIMIT, "a string of more than %zu bytes", j->limits.out_bytes);
    char *text = brig_jinja_alloc(j, a.len + b.len, 1);
    if (text == NULL)
        return (struct brig_jv){.kind = BRIG_JV_UNDEFINED};
    memcpy(text, a.ptr, a.len);
    memcpy(text + a.len, b.ptr, b.len);
    return brig_jv_str(text, a.len + b.len);
}

static struct brig_jv join_lists(struct brig_jinja *j, struct brig_jv a, struct brig_jv b)
{
    struct brig_jv made = brig_jv_list(j, (enum brig_jv_kind)a.kind);
    for (size_t i = 0; i < a.list->n && brig_jinja_step(j, 1); i++)
        brig_jv_push(j, made.list, a.list->v[i]);
    for (size_t i = 0; i < b.list->n && brig_jinja_step(j, 1); i++)
        brig_jv_push(j, made.list, b.list->v[i]);
    return made;
}

static struct brig_jv repeat(struct brig_jinja *j, struct brig_jv v, int64_t times)
{
    uint64_t bytes;
    size_t n = times < 0 ? 0 : (size_t)times;
    if (v.kind != BRIG_JV_STR) {
        struct brig_jv made = brig_jv_list(j, (enum brig_jv_kind)v.kind);
        for (size_t k = 0; v.list->n > 0 && k < n && !j->failed; k++)
            for (size_t i = 0; i < v.list->n && brig_jinja_step(j, 1); i++)
                brig_jv_push(j, made.list, v.list->v[i]);
        return made;
    }
    if (!brig_mul_u64(n, v.s.len, &bytes) || bytes > j->limits.out_bytes)
        return brig_jinja_fail(j, BRIG_JINJA_LIMIT, "a string of more than %zu bytes", j->limits.out_bytes);
    char *text = brig_jinja_alloc(j, (size_t)bytes, 1);
    for (size_t at = 0; text != NULL && at < bytes; at += v.s.len)
        memcpy(text + at, v.s.ptr, v.s.len);
    return text == NULL ? (struct brig_jv){.kind = BRIG_JV_UNDEFINED} : brig_jv_str(text, (size_t)bytes);
}

static bool whole(struct brig_jv v)
{
    return v.kind == BRIG_JV_INT || v.kind == BRIG_JV_BOOL;
}

static bool repeats(struct brig_jv v)
{
    return v.kind == BRIG_JV_STR || brig_jv_is_sequence(v);
}

struct brig_jv brig_jv_arithmetic(struct brig_jinja *j, enum brig_jop op, struct brig_jv a, struct brig_jv b)
{
    if (whole(a) && whole(b) && op == BRIG_JOP_DIV &&
        brig_jv_as_int(b) != 0) /* not every integer is a double */
        return brig_jv_float((double)((long double)brig_jv_as_int(a) / (long double)brig_jv_as_int(b)));
    if (whole(a) && whole(b) && op != BRIG_JOP_DIV)
        return int_arithmetic(j, op, brig_jv_as_int(a), brig_jv_as_int(b));
    if (brig_jv_is_number(a) && brig_jv_is_number(b))
        return float_arithmetic(j, op, brig_jv_as_float(a), brig_jv_as_float(b));
    if (op == BRIG_JOP_ADD && a.kind == BRIG_JV_STR && b.kind == BRIG_JV_STR)
        return join_strings(j, a.s, b.s);
    if (op == BRIG_JOP_ADD && brig_jv_is_sequence(a) && a.kind == b.kind)
        return join_lists(j, a, b);
    if (op == BRIG_JOP_MUL && repeats(a) && whole(b))
        return repeat(j, a, brig_jv_as_int(b));
    if (op == BRIG_JOP_MUL && whole(a) && repeats(b))
        return repeat(j, b, brig_jv_as_int(a));
    if (op == BRIG_JOP_MOD && a.kind == BRIG_JV_STR && !j->failed)
        return brig_jv_percent(j, a.s, b);
    return wrong_operands(j, op, a, b);
}

struct brig_jv brig_jv_negative(struct brig_jinja *j, struct brig_jv v)
{
    if (v.kind == BRIG_JV_FLOAT)
        return brig_jv_float(-v.f);
    if (whole(v))
        return int_arithmetic(j, BRIG_JOP_SUB, 0, brig_jv_as_int(v));
    return v.kind == BRIG_JV_UNDEFINED
               ? brig_jinja_fail_undefined(j, v)
               : brig_jinja_fail(j, BRIG_JINJA_TYPE, "bad operand type for unary -: '%s'",
                                 brig_jv_type_name(v));
}

struct brig_jv brig_jv_positive(struct brig_jinja *j, struct brig_jv v)
{
    if (v.kind == BRIG_JV_FLOAT)
        return v;
    if (whole(v))
        return brig_jv_int(brig_jv_as_int(v));
    return v.kind == BRIG_JV_UNDEFINED
               ? brig_jinja_fail_undefined(j, v)
               : brig_jinja_fail(j, BRIG_JINJA_TYPE, "bad operand type for unary +: '%s'",
                                 brig_jv_type_name(v));
}
