/*
 * What all kinds of tokenizer share: the registry, invalid UTF-8, added tokens, bos and eos, decoding, and
 * which ids end a turn. Called by the verbs of the driver; one tokenizer serves one thread.
 */
#include "driver/token/tokenizer.h"

#include <string.h>

#include "driver/token/added.h"
#include "driver/token/decoder.h"
#include "driver/token/kind.h"
#include "driver/token/normal.h"
#include "driver/token/rules.h"
#include "driver/token/strmap.h"
#include "driver/token/utf8.h"
#include "proto/base/mem.h"

#define MAX_TEXT_BYTES ((size_t)1 << 28)

#define BRIG_TOKENIZER(object) extern const struct brig_tokenizer_kind object;
#include "driver/token/tokenizer.def"
#undef BRIG_TOKENIZER

static const struct brig_tokenizer_kind *const kinds[] = {
#define BRIG_TOKENIZER(object) &object,
#include "driver/token/tokenizer.def"
#undef BRIG_TOKENIZER
};
#define N_KINDS (sizeof kinds / sizeof kinds[0])

struct brig_tokenizer {
    const struct brig_vocab *vocab;
    const struct brig_tokenizer_kind *kind;
    void *state;
    struct brig_added added[2];   /* looked for in text as it came, and in normalised text */
    struct brig_normal *normal;   /* NULL: text is left as it is */
    struct brig_decoder *decoder; /* NULL: the kind knows what tokens stand for */
    struct brig_buf clean;        /* a text without its invalid bytes */
    struct brig_buf piece;        /* the last token asked for, */
    uint32_t last;                /* its id */
    size_t last_lead;             /* and bytes that it loses at the start */
};

const char *brig_tokenizer_kind_at(unsigned i, const char **help)
{
    if (i >= N_KINDS)
        return NULL;
    if (help != NULL)
        *help = kinds[i]->help;
    return kinds[i]->name;
}

void brig_ids_release(struct brig_ids *ids)
{
    brig_free(ids->v);
    *ids = (struct brig_ids){0};
}

int brig_ids_reserve(struct brig_ids *ids, size_t n)
{
    if (n <= ids->cap)
        return 0;
    uint32_t *v = brig_alloc(n, sizeof *v);
    if (v == NULL)
        return -BRIG_ENOMEM;
    if (ids->n > 0)
        memcpy(v, ids->v, ids->n * sizeof *v);
    brig_free(ids->v);
    ids->v = v;
    ids->cap = n;
    return 0;
}

int brig_ids_add(struct brig_ids *ids, uint32_t id)
{
    if (ids->n == ids->cap && brig_ids_reserve(ids, ids->cap < 32 ? 64 : ids->cap * 2) < 0)
        return -BRIG_ENOMEM;
    ids->v[ids->n++] = id;
    return 0;
}

static int fail_kind(const struct brig_vocab *vocab, struct brig_fail *fail)
{
    struct brig_buf known = {0};
    for (size_t i = 0; i < N_KINDS; i++)
        if (brig_buf_printf(&known, "%s%s", i == 0 ? "" : ", ", kinds[i]->name) < 0)
            break;
    int r = brig_fail_set(fail, BRIG_EUNSUPPORTED, "tokenizer '%.*s' is not supported (known: %s)",
                          (int)(vocab->model.len < 64 ? vocab->model.len : 64),
                          vocab->model.len > 0 ? vocab->model.ptr : "", known.data != NULL ? known.data : "");
    brig_buf_release(&known);
    return r;
}

static int open_parts(struct brig_tokenizer *t, const char *pre_override, struct brig_fail *fail)
{
    const struct brig_rules *rules = t->vocab->rules;
    int r = 0;
    t->last = BRIG_NO_ID;
    if (rules != NULL && rules->normal.n > 0)
        r = brig_normal_new(&t->normal, &rules->normal, fail);
    if (r == 0 && rules != NULL)
        r = brig_decoder_new(&t->decoder, rules, fail);
    if (r == 0)
        r = brig_added_init(&t->added[0], t->vocab, false, NULL, fail);
    if (r == 0)
        r = brig_added_init(&t->added[1], t->vocab, true, t->normal, fail);
    return r < 0 ? r : t->kind->open(&t->state, t->vocab, pre_override, fail);
}

