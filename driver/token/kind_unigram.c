/*
 * Unigram (Kudo 2018, "Subword Regularization"): of all ways to cut a piece into tokens the one with the
 * largest sum of log-probabilities, found by Viterbi's algorithm from left to right. A character that no
 * token spells costs ten more than the worst token; it becomes its bytes, one token each, or the unknown
 * token.
 */
#include <math.h>
#include <string.h>

#include "driver/token/bpe.h"
#include "driver/token/kind.h"
#include "driver/token/pretoken.h"
#include "driver/token/rules.h"
#include "driver/token/space.h"
#include "driver/token/utf8.h"
#include "proto/base/mem.h"

#define UNKNOWN_COSTS  10.0
#define MAX_TRIE_BYTES ((uint64_t)1 << 26)
#define MAX_PIECE      ((size_t)1 << 28)

struct reached { /* the best way to get to a byte of the piece */
    double score;
    uint32_t from; /* NOWHERE: none yet */
    uint32_t id;   /* the last token; BRIG_NO_ID: an unknown character */
};
#define NOWHERE UINT32_MAX

struct unigram {
    const struct brig_vocab *vocab;
    struct brig_pretoken *pre;
    struct brig_pairmap next; /* (node, byte) -> node of the trie of spellings; 0 is its root */
    uint32_t *ends;           /* [n_nodes] the token that is spelt like the way to a node */
    uint32_t n_nodes;
    uint32_t byte_ids[256]; /* BRIG_NO_ID: none, or bytes are not fallen back to */
    double unknown;         /* score of an unknown character */
    struct reached *best;   /* [cap] */
    size_t cap;
};

struct piece_ctx {
    struct unigram *u;
    struct brig_ids *ids;
};

static double score_of(const struct brig_vocab *v, uint32_t id)
{
    return v->rules != NULL ? v->rules->scores[id] : (double)v->scores[id];
}

/* Can text become this token? */
static bool is_spelt(const struct brig_vocab *v, uint32_t id)
{
    if (v->tokens[id].len == 0)
        return false;
    if (v->rules != NULL)
        return (v->rules->added[id] & BRIG_ADDED_ONLY) == 0;
    return v->types == NULL || v->types[id] == BRIG_TOKEN_NORMAL || v->types[id] == BRIG_TOKEN_USER;
}

static void add_spelling(struct unigram *u, uint32_t id)
{
    struct brig_str s = u->vocab->tokens[id];
    uint32_t node = 0;
    for (size_t i = 0; i < s.len; i++) {
        uint32_t byte = (unsigned char)s.ptr[i], child = brig_pairmap_get(&u->next, node, byte);
        if (child == BRIG_NO_ID) {
            child = u->n_nodes++;
            u->ends[child] = BRIG_NO_ID;
            brig_pairmap_add(&u->next, node, byte, child);
        }
        node = child;
    }
    u->ends[node] = id; /* of two tokens with one spelling the last */
}

static int fill_trie(struct unigram *u, struct brig_fail *fail)
{
    const struct brig_vocab *v = u->vocab;
    uint64_t bytes = 0;
    for (uint32_t id = 0; id < v->n_tokens; id++)
        bytes += is_spelt(v, id) ? v->tokens[id].len : 0;
    if (bytes > MAX_TRIE_BYTES)
        return brig_fail_set(fail, BRIG_ELIMIT, "the tokens have %llu bytes together, more than %llu",
                             (unsigned long long)bytes, (unsigned long long)MAX_TRIE_BYTES);
    u->ends = brig_alloc((size_t)bytes + 1, sizeof *u->ends);
    if (u->ends == NULL || brig_pairmap_init(&u->next, (uint32_t)bytes) < 0)
        return brig_fail_set(fail, BRIG_ENOMEM, "out of memory for %u tokens", v->n_tokens);
    u->ends[0] = BRIG_NO_ID;
    u->n_nodes = 1;
    for (uint32_t id = 0; id < v->n_tokens; id++)
        if (is_spelt(v, id))
            add_spelling(u, id);
    return 0;
}

