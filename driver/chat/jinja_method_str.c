/* Methods of strings. */
#include <string.h>

#include <utf8proc.h>

#include "driver/chat/jinja_fn.h"
#include "driver/chat/jinja_lines.h"
#include "driver/chat/jinja_op.h"
#include "driver/chat/jinja_text.h"

#define METHOD(name)                                                                                         \
    static struct brig_jv name(struct brig_jinja *j, struct brig_jv self, const struct brig_jargs *args)

static struct brig_jv string_of(struct brig_str s)
{
    return brig_jv_str(s.ptr, s.len);
}

static bool given(struct brig_jv v)
{
    return v.kind != BRIG_JV_ABSENT && v.kind != BRIG_JV_NONE;
}

static struct brig_jv strip_side(struct brig_jinja *j, struct brig_jv self, const struct brig_jargs *args,
                                 enum brig_jinja_side side)
{
    struct brig_str chars = {"", 0};
    if (given(args->a[0]))
        chars = brig_jarg_only_str(j, args->a[0]);
    return string_of(brig_jinja_strip(self.s, given(args->a[0]) ? &chars : NULL, side));
}

METHOD(strip)
{
    return strip_side(j, self, args, BRIG_JINJA_BOTH);
}

METHOD(lstrip)
{
    return strip_side(j, self, args, BRIG_JINJA_LEFT);
}

METHOD(rstrip)
{
    return strip_side(j, self, args, BRIG_JINJA_RIGHT);
}

static struct brig_jv in_case(struct brig_jinja *j, struct brig_str s, enum brig_jinja_case how)
{
    struct brig_buf inner, *outer = brig_jinja_capture(j, &inner);
    brig_jinja_put_case(j, s, how);
    return brig_jinja_captured(j, &inner, outer);
}

METHOD(upper)
{
    (void)args;
    return in_case(j, self.s, BRIG_JINJA_UPPER);
}

METHOD(lower)
{
    (void)args;
    return in_case(j, self.s, BRIG_JINJA_LOWER);
}

METHOD(swapcase)
{
    (void)args;
    return in_case(j, self.s, BRIG_JINJA_SWAP);
}

METHOD(capitalize)
{
    (void)args;
    return brig_jinja_capitalize(j, self.s);
}

static bool cased(utf8proc_category_t c)
{
    return c == UTF8PROC_CATEGORY_LU || c == UTF8PROC_CATEGORY_LL || c == UTF8PROC_CATEGORY_LT;
}

static utf8proc_category_t category(struct brig_str s, size_t at, size_t n)
{
    return utf8proc_category((int32_t)brig_jinja_code(s.ptr + at, n));
}

/* Upper case begins after everything that has no case: they're becomes They'Re. */
METHOD(title)
{
    struct brig_buf inner, *outer = brig_jinja_capture(j, &inner);
    bool begins = true;
    (void)args;
    for (size_t at = 0; at < self.s.len && !j->failed;) {
        size_t n = brig_jinja_char(self.s.ptr + at, self.s.len - at);
        brig_jinja_put_case(j, (struct brig_str){self.s.ptr + at, n},
                            begins ? BRIG_JINJA_UPPER : BRIG_JINJA_LOWER);
        begins = !cased(category(self.s, at, n));
        at += n;
    }
    return brig_jinja_captured(j, &inner, outer);
}

static bool has_end(struct brig_str s, struct brig_str end, bool front)
{
    return end.len <= s.len && memcmp(front ? s.ptr : s.ptr + s.len - end.len, end.ptr, end.len) == 0;
}

/* One string or a tuple of them. */
static struct brig_jv ends(struct brig_jinja *j, struct brig_jv self, struct brig_jv with, bool front)
{
    bool found = false;
    if (with.kind != BRIG_JV_TUPLE)
        return brig_jv_bool(has_end(self.s, brig_jarg_only_str(j, with), front));
    for (size_t i = 0; i < with.list->n && !found && brig_jinja_step(j, 1); i++)
        found = has_end(self.s, brig_jarg_only_str(j, with.list->v[i]), front);
    return brig_jv_bool(found);
}

METHOD(startswith)
{
    return ends(j, self, args->a[0], true);
}

METHOD(endswith)
{
    return ends(j, self, args->a[0], false);
}

METHOD(removeprefix)
{
    struct brig_str what = brig_jarg_only_str(j, args->a[0]);
    size_t n = has_end(self.s, what, true) ? what.len : 0;
    return brig_jv_str(self.s.ptr + n, self.s.len - n);
}

METHOD(removesuffix)
{
    struct brig_str what = brig_jarg_only_str(j, args->a[0]);
    return brig_jv_str(self.s.ptr, self.s.len - (has_end(self.s, what, false) ? what.len : 0));
}

