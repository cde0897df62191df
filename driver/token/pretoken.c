/* Pre-tokenizers: the table, and PCRE2 with limits, so that no text makes a pattern run away. */
#include "driver/token/pretoken.h"

#include <stdint.h>
#include <string.h>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "driver/token/nfc.h"
#include "driver/token/tokenizer.h"
#include "proto/base/mem.h"

#define MAX_PATTERNS   2
#define HEAP_LIMIT_KIB 65536u
#define MATCH_LIMIT    10000000u

/* Unicode's White_Space, inside a class. PCRE2's own \s also has U+180E. */
#define WHITE                                                                                                \
    "\\x{09}-\\x{0d}\\x{20}\\x{85}\\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{202f}\\x{205f}"   \
    "\\x{3000}"

struct row {
    const char *name;
    bool nfc, whole_first;
    const char *patterns[MAX_PATTERNS];
    const char *help;
};

static const struct row rows[] = {
#define BRIG_PRETOKEN(name, nfc, whole_first, first, second, help)                                           \
    {name, nfc, whole_first, {first, second}, help},
#include "driver/token/pretoken.def"
#undef BRIG_PRETOKEN
};
#define N_ROWS (sizeof rows / sizeof rows[0])

struct brig_pretoken {
    const struct row *row;
    unsigned n_patterns;
    pcre2_code *code[MAX_PATTERNS];
    pcre2_match_data *match[MAX_PATTERNS]; /* one each: a split runs inside another */
    pcre2_match_context *limits;
};

const char *brig_pretokenizer_at(unsigned i, const char **help)
{
    if (i >= N_ROWS)
        return NULL;
    if (help != NULL)
        *help = rows[i].help;
    return rows[i].name;
}

static const struct row *find(struct brig_str kind)
{
    for (size_t i = 0; i < N_ROWS; i++)
        if (brig_str_eq(kind, rows[i].name))
            return &rows[i];
    return NULL;
}

static int fail_unknown(struct brig_str kind, struct brig_fail *fail)
{
    struct brig_buf known = {0};
    for (size_t i = 0; i < N_ROWS; i++)
        if (brig_buf_printf(&known, "%s%s", i == 0 ? "" : ", ", rows[i].name) < 0)
            break;
    const char *list = known.data != NULL ? known.data : "";
    int r;
    if (kind.len == 0)
        r = brig_fail_set(
            fail, BRIG_EUNSUPPORTED,
            "the model does not say which pre-tokenizer it needs; --pre KIND says it (known: %s)", list);
    else
        r = brig_fail_set(fail, BRIG_EUNSUPPORTED,
                          "unknown pre-tokenizer '%.*s'; --pre KIND uses another (known: %s)",
                          (int)(kind.len < 64 ? kind.len : 64), kind.ptr, list);
    brig_buf_release(&known);
    return r;
}

/* The pattern as PCRE2 gets it: \s and \S spelt out. */
static int expand(const char *pattern, struct brig_buf *out)
{
    bool in_class = false;
    int r = 0;
    for (const char *c = pattern; *c != '\0' && r == 0; c++) {
        if (c[0] == '\\' && c[1] == 's')
            r = brig_buf_printf(out, in_class ? "%s" : "[%s]", WHITE);
        else if (c[0] == '\\' && c[1] == 'S')
            r = brig_buf_printf(out, "[^%s]", WHITE);
        else if (c[0] == '\\')
            r = brig_buf_add(out, c, 2);
        else
            r = brig_buf_add(out, c, 1);
        if (c[0] == '\\')
            c++;
        else if (*c == '[' || *c == ']')
            in_class = *c == '[';
    }
    return r;
}

static int compile(struct brig_pretoken *p, const char *pattern, struct brig_fail *fail)
{
    struct brig_buf text = {0};
    int r = expand(pattern, &text);
    if (r < 0) {
        brig_buf_release(&text);
        return brig_fail_set(fail, (enum brig_err) - r, "out of memory for a pattern");
    }
    int err = 0;
    PCRE2_SIZE at = 0;
    unsigned i = p->n_patterns;
    /* Anchored here and not at the match: there it would switch the compiled code off. */
    p->code[i] = pcre2_compile((PCRE2_SPTR)text.data, text.len, PCRE2_UTF | PCRE2_UCP | PCRE2_ANCHORED, &err,
                               &at, NULL);
    brig_buf_release(&text);
    if (p->code[i] == NULL)
        return brig_fail_set(fail, BRIG_EINTERNAL, "pattern of pre-tokenizer '%s': PCRE2 error %d at %zu",
                             p->row->name, err, (size_t)at);
    p->n_patterns++;
    /* Where memory may not be executable this fails, and the interpreter does the same work slower. */
    (void)pcre2_jit_compile(p->code[i], PCRE2_JIT_COMPLETE);
    p->match[i] = pcre2_match_data_create(1, NULL);
    if (p->match[i] == NULL)
        return brig_fail_set(fail, BRIG_ENOMEM, "out of memory for a pattern");
    return 0;
}

