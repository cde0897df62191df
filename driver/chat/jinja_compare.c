/* Equality, order, membership, sorting. */
#include <string.h>

#include "driver/chat/jinja_op.h"

static bool equal_lists(struct brig_jinja *j, const struct brig_jlist *a, const struct brig_jlist *b)
{
    bool same = a->n == b->n;
    for (size_t i = 0; i < a->n && same; i++)
        same = brig_jv_equal(j, a->v[i], b->v[i]);
    return same;
}

static bool equal_dicts(struct brig_jinja *j, const struct brig_jdict *a, const struct brig_jdict *b)
{
    bool same = a->n == b->n;
    for (size_t i = 0; i < a->n && same; i++) {
        const struct brig_jv *other = brig_jv_find(j, b, a->v[i].key);
        same = other != NULL && brig_jv_equal(j, a->v[i].value, *other);
    }
    return same;
}

static bool equal_same_kind(struct brig_jinja *j, struct brig_jv a, struct brig_jv b)
{
    switch ((enum brig_jv_kind)a.kind) {
    case BRIG_JV_UNDEFINED:
    case BRIG_JV_ABSENT:
    case BRIG_JV_NONE:
        return true;
    case BRIG_JV_STR:
        return a.s.len == b.s.len && memcmp(a.s.ptr, b.s.ptr, a.s.len) == 0;
    case BRIG_JV_LIST:
    case BRIG_JV_TUPLE:
    case BRIG_JV_VIEW:
        return a.list == b.list || equal_lists(j, a.list, b.list);
    case BRIG_JV_DICT:
        return a.dict == b.dict || equal_dicts(j, a.dict, b.dict);
    case BRIG_JV_RANGE:
        return a.range->n == b.range->n && (a.range->n == 0 || a.range->start == b.range->start) &&
               (a.range->n < 2 || a.range->step == b.range->step);
    default:
        return a.list == b.list; /* the same thing */
    }
}

bool brig_jv_equal(struct brig_jinja *j, struct brig_jv a, struct brig_jv b)
{
    if (brig_jv_is_number(a) && brig_jv_is_number(b)) {
        if (a.kind != BRIG_JV_FLOAT && b.kind != BRIG_JV_FLOAT)
            return brig_jv_as_int(a) == brig_jv_as_int(b);
        return brig_jv_as_float(a) == brig_jv_as_float(b);
    }
    if (a.kind != b.kind || !brig_jinja_enter(j))
        return false;
    bool same = brig_jinja_step(j, a.kind == BRIG_JV_STR ? a.s.len / 256 : 0) && equal_same_kind(j, a, b);
    brig_jinja_leave(j);
    return same;
}

/* <0, 0, >0; op is for the words of a failure. NaN is not less than anything, and that is told by *unordered.
 */
static int order(struct brig_jinja *j, enum brig_jop op, struct brig_jv a, struct brig_jv b, bool *unordered);

static int order_lists(struct brig_jinja *j, enum brig_jop op, const struct brig_jlist *a,
                       const struct brig_jlist *b, bool *unordered)
{
    size_t n = a->n < b->n ? a->n : b->n;
    for (size_t i = 0; i < n && !j->failed; i++)
        if (!brig_jv_equal(j, a->v[i], b->v[i]))
            return order(j, op, a->v[i], b->v[i], unordered);
    return a->n < b->n ? -1 : a->n > b->n;
}

static int order_numbers(struct brig_jv a, struct brig_jv b, bool *unordered)
{
    if (a.kind != BRIG_JV_FLOAT && b.kind != BRIG_JV_FLOAT) {
        int64_t x = brig_jv_as_int(a), y = brig_jv_as_int(b);
        return x < y ? -1 : x > y;
    }
    double x = brig_jv_as_float(a), y = brig_jv_as_float(b);
    *unordered = !(x < y) && !(x > y) && !(x == y);
    return x < y ? -1 : x > y;
}

