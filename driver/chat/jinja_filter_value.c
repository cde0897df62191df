/* Filters on single values. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver/chat/jinja_fn.h"
#include "driver/chat/jinja_op.h"
#include "driver/chat/jinja_text.h"

static struct brig_jv absolute(struct brig_jinja *j, struct brig_jv self, const struct brig_jargs *args)
{
    (void)args;
    if (self.kind == BRIG_JV_FLOAT)
        return brig_jv_float(fabs(self.f));
    if (!brig_jv_is_number(self))
        return brig_jinja_fail(j, BRIG_JINJA_TYPE, "bad operand type for abs(): '%s'",
                               brig_jv_type_name(self));
    self = brig_jv_int(brig_jv_as_int(self));
    return self.i < 0 ? brig_jv_negative(j, self) : self;
}

/* As an attribute only: an element of that name does not count. */
static struct brig_jv attr(struct brig_jinja *j, struct brig_jv self, const struct brig_jargs *args)
{
    struct brig_str name = brig_jarg_only_str(j, args->a[0]);
    if (self.kind != BRIG_JV_DICT || brig_jfn_method(BRIG_JV_DICT, name) != NULL)
        return brig_jv_attr(j, self, name);
    return brig_jv_undefined(BRIG_JV_WHY_ATTR, BRIG_JV_DICT, name);
}

static struct brig_jv default_value(struct brig_jinja *j, struct brig_jv self, const struct brig_jargs *args)
{
    bool missing =
        self.kind == BRIG_JV_UNDEFINED || (brig_jarg_bool(args->a[1], false) && !brig_jv_truth(self));
    (void)j;
    if (!missing)
        return self;
    return args->a[0].kind == BRIG_JV_ABSENT ? brig_jv_text("") : args->a[0];
}

/* Text without spaces around it and underscores between digits; false when it is no such number. */
static bool number_text(struct brig_str s, char out[64])
{
    size_t n = 0;
    s = brig_jinja_strip(s, NULL, BRIG_JINJA_BOTH);
    if (s.len == 0 || s.len >= 64)
        return false;
    for (size_t i = 0; i < s.len; i++) {
        if (s.ptr[i] == '\0' || (unsigned char)s.ptr[i] >= 0x80 ||
            brig_jinja_is_space((unsigned char)s.ptr[i]))
            return false;
        bool between =
            s.ptr[i] == '_' && i > 0 && i + 1 < s.len && s.ptr[i - 1] != '_' && s.ptr[i + 1] != '_';
        if (!between)
            out[n++] = s.ptr[i];
    }
    out[n] = '\0';
    return true;
}

/* Python's float() of text: decimal, inf, nan; no hexadecimal. */
static bool float_of_text(struct brig_str s, double *ret)
{
    char text[64], *end;
    if (!number_text(s, text) || strpbrk(text, "xXpP_(") != NULL)
        return false;
    *ret = strtod(text, &end);
    return *end == '\0';
}

/* Python's int() of text, with the prefix that goes with the base. */
static bool int_of_text(struct brig_jinja *j, struct brig_str s, int base, int64_t *ret)
{
    char text[64], *end, *p = text;
    if (!number_text(s, text))
        return false;
    bool minus = *p == '-';
    p += *p == '-' || *p == '+';
    char kind = *p == '0' ? (char)(p[1] | 0x20) : '\0';
    if ((base == 16 && kind == 'x') || (base == 8 && kind == 'o') || (base == 2 && kind == 'b'))
        p += 2;
    if (*p == '\0' || *p == '-' || *p == '+' || (base == 16 && *p == '0' && (p[1] | 0x20) == 'x'))
        return false;
    size_t digits = strlen(p);
    uint64_t v = strtoull(p, &end, base);
    if (*end != '\0')
        return false;
    if (v > INT64_MAX || digits > 60)
        brig_jinja_fail(j, BRIG_JINJA_LIMIT, "a whole number of more than 64 bits");
    *ret = minus ? -(int64_t)(v & INT64_MAX) : (int64_t)(v & INT64_MAX);
    return true;
}

