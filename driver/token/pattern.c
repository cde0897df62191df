/* Patterns: PCRE2 with limits, so that no text makes a pattern run away. */
#include "driver/token/pattern.h"

#include <stdint.h>
#include <string.h>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "proto/base/buf.h"
#include "proto/base/mem.h"

#define HEAP_LIMIT_KIB    65536u
#define MATCH_LIMIT       10000000u
#define MAX_PATTERN_BYTES 65536u

/* Unicode's White_Space, inside a class. PCRE2's own \s also has U+180E. */
#define WHITE                                                                                                \
    "\\x{09}-\\x{0d}\\x{20}\\x{85}\\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{202f}\\x{205f}"   \
    "\\x{3000}"
/* PCRE2's own \w has no marks and no letters that are symbols, such as circled ones. */
#define WORD "\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}"

struct brig_pattern {
    struct brig_str text; /* when code is NULL */
    pcre2_code *code;
    pcre2_match_data *match;
    pcre2_match_context *limits;
};

static int fail_dialect(struct brig_str p, const char *what, struct brig_fail *fail)
{
    return brig_fail_set(fail, BRIG_EUNSUPPORTED, "pattern '%.*s': %s is not supported",
                         (int)(p.len < 160 ? p.len : 160), p.ptr, what);
}

/* One escape: classes are spelt out, what means something else to PCRE2 is refused, the rest is kept. */
static int expand_escape(struct brig_str p, size_t at, bool in_class, struct brig_buf *out,
                         struct brig_fail *fail)
{
    char c = at + 1 < p.len ? p.ptr[at + 1] : '\0';
    switch (c) {
    case '\0':
        return fail_dialect(p, "a backslash at the end", fail);
    case 's':
        return brig_buf_printf(out, in_class ? "%s" : "[%s]", WHITE);
    case 'w':
        return brig_buf_printf(out, in_class ? "%s" : "[%s]", WORD);
    case 'S':
    case 'W':
        if (in_class)
            return fail_dialect(p, "\\S or \\W in a class", fail);
        return brig_buf_printf(out, "[^%s]", c == 'S' ? WHITE : WORD);
    case 'h':
    case 'H':
    case 'G':
    case 'K':
    case 'C':
        return fail_dialect(p, "\\h, \\H, \\G, \\K or \\C", fail);
    default:
        return brig_buf_add(out, p.ptr + at, 2);
    }
}

/* Groups that set options: of those only (?i:...) and (?i) mean the same in both dialects. */
static bool is_strange_group(struct brig_str p, size_t at)
{
    if (p.len - at < 3 || p.ptr[at + 1] != '?')
        return false;
    char c = p.ptr[at + 2];
    if (c == 'i')
        return p.len - at < 4 || (p.ptr[at + 3] != ':' && p.ptr[at + 3] != ')');
    return strchr(":=!<>", c) == NULL;
}

/* The pattern as PCRE2 gets it. */
static int expand(struct brig_str p, struct brig_buf *out, struct brig_fail *fail)
{
    bool in_class = false;
    int r = 0;
    for (size_t i = 0; i < p.len && r == 0; i++) {
        char c = p.ptr[i];
        char next = i + 1 < p.len ? p.ptr[i + 1] : '\0';
        if (c == '\\') {
            r = expand_escape(p, i++, in_class, out, fail);
            continue;
        }
        if (in_class && ((c == '[' && next != ':') || (c == '&' && next == '&')))
            return fail_dialect(p, "a class inside a class", fail);
        if (!in_class && c == '(' && is_strange_group(p, i))
            return fail_dialect(p, "an option or a group like this", fail);
        /* {n,m}+ keeps what it took here, and there it does not. */
        if (!in_class && c == '}' && next == '+' && i > 0 && strchr("0123456789,", p.ptr[i - 1]) != NULL)
            return fail_dialect(p, "a repetition of a repetition", fail);
        if (in_class && c == '[') { /* [:name:] */
            const char *end = memchr(p.ptr + i, ']', p.len - i);
            size_t n = end != NULL ? (size_t)(end - (p.ptr + i)) + 1 : p.len - i;
            r = brig_buf_add(out, p.ptr + i, n);
            i += n - 1;
            continue;
        }
        if (c == '[' || c == ']')
            in_class = c == '[';
        r = brig_buf_add(out, &c, 1);
    }
    return r;
}

