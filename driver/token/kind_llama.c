/*
 * BPE by scores, as SentencePiece has it: spaces become U+2581, the characters of the text are symbols, and
 * of all neighbours that together spell a token those with the best score are joined first, the leftmost of
 * them. A character that no token spells becomes its bytes, one token each, or the unknown token.
 */
#include "driver/token/kind.h"

#include <math.h>
#include <string.h>

#include "driver/token/merge.h"
#include "driver/token/space.h"
#include "driver/token/strmap.h"
#include "driver/token/utf8.h"
#include "proto/base/mem.h"

struct llama {
    const struct brig_vocab *vocab;
    struct brig_strmap spelling; /* of the tokens that text can become */
    uint32_t byte_ids[256];      /* BRIG_NO_ID: the vocabulary has none */
    size_t longest;              /* bytes of the longest spelling */
    bool words;                  /* no spelling has a space after something else: each word stands alone */
    struct brig_merge merge;
    struct brig_buf spaced; /* the text with its spaces as they are spelt */
};

/* What merging reads. */
struct piece {
    const struct llama *l;
    const char *text;
    uint32_t n;
};

static int32_t type_of(const struct brig_vocab *v, uint32_t id)
{
    return v->types != NULL ? v->types[id] : BRIG_TOKEN_NORMAL;
}

/* The byte that a token stands for, or -1. A vocabulary without types is asked by spelling. */
static int byte_of(const struct brig_vocab *v, uint32_t id)
{
    return v->types == NULL || v->types[id] == BRIG_TOKEN_BYTE ? brig_byte_of_spelling(v->tokens[id]) : -1;
}

static void add_spelling(struct llama *l, uint32_t id)
{
    const struct brig_vocab *v = l->vocab;
    struct brig_str s = v->tokens[id];
    uint32_t old;
    if (s.len == 0)
        return;
    /* Of two tokens with one spelling the better score wins. */
    if (!brig_strmap_add(&l->spelling, id, &old)) {
        if (v->scores[id] > v->scores[old])
            brig_strmap_replace(&l->spelling, old, id);
        return;
    }
    if (s.len > l->longest)
        l->longest = s.len;
    l->words = l->words && !brig_crosses_words(s);
}

static int fill(struct llama *l, struct brig_fail *fail)
{
    const struct brig_vocab *v = l->vocab;
    if (v->scores == NULL)
        return brig_fail_set(fail, BRIG_EFORMAT,
                             "the tokenizer has no scores (tokenizer.ggml.scores), which 'llama' needs");
    if (brig_strmap_init(&l->spelling, v->tokens, v->n_tokens) < 0)
        return brig_fail_set(fail, BRIG_ENOMEM, "out of memory for %u tokens", v->n_tokens);
    memset(l->byte_ids, 0xff, sizeof l->byte_ids);
    l->words = true;
    for (uint32_t id = 0; id < v->n_tokens; id++) {
        int32_t type = type_of(v, id);
        int byte = byte_of(v, id);
        if (isnan(v->scores[id]))
            return brig_fail_set(fail, BRIG_EFORMAT, "the score of token %u is no number", id);
        if (byte >= 0)
            l->byte_ids[byte] = id;
        else if (type == BRIG_TOKEN_NORMAL || type == BRIG_TOKEN_USER)
            add_spelling(l, id);
    }
    return 0;
}

static void llama_close(void *state)
{
    struct llama *l = state;
    if (l == NULL)
        return;
    brig_strmap_release(&l->spelling);
    brig_merge_release(&l->merge);
    brig_buf_release(&l->spaced);
    brig_free(l);
}

static int llama_open(void **ret_state, const struct brig_vocab *vocab, const char *pre_override,
                      struct brig_fail *fail)
{
    if (pre_override != NULL)
        return brig_fail_set(fail, BRIG_EUSAGE, "--pre %s: a 'llama' tokenizer has no pre-tokenizer",
                             pre_override);
    struct llama *l = brig_alloc(1, sizeof *l);
    if (l == NULL)
        return brig_fail_set(fail, BRIG_ENOMEM, "out of memory for a tokenizer");
    l->vocab = vocab;
    int r = fill(l, fail);
    if (r < 0) {
        llama_close(l);
        return r;
    }
    *ret_state = l;
    return 0;
}

/* Scores in descending order as ranks in ascending order, equal for equal scores and never BRIG_NO_RANK: the
 * bits of floats of one sign are ordered as the floats are. */
static uint32_t rank_of_score(float score)
{
    uint32_t bits;
    score = score == 0 ? 0 : -score; /* one zero, and ascending */
    memcpy(&bits, &score, sizeof bits);
    return bits >> 31 != 0 ? ~bits : bits | 0x80000000u;
}

static uint32_t rank_of_pair(const void *ctx, const struct brig_merge *m, uint32_t i, uint32_t right)
{
    const struct piece *p = ctx;
    uint32_t after = m->next[right];
    uint32_t start = m->ids[i], end = after == BRIG_MERGE_END ? p->n : m->ids[after];
    if (end - start > p->l->longest)
        return BRIG_NO_RANK;
    uint32_t id = brig_strmap_get(&p->l->spelling, p->text + start, end - start);
    return id == BRIG_NO_ID ? BRIG_NO_RANK : rank_of_score(p->l->vocab->scores[id]);
}

