/*
 * Tokenizers from folders, against reference cases: the files of the fixtures (build/fixtures/tok_*, made by
 * tests/fixtures/make_tokenizer_gguf.py) and chains of steps (build/fixtures/token_steps.json, from
 * tests/fixtures/make_token_steps.py). BRIGADE_TOKENIZERS names more folders, each with a fixture.json, with
 * colons between.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>
#include <jansson.h>

#include "driver/token/folder.h"
#include "driver/token/tokenizer.h"
#include "proto/base/clock.h"

#define SPECIAL BRIG_ENCODE_SPECIAL

struct set {
    const char *name;
    struct brig_folder *folder;
    struct brig_tokenizer *t;
};

static void open_set(struct set *s, const char *path)
{
    struct brig_fail fail = {0};
    if (brig_folder_open(&s->folder, path, &fail) < 0 ||
        brig_tokenizer_new(&s->t, brig_folder_vocab(s->folder), NULL, &fail) < 0)
        fail_msg("%s: %s", s->name, fail.text);
}

static void close_set(struct set *s)
{
    brig_tokenizer_free(s->t);
    brig_folder_close(s->folder);
}

/* How many of these ids are not the wanted ones: 0 or 1. */
static unsigned encode_differs(const struct set *s, const char *text, size_t n, unsigned flags,
                               const json_t *want)
{
    struct brig_ids ids = {0};
    struct brig_fail fail = {0};
    int r = brig_tokenizer_encode(s->t, text, n, flags, &ids, &fail);
    bool same = r == 0 && ids.n == json_array_size(want);
    for (size_t i = 0; same && i < ids.n; i++)
        same = (json_int_t)ids.v[i] == json_integer_value(json_array_get(want, i));
    if (!same) {
        char *wanted = json_dumps(want, JSON_COMPACT);
        print_error("%s: '%.*s' (%s) gave:", s->name, (int)n, text, fail.text);
        for (size_t i = 0; i < ids.n; i++)
            print_error(" %u", ids.v[i]);
        print_error(", not %s\n", wanted);
        free(wanted);
    }
    brig_ids_release(&ids);
    return !same;
}

static unsigned decode_differs(const struct set *s, const json_t *ids, size_t n, bool special,
                               const json_t *want)
{
    uint32_t *v = calloc(n + 1, sizeof *v);
    struct brig_buf out = {0};
    for (size_t i = 0; i < n; i++)
        v[i] = (uint32_t)json_integer_value(json_array_get(ids, i));
    int r = brig_tokenizer_decode(s->t, v, n, special, &out, NULL);
    bool same = r == 0 && out.len == json_string_length(want) &&
                (out.len == 0 || memcmp(out.data, json_string_value(want), out.len) == 0);
    if (!same)
        print_error("%s: decoded '%s', not '%s'\n", s->name, out.data, json_string_value(want));
    brig_buf_release(&out);
    free(v);
    return !same;
}

static unsigned case_differs(const struct set *s, const json_t *c)
{
    const json_t *text = json_object_get(c, "text"), *ids = json_object_get(c, "ids");
    const json_t *with = json_object_get(c, "ids_special"), *whole = json_object_get(c, "decode");
    const json_t *skip = json_object_get(c, "decode_skip");
    const char *bytes = json_string_value(text);
    size_t n = json_string_length(text), n_ids = json_array_size(ids);
    return encode_differs(s, bytes, n, SPECIAL, ids) +
           encode_differs(s, bytes, n, SPECIAL | BRIG_ENCODE_BOS, with != NULL ? with : ids) +
           decode_differs(s, ids, n_ids, true, whole) +
           (skip != NULL ? decode_differs(s, ids, n_ids, false, skip) : 0);
}

