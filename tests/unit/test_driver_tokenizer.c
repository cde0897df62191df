/*
 * The tokenizer against reference cases: ids, pieces, decoding, invalid UTF-8, streams. The models and cases
 * in build/fixtures/ are made by tests/fixtures/make_tokenizer_gguf.py.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <jansson.h>
#include <utf8proc.h>

#include "driver/token/nfc.h"
#include "driver/token/pretoken.h"
#include "driver/token/tokenizer.h"
#include "driver/token/utf8.h"
#include "proto/base/clock.h"

#define PLAIN   BRIG_ENCODE_SPECIAL
#define SMOLLM2 "SmolLM2-135M-Instruct.Q4_1.gguf"

struct set {
    const char *name, *pre; /* pre NULL: SentencePiece, whose fixture knows no added tokens in text */
    struct brig_model *model;
    struct brig_tokenizer *t;
    json_t *cases;
};

static struct set sets[] = {
    {.name = "gpt2", .pre = "gpt-2"},
    {.name = "tiny_bpe517", .pre = "qwen2"},
    {.name = "tiny_bpe1031", .pre = "llama-bpe"},
    {.name = "tiny_spm517"},
};
#define N_SETS (sizeof sets / sizeof sets[0])

static int open_sets(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_SETS; i++) {
        char path[128];
        struct brig_fail fail = {0};
        snprintf(path, sizeof path, "build/fixtures/tok_%s.gguf", sets[i].name);
        if (brig_model_open(&sets[i].model, path, &fail) < 0 ||
            brig_tokenizer_new(&sets[i].t, &sets[i].model->vocab, NULL, &fail) < 0) {
            print_error("%s: %s\n", path, fail.text);
            return -1;
        }
        json_error_t err;
        snprintf(path, sizeof path, "build/fixtures/tok_%s.json", sets[i].name);
        sets[i].cases = json_load_file(path, JSON_ALLOW_NUL, &err);
        if (sets[i].cases == NULL) {
            print_error("%s: %s\n", path, err.text);
            return -1;
        }
    }
    return 0;
}

static int close_sets(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_SETS; i++) {
        brig_tokenizer_free(sets[i].t);
        brig_model_close(sets[i].model);
        json_decref(sets[i].cases);
    }
    return 0;
}

static void check_encode(struct set *s, const char *text, size_t n, unsigned flags, const json_t *want)
{
    struct brig_ids ids = {0};
    struct brig_fail fail = {0};
    int r = brig_tokenizer_encode(s->t, text, n, flags, &ids, &fail);
    bool same = r == 0 && ids.n == json_array_size(want);
    for (size_t i = 0; same && i < ids.n; i++)
        same = (json_int_t)ids.v[i] == json_integer_value(json_array_get(want, i));
    if (!same) {
        print_error("%s: '%.*s' (%s) gave:", s->name, (int)n, text, fail.text);
        for (size_t i = 0; i < ids.n; i++)
            print_error(" %u", ids.v[i]);
        print_error("\n");
    }
    brig_ids_release(&ids);
    assert_true(same);
}

static void check_decode(struct set *s, const json_t *ids, size_t n, bool special, const json_t *want)
{
    uint32_t *v = calloc(n + 1, sizeof *v);
    struct brig_buf out = {0};
    for (size_t i = 0; i < n; i++)
        v[i] = (uint32_t)json_integer_value(json_array_get(ids, i));
    assert_int_equal(brig_tokenizer_decode(s->t, v, n, special, &out, NULL), 0);
    if (out.len != json_string_length(want) ||
        (out.len > 0 && memcmp(out.data, json_string_value(want), out.len)))
        fail_msg("%s: decoded '%s', not '%s'", s->name, out.data, json_string_value(want));
    brig_buf_release(&out);
    free(v);
}

static void every_case_encodes(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_SETS; i++) {
        size_t at;
        json_t *c;
        assert_true(json_array_size(json_object_get(sets[i].cases, "cases")) > 150);
        json_array_foreach(json_object_get(sets[i].cases, "cases"), at, c)
        {
            json_t *text = json_object_get(c, "text"), *with = json_object_get(c, "ids_special");
            json_t *ids = json_object_get(c, "ids");
            unsigned flags = sets[i].pre != NULL ? PLAIN : 0;
            check_encode(&sets[i], json_string_value(text), json_string_length(text), flags, ids);
            if (sets[i].model->vocab.add_bos && with == NULL) {
                json_t *bos = json_pack("[I]", (json_int_t)sets[i].model->vocab.bos);
                json_array_extend(bos, ids);
                json_object_set_new(c, "ids_special", bos);
                with = bos;
            }
            check_encode(&sets[i], json_string_value(text), json_string_length(text), flags | BRIG_ENCODE_BOS,
                         with != NULL ? with : ids);
        }
    }
}