static struct brig_jv int_of_float(struct brig_jinja *j, double f, struct brig_jv otherwise)
{
    if (isnan(f))
        return otherwise;
    if (isinf(f))
        return brig_jinja_fail(j, BRIG_JINJA_VALUE, "cannot convert float infinity to integer");
    if (fabs(f) >= 9.2e18)
        return brig_jinja_fail(j, BRIG_JINJA_LIMIT, "a whole number of more than 64 bits");
    return brig_jv_int((int64_t)f);
}

static struct brig_jv to_int(struct brig_jinja *j, struct brig_jv self, const struct brig_jargs *args)
{
    struct brig_jv otherwise = args->a[0].kind == BRIG_JV_ABSENT ? brig_jv_int(0) : args->a[0];
    struct brig_jv given = args->a[1];
    int64_t base = given.kind == BRIG_JV_ABSENT ? 10 : given.kind == BRIG_JV_INT ? given.i : 0, i;
    double f;
    if (self.kind == BRIG_JV_UNDEFINED)
        return brig_jinja_fail_undefined(j, self);
    if (self.kind == BRIG_JV_STR) {
        bool known = base == 2 || base == 8 || base == 10 || base == 16;
        if (known && int_of_text(j, self.s, (int)base, &i))
            return brig_jv_int(i);
        return float_of_text(self.s, &f) ? int_of_float(j, f, otherwise) : otherwise;
    }
    if (self.kind == BRIG_JV_FLOAT)
        return int_of_float(j, self.f, otherwise);
    return brig_jv_is_number(self) ? brig_jv_int(brig_jv_as_int(self)) : otherwise;
}

static struct brig_jv to_float(struct brig_jinja *j, struct brig_jv self, const struct brig_jargs *args)
{
    double f;
    if (self.kind == BRIG_JV_UNDEFINED)
        return brig_jinja_fail_undefined(j, self);
    if (brig_jv_is_number(self))
        return brig_jv_float(brig_jv_as_float(self));
    if (self.kind == BRIG_JV_STR && float_of_text(self.s, &f))
        return brig_jv_float(f);
    return args->a[0].kind == BRIG_JV_ABSENT ? brig_jv_float(0) : args->a[0];
}

/* To a number of decimals, correctly: by way of the decimal digits, as Python does it. */
static double round_common(double f, int precision)
{
    char text[400];
    if (precision >= 0) {
        snprintf(text, sizeof text, "%.*f", precision, f);
        return strtod(text, NULL);
    }
    double unit = pow(10, -precision);
    return nearbyint(f / unit) * unit;
}

static struct brig_jv round_to(struct brig_jinja *j, struct brig_jv self, const struct brig_jargs *args)
{
    int64_t precision = brig_jarg_int(j, args->a[0], 0);
    struct brig_str how = brig_jarg_str(j, args->a[1], "common");
    bool up = brig_str_eq(how, "ceil"), down = brig_str_eq(how, "floor");
    if (!up && !down && !brig_str_eq(how, "common"))
        return brig_jinja_fail(j, BRIG_JINJA_VALUE, "method must be common, ceil or floor");
    if (!brig_jv_is_number(self))
        return brig_jinja_fail(j, BRIG_JINJA_TYPE, "a number is expected, not '%s'", brig_jv_type_name(self));
    if (precision > 40 || precision < -40)
        return brig_jinja_fail(j, BRIG_JINJA_LIMIT, "round: at most 40 digits");
    double f = brig_jv_as_float(self);
    if (!up && !down && self.kind != BRIG_JV_FLOAT && precision >= 0)
        return brig_jv_int(brig_jv_as_int(self));
    if (!isfinite(f))
        return self;
    double unit = pow(10, (double)precision);
    if (up || down)
        f = (up ? ceil(f * unit) : floor(f * unit)) / unit;
    else
        f = round_common(f, (int)precision);
    bool whole = self.kind != BRIG_JV_FLOAT && !up && !down;
    return whole ? brig_jv_int((int64_t)f) : brig_jv_float(f);
}

const struct brig_jfn brig_jfn_value_filters[] = {
    {"abs", "", absolute},
    {"attr", "name", attr},
    {"d", "default_value? boolean?", default_value},
    {"default", "default_value? boolean?", default_value},
    {"float", "default?", to_float},
    {"int", "default? base?", to_int},
    {"round", "precision? method?", round_to},
    {NULL, NULL, NULL},
};