static unsigned invalid_differs(const struct set *s, const json_t *c)
{
    char bytes[256];
    const char *hex = json_string_value(json_object_get(c, "hex"));
    size_t n = 0;
    for (unsigned byte; n < sizeof bytes && sscanf(hex + 2 * n, "%2x", &byte) == 1; n++)
        bytes[n] = (char)byte;
    return encode_differs(s, bytes, n, SPECIAL, json_object_get(c, "ids"));
}

/* A stream's text so far is the beginning of a decode of the tokens so far. */
static unsigned stream_differs(const struct set *s, const json_t *c)
{
    const json_t *ids = json_object_get(c, "ids"), *prefixes = json_object_get(c, "prefix_decode");
    struct brig_stream stream = {0};
    struct brig_buf out = {0};
    unsigned bad = 0;
    for (size_t i = 0; i < json_array_size(ids); i++) {
        const char *bytes;
        size_t n;
        uint32_t id = (uint32_t)json_integer_value(json_array_get(ids, i));
        const json_t *want = json_array_get(prefixes, i);
        assert_true(brig_tokenizer_piece(s->t, id, true, &bytes, &n));
        size_t lead = i == 0 ? brig_tokenizer_lead(s->t, id) : 0;
        assert_int_equal(brig_stream_add(&stream, bytes + lead, n - lead, &out), 0);
        bad += out.len > json_string_length(want) ||
               (out.len > 0 && memcmp(out.data, json_string_value(want), out.len) != 0);
        bad += stream.n_held == 0 && out.len != json_string_length(want);
    }
    const json_t *last = json_array_get(prefixes, json_array_size(prefixes) - 1);
    assert_int_equal(brig_stream_finish(&stream, &out), 0);
    bad += out.len != json_string_length(last) ||
           (out.len > 0 && memcmp(out.data, json_string_value(last), out.len) != 0);
    if (bad > 0)
        print_error("%s: a stream said '%s', not '%s'\n", s->name, out.data, json_string_value(last));
    brig_buf_release(&out);
    return bad;
}

static unsigned all_differ(const struct set *s, const json_t *fixture, const char *key, size_t least,
                           unsigned (*differs)(const struct set *, const json_t *))
{
    unsigned bad = 0;
    size_t i;
    json_t *c;
    assert_true(json_array_size(json_object_get(fixture, key)) >= least);
    json_array_foreach(json_object_get(fixture, key), i, c) bad += differs(s, c);
    return bad;
}

static unsigned check_folder(const char *folder, const char *fixture)
{
    struct set s = {.name = folder};
    json_error_t err;
    json_t *cases = json_load_file(fixture, JSON_ALLOW_NUL, &err);
    if (cases == NULL)
        fail_msg("%s: %s", fixture, err.text);
    uint64_t start = brig_clock_ns();
    open_set(&s, folder);
    double seconds = (double)(brig_clock_ns() - start) / (double)BRIG_NS_PER_S;
    unsigned bad = all_differ(&s, cases, "cases", 100, case_differs) +
                   all_differ(&s, cases, "invalid_utf8", 10, invalid_differs) +
                   all_differ(&s, cases, "stream", 4, stream_differs);
    print_message("%s: %zu texts, %u differ; opened in %.3f s\n", folder,
                  json_array_size(json_object_get(cases, "cases")), bad, seconds);
    close_set(&s);
    json_decref(cases);
    return bad;
}

static void fixtures_give_their_ids(void **state)
{
    (void)state;
    static const char *const names[] = {"gpt2", "tiny_bpe517", "tiny_bpe1031"};
    unsigned bad = 0;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char folder[128], fixture[128];
        snprintf(folder, sizeof folder, "build/fixtures/tok_%s", names[i]);
        snprintf(fixture, sizeof fixture, "build/fixtures/tok_%s.json", names[i]);
        bad += check_folder(folder, fixture);
    }
    const char *more = getenv("BRIGADE_TOKENIZERS");
    char *list = strdup(more != NULL ? more : ""), *rest = list;
    for (char *folder; (folder = strsep(&rest, ":")) != NULL;) {
        char fixture[4096];
        snprintf(fixture, sizeof fixture, "%s/fixture.json", folder);
        bad += folder[0] != '\0' ? check_folder(folder, fixture) : 0;
    }
    free(list);
    assert_int_equal(bad, 0);
}

