/* tokenizer.json to a vocabulary: tokens by id, added tokens, the kind of model, what is put around a text.
 */
#include <string.h>

#include "driver/token/folder_private.h"
#include "driver/token/kind.h"
#include "driver/token/rules_json.h"
#include "proto/base/mem.h"
#include "proto/model/json.h"

#define MAX_HOLES 65536u /* ids without a token beyond as many as there are tokens */

static int64_t find_type(const struct brig_folder *f, struct brig_str s, bool added)
{
    for (uint32_t id = 0; id < f->vocab.n_tokens; id++)
        if (f->tokens[id].len == s.len && memcmp(f->tokens[id].ptr, s.ptr, s.len) == 0 &&
            added == (f->types[id] == BRIG_TOKEN_CONTROL || f->types[id] == BRIG_TOKEN_USER))
            return id;
    return -1;
}

int64_t brig_folder_find(const struct brig_folder *f, struct brig_str s)
{
    int64_t id = s.len > 0 ? find_type(f, s, true) : -1;
    return id >= 0 || s.len == 0 ? id : find_type(f, s, false);
}

/* ---- tokens ---- */

static int read_added_id(const json_t *o, uint32_t *ret, struct brig_fail *fail)
{
    uint64_t id = 0;
    if (!json_is_object(o))
        return brig_fail_set(fail, BRIG_EFORMAT, "added_tokens: %s, an object is wanted", brig_json_kind(o));
    int r =
        brig_rules_only(o, "added_tokens", "id content single_word lstrip rstrip normalized special", fail);
    if (r == 0)
        r = brig_json_as_u64(json_object_get(o, "id"), "added_tokens: id", &id, fail);
    if (r == 0 && id >= BRIG_MAX_VOCAB)
        r = brig_fail_set(fail, BRIG_ELIMIT, "added_tokens: id %llu, more than %u", (unsigned long long)id,
                          BRIG_MAX_VOCAB);
    *ret = (uint32_t)id;
    return r;
}

/* Room for all ids that there are. */
static int count(struct brig_folder *f, const json_t *added, struct brig_fail *fail)
{
    uint64_t most = 0, n_known = (uint64_t)f->tables.n_tokens + json_array_size(added);
    for (uint32_t i = 0; i < f->tables.n_tokens; i++) {
        uint64_t id = f->tables.scored ? i : f->tables.tokens[i].id;
        most = id + 1 > most ? id + 1 : most;
    }
    for (size_t i = 0; i < json_array_size(added); i++) {
        uint32_t id;
        int r = read_added_id(json_array_get(added, i), &id, fail);
        if (r < 0)
            return r;
        most = (uint64_t)id + 1 > most ? (uint64_t)id + 1 : most;
    }
    if (most == 0)
        return brig_fail_set(fail, BRIG_EFORMAT, "it has no tokens");
    if (most > 2 * n_known + MAX_HOLES)
        return brig_fail_set(fail, BRIG_EFORMAT, "%llu tokens, and ids up to %llu",
                             (unsigned long long)n_known, (unsigned long long)most - 1);
    f->vocab.n_tokens = (uint32_t)most;
    f->tokens = brig_alloc(most, sizeof *f->tokens);
    f->types = brig_alloc(most, sizeof *f->types);
    f->added = brig_alloc(most, sizeof *f->added);
    f->scores = brig_alloc(f->tables.scored ? most : 0, sizeof *f->scores);
    if (f->tokens == NULL || f->types == NULL || f->added == NULL || f->scores == NULL)
        return brig_fail_set(fail, BRIG_ENOMEM, "out of memory for %llu tokens", (unsigned long long)most);
    return 0;
}

