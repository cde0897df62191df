/* Pre-tokenizers: the table, and the walk of a text through the steps. */
#include "driver/token/pretoken.h"

#include <string.h>

#include "driver/token/nfc.h"
#include "driver/token/pattern.h"
#include "driver/token/replace.h"
#include "driver/token/tokenizer.h"
#include "proto/base/mem.h"

#define MAX_PATTERNS 2

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
    const struct row *row; /* NULL: made from steps */
    unsigned n;
    struct {
        struct brig_step step;
        struct brig_pattern *pattern;
        struct brig_buf text; /* the piece as the step has changed it */
    } v[BRIG_MAX_STEPS];
};

/* One text on its way through the steps. */
struct walk {
    struct brig_pretoken *p;
    brig_pretoken_fn fn;
    void *ctx;
    struct brig_fail *fail;
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

const char *brig_pretoken_pattern(const char *row)
{
    return find((struct brig_str){row, strlen(row)})->patterns[0];
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

static int add_step(struct brig_pretoken *p, const struct brig_step *step, struct brig_fail *fail)
{
    if (p->n == BRIG_MAX_STEPS)
        return brig_fail_set(fail, BRIG_ELIMIT, "more than %u pre-tokenizers in a row", BRIG_MAX_STEPS);
    p->v[p->n].step = *step;
    if (step->kind != BRIG_STEP_PREFIX && step->kind != BRIG_STEP_PREPEND) {
        int r = brig_pattern_new(&p->v[p->n].pattern, step->pattern, step->regex, fail);
        if (r < 0)
            return r;
    }
    p->n++;
    return 0;
}

int brig_pretoken_from_steps(struct brig_pretoken **ret, const struct brig_steps *steps,
                             struct brig_fail *fail)
{
    struct brig_pretoken *p = brig_alloc(1, sizeof *p);
    if (p == NULL)
        return brig_fail_set(fail, BRIG_ENOMEM, "out of memory for a pre-tokenizer");
    int r = 0;
    for (unsigned i = 0; i < steps->n && r == 0; i++)
        if (steps->v[i].kind != BRIG_STEP_BYTES)
            r = add_step(p, &steps->v[i], fail);
    if (r < 0) {
        brig_pretoken_free(p);
        return r;
    }
    *ret = p;
    return 0;
}

int brig_pretoken_new(struct brig_pretoken **ret, struct brig_str kind, struct brig_fail *fail)
{
    const struct row *row = find(kind);
    if (row == NULL)
        return fail_unknown(kind, fail);
    struct brig_steps steps = {0};
    for (unsigned i = 0; i < MAX_PATTERNS && row->patterns[i] != NULL; i++)
        steps.v[steps.n++] = (struct brig_step){.kind = BRIG_STEP_SPLIT,
                                                .behaviour = BRIG_SPLIT_ISOLATED,
                                                .regex = true,
                                                .pattern = {row->patterns[i], strlen(row->patterns[i])}};
    int r = brig_pretoken_from_steps(ret, &steps, fail);
    if (r == 0)
        (*ret)->row = row;
    return r;
}

void brig_pretoken_free(struct brig_pretoken *p)
{
    if (p == NULL)
        return;
    for (unsigned i = 0; i < BRIG_MAX_STEPS; i++) {
        brig_pattern_free(p->v[i].pattern);
        brig_buf_release(&p->v[i].text);
    }
    brig_free(p);
}

bool brig_pretoken_whole_first(const struct brig_pretoken *p)
{
    return p->row != NULL && p->row->whole_first;
}

int brig_pretoken_normalise(const struct brig_pretoken *p, const char *text, size_t n, struct brig_buf *out,
                            const char **ret_text, size_t *ret_n, struct brig_fail *fail)
{
    if (p->row != NULL && p->row->nfc)
        return brig_nfc(text, n, out, ret_text, ret_n, fail);
    *ret_text = text;
    *ret_n = n;
    return 0;
}

static int walk(const struct walk *w, unsigned level, const char *text, size_t n, bool at_start);

/* A piece that may still grow: a match waits for its neighbour. */
struct pending {
    size_t start, end;
    bool any, match;
};

/* Does [.., end) of a kind belong to the piece that waits? */
static bool joins(enum brig_split behaviour, const struct pending *p, bool match, bool before_match)
{
    switch (behaviour) {
    case BRIG_SPLIT_CONTIGUOUS:
        return p->match == match;
    case BRIG_SPLIT_MERGED_WITH_PREVIOUS:
        return match && !before_match;
    case BRIG_SPLIT_MERGED_WITH_NEXT:
        return p->match && !match;
    case BRIG_SPLIT_REMOVED:
    case BRIG_SPLIT_ISOLATED:
        break;
    }
    return false;
}

static int give(const struct walk *w, unsigned level, const char *text, bool at_start, struct pending *p)
{
    bool gone = p->match && w->p->v[level].step.behaviour == BRIG_SPLIT_REMOVED;
    int r = 0;
    if (p->any && !gone)
        r = walk(w, level + 1, text + p->start, p->end - p->start, at_start && p->start == 0);
    p->any = false;
    return r;
}

/* The next run of text, a match or what lies between two. *before_match: the run before it was one. */
static int take(const struct walk *w, unsigned level, const char *text, bool at_start, size_t start,
                size_t end, bool match, struct pending *p, bool *before_match)
{
    const struct brig_step *s = &w->p->v[level].step;
    match = match != s->invert;
    int r = 0;
    if (p->any && joins(s->behaviour, p, match, *before_match)) {
        p->end = end;
        p->match = p->match && match;
    } else {
        r = give(w, level, text, at_start, p);
        *p = (struct pending){start, end, true, match};
    }
    *before_match = match;
    return r;
}

static int split(const struct walk *w, unsigned level, const char *text, size_t n, bool at_start)
{
    struct pending p = {0};
    bool before_match = false;
    for (size_t at = 0; at < n;) {
        size_t start = n, end = n;
        int found = brig_pattern_find(w->p->v[level].pattern, text, n, at, &start, &end, w->fail);
        int r = found < 0 ? found : 0;
        if (r == 0 && start > at)
            r = take(w, level, text, at_start, at, start, false, &p, &before_match);
        if (r == 0 && end > start)
            r = take(w, level, text, at_start, start, end, true, &p, &before_match);
        if (r < 0)
            return r;
        at = end;
    }
    return give(w, level, text, at_start, &p);
}

static int prefix(const struct walk *w, unsigned level, const char *text, size_t n, bool at_start)
{
    const struct brig_step *s = &w->p->v[level].step;
    struct brig_buf *b = &w->p->v[level].text;
    struct brig_str c = s->content;
    bool there = s->kind == BRIG_STEP_PREFIX && n >= c.len && memcmp(text, c.ptr, c.len) == 0;
    if ((s->first && !at_start) || there)
        return walk(w, level + 1, text, n, at_start);
    brig_buf_clear(b);
    if (brig_buf_add(b, c.ptr, c.len) < 0 || brig_buf_add(b, text, n) < 0)
        return brig_fail_set(w->fail, BRIG_ENOMEM, "out of memory for a text of %zu bytes", n);
    return walk(w, level + 1, b->data, b->len, at_start);
}

static int walk(const struct walk *w, unsigned level, const char *text, size_t n, bool at_start)
{
    struct brig_pretoken *p = w->p;
    if (n == 0)
        return 0;
    if (level == p->n)
        return w->fn(w->ctx, text, n, w->fail);
    if (p->v[level].step.kind == BRIG_STEP_SPLIT)
        return split(w, level, text, n, at_start);
    if (p->v[level].step.kind == BRIG_STEP_PREFIX || p->v[level].step.kind == BRIG_STEP_PREPEND)
        return prefix(w, level, text, n, at_start);
    struct brig_buf *b = &p->v[level].text;
    int r = brig_replace(p->v[level].pattern, p->v[level].step.content, text, n, b, w->fail);
    return r < 0 ? r : walk(w, level + 1, b->data, b->len, at_start);
}

int brig_pretoken_split(struct brig_pretoken *p, const char *text, size_t n, bool at_start,
                        brig_pretoken_fn fn, void *ctx, struct brig_fail *fail)
{
    const struct walk w = {p, fn, ctx, fail};
    return walk(&w, 0, text, n, at_start);
}
