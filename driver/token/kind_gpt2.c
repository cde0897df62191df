/*
 * Byte-level BPE, as GPT-2 has it: text is cut by a pre-tokenizer, the bytes of a piece become one symbol
 * each, and pairs of symbols are merged by rank. In the vocabulary a byte is written as one printable
 * character.
 */
#include "driver/token/kind.h"

#include <string.h>

#include "driver/token/merge.h"
#include "driver/token/pretoken.h"
#include "driver/token/strmap.h"
#include "driver/token/utf8.h"
#include "proto/base/mem.h"

#define N_CHARS    0x144u /* characters that stand for bytes lie below */
#define MAX_PIECE  ((size_t)1 << 30)
#define MAX_MERGES ((uint32_t)1 << 26)

struct gpt2 {
    const struct brig_vocab *vocab;
    struct brig_pretoken *pre;
    struct brig_strmap spelling;
    struct brig_pairmap ranks;
    uint32_t *made;           /* [n_merges] */
    uint32_t byte_ids[256];   /* BRIG_NO_ID: the vocabulary has none */
    int16_t byte_of[N_CHARS]; /* -1: stands for no byte */
    struct brig_merge merge;
    struct brig_buf normal;
};

/* Printable Latin-1 stands for itself; the other bytes, in order, are U+0100 and so on. */
static void fill_bytes(struct gpt2 *g)
{
    memset(g->byte_of, 0xff, sizeof g->byte_of);
    uint32_t next = 0x100;
    for (uint32_t b = 0; b < 256; b++) {
        bool itself = (b >= 0x21 && b <= 0x7e) || (b >= 0xa1 && b <= 0xac) || b >= 0xae;
        uint32_t c = itself ? b : next++;
        g->byte_of[c] = (int16_t)b;
        char s[2] = {(char)c, 0};
        size_t n = 1;
        if (c >= 0x80) {
            s[0] = (char)(0xc0 | c >> 6);
            s[1] = (char)(0x80 | (c & 0x3f));
            n = 2;
        }
        g->byte_ids[b] = brig_strmap_get(&g->spelling, s, n);
    }
}

static bool is_control(const struct brig_vocab *v, uint32_t id)
{
    return v->types != NULL && v->types[id] == BRIG_TOKEN_CONTROL;
}

static int fill_spelling(struct gpt2 *g, struct brig_fail *fail)
{
    const struct brig_vocab *v = g->vocab;
    if (brig_strmap_init(&g->spelling, v->tokens, v->n_tokens) < 0)
        return brig_fail_set(fail, BRIG_ENOMEM, "out of memory for %u tokens", v->n_tokens);
    for (uint32_t id = 0; id < v->n_tokens; id++) {
        uint32_t old;
        /* Of two tokens with one spelling text means the one that is text. */
        if (!brig_strmap_add(&g->spelling, id, &old) && is_control(v, old) && !is_control(v, id))
            brig_strmap_replace(&g->spelling, old, id);
    }
    return 0;
}

static int fail_merge(uint32_t rank, struct brig_str merge, const char *what, struct brig_fail *fail)
{
    return brig_fail_set(fail, BRIG_EFORMAT, "merge %u of the tokenizer ('%.*s') %s", rank,
                         (int)(merge.len < 64 ? merge.len : 64), merge.ptr, what);
}

static int add_merge(struct gpt2 *g, uint32_t rank, struct brig_buf *both, struct brig_fail *fail)
{
    struct brig_str s = g->vocab->merges[rank];
    const char *space = s.len > 1 ? memchr(s.ptr + 1, ' ', s.len - 1) : NULL;
    if (space == NULL)
        return fail_merge(rank, s, "is not two tokens with a space between", fail);
    size_t n_left = (size_t)(space - s.ptr), n_right = s.len - n_left - 1;
    brig_buf_clear(both);
    if (brig_buf_add(both, s.ptr, n_left) < 0 || brig_buf_add(both, space + 1, n_right) < 0)
        return brig_fail_set(fail, BRIG_ENOMEM, "out of memory for merge %u of the tokenizer", rank);
    uint32_t left = brig_strmap_get(&g->spelling, s.ptr, n_left);
    uint32_t right = brig_strmap_get(&g->spelling, space + 1, n_right);
    g->made[rank] = brig_strmap_get(&g->spelling, both->data, both->len);
    if (left == BRIG_NO_ID || right == BRIG_NO_ID || g->made[rank] == BRIG_NO_ID)
        return fail_merge(rank, s, "has a part or a result that is not in the vocabulary", fail);
    brig_pairmap_add(&g->ranks, left, right, rank);
    return 0;
}

