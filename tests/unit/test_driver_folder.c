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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fixtures_give_their_ids),
        cmocka_unit_test(every_step_is_the_library_s),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