int brig_tokenizer_new(struct brig_tokenizer **ret, const struct brig_vocab *vocab, const char *pre_override,
                       struct brig_fail *fail)
{
    if (vocab->n_tokens == 0)
        return brig_fail_set(fail, BRIG_EUNSUPPORTED, "the model has no tokenizer");
    const struct brig_tokenizer_kind *kind = NULL;
    for (size_t i = 0; i < N_KINDS; i++)
        if (brig_str_eq(vocab->model, kinds[i]->name))
            kind = kinds[i];
    if (kind == NULL)
        return fail_kind(vocab, fail);
    struct brig_tokenizer *t = brig_alloc(1, sizeof *t);
    if (t == NULL)
        return brig_fail_set(fail, BRIG_ENOMEM, "out of memory for a tokenizer");
    t->vocab = vocab;
    t->kind = kind;
    int r = open_parts(t, pre_override, fail);
    if (r < 0) {
        brig_tokenizer_free(t);
        return r;
    }
    *ret = t;
    return 0;
}

void brig_tokenizer_free(struct brig_tokenizer *t)
{
    if (t == NULL)
        return;
    t->kind->close(t->state);
    brig_added_release(&t->added[0]);
    brig_added_release(&t->added[1]);
    brig_normal_free(t->normal);
    brig_decoder_free(t->decoder);
    brig_buf_release(&t->clean);
    brig_buf_release(&t->piece);
    brig_free(t);
}

static int add_id(struct brig_ids *ids, uint32_t id, struct brig_fail *fail)
{
    int r = brig_ids_add(ids, id);
    return r == 0 ? 0 : brig_fail_set(fail, (enum brig_err) - r, "out of memory for token ids");
}

/* bos or eos, where the file asks for it and it is a token. */
static int add_mark(struct brig_tokenizer *t, bool asked, int64_t id, struct brig_ids *ids,
                    struct brig_fail *fail)
{
    if (!asked || id < 0 || id >= t->vocab->n_tokens)
        return 0;
    return add_id(ids, (uint32_t)id, fail);
}

/* Well-formed text, its added tokens as themselves: those of one stage, and between them those of the next.
 */
static int encode_stage(struct brig_tokenizer *t, unsigned stage, const char *text, size_t n, bool control,
                        bool at_start, struct brig_ids *ids, struct brig_fail *fail)
{
    int r = 0;
    if (stage == 1 && t->normal != NULL)
        r = brig_normal_run(t->normal, text, n, &text, &n, fail);
    if (r == 0 && stage == 2)
        return n > 0 ? t->kind->encode(t->state, text, n, at_start, ids, fail) : 0;
    for (size_t from = 0; r == 0;) {
        struct brig_added_match m = {n, n, 0};
        bool found = brig_added_find(&t->added[stage], text, n, from, control, &m);
        if (m.start > from)
            r = encode_stage(t, stage + 1, text + from, m.start - from, control, at_start && from == 0, ids,
                             fail);
        if (r == 0 && found)
            r = add_id(ids, m.id, fail);
        if (!found)
            break;
        from = m.end;
    }
    return r;
}

/* The text with U+FFFD for what is no UTF-8: itself, or the tokenizer's copy. */
static int clean(struct brig_tokenizer *t, const char **text, size_t *n, struct brig_fail *fail)
{
    if (*n > MAX_TEXT_BYTES)
        return brig_fail_set(fail, BRIG_ELIMIT, "a text of %zu bytes is too long (at most %zu)", *n,
                             MAX_TEXT_BYTES);
    if (brig_utf8_valid(*text, *n))
        return 0;
    struct brig_stream s = {0};
    brig_buf_clear(&t->clean);
    int r = brig_stream_add(&s, *text, *n, &t->clean);
    if (r == 0)
        r = brig_stream_finish(&s, &t->clean);
    if (r < 0)
        return brig_fail_set(fail, (enum brig_err) - r, "out of memory for a text of %zu bytes", *n);
    *text = t->clean.data;
    *n = t->clean.len;
    return 0;
}

int brig_tokenizer_encode(struct brig_tokenizer *t, const char *text, size_t n, unsigned flags,
                          struct brig_ids *ids, struct brig_fail *fail)
{
    const struct brig_vocab *v = t->vocab;
    bool marks = (flags & BRIG_ENCODE_BOS) != 0;
    size_t before = ids->n;
    int r = clean(t, &text, &n, fail);
    if (r == 0)
        r = add_mark(t, marks && v->add_bos, v->bos, ids, fail);
    if (r == 0)
        r = encode_stage(t, 0, text, n, (flags & BRIG_ENCODE_SPECIAL) != 0, true, ids, fail);
    if (r == 0)
        r = add_mark(t, marks && v->add_eos, v->eos, ids, fail);
    if (r < 0)
        ids->n = before;
    return r;
}