static int fill_merges(struct gpt2 *g, struct brig_fail *fail)
{
    uint32_t n = g->vocab->n_merges;
    if (n > MAX_MERGES)
        return brig_fail_set(fail, BRIG_ELIMIT, "the tokenizer has %u merges, more than %u", n, MAX_MERGES);
    g->made = brig_alloc(n, sizeof *g->made);
    if (g->made == NULL || brig_pairmap_init(&g->ranks, n) < 0)
        return brig_fail_set(fail, BRIG_ENOMEM, "out of memory for %u merges", n);
    struct brig_buf both = {0};
    int r = 0;
    for (uint32_t rank = 0; rank < n && r == 0; rank++)
        r = add_merge(g, rank, &both, fail);
    brig_buf_release(&both);
    return r;
}

static void gpt2_close(void *state)
{
    struct gpt2 *g = state;
    if (g == NULL)
        return;
    brig_pretoken_free(g->pre);
    brig_strmap_release(&g->spelling);
    brig_pairmap_release(&g->ranks);
    brig_merge_release(&g->merge);
    brig_buf_release(&g->normal);
    brig_free(g->made);
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
    int r = brig_pretoken_new(&g->pre, pre, fail);
    if (r == 0)
        r = fill_spelling(g, fail);
    if (r == 0)
        r = fill_merges(g, fail);
    if (r < 0) {
        gpt2_close(g);
        return r;
    }
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
    if (n > MAX_PIECE || brig_merge_reserve(&g->merge, n) < 0)
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
        g->merge.ids[i] = id;
    }
    return 0;
}

static uint32_t rank_of_pair(const void *ctx, const struct brig_merge *m, uint32_t i, uint32_t right)
{
    const struct gpt2 *g = ctx;
    return brig_pairmap_get(&g->ranks, m->ids[i], m->ids[right]);
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
    uint32_t id = brig_strmap_get(&g->spelling, spelt, len);
    return id != BRIG_NO_ID && is_control(g->vocab, id) ? BRIG_NO_ID : id;
}

static int encode_piece(void *ctx, const char *piece, size_t n, struct brig_fail *fail)
{
    struct piece_ctx *c = ctx;
    struct gpt2 *g = c->g;
    if (brig_pretoken_whole_first(g->pre)) {
        uint32_t id = find_whole(g, piece, n);
        if (id != BRIG_NO_ID) {
            int r = brig_ids_add(c->ids, id);
            return r == 0 ? 0 : brig_fail_set(fail, (enum brig_err) - r, "out of memory for token ids");
        }
    }
    int r = fill_symbols(g, piece, n, fail);
    if (r < 0)
        return r;
    size_t left = brig_merge_run(&g->merge, n, rank_of_pair, g, g->made);
    for (size_t i = 0; i < left; i++) {
        r = brig_ids_add(c->ids, g->merge.ids[i]);
        if (r < 0)
            return brig_fail_set(fail, (enum brig_err) - r, "out of memory for token ids");
    }
    return 0;
}

static int gpt2_encode(void *state, const char *text, size_t n, struct brig_ids *ids, struct brig_fail *fail)
{
    struct gpt2 *g = state;
    struct piece_ctx ctx = {g, ids};
    int r = brig_pretoken_normalise(g->pre, text, n, &g->normal, &text, &n, fail);
    if (r < 0)
        return r;
    return brig_pretoken_split(g->pre, text, n, encode_piece, &ctx, fail);
}

static int gpt2_piece(void *state, uint32_t id, struct brig_buf *out)
{
    struct gpt2 *g = state;
    struct brig_str s = g->vocab->tokens[id];
    size_t start = out->len;
    for (size_t i = 0; i < s.len;) {
        int step = brig_utf8_step(s.ptr + i, s.len - i);
        uint32_t c = step > 0 ? brig_utf8_code_point(s.ptr + i, step) : N_CHARS;
        if (c >= N_CHARS || g->byte_of[c] < 0) { /* not written in byte characters: it means itself */
            out->len = start;
            return brig_buf_add(out, s.ptr, s.len);
        }
        char byte = (char)g->byte_of[c];
        int r = brig_buf_add(out, &byte, 1);
        if (r < 0)
            return r;
        i += (size_t)step;
    }
    return 0;
}

const struct brig_tokenizer_kind brig_tokenizer_gpt2 = {
    .name = "gpt2",
    .help = "byte-level BPE (GPT-2, Llama 3, Qwen, SmolLM)",
    .open = gpt2_open,
    .close = gpt2_close,
    .encode = gpt2_encode,
    .piece = gpt2_piece,
};