static void every_case_decodes(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_SETS; i++) {
        size_t at;
        json_t *c;
        json_array_foreach(json_object_get(sets[i].cases, "cases"), at, c)
        {
            json_t *ids = json_object_get(c, "ids"), *skip = json_object_get(c, "decode_skip");
            json_t *whole = json_object_get(c, "decode");
            check_decode(&sets[i], ids, json_array_size(ids), true, whole);
            check_decode(&sets[i], ids, json_array_size(ids), false, skip != NULL ? skip : whole);
        }
    }
}

struct pieces {
    const json_t *want;
    size_t n_pieces, at; /* at: code points so far */
    bool same;
};

static int next_piece(void *ctx, const char *piece, size_t n, struct brig_fail *fail)
{
    (void)fail;
    struct pieces *p = ctx;
    const json_t *range = json_array_get(p->want, p->n_pieces++);
    p->same = p->same && json_integer_value(json_array_get(range, 0)) == (json_int_t)p->at;
    for (size_t i = 0; i < n; i += (size_t)brig_utf8_step(piece + i, n - i))
        p->at++;
    p->same = p->same && json_integer_value(json_array_get(range, 1)) == (json_int_t)p->at;
    return 0;
}

static void every_case_is_cut_in_the_same_places(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_SETS; i++) {
        struct brig_pretoken *pre;
        struct brig_buf normal = {0};
        if (sets[i].pre == NULL)
            continue;
        assert_int_equal(brig_pretoken_new(&pre, (struct brig_str){sets[i].pre, strlen(sets[i].pre)}, NULL),
                         0);
        size_t at, n_checked = 0;
        json_t *c;
        json_array_foreach(json_object_get(sets[i].cases, "cases"), at, c)
        {
            struct pieces p = {.want = json_object_get(c, "pre"), .same = true};
            if (p.want == NULL) /* holds added tokens */
                continue;
            json_t *json = json_object_get(c, "text");
            const char *text;
            size_t n;
            assert_int_equal(brig_pretoken_normalise(pre, json_string_value(json), json_string_length(json),
                                                     &normal, &text, &n, NULL),
                             0);
            assert_int_equal(brig_pretoken_split(pre, text, n, true, next_piece, &p, NULL), 0);
            if (!p.same || p.n_pieces != json_array_size(p.want))
                fail_msg("%s: '%s' is cut in other places", sets[i].name, text);
            n_checked++;
        }
        assert_true(n_checked > 150);
        brig_buf_release(&normal);
        brig_pretoken_free(pre);
    }
}

static size_t from_hex(const char *hex, char *out, size_t cap)
{
    size_t n = 0;
    for (unsigned byte; n < cap && sscanf(hex + 2 * n, "%2x", &byte) == 1; n++)
        out[n] = (char)byte;
    return n;
}

static void invalid_utf8_is_replaced(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_SETS; i++) {
        size_t at;
        json_t *c;
        assert_true(json_array_size(json_object_get(sets[i].cases, "invalid_utf8")) > 10);
        json_array_foreach(json_object_get(sets[i].cases, "invalid_utf8"), at, c)
        {
            char bytes[256];
            size_t n = from_hex(json_string_value(json_object_get(c, "hex")), bytes, sizeof bytes);
            json_t *text = json_object_get(c, "text");
            check_encode(&sets[i], bytes, n, PLAIN, json_object_get(c, "ids"));
            check_decode(&sets[i], json_object_get(c, "ids"), json_array_size(json_object_get(c, "ids")),
                         true, text);
            for (size_t cut = 0; cut <= n; cut++) { /* a stream says the same wherever it is cut */
                struct brig_stream s = {0};
                struct brig_buf out = {0};
                assert_int_equal(brig_stream_add(&s, bytes, cut, &out), 0);
                assert_int_equal(brig_stream_add(&s, bytes + cut, n - cut, &out), 0);
                assert_int_equal(brig_stream_finish(&s, &out), 0);
                assert_int_equal(out.len, json_string_length(text));
                assert_memory_equal(out.data, json_string_value(text), out.len);
                brig_buf_release(&out);
            }
        }
    }
}

/* What a stream has said so far is the beginning of a decode of the tokens so far, and all but a character
 * that is not whole yet has been said. */
