/* Spellings, ranks of merges, merging. */
#include "driver/token/bpe.h"

#include <string.h>

#include "driver/token/rules.h"
#include "proto/base/mem.h"

#define MAX_MERGES ((uint32_t)1 << 26)
#define AHEAD      16u
#define BATCH      64u

static bool is_control(const struct brig_vocab *v, uint32_t id)
{
    return v->types != NULL && v->types[id] == BRIG_TOKEN_CONTROL;
}

/* The model itself has this token. */
static bool is_own(const struct brig_vocab *v, uint32_t id)
{
    return v->rules == NULL || v->rules->added == NULL || (v->rules->added[id] & BRIG_ADDED_ONLY) == 0;
}

static int fill_spelling(struct brig_bpe *b, struct brig_fail *fail)
{
    const struct brig_vocab *v = b->vocab;
    if (brig_strmap_init(&b->spelling, v->tokens, v->n_tokens) < 0)
        return brig_fail_set(fail, BRIG_ENOMEM, "out of memory for %u tokens", v->n_tokens);
    for (uint32_t id = 0; id < v->n_tokens; id++) {
        uint32_t old;
        if (id + AHEAD < v->n_tokens)
            brig_strmap_prefetch(&b->spelling, v->tokens[id + AHEAD]);
        if (!is_own(v, id))
            continue;
        /* Of two tokens with one spelling text means the one that is text. */
        if (!brig_strmap_add(&b->spelling, id, &old) && is_control(v, old) && !is_control(v, id))
            brig_strmap_replace(&b->spelling, old, id);
    }
    return 0;
}

static int fail_merge(uint32_t rank, struct brig_str merge, const char *what, struct brig_fail *fail)
{
    return brig_fail_set(fail, BRIG_EFORMAT, "merge %u of the tokenizer ('%.*s') %s", rank,
                         (int)(merge.len < 64 ? merge.len : 64), merge.ptr, what);
}

/* The two parts of a merge. */
static int find_parts(const struct brig_vocab *v, uint32_t rank, struct brig_str ret[2],
                      struct brig_fail *fail)
{
    if (v->pairs != NULL) {
        memcpy(ret, v->pairs[rank], 2 * sizeof *ret);
    } else {
        struct brig_str s = v->merges[rank];
        const char *space = s.len > 1 ? memchr(s.ptr + 1, ' ', s.len - 1) : NULL;
        if (space == NULL)
            return fail_merge(rank, s, "is not two tokens with a space between", fail);
        ret[0] = (struct brig_str){s.ptr, (size_t)(space - s.ptr)};
        ret[1] = (struct brig_str){space + 1, s.len - ret[0].len - 1};
    }
    /* With two parts that are there what is made is longer than each: merges cannot go round. */
    return ret[0].len == 0 || ret[1].len == 0 ? fail_merge(rank, ret[0], "has an empty part", fail) : 0;
}

/* Merges on their way into the maps, many at a time: the maps are larger than the caches. */
struct batch {
    struct brig_str keys[3 * BATCH]; /* left, right and both of each merge */
    uint32_t ids[3 * BATCH];
    struct brig_buf both;
};

static int fill_keys(const struct brig_vocab *v, uint32_t first, uint32_t n, struct batch *t,
                     struct brig_fail *fail)
{
    brig_buf_clear(&t->both);
    for (uint32_t i = 0; i < n; i++) {
        struct brig_str *k = &t->keys[3 * i];
        int r = find_parts(v, first + i, k, fail);
        if (r < 0)
            return r;
        k[2].len = k[0].len + k[1].len;
        if (brig_buf_add(&t->both, k[0].ptr, k[0].len) < 0 || brig_buf_add(&t->both, k[1].ptr, k[1].len) < 0)
            return brig_fail_set(fail, BRIG_ENOMEM, "out of memory for merge %u of the tokenizer", first + i);
    }
    size_t at = 0; /* now that the buffer moves no more */
    for (uint32_t i = 0; i < n; i++) {
        t->keys[3 * i + 2].ptr = t->both.data + at;
        at += t->keys[3 * i + 2].len;
    }
    return 0;
}

static int add_merges(struct brig_bpe *b, uint32_t first, uint32_t n, struct batch *t, struct brig_fail *fail)
{
    int r = fill_keys(b->vocab, first, n, t, fail);
    if (r < 0)
        return r;
    brig_strmap_get_many(&b->spelling, t->keys, 3 * (size_t)n, t->ids);
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t *id = &t->ids[3 * i];
        if (id[0] == BRIG_NO_ID || id[1] == BRIG_NO_ID || id[2] == BRIG_NO_ID)
            return fail_merge(first + i, t->keys[3 * i + 2],
                              "has a part or a result that is not in the vocabulary", fail);
        b->made[first + i] = id[2];
        brig_pairmap_prefetch(&b->ranks, id[0], id[1]);
    }
    for (uint32_t i = 0; i < n; i++)
        brig_pairmap_add(&b->ranks, t->ids[3 * i], t->ids[3 * i + 1], first + i);
    return 0;
}

static int fill_merges(struct brig_bpe *b, struct brig_fail *fail)
{
    uint32_t n = b->vocab->n_merges;
    if (n > MAX_MERGES)
        return brig_fail_set(fail, BRIG_ELIMIT, "the tokenizer has %u merges, more than %u", n, MAX_MERGES);
    b->made = brig_alloc(n, sizeof *b->made);
    if (b->made == NULL || brig_pairmap_init(&b->ranks, n) < 0)
        return brig_fail_set(fail, BRIG_ENOMEM, "out of memory for %u merges", n);
    struct batch t = {.both = {0}};
    int r = 0;
    for (uint32_t first = 0; first < n && r == 0; first += BATCH)
        r = add_merges(b, first, n - first < BATCH ? n - first : BATCH, &t, fail);
    brig_buf_release(&t.both);
    return r;
}

int brig_bpe_init(struct brig_bpe *b, const struct brig_vocab *vocab, struct brig_fail *fail)
{
    *b = (struct brig_bpe){.vocab = vocab};
    int r = fill_spelling(b, fail);
    return r < 0 ? r : fill_merges(b, fail);
}

void brig_bpe_release(struct brig_bpe *b)
{
    brig_strmap_release(&b->spelling);
    brig_pairmap_release(&b->ranks);
    brig_merge_release(&b->merge);
    brig_free(b->made);
    *b = (struct brig_bpe){0};
}

int brig_bpe_add(struct brig_ids *ids, uint32_t id, struct brig_fail *fail)
{
    int r = brig_ids_add(ids, id);
    return r == 0 ? 0 : brig_fail_set(fail, (enum brig_err) - r, "out of memory for token ids");
}

static uint32_t rank_of_pair(const void *ctx, const struct brig_merge *m, uint32_t i, uint32_t right)
{
    const struct brig_bpe *b = ctx;
    return brig_pairmap_get(&b->ranks, m->ids[i], m->ids[right]);
}

int brig_bpe_run(struct brig_bpe *b, size_t n, struct brig_ids *ids, struct brig_fail *fail)
{
    size_t left = brig_merge_run(&b->merge, n, rank_of_pair, b, b->made);
    int r = 0;
    for (size_t i = 0; i < left && r == 0; i++)
        r = brig_bpe_add(ids, b->merge.ids[i], fail);
    return r;
}

uint32_t brig_bpe_whole(const struct brig_bpe *b, const char *spelling, size_t n)
{
    uint32_t id = brig_strmap_get(&b->spelling, spelling, n);
    return id != BRIG_NO_ID && is_control(b->vocab, id) ? BRIG_NO_ID : id;
}