/* Worst score and tokens of bytes. */
static int fill_scores(struct unigram *u, struct brig_fail *fail)
{
    const struct brig_vocab *v = u->vocab;
    double worst = INFINITY;
    memset(u->byte_ids, 0xff, sizeof u->byte_ids);
    for (uint32_t id = 0; id < v->n_tokens; id++) {
        bool own = v->rules == NULL || (v->rules->added[id] & BRIG_ADDED_ONLY) == 0;
        double score = score_of(v, id);
        if (!isfinite(score))
            return brig_fail_set(fail, BRIG_EFORMAT, "the score of token %u is no number", id);
        if (own && score < worst)
            worst = score;
        int byte = brig_byte_of_spelling(v->tokens[id]);
        if (byte >= 0 && (v->rules == NULL ? v->types == NULL || v->types[id] == BRIG_TOKEN_BYTE
                                           : own && v->rules->byte_fallback))
            u->byte_ids[byte] = id;
    }
    u->unknown = worst - UNKNOWN_COSTS;
    return 0;
}

static void unigram_close(void *state)
{
    struct unigram *u = state;
    if (u == NULL)
        return;
    brig_pretoken_free(u->pre);
    brig_pairmap_release(&u->next);
    brig_free(u->ends);
    brig_free(u->best);
    brig_free(u);
}

/* GGUF states no steps: spaces are spelt as SentencePiece does it. */
static const struct brig_steps *steps_of(const struct brig_vocab *v, struct brig_steps *gguf)
{
    if (v->rules != NULL)
        return &v->rules->pre;
    if (v->remove_extra_spaces) {
        gguf->v[gguf->n++] =
            (struct brig_step){.kind = BRIG_STEP_REPLACE, .regex = true, .pattern = {"\\A +| +\\z", 9}};
        gguf->v[gguf->n++] = (struct brig_step){
            .kind = BRIG_STEP_REPLACE, .regex = true, .pattern = {" {2,}", 5}, .content = {" ", 1}};
    }
    gguf->v[gguf->n++] = (struct brig_step){
        .kind = BRIG_STEP_REPLACE, .pattern = {" ", 1}, .content = {BRIG_SPACE, BRIG_SPACE_BYTES}};
    if (v->add_space_prefix)
        gguf->v[gguf->n++] =
            (struct brig_step){.kind = BRIG_STEP_PREPEND, .content = {BRIG_SPACE, BRIG_SPACE_BYTES}};
    return gguf;
}

static int unigram_open(void **ret_state, const struct brig_vocab *vocab, const char *pre_override,
                        struct brig_fail *fail)
{
    struct brig_steps gguf = {0};
    if (pre_override != NULL)
        return brig_fail_set(fail, BRIG_EUSAGE, "--pre %s: a unigram tokenizer has no pre-tokenizer of these",
                             pre_override);
    if (vocab->rules == NULL && vocab->scores == NULL)
        return brig_fail_set(fail, BRIG_EFORMAT,
                             "the tokenizer has no scores (tokenizer.ggml.scores), which unigram needs");
    if (vocab->rules == NULL && vocab->has_charsmap)
        return brig_fail_set(fail, BRIG_EUNSUPPORTED,
                             "tokenizer.ggml.precompiled_charsmap is not supported: text would become other "
                             "tokens than the model was trained with");
    struct unigram *u = brig_alloc(1, sizeof *u);
    if (u == NULL)
        return brig_fail_set(fail, BRIG_ENOMEM, "out of memory for a tokenizer");
    u->vocab = vocab;
    int r = brig_pretoken_from_steps(&u->pre, steps_of(vocab, &gguf), fail);
    if (r == 0)
        r = fill_scores(u, fail);
    if (r == 0)
        r = fill_trie(u, fail);
    if (r < 0) {
        unigram_close(u);
        return r;
    }
    *ret_state = u;
    return 0;
}

static int reserve(struct unigram *u, size_t n, struct brig_fail *fail)
{
    if (n < u->cap)
        return 0;
    if (n > MAX_PIECE)
        return brig_fail_set(fail, BRIG_ELIMIT, "a piece of %zu bytes is too long", n);
    brig_free(u->best);
    u->cap = 0;
    u->best = brig_alloc(n * 2 + 64, sizeof *u->best);
    if (u->best == NULL)
        return brig_fail_set(fail, BRIG_ENOMEM, "out of memory for a text of %zu bytes", n);
    u->cap = n * 2 + 64;
    return 0;
}

static void reach(struct reached *to, double score, size_t from, uint32_t id)
{
    if (to->from == NOWHERE || score > to->score)
        *to = (struct reached){score, (uint32_t)from, id};
}

