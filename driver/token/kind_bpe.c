/*
 * BPE by merges on characters, as a tokenizer.json states it for vocabularies that come from SentencePiece
 * (Llama 2, Mistral, Gemma): the characters of a piece are its symbols; one that is no token becomes its
 * bytes, one token each, or the unknown token.
 */
#include <stdio.h>
#include <string.h>

#include "driver/token/bpe.h"
#include "driver/token/kind.h"
#include "driver/token/pretoken.h"
#include "driver/token/rules.h"
#include "driver/token/space.h"
#include "driver/token/utf8.h"
#include "proto/base/mem.h"

#define MAX_PIECE ((size_t)1 << 30)

struct bpe {
    struct brig_bpe bpe;
    struct brig_pretoken *pre;
    uint32_t byte_ids[256]; /* BRIG_NO_ID: none, or bytes are not fallen back to */
    bool words;             /* no merge makes a token with a space after something else */
};

struct piece_ctx {
    struct bpe *b;
    struct brig_ids *ids;
};

static void bpe_close(void *state)
{
    struct bpe *b = state;
    if (b == NULL)
        return;
    brig_pretoken_free(b->pre);
    brig_bpe_release(&b->bpe);
    brig_free(b);
}

static void fill_bytes(struct bpe *b)
{
    memset(b->byte_ids, 0xff, sizeof b->byte_ids);
    for (unsigned byte = 0; byte < 256 && b->bpe.vocab->rules->byte_fallback; byte++) {
        char s[8];
        int n = snprintf(s, sizeof s, "<0x%02X>", byte);
        b->byte_ids[byte] = brig_strmap_get(&b->bpe.spelling, s, (size_t)n);
    }
}

/* Words can be merged one by one, which takes a fraction of the memory: the same tokens come out. */
static bool has_words(const struct bpe *b)
{
    const struct brig_vocab *v = b->bpe.vocab;
    if (v->rules->ignore_merges || brig_bpe_whole(&b->bpe, BRIG_SPACE, BRIG_SPACE_BYTES) == BRIG_NO_ID)
        return false;
    for (uint32_t i = 0; i < v->n_merges; i++)
        if (brig_crosses_words(v->tokens[b->bpe.made[i]]))
            return false;
    return true;
}

static int bpe_open(void **ret_state, const struct brig_vocab *vocab, const char *pre_override,
                    struct brig_fail *fail)
{
    if (pre_override != NULL)
        return brig_fail_set(fail, BRIG_EUSAGE, "--pre %s: this tokenizer states its own pre-tokenizer",
                             pre_override);
    if (vocab->rules == NULL)
        return brig_fail_set(fail, BRIG_EUNSUPPORTED, "a 'bpe' tokenizer needs a tokenizer.json");
    struct bpe *b = brig_alloc(1, sizeof *b);
    if (b == NULL)
        return brig_fail_set(fail, BRIG_ENOMEM, "out of memory for a tokenizer");
    int r = brig_pretoken_from_steps(&b->pre, &vocab->rules->pre, fail);
    if (r == 0)
        r = brig_bpe_init(&b->bpe, vocab, fail);
    if (r < 0) {
        bpe_close(b);
        return r;
    }
    fill_bytes(b);
    b->words = has_words(b);
    *ret_state = b;
    return 0;
}

/* The bytes of a character as symbols, when all are tokens: how many symbols there are then. */
static size_t add_bytes(struct bpe *b, const char *s, size_t n, size_t n_symbols)
{
    for (size_t i = 0; i < n; i++)
        if (b->byte_ids[(unsigned char)s[i]] == BRIG_NO_ID)
            return n_symbols;
    for (size_t i = 0; i < n; i++)
        b->bpe.merge.ids[n_symbols++] = b->byte_ids[(unsigned char)s[i]];
    return n_symbols;
}

static int encode_piece(void *ctx, const char *text, size_t n, struct brig_fail *fail)
{
    struct piece_ctx *c = ctx;
    struct bpe *b = c->b;
    const struct brig_vocab *v = b->bpe.vocab;
    uint32_t whole = v->rules->ignore_merges ? brig_bpe_whole(&b->bpe, text, n) : BRIG_NO_ID;
    if (whole != BRIG_NO_ID)
        return brig_bpe_add(c->ids, whole, fail);
    if (n > MAX_PIECE || brig_merge_reserve(&b->bpe.merge, n) < 0)
        return brig_fail_set(fail, BRIG_ENOMEM, "out of memory for a text of %zu bytes", n);
    size_t n_symbols = 0;
    bool was_unknown = false;
    for (size_t i = 0; i < n;) {
        size_t step = (size_t)brig_utf8_step(text + i, n - i), before = n_symbols;
        uint32_t id = brig_strmap_get(&b->bpe.spelling, text + i, step);
        if (id != BRIG_NO_ID)
            b->bpe.merge.ids[n_symbols++] = id;
        else
            n_symbols = add_bytes(b, text + i, step, n_symbols);
        bool unknown = n_symbols == before;
        if (unknown && v->unk < 0)
            return brig_fail_set(fail, BRIG_EUNSUPPORTED,
                                 "the vocabulary has no token for '%.*s', none for its bytes and none for "
                                 "unknown text",
                                 (int)step, text + i);
        if (unknown && !(was_unknown && v->rules->fuse_unk))
            b->bpe.merge.ids[n_symbols++] = (uint32_t)v->unk;
        was_unknown = unknown;
        i += step;
    }
    return brig_bpe_run(&b->bpe, n_symbols, c->ids, fail);
}

static int encode_words(void *ctx, const char *text, size_t n, struct brig_fail *fail)
{
    const struct piece_ctx *c = ctx;
    int r = 0;
    for (size_t i = 0; i < n && r == 0;) {
        size_t bytes = c->b->words ? brig_word(text + i, n - i) : n - i;
        r = encode_piece(ctx, text + i, bytes, fail);
        i += bytes;
    }
    return r;
}

static int bpe_encode(void *state, const char *text, size_t n, bool at_start, struct brig_ids *ids,
                      struct brig_fail *fail)
{
    struct piece_ctx ctx = {state, ids};
    return brig_pretoken_split(ctx.b->pre, text, n, at_start, encode_words, &ctx, fail);
}

const struct brig_tokenizer_kind brig_tokenizer_bpe = {
    .name = "bpe",
    .help = "BPE by merges on characters, from a tokenizer.json (Llama 2, Mistral, Gemma)",
    .open = bpe_open,
    .close = bpe_close,
    .encode = bpe_encode,
};