/* A folder with this tokenizer.json in it. */
static void write_folder(char folder[64], char file[96], const char *text)
{
    snprintf(folder, 64, "/tmp/brig_folder_XXXXXX");
    assert_non_null(mkdtemp(folder));
    snprintf(file, 96, "%s/tokenizer.json", folder);
    FILE *f = fopen(file, "w");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

static void remove_folder(const char *folder, const char *file)
{
    unlink(file);
    rmdir(folder);
}

static void every_step_is_the_library_s(void **state)
{
    (void)state;
    json_error_t err;
    json_t *all = json_load_file("build/fixtures/token_steps.json", JSON_ALLOW_NUL, &err), *one;
    size_t i, k;
    unsigned bad = 0, n = 0;
    assert_non_null(all);
    json_array_foreach(all, i, one)
    {
        char folder[64], file[96], *text = json_dumps(json_object_get(one, "tokenizer"), JSON_COMPACT);
        struct set s = {.name = json_string_value(json_object_get(one, "name"))};
        write_folder(folder, file, text);
        open_set(&s, i % 2 == 0 ? folder : file);
        json_t *c;
        unsigned before = bad;
        json_array_foreach(json_object_get(one, "cases"), k, c)
        {
            bad += case_differs(&s, c);
            n++;
        }
        if (bad > before)
            print_error("%s: %u of %zu differ\n", s.name, bad - before, k);
        close_set(&s);
        remove_folder(folder, file);
        free(text);
    }
    json_decref(all);
    assert_true(n > 2000);
    assert_int_equal(bad, 0);
}

/* Files that are damaged or ask for what is not there: each is refused with words that name it. */
#define FILE_OF(steps, vocab, merges)                                                                        \
    "{\"added_tokens\":[],\"pre_tokenizer\":null," steps                                                     \
    "\"model\":{\"type\":\"BPE\",\"unk_token\":null,\"vocab\":" vocab ",\"merges\":" merges "}}"
#define ABC "{\"a\":0,\"b\":1,\"ab\":2}"

static const struct {
    const char *text, *why;
} damaged[] = {
    {"", "line"},
    {"[]", "an object is wanted"},
    {"{\"model\":{\"vocab\":{\"a\":0}", "line"},
    {"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0}}}", "merges"},
    {"{\"model\":{\"type\":\"WordPiece\",\"vocab\":{\"a\":0}}}", "model 'WordPiece' is not supported"},
    {"{\"version\":\"1.0\"}", "it has no tokens"},
    {"{\"colour\":1,\"model\":{}}", "'colour' is not supported"},
    {"{\"model\":{},\"model\":{}}", "duplicate"},
    {FILE_OF("", ABC, "[[\"a\",\"b\"]]"), NULL},
    {FILE_OF("", ABC, "[\"a b\"]"), NULL},
    {FILE_OF("", ABC, "[\"ab\"]"), "not two tokens"},
    {FILE_OF("", ABC, "[\"a b c\"]"), "not two tokens"},
    {FILE_OF("", ABC, "[[\"a\",\"b\",\"c\"]]"), "not two tokens"},
    {FILE_OF("", ABC, "[[\"a\",\"\"]]"), "merge 0 of the tokenizer ('a') has an empty part"},
    {FILE_OF("", ABC, "[[\"ab\",\"a\"]]"), "merge 0 of the tokenizer ('aba')"},
    {FILE_OF("", ABC, "[\"a b\",\"ab ab\"]"), "merge 1 of the tokenizer ('abab')"},
    {FILE_OF("", ABC, "[\"a b\",]"), "line 1"},
    {FILE_OF("", ABC, "[\"a b\" \"a b\"]"), "a comma"},
    {FILE_OF("", "{\"a\":0,\"b\":0}", "[]"), "id 0 has two tokens, 'a' and 'b'"},
    {FILE_OF("", "{\"a\":16777215}", "[]"), "ids up to 16777215"},
    {FILE_OF("", "{\"a\":16777216}", "[]"), "no id"},
    {FILE_OF("", "{\"a\":-1}", "[]"), "no id"},
    {FILE_OF("", "{\"\\ud800\":0}", "[]"), "a damaged escape"},
    {FILE_OF("", "{\"\xff\":0}", "[]"), "no UTF-8"},
    {FILE_OF("", "[[\"a\",0.5]]", "[]"), "vocab as an object"},
    {FILE_OF("\"normalizer\":{\"type\":\"Rot13\"},", ABC, "[]"), "normalizer 'Rot13' is not supported"},
    {FILE_OF("\"normalizer\":{\"type\":\"NFC\",\"how\":1},", ABC, "[]"), "NFC: 'how' is not supported"},
    {FILE_OF("\"normalizer\":{\"type\":\"Prepend\"},", ABC, "[]"), "Prepend has no prepend"},
    {FILE_OF("\"decoder\":{\"type\":\"CTC\"},", ABC, "[]"), "decoder 'CTC' is not supported"},
    {FILE_OF("\"decoder\":{\"type\":\"Replace\",\"pattern\":{\"Regex\":\"(a\"},\"content\":\"\"},", ABC,
             "[]"),
     "pattern '(a'"},
    {FILE_OF("\"normalizer\":{\"type\":\"Replace\",\"pattern\":{\"Regex\":\"\\\\h\"},\"content\":\"\"},", ABC,
             "[]"),
     "pattern '\\h'"},
    {FILE_OF("\"normalizer\":{\"type\":\"Replace\",\"pattern\":{\"String\":\"\"},\"content\":\"\"},", ABC,
             "[]"),
     "a pattern is empty"},
    {FILE_OF("\"post_processor\":{\"type\":\"BertProcessing\"},", ABC, "[]"), "'BertProcessing'"},
    {"{\"added_tokens\":[{\"id\":0,\"content\":\"x\",\"special\":true}],\"model\":{\"vocab\":" ABC
     ",\"merges\":[]}}",
     "added token 'x' has the id of 'a', 0"},
    {"{\"model\":{\"type\":\"Unigram\",\"unk_id\":7,\"vocab\":[[\"a\",-1.5]]}}", "unk_id 7"},
    {"{\"model\":{\"type\":\"Unigram\",\"unk_id\":0,\"vocab\":[[\"a\",1e999]]}}", "score"},
    {"{\"model\":{\"type\":\"Unigram\",\"unk_id\":0,\"vocab\":[[\"a\",-1.5]]}}", NULL},
};

static void damaged_files_are_named(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof damaged / sizeof damaged[0]; i++) {
        char folder[64], file[96];
        struct brig_folder *f = NULL;
        struct brig_tokenizer *t = NULL;
        struct brig_fail fail = {0};
        write_folder(folder, file, damaged[i].text);
        int r = brig_folder_open(&f, folder, &fail);
        if (r == 0)
            r = brig_tokenizer_new(&t, brig_folder_vocab(f), NULL, &fail);
        if ((r == 0) != (damaged[i].why == NULL) || (r < 0 && strstr(fail.text, damaged[i].why) == NULL))
            fail_msg("%s: said '%s', not '%s'", damaged[i].text, fail.text, damaged[i].why);
        assert_null(strchr(fail.text, '\n'));
        brig_tokenizer_free(t);
        brig_folder_close(f);
        remove_folder(folder, file);
    }
}