METHOD(replace)
{
    return brig_jinja_replace(j, self.s, brig_jarg_only_str(j, args->a[0]), brig_jarg_only_str(j, args->a[1]),
                              brig_jarg_int(j, args->a[2], -1));
}

/* ---- searching ---- */

static const char *find_last(struct brig_str s, struct brig_str what)
{
    for (size_t at = s.len - what.len + 1; what.len <= s.len && at-- > 0;)
        if (memcmp(s.ptr + at, what.ptr, what.len) == 0)
            return s.ptr + at;
    return NULL;
}

/* The first or last place of `what`, in bytes; steps for the way. */
static const char *place(struct brig_jinja *j, struct brig_str s, struct brig_str what, bool last)
{
    if (!brig_jinja_step(j, s.len / (last ? 16 : 256)))
        return NULL;
    return last ? find_last(s, what) : memmem(s.ptr, s.len, what.ptr, what.len);
}

static struct brig_jv find_from(struct brig_jinja *j, struct brig_jv self, const struct brig_jargs *args,
                                bool last, bool must)
{
    struct brig_str what = brig_jarg_only_str(j, args->a[0]);
    const char *found = place(j, self.s, what, last);
    if (found == NULL && must)
        return brig_jinja_fail(j, BRIG_JINJA_VALUE, "substring not found");
    if (found == NULL)
        return brig_jv_int(-1);
    return brig_jv_int(
        (int64_t)brig_jinja_count((struct brig_str){self.s.ptr, (size_t)(found - self.s.ptr)}));
}

METHOD(find)
{
    return find_from(j, self, args, false, false);
}

METHOD(rfind)
{
    return find_from(j, self, args, true, false);
}

METHOD(str_index)
{
    return find_from(j, self, args, false, true);
}

METHOD(str_rindex)
{
    return find_from(j, self, args, true, true);
}

METHOD(count)
{
    struct brig_str what = brig_jarg_only_str(j, args->a[0]), rest = self.s;
    const char *found;
    int64_t n = 0;
    if (what.len == 0)
        return brig_jv_int((int64_t)brig_jinja_count(self.s) + 1);
    brig_jinja_step(j, rest.len / 256);
    while (brig_jinja_step(j, 1) && (found = memmem(rest.ptr, rest.len, what.ptr, what.len)) != NULL) {
        n++;
        rest.len -= (size_t)(found + what.len - rest.ptr);
        rest.ptr = found + what.len;
    }
    return brig_jv_int(n);
}

/* ---- cutting ---- */

static void push(struct brig_jinja *j, struct brig_jv list, const char *from, const char *to)
{
    brig_jv_push(j, list.list, brig_jv_str(from, (size_t)(to - from)));
}

/* Words between white space, at most `max` cuts (negative: all); the rest keeps its spaces at the end. */
static void split_spaces(struct brig_jinja *j, struct brig_str s, int64_t max, struct brig_jv made)
{
    for (;; max--) {
        s = brig_jinja_strip(s, NULL, BRIG_JINJA_LEFT);
        if (s.len == 0 || !brig_jinja_step(j, 1))
            return;
        size_t at = 0;
        while (at < s.len && max != 0) {
            size_t n = brig_jinja_char(s.ptr + at, s.len - at);
            if (brig_jinja_is_space(brig_jinja_code(s.ptr + at, n)))
                break;
            at += n;
        }
        at = max == 0 ? s.len : at;
        push(j, made, s.ptr, s.ptr + at);
        s = (struct brig_str){s.ptr + at, s.len - at};
    }
}

static void reverse_list(const struct brig_jlist *list)
{
    for (size_t i = 0; i < list->n / 2; i++) {
        struct brig_jv t = list->v[i];
        list->v[i] = list->v[list->n - 1 - i];
        list->v[list->n - 1 - i] = t;
    }
}

/* From the right. */
static void rsplit_spaces(struct brig_jinja *j, struct brig_str s, int64_t max, struct brig_jv made)
{
    for (;; max--) {
        s = brig_jinja_strip(s, NULL, BRIG_JINJA_RIGHT);
        if (s.len == 0 || !brig_jinja_step(j, 1))
            break;
        size_t at = s.len;
        while (at > 0 && max != 0) {
            size_t n = brig_jinja_last_char(s.ptr, at);
            if (brig_jinja_is_space(brig_jinja_code(s.ptr + at - n, n)))
                break;
            at -= n;
        }
        at = max == 0 ? 0 : at;
        push(j, made, s.ptr + at, s.ptr + s.len);
        s.len = at;
    }
    reverse_list(made.list);
}