static void check_stream(struct set *s, const json_t *ids, const json_t *prefixes)
{
    struct brig_stream stream = {0};
    struct brig_buf out = {0};
    for (size_t i = 0; i < json_array_size(ids); i++) {
        const char *bytes;
        size_t n;
        assert_true(brig_tokenizer_piece(s->t, (uint32_t)json_integer_value(json_array_get(ids, i)), true,
                                         &bytes, &n));
        size_t lead =
            i == 0 ? brig_tokenizer_lead(s->t, (uint32_t)json_integer_value(json_array_get(ids, 0))) : 0;
        assert_int_equal(brig_stream_add(&stream, bytes + lead, n - lead, &out), 0);
        const json_t *whole = json_array_get(prefixes, i);
        size_t held = stream.n_held > 0 ? BRIG_UTF8_REPLACEMENT_BYTES : 0;
        assert_int_equal(out.len + held, json_string_length(whole));
        assert_true(out.len == 0 || memcmp(out.data, json_string_value(whole), out.len) == 0);
        check_decode(s, ids, i + 1, true, whole);
    }
    const json_t *last = json_array_get(prefixes, json_array_size(prefixes) - 1);
    assert_int_equal(brig_stream_finish(&stream, &out), 0);
    assert_int_equal(out.len, json_string_length(last));
    assert_memory_equal(out.data, json_string_value(last), out.len);
    brig_buf_release(&out);
}

static void streams_never_say_half_a_character(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_SETS; i++) {
        size_t at;
        json_t *c;
        assert_true(json_array_size(json_object_get(sets[i].cases, "stream")) > 3);
        json_array_foreach(json_object_get(sets[i].cases, "stream"), at, c)
            check_stream(&sets[i], json_object_get(c, "ids"), json_object_get(c, "prefix_decode"));
    }
}

static void special_spellings_can_be_plain_text(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_SETS; i++) {
        const char *text = sets[i].pre != NULL ? "a<|endoftext|>b" : "a</s>b";
        struct brig_ids special = {0}, plain = {0};
        struct brig_buf out = {0};
        assert_int_equal(brig_tokenizer_encode(sets[i].t, text, strlen(text), PLAIN, &special, NULL), 0);
        assert_int_equal(brig_tokenizer_encode(sets[i].t, text, strlen(text), 0, &plain, NULL), 0);
        assert_int_equal(special.n, 3);
        assert_true(brig_tokenizer_is_end(sets[i].t, special.v[1]));
        assert_true(plain.n > 3);
        for (size_t k = 0; k < plain.n; k++)
            assert_int_not_equal(plain.v[k], special.v[1]);
        assert_int_equal(brig_tokenizer_decode(sets[i].t, plain.v, plain.n, false, &out, NULL), 0);
        assert_string_equal(out.data, text);
        brig_buf_release(&out);
        brig_ids_release(&special);
        brig_ids_release(&plain);
    }
}

static void ids_outside_the_vocabulary_fail(void **state)
{
    (void)state;
    const char *bytes;
    size_t n;
    struct brig_buf out = {0};
    struct brig_fail fail = {0};
    uint32_t ids[2] = {5, brig_tokenizer_n_tokens(sets[0].t)};
    assert_int_equal(brig_tokenizer_n_tokens(sets[0].t), 50257);
    assert_false(brig_tokenizer_piece(sets[0].t, ids[1], true, &bytes, &n));
    assert_false(brig_tokenizer_is_end(sets[0].t, ids[1]));
    assert_int_equal(brig_tokenizer_decode(sets[0].t, ids, 2, true, &out, &fail), -BRIG_EFORMAT);
    assert_non_null(strstr(fail.text, "50257"));
    brig_buf_release(&out);
}

static void unknown_kinds_are_named(void **state)
{
    (void)state;
    struct brig_vocab v = sets[1].model->vocab;
    struct brig_tokenizer *t;
    struct brig_fail fail = {0};
    assert_int_equal(brig_tokenizer_new(&t, &v, "klingon", &fail), -BRIG_EUNSUPPORTED);
    assert_non_null(strstr(fail.text, "'klingon'"));
    assert_non_null(strstr(fail.text, "--pre"));
    assert_non_null(strstr(fail.text, "smollm"));
    v.pre = (struct brig_str){NULL, 0};
    assert_int_equal(brig_tokenizer_new(&t, &v, NULL, &fail), -BRIG_EUNSUPPORTED);
    assert_non_null(strstr(fail.text, "--pre"));
    assert_int_equal(brig_tokenizer_new(&t, &v, "gpt-2", &fail), 0);
    brig_tokenizer_free(t);
    v.model = (struct brig_str){"runes", 5};
    assert_int_equal(brig_tokenizer_new(&t, &v, "gpt-2", &fail), -BRIG_EUNSUPPORTED);
    assert_non_null(strstr(fail.text, "'runes'"));
    v.model = (struct brig_str){"llama", 5};
    assert_int_equal(brig_tokenizer_new(&t, &v, "gpt-2", &fail), -BRIG_EUSAGE);
    assert_int_equal(brig_tokenizer_new(&t, &v, NULL, &fail), -BRIG_EFORMAT);
    assert_non_null(strstr(fail.text, "tokenizer.ggml.scores"));
    v.n_tokens = 0;
    assert_int_equal(brig_tokenizer_new(&t, &v, NULL, &fail), -BRIG_EUNSUPPORTED);
}

