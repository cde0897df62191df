/* GGUF: the tokenizer's data. Whether it fits the model is the family's to check. */
#include "proto/model/gguf.h"

#include <string.h>

#include "proto/base/mem.h"

/* Some writers state an id that there is not as all ones. */
#define NO_ID 0xffffffffu

/* The entry of an array with the right kind of elements; NULL and 0 when the key is absent. */
static int find_array(const struct brig_meta *meta, const char *key, uint32_t elem, uint32_t elem_too,
                      const struct brig_meta_entry **ret, struct brig_fail *fail)
{
    const struct brig_meta_entry *e = brig_meta_find(meta, key);
    if (e == NULL)
        return 0;
    if (e->kind != BRIG_META_ARRAY)
        return brig_fail_set(fail, BRIG_EFORMAT, "%s is %s, an array is wanted", key,
                             brig_meta_kind(meta, key));
    if (e->array.elem != elem && e->array.elem != elem_too)
        return brig_fail_set(fail, BRIG_EFORMAT, "%s is an array of %s, %s is wanted", key,
                             brig_gguf_kind_name(e->array.elem), brig_gguf_kind_name(elem));
    if (e->array.n > BRIG_MAX_VOCAB)
        return brig_fail_set(fail, BRIG_ELIMIT, "%s has %llu elements, more than %u", key,
                             (unsigned long long)e->array.n, BRIG_MAX_VOCAB);
    *ret = e;
    return 0;
}

/* The strings of an array that the first walk has accepted. */
static int read_strings(const struct brig_meta *meta, const char *key, struct brig_str **ret, uint32_t *ret_n,
                        struct brig_fail *fail)
{
    const struct brig_meta_entry *e = NULL;
    int r = find_array(meta, key, BRIG_GGUF_STRING, BRIG_GGUF_STRING, &e, fail);
    if (r < 0 || e == NULL)
        return r;
    struct brig_str *strings = brig_alloc(e->array.n, sizeof *strings);
    if (strings == NULL)
        return brig_fail_set(fail, BRIG_ENOMEM, "no memory for %s", key);
    const char *p = e->array.bytes.ptr;
    for (uint64_t i = 0; i < e->array.n; i++) {
        uint64_t n;
        memcpy(&n, p, sizeof n);
        strings[i] = (struct brig_str){p + sizeof n, (size_t)n};
        p += sizeof n + n;
    }
    *ret = strings;
    *ret_n = (uint32_t)e->array.n;
    return 0;
}

/* A copy (the file's may lie at any address) of one number of four bytes for each token, by the name `what`;
 * *ret stays NULL when the key is absent. */
static int read_numbers(const struct brig_meta *meta, const char *key, uint32_t elem, uint32_t elem_too,
                        const char *what, uint32_t n_tokens, void **ret, struct brig_fail *fail)
{
    const struct brig_meta_entry *e = NULL;
    int r = find_array(meta, key, elem, elem_too, &e, fail);
    if (r < 0 || e == NULL)
        return r;
    if (e->array.n != n_tokens)
        return brig_fail_set(fail, BRIG_EFORMAT, "a vocabulary that does not fit: %u tokens and %llu %s",
                             n_tokens, (unsigned long long)e->array.n, what);
    void *numbers = brig_alloc(n_tokens, sizeof(uint32_t));
    if (numbers == NULL)
        return brig_fail_set(fail, BRIG_ENOMEM, "no memory for %u %s", n_tokens, what);
    memcpy(numbers, e->array.bytes.ptr, (size_t)n_tokens * sizeof(uint32_t));
    *ret = numbers;
    return 0;
}

static int read_types(struct brig_gguf *g, struct brig_vocab *v, struct brig_fail *fail)
{
    void *types = NULL;
    int r = read_numbers(&g->meta, "tokenizer.ggml.token_type", BRIG_GGUF_I32, BRIG_GGUF_U32, "token types",
                         v->n_tokens, &types, fail);
    v->types = g->token_types = types;
    return r;
}

static int read_scores(struct brig_gguf *g, struct brig_vocab *v, struct brig_fail *fail)
{
    void *scores = NULL;
    int r = read_numbers(&g->meta, "tokenizer.ggml.scores", BRIG_GGUF_F32, BRIG_GGUF_F32, "scores",
                         v->n_tokens, &scores, fail);
    v->scores = g->scores = scores;
    return r;
}

static int read_id(const struct brig_meta *meta, const char *key, int64_t *ret, struct brig_fail *fail)
{
    const struct brig_meta_entry *e = brig_meta_find(meta, key);
    uint64_t id;
    *ret = -1;
    if (e == NULL || (e->kind == BRIG_META_I64 && e->i64 == -1))
        return 0;
    if (!brig_meta_u64(meta, key, &id))
        return brig_fail_set(fail, BRIG_EFORMAT, "%s is no token id", key);
    if (id == NO_ID)
        return 0;
    if (id >= BRIG_MAX_VOCAB)
        return brig_fail_set(fail, BRIG_EFORMAT, "a vocabulary that does not fit: %s is %llu", key,
                             (unsigned long long)id);
    *ret = (int64_t)id;
    return 0;
}

static int read_ids(const struct brig_meta *meta, struct brig_vocab *v, struct brig_fail *fail)
{
    const struct {
        const char *key;
        int64_t *id;
    } rows[] = {
        {"tokenizer.ggml.bos_token_id", &v->bos},     {"tokenizer.ggml.eos_token_id", &v->eos},
        {"tokenizer.ggml.eot_token_id", &v->eot},     {"tokenizer.ggml.padding_token_id", &v->pad},
        {"tokenizer.ggml.unknown_token_id", &v->unk},
    };
    for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        int r = read_id(meta, rows[i].key, rows[i].id, fail);
        if (r < 0)
            return r;
    }
    return 0;
}

int brig_gguf_read_vocab(struct brig_gguf *g, struct brig_model *m, struct brig_fail *fail)
{
    struct brig_vocab *v = &m->vocab;
    const struct brig_meta *meta = &g->meta;
    int r;
    brig_meta_str(meta, "tokenizer.ggml.model", &v->model);
    brig_meta_str(meta, "tokenizer.ggml.pre", &v->pre);
    brig_meta_str(meta, "tokenizer.chat_template", &v->chat_template);
    if ((r = read_strings(meta, "tokenizer.ggml.tokens", &g->tokens, &v->n_tokens, fail)) < 0 ||
        (r = read_strings(meta, "tokenizer.ggml.merges", &g->merges, &v->n_merges, fail)) < 0 ||
        (r = read_types(g, v, fail)) < 0 || (r = read_scores(g, v, fail)) < 0 ||
        (r = read_ids(meta, v, fail)) < 0)
        return r;
    v->tokens = g->tokens;
    v->merges = g->merges;
    /* Not stated: SentencePiece vocabularies and those of Llama 3 begin with BOS. */
    v->add_bos = brig_str_eq(v->model, "llama") || brig_str_eq(v->pre, "llama-bpe");
    brig_meta_bool(meta, "tokenizer.ggml.add_bos_token", &v->add_bos);
    brig_meta_bool(meta, "tokenizer.ggml.add_eos_token", &v->add_eos);
    v->add_space_prefix = true;
    brig_meta_bool(meta, "tokenizer.ggml.add_space_prefix", &v->add_space_prefix);
    brig_meta_bool(meta, "tokenizer.ggml.remove_extra_whitespaces", &v->remove_extra_spaces);
    v->has_charsmap = brig_meta_find(meta, "tokenizer.ggml.precompiled_charsmap") != NULL;
    return 0;
}