static void split_at(struct brig_jinja *j, struct brig_str s, struct brig_str by, int64_t max,
                     struct brig_jv made)
{
    const char *found;
    brig_jinja_step(j, s.len / 256);
    for (; max != 0 && brig_jinja_step(j, 1); max--) {
        found = memmem(s.ptr, s.len, by.ptr, by.len);
        if (found == NULL)
            break;
        push(j, made, s.ptr, found);
        s.len -= (size_t)(found + by.len - s.ptr);
        s.ptr = found + by.len;
    }
    push(j, made, s.ptr, s.ptr + s.len);
}

static void rsplit_at(struct brig_jinja *j, struct brig_str s, struct brig_str by, int64_t max,
                      struct brig_jv made)
{
    for (; max != 0 && brig_jinja_step(j, 1); max--) {
        const char *found = find_last(s, by);
        if (found == NULL)
            break;
        brig_jinja_step(j, (size_t)(s.ptr + s.len - found) / 16);
        push(j, made, found + by.len, s.ptr + s.len);
        s.len = (size_t)(found - s.ptr);
    }
    push(j, made, s.ptr, s.ptr + s.len);
    reverse_list(made.list);
}

static struct brig_jv split_side(struct brig_jinja *j, struct brig_jv self, const struct brig_jargs *args,
                                 bool right)
{
    struct brig_jv made = brig_jv_list(j, BRIG_JV_LIST);
    int64_t max = brig_jarg_int(j, args->a[1], -1);
    if (j->failed)
        return made;
    if (!given(args->a[0])) {
        (right ? rsplit_spaces : split_spaces)(j, self.s, max, made);
        return made;
    }
    struct brig_str by = brig_jarg_only_str(j, args->a[0]);
    if (j->failed || by.len == 0)
        return brig_jinja_fail(j, BRIG_JINJA_VALUE, "empty separator");
    (right ? rsplit_at : split_at)(j, self.s, by, max, made);
    return made;
}

METHOD(split)
{
    return split_side(j, self, args, false);
}

METHOD(rsplit)
{
    return split_side(j, self, args, true);
}

METHOD(splitlines)
{
    struct brig_jv made = brig_jv_list(j, BRIG_JV_LIST);
    struct brig_str rest = self.s, line;
    while (brig_jinja_line(&rest, brig_jarg_bool(args->a[0], false), &line) && brig_jinja_step(j, 1))
        brig_jv_push(j, made.list, string_of(line));
    return made;
}

static struct brig_jv partition_side(struct brig_jinja *j, struct brig_jv self, const struct brig_jargs *args,
                                     bool right)
{
    struct brig_str by = brig_jarg_only_str(j, args->a[0]);
    if (j->failed || by.len == 0)
        return brig_jinja_fail(j, BRIG_JINJA_VALUE, "empty separator");
    const char *found = place(j, self.s, by, right), *end = self.s.ptr + self.s.len;
    struct brig_jv made = brig_jv_list(j, BRIG_JV_TUPLE), nothing = brig_jv_text("");
    if (found == NULL) {
        brig_jv_push(j, made.list, right ? nothing : self);
        brig_jv_push(j, made.list, nothing);
        brig_jv_push(j, made.list, right ? self : nothing);
        return made;
    }
    push(j, made, self.s.ptr, found);
    push(j, made, found, found + by.len);
    push(j, made, found + by.len, end);
    return made;
}

METHOD(partition)
{
    return partition_side(j, self, args, false);
}

METHOD(rpartition)
{
    return partition_side(j, self, args, true);
}

METHOD(join)
{
    const struct brig_jlist *items = brig_jv_elements(j, args->a[0]);
    struct brig_buf inner, *outer = brig_jinja_capture(j, &inner);
    for (size_t i = 0; items != NULL && i < items->n && brig_jinja_step(j, 1); i++) {
        struct brig_jv v = items->v[i];
        if (v.kind != BRIG_JV_STR) {
            brig_jinja_fail(j, BRIG_JINJA_TYPE, "sequence item %zu: expected str instance, %s found", i,
                            brig_jv_type_name(v));
            break;
        }
        if (i > 0)
            brig_jinja_put(j, self.s.ptr, self.s.len);
        brig_jinja_put(j, v.s.ptr, v.s.len);
    }
    return brig_jinja_captured(j, &inner, outer);
}

/* ---- padding ---- */

static struct brig_jv pad(struct brig_jinja *j, struct brig_jv self, const struct brig_jargs *args,
                          enum brig_jinja_align side)
{
    struct brig_str fill = {" ", 1};
    if (given(args->a[1]))
        fill = brig_jarg_only_str(j, args->a[1]);
    return brig_jinja_pad(j, self.s, brig_jarg_int(j, args->a[0], 0), fill, side);
}

METHOD(ljust)
{
    return pad(j, self, args, BRIG_JINJA_ALIGN_LEFT);
}

METHOD(rjust)
{
    return pad(j, self, args, BRIG_JINJA_ALIGN_RIGHT);
}