/* Tokenizers made by hand: what a damaged file may hold. */
#define STR(s)                                                                                               \
    {                                                                                                        \
        (s), sizeof(s) - 1                                                                                   \
    }
#define N_OF(list) (uint32_t)(sizeof(list) / sizeof(list)[0])

static void damaged_merges_are_named(void **state)
{
    (void)state;
    static const struct brig_str tokens[] = {STR("a"), STR("b"), STR("ab")};
    static const struct brig_str bad[] = {STR("ab"), STR(""), STR(" "), STR("a c"), STR("b a"), STR("ab ")};
    struct brig_vocab v = {.model = STR("gpt2"), .pre = STR("gpt-2"), .n_tokens = 3, .tokens = tokens};
    v.bos = v.eos = v.eot = v.pad = v.unk = -1;
    for (size_t i = 0; i < N_OF(bad); i++) {
        struct brig_str merges[2] = {STR("a b"), bad[i]};
        struct brig_tokenizer *t = NULL;
        struct brig_fail fail = {0};
        v.n_merges = 2;
        v.merges = merges;
        assert_int_equal(brig_tokenizer_new(&t, &v, NULL, &fail), -BRIG_EFORMAT);
        assert_non_null(strstr(fail.text, "merge 1 "));
    }
}

static void missing_bytes_are_unknown_or_named(void **state)
{
    (void)state;
    static const struct brig_str tokens[] = {STR("a"), STR("b"), STR("ab"), STR("?")};
    static const struct brig_str merges[] = {STR("a b")};
    struct brig_vocab v = {.model = STR("gpt2"), .pre = STR("gpt-2"), .n_tokens = 4, .tokens = tokens};
    v.n_merges = 1;
    v.merges = merges;
    v.bos = v.eos = v.eot = v.pad = v.unk = -1;
    struct brig_tokenizer *t;
    struct brig_fail fail = {0};
    struct brig_ids ids = {0};
    assert_int_equal(brig_tokenizer_new(&t, &v, NULL, &fail), 0);
    assert_int_equal(brig_ids_add(&ids, 77), 0);
    assert_int_equal(brig_tokenizer_encode(t, "abzab", 5, PLAIN, &ids, &fail), -BRIG_EUNSUPPORTED);
    assert_non_null(strstr(fail.text, "0x7a"));
    assert_int_equal(ids.n, 1); /* what was there is there still, and nothing more */
    brig_tokenizer_free(t);
    v.unk = 3;
    assert_int_equal(brig_tokenizer_new(&t, &v, NULL, &fail), 0);
    assert_int_equal(brig_tokenizer_encode(t, "abzab", 5, PLAIN, &ids, &fail), 0);
    static const uint32_t want[] = {77, 2, 3, 2};
    assert_int_equal(ids.n, 4);
    assert_memory_equal(ids.v, want, sizeof want);
    brig_ids_release(&ids);
    brig_tokenizer_free(t);
}

/* SentencePiece by hand: scores and their ties, words, bytes and unknown text, added tokens. */
static const struct brig_str spm_tokens[] = {STR("<unk>"),
                                             STR("<s>"),
                                             STR("a"),
                                             STR("b"),
                                             STR("aa"),
                                             STR("ab"),
                                             STR("aab"),
                                             STR("\xe2\x96\x81"),
                                             STR("<0x2B>"),
                                             STR("ba"),
                                             STR("  "),
                                             STR("<0x7A>"),
                                             STR("\xe2\x96\x81"
                                                 "a")};
static const int32_t spm_types[] = {2, 3, 1, 1, 1, 1, 1, 1, 6, 1, 4, 1, 1};
static const float spm_scores[] = {0, 0, -9, -9, -1, -1, 2.5f, -9, 0, -0.5f, 0, -9, -3};