/* A Sequence in a Sequence, a hundred thousand deep. */
static void deep_files_are_refused(void **state)
{
    (void)state;
    static char text[2000000];
    size_t n = (size_t)snprintf(text, sizeof text, "{\"normalizer\":");
    for (unsigned i = 0; i < 40000; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, "{\"type\":\"Sequence\",\"normalizers\":[");
    char folder[64], file[96];
    struct brig_folder *f = NULL;
    struct brig_fail fail = {0};
    write_folder(folder, file, text);
    assert_int_equal(brig_folder_open(&f, folder, &fail), -BRIG_EFORMAT);
    assert_non_null(strstr(fail.text, "maximum parsing depth"));
    remove_folder(folder, file);
    n = (size_t)snprintf(text, sizeof text, "{\"normalizer\":");
    for (unsigned i = 0; i < 9; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, "{\"type\":\"Sequence\",\"normalizers\":[");
    for (unsigned i = 0; i < 9; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, "]}");
    snprintf(text + n, sizeof text - n, ",\"model\":{\"vocab\":{\"a\":0},\"merges\":[]}}");
    write_folder(folder, file, text);
    assert_int_equal(brig_folder_open(&f, folder, &fail), -BRIG_ELIMIT);
    remove_folder(folder, file);
}

/* What stands beside tokenizer.json. */
static void small_files_are_read(void **state)
{
    (void)state;
    static const struct {
        const char *name, *text;
    } files[] = {
        {"tokenizer_config.json",
         "{\"bos_token\":{\"content\":\"<s>\"},\"eos_token\":\"</s>\",\"add_bos_token\":true,"
         "\"chat_template\":[{\"name\":\"tool\",\"template\":\"T\"},{\"name\":\"default\","
         "\"template\":\"D\"}]}"},
        {"special_tokens_map.json", "{\"pad_token\":\"<pad>\",\"eos_token\":\"<s>\"}"},
        {"generation_config.json", "{\"eos_token_id\":[2,3,99]}"},
        {"config.json", "{\"eos_token_id\":1,\"bos_token_id\":2}"},
    };
    char folder[64], file[96], path[160];
    write_folder(
        folder, file,
        "{\"added_tokens\":[{\"id\":0,\"content\":\"<s>\",\"special\":true},{\"id\":1,\"content\":\"</s>\","
        "\"special\":true},{\"id\":4,\"content\":\"<pad>\",\"special\":true}],"
        "\"model\":{\"vocab\":{\"a\":2,\"b\":3},\"merges\":[]},\"decoder\":{\"type\":\"Fuse\"}}");
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, files[i].name);
        FILE *f = fopen(path, "w");
        assert_true(f != NULL && fputs(files[i].text, f) >= 0 && fclose(f) == 0);
    }
    struct set s = {.name = folder};
    open_set(&s, folder);
    const struct brig_vocab *v = brig_folder_vocab(s.folder);
    assert_int_equal(v->n_tokens, 5);
    assert_int_equal(v->bos, 0);
    assert_int_equal(v->eos, 1);
    assert_int_equal(v->pad, 4);
    assert_true(v->add_bos && !v->add_eos);
    assert_true(brig_str_eq(v->chat_template, "D"));
    assert_true(brig_tokenizer_is_end(s.t, 1) && brig_tokenizer_is_end(s.t, 2) &&
                brig_tokenizer_is_end(s.t, 3));
    assert_false(brig_tokenizer_is_end(s.t, 0) || brig_tokenizer_is_end(s.t, 4));
    close_set(&s);
    snprintf(path, sizeof path, "%s/chat_template.jinja", folder);
    FILE *f = fopen(path, "w");
    assert_true(f != NULL && fputs("J", f) >= 0 && fclose(f) == 0);
    open_set(&s, file);
    assert_true(brig_str_eq(brig_folder_vocab(s.folder)->chat_template, "J"));
    close_set(&s);
    unlink(path);
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        struct brig_folder *bad = NULL;
        struct brig_fail fail = {0};
        snprintf(path, sizeof path, "%s/%s", folder, files[i].name);
        FILE *w = fopen(path, "w");
        assert_true(w != NULL && fputs("{\"bos_token\":7", w) >= 0 && fclose(w) == 0);
        assert_true(brig_folder_open(&bad, folder, &fail) < 0);
        assert_non_null(strstr(fail.text, files[i].name));
        unlink(path);
    }
    remove_folder(folder, file);
}