int brig_pretoken_new(struct brig_pretoken **ret, struct brig_str kind, struct brig_fail *fail)
{
    const struct row *row = find(kind);
    if (row == NULL)
        return fail_unknown(kind, fail);
    struct brig_pretoken *p = brig_alloc(1, sizeof *p);
    if (p == NULL)
        return brig_fail_set(fail, BRIG_ENOMEM, "out of memory for a pre-tokenizer");
    p->row = row;
    p->limits = pcre2_match_context_create(NULL);
    int r = 0;
    if (p->limits == NULL)
        r = brig_fail_set(fail, BRIG_ENOMEM, "out of memory for a pre-tokenizer");
    for (unsigned i = 0; i < MAX_PATTERNS && row->patterns[i] != NULL && r == 0; i++)
        r = compile(p, row->patterns[i], fail);
    if (r < 0) {
        brig_pretoken_free(p);
        return r;
    }
    pcre2_set_heap_limit(p->limits, HEAP_LIMIT_KIB);
    *ret = p;
    return 0;
}

void brig_pretoken_free(struct brig_pretoken *p)
{
    if (p == NULL)
        return;
    for (unsigned i = 0; i < MAX_PATTERNS; i++) {
        pcre2_code_free(p->code[i]);
        pcre2_match_data_free(p->match[i]);
    }
    pcre2_match_context_free(p->limits);
    brig_free(p);
}

bool brig_pretoken_whole_first(const struct brig_pretoken *p)
{
    return p->row->whole_first;
}

int brig_pretoken_normalise(const struct brig_pretoken *p, const char *text, size_t n, struct brig_buf *out,
                            const char **ret_text, size_t *ret_n, struct brig_fail *fail)
{
    if (p->row->nfc)
        return brig_nfc(text, n, out, ret_text, ret_n, fail);
    *ret_text = text;
    *ret_n = n;
    return 0;
}

static int fail_match(const struct brig_pretoken *p, int err, size_t at, struct brig_fail *fail)
{
    PCRE2_UCHAR words[160] = "";
    (void)pcre2_get_error_message(err, words, sizeof words);
    return brig_fail_set(fail, BRIG_ELIMIT, "pre-tokenizer '%s' gave up at byte %zu of the text: %s",
                         p->row->name, at, (const char *)words);
}

static int split(struct brig_pretoken *p, unsigned level, const char *text, size_t n, brig_pretoken_fn fn,
                 void *ctx, struct brig_fail *fail)
{
    if (level == p->n_patterns)
        return fn(ctx, text, n, fail);
    for (size_t at = 0; at < n;) {
        int k = pcre2_match(p->code[level], (PCRE2_SPTR)text, n, at, PCRE2_NO_UTF_CHECK, p->match[level],
                            p->limits);
        if (k < 0)
            return fail_match(p, k, at, fail);
        size_t end = pcre2_get_ovector_pointer(p->match[level])[1];
        if (end <= at || end > n)
            return fail_match(p, PCRE2_ERROR_NOMATCH, at, fail);
        int r = split(p, level + 1, text + at, end - at, fn, ctx, fail);
        if (r < 0)
            return r;
        at = end;
    }
    return 0;
}

int brig_pretoken_split(struct brig_pretoken *p, const char *text, size_t n, brig_pretoken_fn fn, void *ctx,
                        struct brig_fail *fail)
{
    /* A pattern backs up over a run of white space once or twice: in proportion to the text, never more. */
    uint64_t limit = (uint64_t)n * 16 > MATCH_LIMIT ? (uint64_t)n * 16 : MATCH_LIMIT;
    pcre2_set_match_limit(p->limits, limit < UINT32_MAX ? (uint32_t)limit : UINT32_MAX);
    return split(p, 0, text, n, fn, ctx, fail);
}