static void scores_decide_and_ties_go_left(void **state)
{
    (void)state;
    struct brig_vocab v = {
        .model = STR("llama"), .n_tokens = N_OF(spm_tokens), .tokens = spm_tokens, .types = spm_types};
    v.scores = spm_scores;
    v.unk = 0;
    v.bos = v.eos = v.eot = v.pad = -1;
    static const struct {
        const char *text;
        unsigned flags;
        bool prefix;
        uint32_t n, ids[8];
    } cases[] = {
        {"aaa", 0, false, 2, {4, 2}},      /* a tie: the left pair */
        {"aab", 0, false, 1, {6}},         /* aa first, then the better aab */
        {"aba", 0, false, 2, {2, 9}},      /* ba is better than ab */
        {"a+a", 0, false, 3, {2, 8, 2}},   /* a byte token */
        {"axyzb", 0, false, 3, {2, 0, 3}}, /* no byte token: one unknown token for the run */
        {"a", 0, true, 1, {12}},           /* with the space before it */
        {"a  b", PLAIN, false, 3, {2, 10, 3}},
        {"<s>a", PLAIN, true, 2, {1, 12}},
        {"", PLAIN, true, 0, {0}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct brig_tokenizer *t;
        struct brig_ids ids = {0};
        v.add_space_prefix = cases[i].prefix;
        assert_int_equal(brig_tokenizer_new(&t, &v, NULL, NULL), 0);
        assert_int_equal(
            brig_tokenizer_encode(t, cases[i].text, strlen(cases[i].text), cases[i].flags, &ids, NULL), 0);
        assert_int_equal(ids.n, cases[i].n);
        if (ids.n > 0)
            assert_memory_equal(ids.v, cases[i].ids, ids.n * sizeof ids.v[0]);
        brig_ids_release(&ids);
        brig_tokenizer_free(t);
    }
}

static void what_scores_cannot_spell_is_named(void **state)
{
    (void)state;
    struct brig_vocab v = {
        .model = STR("llama"), .n_tokens = N_OF(spm_tokens), .tokens = spm_tokens, .types = spm_types};
    float scores[N_OF(spm_scores)];
    memcpy(scores, spm_scores, sizeof scores);
    v.scores = scores;
    v.bos = v.eos = v.eot = v.pad = -1;
    struct brig_tokenizer *t;
    struct brig_ids ids = {0};
    struct brig_fail fail = {0};
    v.unk = -1;
    assert_int_equal(brig_tokenizer_new(&t, &v, NULL, NULL), 0);
    assert_int_equal(brig_tokenizer_encode(t, "az", 2, 0, &ids, &fail), -BRIG_EUNSUPPORTED);
    assert_int_equal(ids.n, 0);
    brig_ids_release(&ids);
    brig_tokenizer_free(t);
    scores[5] = __builtin_nanf("");
    assert_int_equal(brig_tokenizer_new(&t, &v, NULL, &fail), -BRIG_EFORMAT);
    assert_non_null(strstr(fail.text, "token 5"));
}

static void added_tokens_match_longest_first(void **state)
{
    (void)state;
    static const struct brig_str tokens[] = {STR("a"),  STR("<x>"), STR("<x>y"), STR("<"),
                                             STR("<s"), STR("x"),   STR("é<"),   STR(">")};
    static const int32_t types[] = {1, 3, 4, 1, 3, 1, 4, 1};
    struct brig_vocab v = {
        .model = STR("gpt2"), .pre = STR("gpt-2"), .n_tokens = N_OF(tokens), .tokens = tokens};
    v.types = types;
    v.bos = 4;
    v.eos = 1;
    v.add_bos = v.add_eos = true;
    v.eot = v.pad = v.unk = -1;
    static const struct {
        const char *text;
        unsigned flags;
        uint32_t n, ids[8];
    } cases[] = {
        {"<x>ya<x>", PLAIN, 3, {2, 0, 1}},
        {"a<x><x", PLAIN, 4, {0, 1, 3, 5}},
        {"<<s<x>", PLAIN, 3, {3, 4, 1}},
        {"é<a", PLAIN, 2, {6, 0}},
        {"<x>", 0, 3, {3, 5, 7}},
        {"", PLAIN, 0, {0}},
        {"a", PLAIN | BRIG_ENCODE_BOS, 3, {4, 0, 1}},
        {"", BRIG_ENCODE_BOS, 2, {4, 1}},
    };
    struct brig_tokenizer *t;
    assert_int_equal(brig_tokenizer_new(&t, &v, NULL, NULL), 0);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct brig_ids ids = {0};
        assert_int_equal(
            brig_tokenizer_encode(t, cases[i].text, strlen(cases[i].text), cases[i].flags, &ids, NULL), 0);
        assert_int_equal(ids.n, cases[i].n);
        if (ids.n > 0)
            assert_memory_equal(ids.v, cases[i].ids, ids.n * sizeof ids.v[0]);
        brig_ids_release(&ids);
    }
    const char *bytes;
    size_t n;
    assert_true(brig_tokenizer_piece(t, 1, false, &bytes, &n) && n == 0);
    assert_true(brig_tokenizer_piece(t, 1, true, &bytes, &n) && n == 3);
    assert_true(brig_tokenizer_piece(t, 6, false, &bytes, &n) && n == 3 && memcmp(bytes, "é<", 3) == 0);
    brig_tokenizer_free(t);
}