static int place_tokens(struct brig_folder *f, struct brig_fail *fail)
{
    for (uint32_t id = 0; id < f->vocab.n_tokens; id++) {
        f->types[id] = BRIG_TOKEN_UNUSED;
        f->added[id] = BRIG_ADDED_ONLY; /* until the model is seen to have it */
    }
    for (uint32_t i = 0; i < f->tables.n_tokens; i++) {
        uint32_t id = f->tables.scored ? i : f->tables.tokens[i].id;
        struct brig_str s = f->tables.tokens[i].text;
        if (f->types[id] != BRIG_TOKEN_UNUSED)
            return brig_fail_set(fail, BRIG_EFORMAT, "id %u has two tokens, '%.*s' and '%.*s'", id,
                                 (int)(f->tokens[id].len < 64 ? f->tokens[id].len : 64), f->tokens[id].ptr,
                                 (int)(s.len < 64 ? s.len : 64), s.ptr);
        f->tokens[id] = s;
        f->types[id] = BRIG_TOKEN_NORMAL;
        f->added[id] = 0;
        if (f->tables.scored)
            f->scores[id] = f->tables.tokens[i].score;
    }
    return 0;
}

static int read_flags(const json_t *o, uint8_t *ret, bool *special, struct brig_fail *fail)
{
    bool normalized = false, lstrip = false, rstrip = false, word = false;
    const struct {
        const char *key;
        bool *to;
    } rows[] = {{"special", special}, {"lstrip", &lstrip}, {"rstrip", &rstrip}, {"single_word", &word}};
    for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        int r = brig_json_bool(o, rows[i].key, rows[i].to, fail);
        if (r < 0)
            return r;
    }
    normalized = !*special; /* when it is not stated */
    int r = brig_json_bool(o, "normalized", &normalized, fail);
    if (r < 0)
        return r;
    *ret = (uint8_t)((normalized ? BRIG_ADDED_NORMALIZED : 0) | (lstrip ? BRIG_ADDED_LSTRIP : 0) |
                     (rstrip ? BRIG_ADDED_RSTRIP : 0) | (word ? BRIG_ADDED_WORD : 0));
    return 0;
}

static int place_added(struct brig_folder *f, const json_t *added, struct brig_fail *fail)
{
    for (size_t i = 0; i < json_array_size(added); i++) {
        const json_t *o = json_array_get(added, i);
        uint32_t id;
        uint8_t flags = 0;
        bool special = false;
        struct brig_str s;
        int r = read_added_id(o, &id, fail);
        if (r == 0)
            r = brig_json_as_str(json_object_get(o, "content"), "added_tokens: content", &s, fail);
        if (r == 0)
            r = read_flags(o, &flags, &special, fail);
        if (r < 0)
            return r;
        struct brig_str old = f->tokens[id];
        if (f->types[id] != BRIG_TOKEN_UNUSED && (old.len != s.len || memcmp(old.ptr, s.ptr, s.len) != 0))
            return brig_fail_set(fail, BRIG_EFORMAT, "added token '%.*s' has the id of '%.*s', %u",
                                 (int)(s.len < 64 ? s.len : 64), s.ptr, (int)(old.len < 64 ? old.len : 64),
                                 old.ptr, id);
        f->tokens[id] = s;
        f->types[id] = special ? BRIG_TOKEN_CONTROL : BRIG_TOKEN_USER;
        f->added[id] |= flags;
    }
    return 0;
}

/* ---- the model ---- */

static bool has_bytes(const struct brig_steps *s)
{
    return s->n > 0 && s->v[s->n - 1].kind == BRIG_STEP_BYTES;
}

/* null, or what stands for nothing. */
static int read_nothing(const json_t *model, const char *key, struct brig_fail *fail)
{
    const json_t *o = json_object_get(model, key);
    if (o == NULL || json_is_null(o) || (json_is_string(o) && json_string_length(o) == 0) ||
        (json_is_number(o) && json_number_value(o) == 0))
        return 0;
    return brig_fail_set(fail, BRIG_EUNSUPPORTED, "model: %s is not supported", key);
}