static int order(struct brig_jinja *j, enum brig_jop op, struct brig_jv a, struct brig_jv b, bool *unordered)
{
    int r = 0;
    if (!brig_jinja_enter(j))
        return 0;
    if (brig_jv_is_number(a) && brig_jv_is_number(b)) {
        r = order_numbers(a, b, unordered);
    } else if (a.kind == BRIG_JV_STR && b.kind == BRIG_JV_STR) {
        size_t n = a.s.len < b.s.len ? a.s.len : b.s.len;
        r = brig_jinja_step(j, n / 256) ? memcmp(a.s.ptr, b.s.ptr, n) : 0;
        r = r != 0 ? r : a.s.len < b.s.len ? -1 : a.s.len > b.s.len;
    } else if (brig_jv_is_sequence(a) && a.kind == b.kind) {
        r = order_lists(j, op, a.list, b.list, unordered);
    } else if (a.kind == BRIG_JV_UNDEFINED || b.kind == BRIG_JV_UNDEFINED) {
        brig_jinja_fail_undefined(j, a.kind == BRIG_JV_UNDEFINED ? a : b);
    } else {
        brig_jinja_fail(j, BRIG_JINJA_TYPE, "'%s' not supported between instances of '%s' and '%s'",
                        brig_jop_spelling(op), brig_jv_type_name(a), brig_jv_type_name(b));
    }
    brig_jinja_leave(j);
    return r;
}

static bool contains(struct brig_jinja *j, struct brig_jv in, struct brig_jv v)
{
    if (in.kind == BRIG_JV_STR) {
        if (v.kind == BRIG_JV_UNDEFINED || v.kind != BRIG_JV_STR) {
            brig_jinja_fail(j, BRIG_JINJA_TYPE, "'in <string>' requires string as left operand, not %s",
                            brig_jv_type_name(v));
            return false;
        }
        return brig_jinja_step(j, in.s.len / 256) && memmem(in.s.ptr, in.s.len, v.s.ptr, v.s.len) != NULL;
    }
    if (in.kind == BRIG_JV_DICT) {
        if (!brig_jv_hashable(j, v)) {
            brig_jinja_fail(j, BRIG_JINJA_TYPE, "unhashable type: '%s'", brig_jv_type_name(v));
            return false;
        }
        return brig_jv_find(j, in.dict, v) != NULL;
    }
    const struct brig_jlist *list = brig_jv_elements(j, in);
    for (size_t i = 0; list != NULL && i < list->n && brig_jinja_step(j, 1); i++)
        if (brig_jv_equal(j, list->v[i], v))
            return true;
    return false;
}

bool brig_jv_compare(struct brig_jinja *j, enum brig_jop op, struct brig_jv a, struct brig_jv b)
{
    bool unordered = false;
    int r;
    switch (op) {
    case BRIG_JOP_EQ:
        return brig_jv_equal(j, a, b);
    case BRIG_JOP_NE:
        return !brig_jv_equal(j, a, b);
    case BRIG_JOP_IN:
        return contains(j, b, a);
    case BRIG_JOP_NOT_IN:
        return !contains(j, b, a);
    default:
        r = order(j, op, a, b, &unordered);
    }
    if (unordered)
        return false;
    return op == BRIG_JOP_LT ? r < 0 : op == BRIG_JOP_LE ? r <= 0 : op == BRIG_JOP_GT ? r > 0 : r >= 0;
}

struct sorted {
    struct brig_jv key, item;
};

static bool before(struct brig_jinja *j, const struct sorted *a, const struct sorted *b, bool reverse)
{
    return reverse ? brig_jv_compare(j, BRIG_JOP_LT, b->key, a->key)
                   : brig_jv_compare(j, BRIG_JOP_LT, a->key, b->key);
}

/* Merge the two sorted halves of v[n], cut at `mid`, through spare[n]. */
static void merge(struct brig_jinja *j, struct sorted *v, size_t mid, size_t n, struct sorted *spare,
                  bool reverse)
{
    size_t a = 0, b = mid, i = 0;
    memcpy(spare, v, n * sizeof *v);
    while (a < mid && b < n && !j->failed)
        v[i++] = before(j, &spare[b], &spare[a], reverse) ? spare[b++] : spare[a++];
    while (a < mid && i < n)
        v[i++] = spare[a++];
    while (b < n && i < n)
        v[i++] = spare[b++];
}

/* Bottom up: runs of 1, 2, 4 ... */
void brig_jv_sort(struct brig_jinja *j, struct brig_jlist *items, struct brig_jlist *keys, bool reverse)
{
    size_t n = items->n;
    struct sorted *v = brig_jinja_alloc(j, n, sizeof *v), *spare = brig_jinja_alloc(j, n, sizeof *v);
    if (v == NULL || spare == NULL)
        return;
    for (size_t i = 0; i < n; i++)
        v[i] = (struct sorted){keys->v[i], items->v[i]};
    for (size_t run = 1; run < n && !j->failed; run *= 2)
        for (size_t at = 0; at + run < n && brig_jinja_step(j, 1); at += 2 * run)
            merge(j, v + at, run, n - at < 2 * run ? n - at : 2 * run, spare, reverse);
    for (size_t i = 0; i < n; i++)
        items->v[i] = v[i].item;
}