/* The definition, one step at a time: the pair of lowest rank, the leftmost one. */
static size_t merge_slowly(uint32_t *ids, size_t n, const struct brig_vocab *v)
{
    for (;;) {
        size_t best = n;
        uint32_t best_rank = v->n_merges;
        for (size_t i = 0; i + 1 < n; i++)
            for (uint32_t rank = 0; rank < best_rank; rank++)
                if (v->merges[rank].ptr[0] == v->tokens[ids[i]].ptr[0] &&
                    v->merges[rank].len == v->tokens[ids[i]].len + 1 + v->tokens[ids[i + 1]].len &&
                    v->merges[rank].ptr[v->tokens[ids[i]].len] == ' ' &&
                    memcmp(v->merges[rank].ptr, v->tokens[ids[i]].ptr, v->tokens[ids[i]].len) == 0 &&
                    memcmp(v->merges[rank].ptr + v->tokens[ids[i]].len + 1, v->tokens[ids[i + 1]].ptr,
                           v->tokens[ids[i + 1]].len) == 0) {
                    best = i;
                    best_rank = rank;
                    break;
                }
        if (best == n)
            return n;
        struct brig_str left = v->tokens[ids[best]], right = v->tokens[ids[best + 1]];
        for (uint32_t id = 0; id < v->n_tokens; id++)
            if (v->tokens[id].len == left.len + right.len &&
                memcmp(v->tokens[id].ptr, left.ptr, left.len) == 0 &&
                memcmp(v->tokens[id].ptr + left.len, right.ptr, right.len) == 0)
                ids[best] = id;
        memmove(&ids[best + 1], &ids[best + 2], (n - best - 2) * sizeof *ids);
        n--;
    }
}

static void merging_is_the_definition(void **state)
{
    (void)state;
    static const struct brig_str tokens[] = {STR("a"),  STR("b"),   STR("c"),    STR("ab"),   STR("aa"),
                                             STR("bc"), STR("aab"), STR("aaaa"), STR("abab"), STR("cab")};
    static const struct brig_str merges[] = {STR("a b"), STR("aa aa"), STR("b c"),  STR("aa b"),
                                             STR("a a"), STR("c ab"),  STR("ab ab")};
    struct brig_vocab v = {
        .model = STR("gpt2"), .pre = STR("gpt-2"), .n_tokens = N_OF(tokens), .tokens = tokens};
    v.n_merges = N_OF(merges);
    v.merges = merges;
    v.bos = v.eos = v.eot = v.pad = v.unk = -1;
    struct brig_tokenizer *t;
    assert_int_equal(brig_tokenizer_new(&t, &v, NULL, NULL), 0);
    uint32_t x = 12345;
    for (unsigned round = 0; round < 3000; round++) {
        char text[64];
        uint32_t want[64];
        size_t n = 1 + round % 60;
        for (size_t i = 0; i < n; i++) {
            x = x * 1664525u + 1013904223u;
            want[i] = (x >> 24) % 3;
            text[i] = (char)('a' + want[i]);
        }
        struct brig_ids ids = {0};
        size_t n_want = merge_slowly(want, n, &v);
        assert_int_equal(brig_tokenizer_encode(t, text, n, 0, &ids, NULL), 0);
        assert_int_equal(ids.n, n_want);
        assert_memory_equal(ids.v, want, n_want * sizeof want[0]);
        brig_ids_release(&ids);
    }
    brig_tokenizer_free(t);
}

/* A text that is all one word, or all one mark, must not take the square of its length. The bound is loose:
 * the square would take hours. */