/* From left to right: each character's start is reached before what begins there is tried. */
static void search(struct unigram *u, const char *text, size_t n)
{
    struct reached *best = u->best;
    best[0] = (struct reached){.score = 0};
    for (size_t i = 1; i <= n; i++)
        best[i].from = NOWHERE;
    for (size_t at = 0; at < n;) {
        size_t step = (size_t)brig_utf8_step(text + at, n - at);
        bool spelt = false;
        uint32_t node = 0;
        for (size_t end = at; end < n;) {
            node = brig_pairmap_get(&u->next, node, (unsigned char)text[end++]);
            if (node == BRIG_NO_ID)
                break;
            if (u->ends[node] == BRIG_NO_ID)
                continue;
            reach(&best[end], best[at].score + score_of(u->vocab, u->ends[node]), at, u->ends[node]);
            spelt = spelt || end - at == step;
        }
        if (!spelt)
            reach(&best[at + step], best[at].score + u->unknown, at, BRIG_NO_ID);
        at += step;
    }
}

/* Turn the way back into the way there: from[i] becomes the end of the token that begins at i. */
static void turn(struct reached *best, size_t n)
{
    uint32_t end = (uint32_t)n, id = best[n].id;
    for (uint32_t at = best[n].from; end > 0;) {
        uint32_t before = best[at].from, before_id = best[at].id;
        best[at].from = end;
        best[at].id = id;
        end = at;
        id = before_id;
        at = before;
    }
}

/* An unknown character, or a run of them. */
static int add_unknown(struct unigram *u, const char *s, size_t n, struct brig_ids *ids,
                       struct brig_fail *fail)
{
    bool bytes = true;
    for (size_t i = 0; i < n; i++)
        bytes = bytes && u->byte_ids[(unsigned char)s[i]] != BRIG_NO_ID;
    int r = 0;
    for (size_t i = 0; i < n && r == 0 && bytes; i++)
        r = brig_bpe_add(ids, u->byte_ids[(unsigned char)s[i]], fail);
    if (bytes)
        return r;
    if (u->vocab->unk < 0)
        return brig_fail_set(fail, BRIG_EUNSUPPORTED,
                             "the vocabulary has no token for '%.*s' and none for unknown text",
                             (int)(n < 64 ? n : 64), s);
    return brig_bpe_add(ids, (uint32_t)u->vocab->unk, fail);
}

static int encode_piece(void *ctx, const char *text, size_t n, struct brig_fail *fail)
{
    struct piece_ctx *c = ctx;
    struct unigram *u = c->u;
    int r = reserve(u, n, fail);
    if (r < 0)
        return r;
    search(u, text, n);
    turn(u->best, n);
    for (size_t at = 0; at < n && r == 0;) {
        size_t end = u->best[at].from;
        bool unknown = u->best[at].id == BRIG_NO_ID;
        if (!unknown)
            r = brig_bpe_add(c->ids, u->best[at].id, fail);
        while (unknown && end < n && u->best[end].id == BRIG_NO_ID) /* neighbours are one */
            end = u->best[end].from;
        if (unknown)
            r = add_unknown(u, text + at, end - at, c->ids, fail);
        at = end;
    }
    return r;
}

static int unigram_encode(void *state, const char *text, size_t n, bool at_start, struct brig_ids *ids,
                          struct brig_fail *fail)
{
    struct piece_ctx ctx = {state, ids};
    return brig_pretoken_split(ctx.u->pre, text, n, at_start, encode_piece, &ctx, fail);
}

/* For GGUF, whose types say which tokens are bytes. */
static int unigram_piece(void *state, uint32_t id, struct brig_buf *out)
{
    const struct unigram *u = state;
    struct brig_str s = u->vocab->tokens[id];
    int byte =
        u->vocab->types != NULL && u->vocab->types[id] == BRIG_TOKEN_BYTE ? brig_byte_of_spelling(s) : -1;
    char c = (char)byte;
    return byte >= 0 ? brig_buf_add(out, &c, 1) : brig_space_piece(s, out);
}

static size_t unigram_lead(void *state, uint32_t id)
{
    const struct unigram *u = state;
    struct brig_str s = u->vocab->tokens[id];
    return u->vocab->add_space_prefix && brig_is_space(s.ptr, s.len);
}

const struct brig_tokenizer_kind brig_tokenizer_unigram = {
    .name = "t5",
    .help = "unigram by scores (SentencePiece unigram: T5, XGLM)",
    .open = unigram_open,
    .close = unigram_close,
    .encode = unigram_encode,
    .piece = unigram_piece,
    .user_piece = unigram_piece,
    .lead = unigram_lead,
};