/* A unigram vocabulary as GGUF states it: no steps, spaces as SentencePiece has them. */
#define STR(s)                                                                                               \
    {                                                                                                        \
        (s), sizeof(s) - 1                                                                                   \
    }
#define SPACE "\xe2\x96\x81"

static void check_unigram(const struct brig_vocab *v, const char *text, const uint32_t *want, size_t n,
                          const char *back)
{
    struct brig_tokenizer *t;
    struct brig_ids ids = {0};
    struct brig_buf out = {0};
    assert_int_equal(brig_tokenizer_new(&t, v, NULL, NULL), 0);
    assert_int_equal(brig_tokenizer_encode(t, text, strlen(text), SPECIAL | BRIG_ENCODE_BOS, &ids, NULL), 0);
    if (ids.n != n || memcmp(ids.v, want, n * sizeof *want) != 0) {
        for (size_t k = 0; k < ids.n; k++)
            print_error(" %u", ids.v[k]);
        fail_msg("are the ids of '%s'", text);
    }
    assert_int_equal(brig_tokenizer_decode(t, ids.v, ids.n, false, &out, NULL), 0);
    assert_string_equal(out.data != NULL ? out.data : "", back);
    brig_buf_release(&out);
    brig_ids_release(&ids);
    brig_tokenizer_free(t);
}

