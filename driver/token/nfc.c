/*
 * Unicode's normal forms with the tables of utf8proc. Its one-call function orders combining marks by
 * swapping neighbours, which takes minutes on a megabyte of marks; so the three steps (decompose, order,
 * compose) are made here, the ordering by counting.
 */
#include "driver/token/nfc.h"

#include <stdbool.h>
#include <string.h>

#include <utf8proc.h>

#include "driver/token/utf8.h"
#include "proto/base/mem.h"
#include "proto/base/size.h"

#define MAX_DECOMPOSITION 32 /* code points of one character; Unicode's maximum is 18 */
#define N_CLASSES         256

/* Every character below U+0300 is in NFC, alone and beside others below it; ASCII is in all forms. */
static bool is_surely_normal(const char *text, size_t n, enum brig_form form)
{
    unsigned char least = form == BRIG_FORM_NFC ? 0xcc : 0x80;
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)text[i] >= least)
            return false;
    return true;
}

static utf8proc_option_t options_of(enum brig_form form)
{
    bool compat = form == BRIG_FORM_NFKC || form == BRIG_FORM_NFKD;
    bool compose = form == BRIG_FORM_NFC || form == BRIG_FORM_NFKC;
    return UTF8PROC_STABLE | (compose ? UTF8PROC_COMPOSE : UTF8PROC_DECOMPOSE) |
           (compat ? UTF8PROC_COMPAT : 0);
}

struct points {
    utf8proc_int32_t *v;
    size_t n;
    utf8proc_int32_t *spare; /* for ordering, as long as v */
};

/* A first pass with v NULL counts. */
static size_t decompose(const char *text, size_t n, utf8proc_option_t options, utf8proc_int32_t *v)
{
    size_t count = 0;
    for (size_t i = 0; i < n;) {
        int step = brig_utf8_step(text + i, n - i);
        utf8proc_int32_t c = (utf8proc_int32_t)brig_utf8_code_point(text + i, step);
        utf8proc_int32_t parts[MAX_DECOMPOSITION];
        int last_class = 0;
        utf8proc_ssize_t k = utf8proc_decompose_char(c, parts, MAX_DECOMPOSITION, options, &last_class);
        if (k < 1 || k > MAX_DECOMPOSITION) { /* not a character that the tables can treat: kept */
            parts[0] = c;
            k = 1;
        }
        if (v != NULL)
            memcpy(v + count, parts, (size_t)k * sizeof *v);
        count += (size_t)k;
        i += (size_t)step;
    }
    return count;
}

static unsigned class_of(utf8proc_int32_t c)
{
    return (unsigned)utf8proc_get_property(c)->combining_class % N_CLASSES;
}

/* Stable order of v[n] by combining class: short runs by insertion, long ones by counting. */
static void order_run(utf8proc_int32_t *v, size_t n, utf8proc_int32_t *spare)
{
    if (n <= 16) {
        for (size_t i = 1; i < n; i++)
            for (size_t j = i; j > 0 && class_of(v[j - 1]) > class_of(v[j]); j--) {
                utf8proc_int32_t swap = v[j];
                v[j] = v[j - 1];
                v[j - 1] = swap;
            }
        return;
    }
    size_t place[N_CLASSES + 1] = {0};
    for (size_t i = 0; i < n; i++)
        place[class_of(v[i]) + 1]++;
    for (unsigned c = 0; c < N_CLASSES; c++)
        place[c + 1] += place[c];
    for (size_t i = 0; i < n; i++)
        spare[place[class_of(v[i])]++] = v[i];
    memcpy(v, spare, n * sizeof *v);
}

static void order(struct points *p)
{
    for (size_t i = 0; i < p->n;) {
        size_t end = i;
        while (end < p->n && class_of(p->v[end]) != 0)
            end++;
        order_run(p->v + i, end - i, p->spare);
        i = end + 1;
    }
}

static int encode(const struct points *p, struct brig_buf *out)
{
    for (size_t i = 0; i < p->n; i++) {
        utf8proc_uint8_t bytes[4];
        utf8proc_ssize_t k = utf8proc_encode_char(p->v[i], bytes);
        int r = brig_buf_add(out, bytes, (size_t)k);
        if (r < 0)
            return r;
    }
    return 0;
}

int brig_normal_form(enum brig_form form, const char *text, size_t n, struct brig_buf *out,
                     const char **ret_text, size_t *ret_n, struct brig_fail *fail)
{
    if (is_surely_normal(text, n, form)) {
        *ret_text = text;
        *ret_n = n;
        return 0;
    }
    utf8proc_option_t options = options_of(form);
    brig_buf_clear(out);
    struct points p = {.n = decompose(text, n, options, NULL)};
    p.v = brig_alloc(p.n, sizeof *p.v);
    p.spare = brig_alloc(p.n, sizeof *p.spare);
    int r = -BRIG_ENOMEM;
    if (p.v != NULL && p.spare != NULL) {
        decompose(text, n, options, p.v);
        order(&p);
        utf8proc_ssize_t k = (utf8proc_ssize_t)p.n;
        if ((options & UTF8PROC_COMPOSE) != 0)
            k = utf8proc_normalize_utf32(p.v, k, options);
        p.n = k > 0 ? (size_t)k : 0;
        r = k < 0 ? -BRIG_EINTERNAL : encode(&p, out);
    }
    brig_free(p.v);
    brig_free(p.spare);
    if (r < 0)
        return brig_fail_set(fail, (enum brig_err) - r, "normalising a text of %zu bytes: %s", n,
                             brig_err_text(-r));
    *ret_text = out->data;
    *ret_n = out->len;
    return 0;
}

int brig_nfc(const char *text, size_t n, struct brig_buf *out, const char **ret_text, size_t *ret_n,
             struct brig_fail *fail)
{
    return brig_normal_form(BRIG_FORM_NFC, text, n, out, ret_text, ret_n, fail);
}