/* The bytes of a token of a vocabulary without rules, as its kind has them. */
static bool piece_of_kind(struct brig_tokenizer *t, uint32_t id, int32_t type, struct brig_str *ret)
{
    const struct brig_vocab *v = t->vocab;
    int (*piece)(void *, uint32_t, struct brig_buf *) = t->kind->piece;
    if (type == BRIG_TOKEN_USER)
        piece = t->kind->user_piece;
    if (type == BRIG_TOKEN_CONTROL || piece == NULL) {
        *ret = v->tokens[id];
    } else {
        brig_buf_clear(&t->piece);
        if (piece(t->state, id, &t->piece) < 0)
            return false;
        *ret = (struct brig_str){t->piece.data, t->piece.len};
    }
    t->last_lead = t->kind->lead != NULL ? t->kind->lead(t->state, id) : 0;
    return true;
}

bool brig_tokenizer_piece(struct brig_tokenizer *t, uint32_t id, bool special, const char **bytes, size_t *n)
{
    const struct brig_vocab *v = t->vocab;
    if (id >= v->n_tokens)
        return false;
    int32_t type = v->types != NULL ? v->types[id] : BRIG_TOKEN_NORMAL;
    struct brig_str s = {"", 0};
    t->last = BRIG_NO_ID;
    t->last_lead = 0;
    if (type != BRIG_TOKEN_CONTROL || special) {
        if (t->decoder != NULL ? brig_decoder_piece(t->decoder, v->tokens[id], &s, &t->last_lead, NULL) < 0
                               : !piece_of_kind(t, id, type, &s))
            return false;
    }
    t->last = id;
    *bytes = s.len > 0 ? s.ptr : "";
    *n = s.len;
    return true;
}

size_t brig_tokenizer_lead(struct brig_tokenizer *t, uint32_t id)
{
    const char *bytes;
    size_t n;
    if (t->last != id && !brig_tokenizer_piece(t, id, true, &bytes, &n))
        return 0;
    return t->last_lead;
}

int brig_tokenizer_decode(struct brig_tokenizer *t, const uint32_t *ids, size_t n, bool special,
                          struct brig_buf *out, struct brig_fail *fail)
{
    struct brig_stream s = {0};
    bool at_start = true; /* nothing has been said yet */
    int r = 0;
    for (size_t i = 0; i < n && r == 0; i++) {
        const char *bytes;
        size_t n_bytes;
        if (!brig_tokenizer_piece(t, ids[i], special, &bytes, &n_bytes))
            return brig_fail_set(fail, BRIG_EFORMAT, "token id %u is outside the vocabulary of %u tokens",
                                 ids[i], t->vocab->n_tokens);
        size_t lead = at_start && n_bytes > 0 ? brig_tokenizer_lead(t, ids[i]) : 0;
        at_start = at_start && n_bytes == 0;
        r = brig_stream_add(&s, bytes + lead, n_bytes - lead, out);
    }
    if (r == 0)
        r = brig_stream_finish(&s, out);
    return r == 0 ? 0 : brig_fail_set(fail, (enum brig_err) - r, "decoded text: %s", brig_err_text(-r));
}

bool brig_tokenizer_is_end(const struct brig_tokenizer *t, uint32_t id)
{
    static const char *const spellings[] = {"<|im_end|>",    "<|eot_id|>", "<|endoftext|>",
                                            "<end_of_turn>", "</s>",       "<|end|>"};
    const struct brig_vocab *v = t->vocab;
    if (id >= v->n_tokens)
        return false;
    if (id == v->eos || id == v->eot)
        return true;
    for (uint32_t i = 0; i < v->n_ends; i++)
        if (id == v->ends[i])
            return true;
    if (v->types == NULL || v->types[id] != BRIG_TOKEN_CONTROL)
        return false;
    for (size_t i = 0; i < sizeof spellings / sizeof spellings[0]; i++)
        if (brig_str_eq(v->tokens[id], spellings[i]))
            return true;
    return false;
}

uint32_t brig_tokenizer_n_tokens(const struct brig_tokenizer *t)
{
    return t->vocab->n_tokens;
}