static void long_words_are_quick(void **state)
{
    (void)state;
    static const char *const units[] = {" ", "a",  "\n",   " \n",  "<", "\xcc\x81\xcc\xa3",
                                        "1", "'s", "\xff", "<|im_"};
    const size_t n = 1 << 20;
    char *text = malloc(n);
    assert_non_null(text);
    for (size_t u = 0; u < sizeof units / sizeof units[0]; u++) {
        size_t len = strlen(units[u]);
        for (size_t i = 0; i < n; i++)
            text[i] = units[u][i % len];
        for (size_t i = 0; i < N_SETS; i++) {
            struct brig_ids ids = {0};
            uint64_t start = brig_clock_ns();
            assert_int_equal(brig_tokenizer_encode(sets[i].t, text, n, PLAIN, &ids, NULL), 0);
            assert_true(ids.n > 0);
            assert_true(brig_clock_ns() - start < 30 * BRIG_NS_PER_S);
            brig_ids_release(&ids);
        }
    }
    free(text);
}

static int join(void *ctx, const char *piece, size_t n, struct brig_fail *fail)
{
    (void)fail;
    return brig_buf_printf(ctx, "%.*s|", (int)n, piece);
}

static void smollm_splits_digits_before_words(void **state)
{
    (void)state;
    static const struct {
        const char *text, *pieces;
    } cases[] = {
        {"a  1", "a|  |1|"}, /* the spaces end a text of their own: none is kept for the digit */
        {" 12 34", " |1|2| |3|4|"},
        {"x5y it's", "x|5|y| it|'s|"},
        {"\xe2\x85\xa7\xc2\xbd",
         "\xe2\x85\xa7|\xc2\xbd|"},            /* letter-like numbers and fractions are digits too */
        {".\xe1\xa0\x8e.", ".\xe1\xa0\x8e.|"}, /* U+180E is no white space, U+0085 and U+00A0 are */
        {".\xc2\x85.", ".|\xc2\x85|.|"},
        {".\xc2\xa0.", ".|\xc2\xa0|.|"},
    };
    struct brig_pretoken *pre;
    assert_int_equal(brig_pretoken_new(&pre, (struct brig_str)STR("smollm"), NULL), 0);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct brig_buf out = {0};
        assert_int_equal(
            brig_pretoken_split(pre, cases[i].text, strlen(cases[i].text), true, join, &out, NULL), 0);
        assert_string_equal(out.data, cases[i].pieces);
        brig_buf_release(&out);
    }
    brig_pretoken_free(pre);
}

/* Against the library's own function, which is right and only slow. */
static void nfc_is_the_library_s(void **state)
{
    (void)state;
    static const char *const pool[] = {
        "a",
        "e",
        "\xc3\xa9",
        "\xcc\x81",
        "\xcc\xa3",
        "\xcc\x95",
        "\xcc\xa7",
        "\xcd\x85",
        "\xd6\xb0",
        "\xe1\x84\x80",
        "\xe1\x85\xa1",
        "\xe1\x86\xa8",
        "\xea\xb0\x80",
        "\xe1\xba\xa5",
        "\xe2\x84\xab",
        "\xe0\xa5\x98",
        "\xf0\x9f\x98\x80",
        "\xe3\x82\x99",
        "\xe3\x81\x8b",
        "\xcd\x8f",
        "\xe2\x80\x8d",
    };
    struct brig_buf out = {0};
    uint32_t x = 99;
    for (unsigned round = 0; round < 4000; round++) {
        char text[1024] = "";
        size_t n = 0, n_chars = 1 + round % 120;
        unsigned from = round % 3 == 0 ? 3 : 0, below = round % 3 == 0 ? 9 : sizeof pool / sizeof pool[0];
        for (size_t i = 0; i < n_chars; i++) { /* each third text is all marks: long runs to put in order */
            x = x * 1664525u + 1013904223u;
            const char *c = pool[from + (x >> 16) % (below - from)];
            memcpy(text + n, c, strlen(c) + 1);
            n += strlen(c);
        }
        const char *got;
        size_t n_got;
        assert_int_equal(brig_nfc(text, n, &out, &got, &n_got, NULL), 0);
        utf8proc_uint8_t *want = utf8proc_NFC((const utf8proc_uint8_t *)text);
        assert_non_null(want);
        assert_int_equal(n_got, strlen((const char *)want));
        assert_memory_equal(got, want, n_got);
        free(want);
    }
    brig_buf_release(&out);
}