static void unigram_without_rules(void **state)
{
    (void)state;
    static const struct brig_str tokens[] = {STR("<unk>"), STR(SPACE),     STR("a"),   STR("b"),
                                             STR("ab"),    STR(SPACE "a"), STR("</s>")};
    static const int32_t types[] = {2, 1, 1, 1, 1, 1, 3};
    static const float scores[] = {0, -3, -2, -2, -3, -5, 0};
    struct brig_vocab v = {.model = STR("t5"),
                           .n_tokens = 7,
                           .tokens = tokens,
                           .types = types,
                           .scores = scores,
                           .bos = -1,
                           .eos = 6,
                           .eot = -1,
                           .pad = -1,
                           .unk = 0,
                           .add_eos = true,
                           .add_space_prefix = true};
    check_unigram(&v, "ab", (uint32_t[]){1, 4, 6}, 3, "ab");      /* -3 - 3 before -5 - 2 */
    check_unigram(&v, "b a", (uint32_t[]){1, 3, 5, 6}, 4, "b a"); /* a tie: the way that was found first */
    check_unigram(&v, "  b", (uint32_t[]){1, 1, 1, 3, 6}, 5, "  b");
    check_unigram(&v, "ab</s>", (uint32_t[]){1, 4, 6, 6}, 4, "ab");
    check_unigram(&v, "bxxb", (uint32_t[]){1, 3, 0, 3, 6}, 5, "b<unk>b"); /* unknown neighbours are one */
    v.remove_extra_spaces = true;
    check_unigram(&v, "  b  b ", (uint32_t[]){1, 3, 1, 3, 6}, 5, "b b");
    check_unigram(&v, "   ", (uint32_t[]){6}, 1, "");
    struct brig_tokenizer *t;
    struct brig_fail fail = {0};
    v.has_charsmap = true;
    assert_int_equal(brig_tokenizer_new(&t, &v, NULL, &fail), -BRIG_EUNSUPPORTED);
    assert_non_null(strstr(fail.text, "precompiled_charsmap"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fixtures_give_their_ids), cmocka_unit_test(every_step_is_the_library_s),
        cmocka_unit_test(damaged_files_are_named), cmocka_unit_test(deep_files_are_refused),
        cmocka_unit_test(small_files_are_read),    cmocka_unit_test(unigram_without_rules),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
