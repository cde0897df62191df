/*
 * Byte-level BPE, as GPT-2 has it: text is cut by a pre-tokenizer, the bytes of a piece become one symbol
 * each, and pairs of symbols are merged by rank. In the vocabulary a byte is written as one printable
 * character.
 */
#include "driver/token/kind.h"

#include <string.h>

#include "driver/token/bpe.h"
#include "driver/token/bytechars.h"
#include "driver/token/pretoken.h"
#include "driver/token/rules.h"
#include "proto/base/mem.h"

#define MAX_PIECE ((size_t)1 << 30)

struct gpt2 {
    const struct brig_vocab *vocab;
    struct brig_pretoken *pre;
    bool whole_first; /* a piece that is a token becomes it, whatever the merges say */
    struct brig_bpe bpe;
    uint32_t byte_ids[256]; /* BRIG_NO_ID: the vocabulary has none */
    struct brig_bytechars chars;
    struct brig_buf normal;
};

static void fill_bytes(struct gpt2 *g)
{
    brig_bytechars_init(&g->chars);
    for (uint32_t b = 0; b < 256; b++) {
        char s[2];
        size_t n = brig_bytechar_spell(&g->chars, b, s);
        g->byte_ids[b] = brig_strmap_get(&g->bpe.spelling, s, n);
    }
}

static void gpt2_close(void *state)
{
    struct gpt2 *g = state;
    if (g == NULL)
        return;
    brig_pretoken_free(g->pre);
    brig_bpe_release(&g->bpe);
    brig_buf_release(&g->normal);
    brig_free(g);
}

static int gpt2_open(void **ret_state, const struct brig_vocab *vocab, const char *pre_override,
                     struct brig_fail *fail)
{
    struct gpt2 *g = brig_alloc(1, sizeof *g);
    if (g == NULL)
        return brig_fail_set(fail, BRIG_ENOMEM, "out of memory for a tokenizer");
    g->vocab = vocab;
    struct brig_str pre = vocab->pre;
    if (pre_override != NULL)
        pre = (struct brig_str){pre_override, strlen(pre_override)};
    int r = vocab->rules != NULL && pre_override == NULL
                ? brig_pretoken_from_steps(&g->pre, &vocab->rules->pre, fail)
                : brig_pretoken_new(&g->pre, pre, fail);
    if (r == 0)
        r = brig_bpe_init(&g->bpe, vocab, fail);
    if (r < 0) {
        gpt2_close(g);
        return r;
    }
    g->whole_first =
        brig_pretoken_whole_first(g->pre) || (vocab->rules != NULL && vocab->rules->ignore_merges);
    fill_bytes(g);
    *ret_state = g;
    return 0;
}

struct piece_ctx {
    struct gpt2 *g;
    struct brig_ids *ids;
};

/* Bytes to symbols in the merge's memory. */
static int fill_symbols(struct gpt2 *g, const char *piece, size_t n, struct brig_fail *fail)
{
    if (n > MAX_PIECE || brig_merge_reserve(&g->bpe.merge, n) < 0)
        return brig_fail_set(fail, BRIG_ENOMEM, "out of memory for a word of %zu bytes", n);
    int64_t unk = g->vocab->unk;
    for (size_t i = 0; i < n; i++) {
        uint32_t id = g->byte_ids[(unsigned char)piece[i]];
        if (id == BRIG_NO_ID && unk >= 0 && unk < g->vocab->n_tokens)
            id = (uint32_t)unk;
        if (id == BRIG_NO_ID)
            return brig_fail_set(fail, BRIG_EUNSUPPORTED,
                                 "the vocabulary has no token for byte 0x%02x of the text",
                                 (unsigned)(unsigned char)piece[i]);
        g->bpe.merge.ids[i] = id;
    }
    return 0;
}

/* The token that a whole piece spells, for kinds that take it first. */
static uint32_t find_whole(struct gpt2 *g, const char *piece, size_t n)
{
    char spelt[512];
    size_t len = 0;
    for (size_t i = 0; i < n; i++) {
        uint32_t id = g->byte_ids[(unsigned char)piece[i]];
        if (id == BRIG_NO_ID)
            return BRIG_NO_ID;
        struct brig_str s = g->vocab->tokens[id];
        if (s.len > sizeof spelt - len)
            return BRIG_NO_ID;
        memcpy(spelt + len, s.ptr, s.len);
        len += s.len;
    }
    return brig_bpe_whole(&g->bpe, spelt, len);
}

static int encode_piece(void *ctx, const char *piece, size_t n, struct brig_fail *fail)
{
    struct piece_ctx *c = ctx;
    struct gpt2 *g = c->g;
    if (g->whole_first) {
        uint32_t id = find_whole(g, piece, n);
        if (id != BRIG_NO_ID)
            return brig_bpe_add(c->ids, id, fail);
    }
    int r = fill_symbols(g, piece, n, fail);
    return r < 0 ? r : brig_bpe_run(&g->bpe, n, c->ids, fail);
}

static int gpt2_encode(void *state, const char *text, size_t n, bool at_start, struct brig_ids *ids,
                       struct brig_fail *fail)
{
    struct gpt2 *g = state;
    struct piece_ctx ctx = {g, ids};
    int r = brig_pretoken_normalise(g->pre, text, n, &g->normal, &text, &n, fail);
    if (r < 0)
        return r;
    return brig_pretoken_split(g->pre, text, n, at_start, encode_piece, &ctx, fail);
}

static int gpt2_piece(void *state, uint32_t id, struct brig_buf *out)
{
    const struct gpt2 *g = state;
    struct brig_str s = g->vocab->tokens[id];
    return brig_bytechars_piece(&g->chars, s.ptr, s.len, out);
}

const struct brig_tokenizer_kind brig_tokenizer_gpt2 = {
    .name = "gpt2",
    .help = "byte-level BPE (GPT-2, Llama 3, Qwen, SmolLM)",
    .open = gpt2_open,
    .close = gpt2_close,
    .encode = gpt2_encode,
    .piece = gpt2_piece,
};