static int add_id(struct brig_ids *ids, uint32_t id, struct brig_fail *fail)
{
    int r = brig_ids_add(ids, id);
    return r == 0 ? 0 : brig_fail_set(fail, (enum brig_err) - r, "out of memory for token ids");
}

/* A character that is no token. *was_unknown: so was the one before it, and neighbours share one unknown
 * token. */
static int add_missing(struct llama *l, const char *s, size_t n, struct brig_ids *ids, bool *was_unknown,
                       struct brig_fail *fail)
{
    int64_t unk = l->vocab->unk;
    bool spelt = true, unknown = *was_unknown;
    for (size_t i = 0; i < n; i++)
        spelt = spelt && l->byte_ids[(unsigned char)s[i]] != BRIG_NO_ID;
    int r = 0;
    *was_unknown = !spelt;
    for (size_t i = 0; i < n && r == 0 && spelt; i++)
        r = add_id(ids, l->byte_ids[(unsigned char)s[i]], fail);
    if (spelt || unknown)
        return r;
    if (unk < 0 || unk >= l->vocab->n_tokens)
        return brig_fail_set(
            fail, BRIG_EUNSUPPORTED,
            "the vocabulary has no token for '%.*s', none for its bytes and none for unknown text", (int)n,
            s);
    return add_id(ids, (uint32_t)unk, fail);
}

/* Text without spaces as such; symbols are known by where they begin. */
static int encode_piece(struct llama *l, const char *text, size_t n, struct brig_ids *ids,
                        struct brig_fail *fail)
{
    struct piece p = {l, text, (uint32_t)n};
    size_t n_symbols = 0;
    bool was_unknown = false;
    if (brig_merge_reserve(&l->merge, n) < 0)
        return brig_fail_set(fail, BRIG_ENOMEM, "out of memory for a text of %zu bytes", n);
    for (size_t i = 0; i < n; i += (size_t)brig_utf8_step(text + i, n - i))
        l->merge.ids[n_symbols++] = (uint32_t)i;
    n_symbols = brig_merge_run(&l->merge, n_symbols, rank_of_pair, &p, NULL);
    for (size_t i = 0; i < n_symbols; i++) {
        size_t start = l->merge.ids[i], end = i + 1 < n_symbols ? l->merge.ids[i + 1] : n;
        uint32_t id = brig_strmap_get(&l->spelling, text + start, end - start);
        int r;
        if (id == BRIG_NO_ID) {
            r = add_missing(l, text + start, end - start, ids, &was_unknown, fail);
        } else {
            was_unknown = false;
            r = add_id(ids, id, fail);
        }
        if (r < 0)
            return r;
    }
    return 0;
}

static int fill_spaced(struct llama *l, const char *text, size_t n)
{
    brig_buf_clear(&l->spaced);
    int r = l->vocab->add_space_prefix ? brig_buf_add(&l->spaced, BRIG_SPACE, BRIG_SPACE_BYTES) : 0;
    for (size_t i = 0; i < n && r == 0;) {
        const char *space = memchr(text + i, ' ', n - i);
        size_t plain = space != NULL ? (size_t)(space - (text + i)) : n - i;
        r = brig_buf_add(&l->spaced, text + i, plain);
        if (r == 0 && space != NULL)
            r = brig_buf_add(&l->spaced, BRIG_SPACE, BRIG_SPACE_BYTES);
        i += plain + (space != NULL);
    }
    return r;
}

static int llama_encode(void *state, const char *text, size_t n, bool at_start, struct brig_ids *ids,
                        struct brig_fail *fail)
{
    (void)at_start; /* each text between added tokens begins with a space */
    struct llama *l = state;
    if (n == 0)
        return 0;
    int r = fill_spaced(l, text, n);
    if (r < 0)
        return brig_fail_set(fail, (enum brig_err) - r, "out of memory for a text of %zu bytes", n);
    text = l->spaced.data;
    n = l->spaced.len;
    for (size_t i = 0; i < n && r == 0;) {
        size_t bytes = l->words ? brig_word(text + i, n - i) : n - i;
        r = encode_piece(l, text + i, bytes, ids, fail);
        i += bytes;
    }
    return r;
}

static int llama_piece(void *state, uint32_t id, struct brig_buf *out)
{
    struct llama *l = state;
    int byte = byte_of(l->vocab, id);
    char c = (char)byte;
    return byte >= 0 ? brig_buf_add(out, &c, 1) : brig_space_piece(l->vocab->tokens[id], out);
}

static int llama_user_piece(void *state, uint32_t id, struct brig_buf *out)
{
    const struct llama *l = state;
    return brig_space_piece(l->vocab->tokens[id], out);
}

static size_t llama_lead(void *state, uint32_t id)
{
    struct llama *l = state;
    struct brig_str s = l->vocab->tokens[id];
    return l->vocab->add_space_prefix && type_of(l->vocab, id) == BRIG_TOKEN_NORMAL &&
           brig_is_space(s.ptr, s.len);
}

const struct brig_tokenizer_kind brig_tokenizer_llama = {
    .name = "llama",
    .help = "SentencePiece BPE by scores, byte fallback (Llama 2, Mistral, Gemma)",
    .open = llama_open,
    .close = llama_close,
    .encode = llama_encode,
    .piece = llama_piece,
    .user_piece = llama_user_piece,
    .lead = llama_lead,
};
