/*
 * Added tokens: one array sorted by spelling. A match narrows a range of it byte by byte, so thousands of
 * added tokens with a common beginning cost no more than a few.
 */
#include "driver/token/added.h"

#include <stdlib.h>
#include <string.h>

#include <utf8proc.h>

#include "driver/token/kind.h"
#include "driver/token/rules.h"
#include "driver/token/utf8.h"
#include "proto/base/mem.h"

static int compare(const void *x, const void *y)
{
    const struct brig_added_token *a = x, *b = y;
    size_t shorter = a->spelling.len < b->spelling.len ? a->spelling.len : b->spelling.len;
    int c = memcmp(a->spelling.ptr, b->spelling.ptr, shorter);
    if (c != 0)
        return c;
    if (a->spelling.len != b->spelling.len)
        return a->spelling.len < b->spelling.len ? -1 : 1;
    return a->id < b->id ? -1 : a->id > b->id;
}

static uint8_t flags_of(const struct brig_vocab *v, uint32_t id)
{
    return v->rules != NULL ? v->rules->added[id] : 0;
}

/* User defined, control, or the one for unknown text, which is looked for as control tokens are. */
static bool is_added(const struct brig_vocab *v, uint32_t id, bool normalized)
{
    int32_t type = v->types[id];
    return (type == BRIG_TOKEN_CONTROL || type == BRIG_TOKEN_USER || type == BRIG_TOKEN_UNKNOWN) &&
           v->tokens[id].len > 0 && ((flags_of(v, id) & BRIG_ADDED_NORMALIZED) != 0) == normalized;
}

/* Normalised spellings, one after the other in a->text, which may move while it grows: pointers come last. */
static int normalise(struct brig_added *a, struct brig_normal *normal, struct brig_fail *fail)
{
    for (uint32_t i = 0; i < a->n; i++) {
        struct brig_str s = a->v[i].spelling;
        int r = brig_normal_run(normal, s.ptr, s.len, &s.ptr, &s.len, fail);
        if (r < 0)
            return r;
        if (brig_buf_add(&a->text, s.ptr, s.len) < 0)
            return brig_fail_set(fail, BRIG_ENOMEM, "out of memory for %u added tokens", a->n);
        a->v[i].spelling.len = s.len;
    }
    size_t at = 0;
    for (uint32_t i = 0; i < a->n; i++) {
        a->v[i].spelling.ptr = a->text.data + at;
        at += a->v[i].spelling.len;
    }
    return 0;
}

int brig_added_init(struct brig_added *a, const struct brig_vocab *vocab, bool normalized,
                    struct brig_normal *normal, struct brig_fail *fail)
{
    *a = (struct brig_added){0};
    if (vocab->types == NULL)
        return 0;
    uint32_t n = 0;
    for (uint32_t id = 0; id < vocab->n_tokens; id++)
        n += is_added(vocab, id, normalized);
    a->v = brig_alloc(n, sizeof *a->v);
    if (a->v == NULL)
        return brig_fail_set(fail, BRIG_ENOMEM, "out of memory for %u added tokens", n);
    for (uint32_t id = 0; id < vocab->n_tokens; id++)
        if (is_added(vocab, id, normalized))
            a->v[a->n++] = (struct brig_added_token){.spelling = vocab->tokens[id],
                                                     .id = id,
                                                     .flags = flags_of(vocab, id),
                                                     .control = vocab->types[id] != BRIG_TOKEN_USER};
    int r = normal != NULL ? normalise(a, normal, fail) : 0;
    if (r < 0)
        return r;
    for (uint32_t i = 0; i < a->n; i++)
        if (a->v[i].spelling.len > 0)
            a->first[(unsigned char)a->v[i].spelling.ptr[0]] = true;
    qsort(a->v, a->n, sizeof *a->v, compare);
    return 0;
}

void brig_added_release(struct brig_added *a)
{
    brig_free(a->v);
    brig_buf_release(&a->text);
    *a = (struct brig_added){0};
}

/* The first of [low, high), all alike in their first `depth` bytes, whose byte at depth is at least `least`
 * (a token that ends there comes before all others). */
static uint32_t bound(const struct brig_added *a, uint32_t low, uint32_t high, size_t depth, int least)
{
    while (low < high) {
        uint32_t mid = low + (high - low) / 2;
        struct brig_str t = a->v[mid].spelling;
        int byte = depth < t.len ? (unsigned char)t.ptr[depth] : -1;
        if (byte < least)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

/* The longest added token at the start of text, or NULL. */
static const struct brig_added_token *match(const struct brig_added *a, const char *text, size_t n,
                                            bool control)
{
    uint32_t low = 0, high = a->n;
    const struct brig_added_token *best = NULL;
    for (size_t depth = 0; depth < n; depth++) {
        int byte = (unsigned char)text[depth];
        low = bound(a, low, high, depth, byte);
        high = bound(a, low, high, depth, byte + 1);
        if (low == high)
            break;
        if (a->v[low].spelling.len == depth + 1 && (control || !a->v[low].control))
            best = &a->v[low];
    }
    return best;
}

/* A letter, mark, digit or what joins words, as \w of regular expressions has it. */
static bool is_word(uint32_t c)
{
    switch (utf8proc_category((utf8proc_int32_t)c)) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_PC:
        return true;
    default:
        return c == 0x200c || c == 0x200d || (c >= 0x24b6 && c <= 0x24e9) || (c >= 0x1f130 && c <= 0x1f149) ||
               (c >= 0x1f150 && c <= 0x1f169) ||
               (c >= 0x1f170 && c <= 0x1f189); /* letters that are symbols */
    }
}

static bool is_whole_word(const char *text, size_t n, size_t start, size_t end)
{
    if (start > 0) {
        size_t at = brig_utf8_before(text, start);
        if (is_word(brig_utf8_code_point(text + at, (int)(start - at))))
            return false;
    }
    return end == n || !is_word(brig_utf8_code_point(text + end, brig_utf8_step(text + end, n - end)));
}

/* The white space beside a match that belongs to it; `from` is where the text before it begins. */
static void widen(const char *text, size_t n, size_t from, uint8_t flags, struct brig_added_match *m)
{
    while ((flags & BRIG_ADDED_LSTRIP) != 0 && m->start > from) {
        size_t at = brig_utf8_before(text, m->start);
        if (!brig_utf8_is_white(brig_utf8_code_point(text + at, (int)(m->start - at))))
            break;
        m->start = at;
    }
    while ((flags & BRIG_ADDED_RSTRIP) != 0 && m->end < n) {
        int step = brig_utf8_step(text + m->end, n - m->end);
        if (!brig_utf8_is_white(brig_utf8_code_point(text + m->end, step)))
            break;
        m->end += (size_t)step;
    }
}

bool brig_added_find(const struct brig_added *a, const char *text, size_t n, size_t from, bool control,
                     struct brig_added_match *ret)
{
    for (size_t i = from; i < n && a->n > 0; i++) {
        if (!a->first[(unsigned char)text[i]])
            continue;
        const struct brig_added_token *t = match(a, text + i, n - i, control);
        if (t == NULL)
            continue;
        struct brig_added_match m = {i, i + t->spelling.len, t->id};
        if ((t->flags & BRIG_ADDED_WORD) != 0 && !is_whole_word(text, n, m.start, m.end)) {
            i = m.end - 1;
            continue;
        }
        widen(text, n, from, t->flags, &m);
        *ret = m;
        return true;
    }
    return false;
}