static int compile(struct brig_pattern *p, struct brig_str text, struct brig_fail *fail)
{
    struct brig_buf full = {0};
    int err = 0, r = expand(text, &full, fail);
    PCRE2_SIZE at = 0;
    if (r == 0) /* ^ and $ match at each line */
        p->code =
            pcre2_compile((PCRE2_SPTR)full.data, full.len,
                          PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C, &err, &at, NULL);
    brig_buf_release(&full);
    if (r < 0)
        return r == -BRIG_EUNSUPPORTED
                   ? r
                   : brig_fail_set(fail, (enum brig_err) - r, "out of memory for a pattern");
    if (p->code == NULL) {
        PCRE2_UCHAR words[120] = "";
        (void)pcre2_get_error_message(err, words, sizeof words);
        return brig_fail_set(fail, BRIG_EUNSUPPORTED, "pattern '%.*s': %s",
                             (int)(text.len < 160 ? text.len : 160), text.ptr, (const char *)words);
    }
    /* Where memory may not be executable this fails, and the interpreter does the same work slower. */
    (void)pcre2_jit_compile(p->code, PCRE2_JIT_COMPLETE);
    p->match = pcre2_match_data_create(1, NULL);
    p->limits = pcre2_match_context_create(NULL);
    if (p->match == NULL || p->limits == NULL)
        return brig_fail_set(fail, BRIG_ENOMEM, "out of memory for a pattern");
    pcre2_set_heap_limit(p->limits, HEAP_LIMIT_KIB);
    return 0;
}

int brig_pattern_new(struct brig_pattern **ret, struct brig_str text, bool regex, struct brig_fail *fail)
{
    if (text.len == 0)
        return brig_fail_set(fail, BRIG_EFORMAT, "a pattern is empty");
    if (text.len > MAX_PATTERN_BYTES)
        return brig_fail_set(fail, BRIG_ELIMIT, "a pattern has %zu bytes, more than %u", text.len,
                             MAX_PATTERN_BYTES);
    struct brig_pattern *p = brig_alloc(1, sizeof *p);
    if (p == NULL)
        return brig_fail_set(fail, BRIG_ENOMEM, "out of memory for a pattern");
    p->text = text;
    int r = regex ? compile(p, text, fail) : 0;
    if (r < 0) {
        brig_pattern_free(p);
        return r;
    }
    *ret = p;
    return 0;
}

void brig_pattern_free(struct brig_pattern *p)
{
    if (p == NULL)
        return;
    pcre2_code_free(p->code);
    pcre2_match_data_free(p->match);
    pcre2_match_context_free(p->limits);
    brig_free(p);
}

static int fail_match(int err, size_t at, struct brig_fail *fail)
{
    PCRE2_UCHAR words[160] = "";
    (void)pcre2_get_error_message(err, words, sizeof words);
    return brig_fail_set(fail, BRIG_ELIMIT, "a pattern of the tokenizer gave up at byte %zu of the text: %s",
                         at, (const char *)words);
}

int brig_pattern_find(struct brig_pattern *p, const char *text, size_t n, size_t from, size_t *ret_start,
                      size_t *ret_end, struct brig_fail *fail)
{
    if (p->code == NULL) {
        const char *found = from < n ? memmem(text + from, n - from, p->text.ptr, p->text.len) : NULL;
        if (found == NULL)
            return 0;
        *ret_start = (size_t)(found - text);
        *ret_end = *ret_start + p->text.len;
        return 1;
    }
    /* A pattern backs up over a run of white space once or twice: in proportion to the text, never more. */
    uint64_t limit = (uint64_t)n * 16 > MATCH_LIMIT ? (uint64_t)n * 16 : MATCH_LIMIT;
    pcre2_set_match_limit(p->limits, limit < UINT32_MAX ? (uint32_t)limit : UINT32_MAX);
    uint32_t options = PCRE2_NO_UTF_CHECK | PCRE2_NOTEMPTY;
    int k = pcre2_match(p->code, (PCRE2_SPTR)text, n, from, options, p->match, p->limits);
    if (k == PCRE2_ERROR_JIT_STACKLIMIT) /* the interpreter's memory grows */
        k = pcre2_match(p->code, (PCRE2_SPTR)text, n, from, options | PCRE2_NO_JIT, p->match, p->limits);
    if (k == PCRE2_ERROR_NOMATCH)
        return 0;
    const PCRE2_SIZE *range = pcre2_get_ovector_pointer(p->match);
    if (k < 0 || range[0] < from || range[1] <= range[0] || range[1] > n)
        return fail_match(k < 0 ? k : PCRE2_ERROR_INTERNAL, from, fail);
    *ret_start = range[0];
    *ret_end = range[1];
    return 1;
}