static void every_row_of_the_tables_works(void **state)
{
    (void)state;
    unsigned i = 0;
    const char *name, *help;
    for (; (name = brig_pretokenizer_at(i, &help)) != NULL; i++) {
        struct brig_tokenizer *t;
        struct brig_ids ids = {0};
        struct brig_buf out = {0};
        const char *text = "It's 12345 words,\n\tçok güzel — 你好!  ";
        assert_true(strlen(help) > 0);
        assert_int_equal(brig_tokenizer_new(&t, &sets[0].model->vocab, name, NULL), 0);
        assert_int_equal(brig_tokenizer_encode(t, text, strlen(text), 0, &ids, NULL), 0);
        assert_int_equal(brig_tokenizer_decode(t, ids.v, ids.n, false, &out, NULL), 0);
        assert_string_equal(out.data, text);
        brig_buf_release(&out);
        brig_ids_release(&ids);
        brig_tokenizer_free(t);
    }
    assert_true(i >= 4);
    assert_string_equal(brig_tokenizer_kind_at(0, &help), "gpt2");
    assert_string_equal(brig_tokenizer_kind_at(1, &help), "llama");
    assert_null(brig_tokenizer_kind_at(4, NULL));
}

static void smollm2_round_trips(void **state)
{
    (void)state;
    const char *folder = getenv("BRIGADE_MODELS");
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder != NULL ? folder : "models", SMOLLM2);
    if (access(path, R_OK) != 0) {
        print_message("skipped: %s is not there (make model)\n", path);
        skip();
    }
    static const char *const texts[] = {
        "The quick brown fox jumps over 1,234,567 lazy dogs.\n\n\tIndented — “quoted”, it's fine…",
        "Größe, naïve, crème brûlée; Здравствуй, мир! 你好，世界。こんにちは ありがとう 안녕하세요 مرحبا "
        "שלום नमस्ते",
        "\xf0\x9f\x91\xa8\xe2\x80\x8d\xf0\x9f\x91\xa9 emoji \xf0\x9f\x98\x80, e\xcc\x81 (not composed), "
        "tabs\t\t, \r\n ends   ",
        "int main(void) { return 0x1f << 3; } /* <|im_start|> stays text */",
    };
    struct brig_model *model;
    struct brig_tokenizer *t;
    struct brig_fail fail = {0};
    if (brig_model_open(&model, path, &fail) < 0 || brig_tokenizer_new(&t, &model->vocab, NULL, &fail) < 0)
        fail_msg("%s", fail.text);
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct brig_ids ids = {0};
        struct brig_buf out = {0};
        assert_int_equal(brig_tokenizer_encode(t, texts[i], strlen(texts[i]), 0, &ids, NULL), 0);
        assert_int_equal(brig_tokenizer_decode(t, ids.v, ids.n, false, &out, NULL), 0);
        assert_string_equal(out.data, texts[i]);
        assert_true(ids.n < strlen(texts[i]));
        brig_ids_release(&ids);
        brig_buf_release(&out);
    }
    struct brig_ids ids = {0};
    assert_int_equal(
        brig_tokenizer_encode(t, "<|im_start|>x<|im_end|>", 23, PLAIN | BRIG_ENCODE_BOS, &ids, NULL), 0);
    assert_int_equal(ids.n, 3);
    assert_int_equal(ids.v[0], 1);
    assert_int_equal(ids.v[2], 2);
    assert_true(brig_tokenizer_is_end(t, 2));
    assert_false(brig_tokenizer_is_end(t, 1));
    brig_ids_release(&ids);
    brig_tokenizer_free(t);
    brig_model_close(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_case_encodes),
        cmocka_unit_test(every_case_decodes),
        cmocka_unit_test(every_case_is_cut_in_the_same_places),
        cmocka_unit_test(invalid_utf8_is_replaced),
        cmocka_unit_test(streams_never_say_half_a_character),
        cmocka_unit_test(special_spellings_can_be_plain_text),
        cmocka_unit_test(ids_outside_the_vocabulary_fail),
        cmocka_unit_test(unknown_kinds_are_named),
        cmocka_unit_test(damaged_merges_are_named),
        cmocka_unit_test(missing_bytes_are_unknown_or_named),
        cmocka_unit_test(scores_decide_and_ties_go_left),
        cmocka_unit_test(what_scores_cannot_spell_is_named),
        cmocka_unit_test(added_tokens_match_longest_first),
        cmocka_unit_test(merging_is_the_definition),
        cmocka_unit_test(long_words_are_quick),
        cmocka_unit_test(smollm_splits_digits_before_words),
        cmocka_unit_test(nfc_is_the_library_s),
        cmocka_unit_test(every_row_of_the_tables_works),
        cmocka_unit_test(smollm2_round_trips),
    };
    return cmocka_run_group_tests(tests, open_sets, close_sets);
}
