/* Normalisers, one after the other, each from one buffer into the other. */
#include "driver/token/normal.h"

#include <utf8proc.h>

#include "driver/token/nfc.h"
#include "driver/token/pattern.h"
#include "driver/token/replace.h"
#include "driver/token/utf8.h"
#include "proto/base/mem.h"

struct brig_normal {
    unsigned n;
    struct brig_step steps[BRIG_MAX_STEPS];
    struct brig_pattern *patterns[BRIG_MAX_STEPS];
    struct brig_buf text[2];
};

int brig_normal_new(struct brig_normal **ret, const struct brig_steps *steps, struct brig_fail *fail)
{
    struct brig_normal *m = brig_alloc(1, sizeof *m);
    int r = 0;
    if (m == NULL)
        return brig_fail_set(fail, BRIG_ENOMEM, "out of memory for a normaliser");
    for (; m->n < steps->n && r == 0; m->n++) {
        m->steps[m->n] = steps->v[m->n];
        if (steps->v[m->n].kind == BRIG_STEP_REPLACE)
            r = brig_pattern_new(&m->patterns[m->n], steps->v[m->n].pattern, steps->v[m->n].regex, fail);
    }
    if (r < 0) {
        brig_normal_free(m);
        return r;
    }
    *ret = m;
    return 0;
}

void brig_normal_free(struct brig_normal *m)
{
    if (m == NULL)
        return;
    for (unsigned i = 0; i < BRIG_MAX_STEPS; i++)
        brig_pattern_free(m->patterns[i]);
    brig_buf_release(&m->text[0]);
    brig_buf_release(&m->text[1]);
    brig_free(m);
}

static bool is_mark(uint32_t c)
{
    utf8proc_category_t k = utf8proc_category((utf8proc_int32_t)c);
    return k == UTF8PROC_CATEGORY_MN || k == UTF8PROC_CATEGORY_MC || k == UTF8PROC_CATEGORY_ME;
}

/* One character in lower case. The only one that becomes two is U+0130. */
static int add_lower(struct brig_buf *out, uint32_t c)
{
    utf8proc_uint8_t bytes[4];
    if (c == 0x130)
        return brig_buf_add(out, "i\xcc\x87", 3);
    utf8proc_ssize_t k = utf8proc_encode_char(utf8proc_tolower((utf8proc_int32_t)c), bytes);
    return brig_buf_add(out, bytes, (size_t)k);
}

static int each_character(enum brig_step_kind kind, const char *text, size_t n, struct brig_buf *out,
                          struct brig_fail *fail)
{
    brig_buf_clear(out);
    int r = brig_buf_reserve(out, n);
    for (size_t i = 0; i < n && r == 0;) {
        int step = brig_utf8_step(text + i, n - i);
        uint32_t c = brig_utf8_code_point(text + i, step);
        if (kind == BRIG_STEP_LOWERCASE)
            r = add_lower(out, c);
        else if (!is_mark(c))
            r = brig_buf_add(out, text + i, (size_t)step);
        i += (size_t)step;
    }
    return r < 0 ? brig_fail_set(fail, (enum brig_err) - r, "out of memory for a text of %zu bytes", n) : 0;
}

static void strip(const struct brig_step *s, const char **text, size_t *n)
{
    while (s->left && *n > 0) {
        int step = brig_utf8_step(*text, *n);
        if (!brig_utf8_is_white(brig_utf8_code_point(*text, step)))
            break;
        *text += step;
        *n -= (size_t)step;
    }
    while (s->right && *n > 0) {
        size_t at = brig_utf8_before(*text, *n);
        if (!brig_utf8_is_white(brig_utf8_code_point(*text + at, (int)(*n - at))))
            break;
        *n = at;
    }
}

static int prepend(struct brig_str content, const char *text, size_t n, struct brig_buf *out,
                   struct brig_fail *fail)
{
    brig_buf_clear(out);
    if (brig_buf_add(out, content.ptr, content.len) < 0 || brig_buf_add(out, text, n) < 0)
        return brig_fail_set(fail, BRIG_ENOMEM, "out of memory for a text of %zu bytes", n);
    return 0;
}

static enum brig_form form_of(enum brig_step_kind kind)
{
    return kind == BRIG_STEP_NFC    ? BRIG_FORM_NFC
           : kind == BRIG_STEP_NFD  ? BRIG_FORM_NFD
           : kind == BRIG_STEP_NFKC ? BRIG_FORM_NFKC
                                    : BRIG_FORM_NFKD;
}

/* One step on *text, into out when it changes. */
static int run_step(const struct brig_step *s, struct brig_pattern *pattern, const char **text, size_t *n,
                    struct brig_buf *out, struct brig_fail *fail)
{
    int r;
    switch (s->kind) {
    case BRIG_STEP_NFC:
    case BRIG_STEP_NFD:
    case BRIG_STEP_NFKC:
    case BRIG_STEP_NFKD:
        return brig_normal_form(form_of(s->kind), *text, *n, out, text, n, fail);
    case BRIG_STEP_STRIP:
        strip(s, text, n);
        return 0;
    case BRIG_STEP_PREPEND:
        r = prepend(s->content, *text, *n, out, fail);
        break;
    case BRIG_STEP_REPLACE:
        r = brig_replace(pattern, s->content, *text, *n, out, fail);
        break;
    case BRIG_STEP_LOWERCASE:
    case BRIG_STEP_STRIP_ACCENTS:
        r = each_character(s->kind, *text, *n, out, fail);
        break;
    default:
        return brig_fail_set(fail, BRIG_EINTERNAL, "step %d is no normaliser", (int)s->kind);
    }
    if (r == 0) {
        *text = out->data;
        *n = out->len;
    }
    return r;
}

int brig_normal_run(struct brig_normal *m, const char *text, size_t n, const char **ret_text, size_t *ret_n,
                    struct brig_fail *fail)
{
    struct brig_buf *from = &m->text[0], *to = &m->text[1];
    for (unsigned i = 0; i < m->n && n > 0; i++) {
        int r = run_step(&m->steps[i], m->patterns[i], &text, &n, to, fail);
        if (r < 0)
            return r;
        if (text == to->data) { /* what is in it now must stay while the next step runs */
            struct brig_buf *swap = from;
            from = to;
            to = swap;
        }
    }
    *ret_text = text;
    *ret_n = n;
    return 0;
}