METHOD(center)
{
    return pad(j, self, args, BRIG_JINJA_ALIGN_CENTER);
}

METHOD(zfill)
{
    int64_t width = brig_jarg_int(j, args->a[0], 0);
    bool sign = self.s.len > 0 && (self.s.ptr[0] == '-' || self.s.ptr[0] == '+');
    struct brig_str digits = {self.s.ptr + sign, self.s.len - sign};
    struct brig_jv padded = brig_jinja_pad(j, digits, width > INT64_MIN + 1 ? width - sign : 0,
                                           (struct brig_str){"0", 1}, BRIG_JINJA_ALIGN_RIGHT);
    return sign ? brig_jv_arithmetic(j, BRIG_JOP_ADD, brig_jv_str(self.s.ptr, 1), padded) : padded;
}

/* ---- kinds of characters ---- */

static bool is_letter(utf8proc_category_t c)
{
    return c >= UTF8PROC_CATEGORY_LU && c <= UTF8PROC_CATEGORY_LO;
}

static bool is_decimal(utf8proc_category_t c)
{
    return c == UTF8PROC_CATEGORY_ND;
}

static bool is_numeric(utf8proc_category_t c)
{
    return c >= UTF8PROC_CATEGORY_ND && c <= UTF8PROC_CATEGORY_NO;
}

static bool is_letter_or_number(utf8proc_category_t c)
{
    return is_letter(c) || is_numeric(c);
}

/* There are characters, and all are of the kind. */
static struct brig_jv all(struct brig_str s, bool (*is)(utf8proc_category_t))
{
    size_t at = 0;
    while (at < s.len) {
        size_t n = brig_jinja_char(s.ptr + at, s.len - at);
        if (!is(category(s, at, n)))
            return brig_jv_bool(false);
        at += n;
    }
    return brig_jv_bool(s.len > 0);
}

#define KIND_METHOD(name, value)                                                                             \
    METHOD(name)                                                                                             \
    {                                                                                                        \
        (void)j;                                                                                             \
        (void)args;                                                                                          \
        return value;                                                                                        \
    }

KIND_METHOD(is_all_alpha, all(self.s, is_letter))
KIND_METHOD(is_all_digit, all(self.s, is_decimal))
KIND_METHOD(is_all_numeric, all(self.s, is_numeric))
KIND_METHOD(is_all_alnum, all(self.s, is_letter_or_number))
KIND_METHOD(is_all_space,
            brig_jv_bool(self.s.len > 0 && brig_jinja_strip(self.s, NULL, BRIG_JINJA_LEFT).len == 0))

static struct brig_jv test_case(struct brig_jinja *j, struct brig_jv self, const char *test)
{
    struct brig_jargs none = {0};
    return brig_jfn_call_named(j, true, brig_jv_text(test), self, &none, 0);
}

METHOD(is_all_lower)
{
    (void)args;
    return test_case(j, self, "lower");
}

METHOD(is_all_upper)
{
    (void)args;
    return test_case(j, self, "upper");
}

METHOD(format)
{
    return brig_jv_format(j, self.s, &args->pos, &args->kw);
}

const struct brig_jfn brig_jfn_str_methods[] = {
    {"capitalize", "", capitalize},
    {"casefold", "", lower},
    {"center", "width fillchar?", center},
    {"count", "sub", count},
    {"endswith", "suffix", endswith},
    {"find", "sub", find},
    {"format", "*", format},
    {"index", "sub", str_index},
    {"isalnum", "", is_all_alnum},
    {"isalpha", "", is_all_alpha},
    {"isdecimal", "", is_all_digit},
    {"isdigit", "", is_all_digit},
    {"islower", "", is_all_lower},
    {"isnumeric", "", is_all_numeric},
    {"isspace", "", is_all_space},
    {"isupper", "", is_all_upper},
    {"join", "iterable", join},
    {"ljust", "width fillchar?", ljust},
    {"lower", "", lower},
    {"lstrip", "chars?", lstrip},
    {"partition", "sep", partition},
    {"removeprefix", "prefix", removeprefix},
    {"removesuffix", "suffix", removesuffix},
    {"replace", "old new count?", replace},
    {"rfind", "sub", rfind},
    {"rindex", "sub", str_rindex},
    {"rjust", "width fillchar?", rjust},
    {"rpartition", "sep", rpartition},
    {"rsplit", "sep? maxsplit?", rsplit},
    {"rstrip", "chars?", rstrip},
    {"split", "sep? maxsplit?", split},
    {"splitlines", "keepends?", splitlines},
    {"startswith", "prefix", startswith},
    {"strip", "chars?", strip},
    {"swapcase", "", swapcase},
    {"title", "", title},
    {"upper", "", upper},
    {"zfill", "width", zfill},
    {NULL, NULL, NULL},
};