static int read_bpe(struct brig_folder *f, const json_t *model, struct brig_fail *fail)
{
    struct brig_str unk = {"", 0};
    int r = brig_rules_only(model, "model",
                            "type dropout unk_token continuing_subword_prefix end_of_word_suffix fuse_unk "
                            "byte_fallback ignore_merges vocab merges",
                            fail);
    if (r < 0 || (r = read_nothing(model, "dropout", fail)) < 0 ||
        (r = read_nothing(model, "continuing_subword_prefix", fail)) < 0 ||
        (r = read_nothing(model, "end_of_word_suffix", fail)) < 0 ||
        (r = brig_json_bool(model, "fuse_unk", &f->rules.fuse_unk, fail)) < 0 ||
        (r = brig_json_bool(model, "byte_fallback", &f->rules.byte_fallback, fail)) < 0 ||
        (r = brig_json_bool(model, "ignore_merges", &f->rules.ignore_merges, fail)) < 0 ||
        (r = brig_json_str(model, "unk_token", &unk, fail)) < 0)
        return r;
    if (f->tables.scored || !f->tables.has_merges)
        return brig_fail_set(fail, BRIG_EFORMAT, "model: BPE needs vocab as an object and merges as a list");
    f->vocab.unk = brig_folder_find(f, unk);
    if (unk.len > 0 && f->vocab.unk < 0)
        return brig_fail_set(fail, BRIG_EFORMAT, "model: unk_token '%.*s' is not in the vocabulary",
                             (int)(unk.len < 64 ? unk.len : 64), unk.ptr);
    bool bytes = has_bytes(&f->rules.pre);
    if (bytes && f->rules.byte_fallback)
        return brig_fail_set(fail, BRIG_EUNSUPPORTED,
                             "model: byte_fallback beside ByteLevel is not supported");
    f->vocab.model = bytes ? (struct brig_str){"gpt2", 4} : (struct brig_str){"bpe", 3};
    return 0;
}

static int read_unigram(struct brig_folder *f, const json_t *model, struct brig_fail *fail)
{
    uint64_t unk = 0;
    int r = brig_rules_only(model, "model", "type unk_id vocab byte_fallback", fail);
    if (r < 0 || (r = brig_json_bool(model, "byte_fallback", &f->rules.byte_fallback, fail)) < 0 ||
        (r = brig_json_u64(model, "unk_id", &unk, fail)) < 0)
        return r;
    if (r > 0 && unk >= f->tables.n_tokens)
        return brig_fail_set(fail, BRIG_EFORMAT, "model: unk_id %llu, and %u tokens", (unsigned long long)unk,
                             f->tables.n_tokens);
    if (!f->tables.scored)
        return brig_fail_set(fail, BRIG_EFORMAT, "model: Unigram needs vocab as a list of tokens and scores");
    if (has_bytes(&f->rules.pre))
        return brig_fail_set(fail, BRIG_EUNSUPPORTED,
                             "pre_tokenizer: ByteLevel before Unigram is not supported");
    f->vocab.unk = r > 0 ? (int64_t)unk : -1;
    f->vocab.model = (struct brig_str){"t5", 2};
    return 0;
}

static int read_kind(struct brig_folder *f, struct brig_fail *fail)
{
    const json_t *model = NULL;
    struct brig_str type = {"BPE", 3}; /* old files say nothing */
    int r = brig_json_object(f->tables.rest, "model", &model, fail);
    if (r < 0 || (r > 0 && (r = brig_json_str(model, "type", &type, fail)) < 0))
        return r;
    if (model == NULL || !f->tables.has_vocab)
        return brig_fail_set(fail, BRIG_EFORMAT, "it has no model with a vocab");
    if (brig_str_eq(type, "BPE"))
        return read_bpe(f, model, fail);
    if (brig_str_eq(type, "Unigram"))
        return read_unigram(f, model, fail);
    return brig_fail_set(fail, BRIG_EUNSUPPORTED, "model '%.*s' is not supported (known: BPE, Unigram)",
                         (int)(type.len < 64 ? type.len : 64), type.ptr);
}

int brig_folder_read_model(struct brig_folder *f, struct brig_fail *fail)
{
    const json_t *added = NULL, *root = f->tables.rest;
    int r = brig_rules_only(root, "tokenizer",
                            "version truncation padding added_tokens normalizer pre_tokenizer post_processor "
                            "decoder model",
                            fail);
    if (r < 0 || (r = brig_json_array(root, "added_tokens", &added, fail)) < 0 ||
        (r = count(f, added, fail)) < 0 || (r = place_tokens(f, fail)) < 0 ||
        (r = place_added(f, added, fail)) < 0 || (r = brig_rules_read(&f->rules, root, fail)) < 0 ||
        (r = read_kind(f, fail)) < 0)
        return r;
    struct brig_vocab *v = &f->vocab;
    v->tokens = f->tokens;
    v->types = f->types;
    v->n_merges = f->tables.n_pairs;
    v->pairs = (const struct brig_str(*)[2])f->tables.pairs;
    f->rules.added = f->added;
    f->rules.scores = f->tables.scored ? f->scores : NULL;
    v->rules = &f->rules;
    return 0;
}

/* ---- what is put around a text ---- */

/* The one id that a special token of a template stands for. */
static int template_id(const struct brig_folder *f, const json_t *processor, const json_t *special,
                       int64_t *ret, struct brig_fail *fail)
{
    struct brig_str name;
    const json_t *all = NULL, *ids = NULL;
    uint64_t id = 0;
    int r = brig_json_as_str(json_object_get(special, "id"), "post_processor: id", &name, fail);
    if (r == 0)
        r = brig_json_object(processor, "special_tokens", &all, fail);
    const json_t *token = r > 0 ? json_object_getn(all, name.ptr, name.len) : NULL;
    if (r >= 0)
        r = brig_json_array(token, "ids", &ids, fail);
    if (r < 0)
        return r;
    if (json_array_size(ids) != 1)
        return brig_fail_set(fail, BRIG_EUNSUPPORTED, "post_processor: special token '%.*s' is not one id",
                             (int)(name.len < 64 ? name.len : 64), name.ptr);
    r = brig_json_as_u64(json_array_get(ids, 0), "post_processor: ids", &id, fail);
    if (r == 0 && id >= f->vocab.n_tokens)
        r = brig_fail_set(fail, BRIG_EFORMAT, "post_processor: id %llu, and %u tokens",
                          (unsigned long long)id, f->vocab.n_tokens);
    *ret = (int64_t)id;
    return r;
}

static int read_template(struct brig_folder *f, const json_t *o, struct brig_fail *fail)
{
    const json_t *single = NULL;
    unsigned n_texts = 0;
    int r = brig_rules_only(o, "TemplateProcessing", "type single pair special_tokens", fail);
    if (r == 0)
        r = brig_json_array(o, "single", &single, fail);
    for (size_t i = 0; r >= 0 && i < json_array_size(single); i++) {
        const json_t *special = json_object_get(json_array_get(single, i), "SpecialToken");
        bool *add = n_texts == 0 ? &f->vocab.add_bos : &f->vocab.add_eos;
        if (special == NULL) {
            n_texts++;
            continue;
        }
        if (*add)
            return brig_fail_set(fail, BRIG_EUNSUPPORTED,
                                 "post_processor: more than one token before or after a text");
        r = template_id(f, o, special, n_texts == 0 ? &f->vocab.bos : &f->vocab.eos, fail);
        *add = true;
    }
    if (r >= 0 && n_texts != 1)
        return brig_fail_set(fail, BRIG_EUNSUPPORTED, "post_processor: a template without one text");
    return r < 0 ? r : 0;
}

static int read_processor(struct brig_folder *f, const json_t *o, struct brig_fail *fail)
{
    struct brig_str type = {"", 0};
    int r = brig_json_str(o, "type", &type, fail);
    if (r < 0 || brig_str_eq(type, "ByteLevel")) /* moves offsets, no tokens */
        return r < 0 ? r : 0;
    if (brig_str_eq(type, "TemplateProcessing"))
        return read_template(f, o, fail);
    return brig_fail_set(fail, BRIG_EUNSUPPORTED, "post_processor '%.*s' is not supported",
                         (int)(type.len < 64 ? type.len : 64), type.ptr);
}

int brig_folder_read_post(struct brig_folder *f, struct brig_fail *fail)
{
    const json_t *o = NULL, *list = NULL;
    struct brig_str type = {"", 0};
    int r = brig_json_object(f->tables.rest, "post_processor", &o, fail);
    if (r <= 0)
        return r;
    r = brig_json_str(o, "type", &type, fail);
    if (r < 0 || !brig_str_eq(type, "Sequence"))
        return r < 0 ? r : read_processor(f, o, fail);
    r = brig_json_array(o, "processors", &list, fail);
    for (size_t i = 0; r >= 0 && i < json_array_size(list); i++)
        r = read_processor(f, json_array_get(list, i), fail);
    return r < 0 ? r : 0;
}
