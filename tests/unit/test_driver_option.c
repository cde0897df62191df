/* Options and verbs: what is taken, what is refused and in which words, and that the tables hold together. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "driver/front/input.h"
#include "driver/front/option.h"
#include "driver/front/verb.h"

#define MAX_WORDS 32

/* Parse "run MODEL -n 5": words between single spaces; '_' stands for an empty word. */
static int parse(const char *line, struct brig_settings *s, struct brig_fail *fail)
{
    static char text[512]; /* settings point into it */
    char *argv[MAX_WORDS + 1];
    int argc = 0;
    unsigned id;
    snprintf(text, sizeof text, "%s", line);
    for (char *p = text; p != NULL;) {
        assert_true(argc < MAX_WORDS);
        argv[argc++] = p;
        p = strchr(p, ' ');
        if (p != NULL)
            *p++ = '\0';
        if (strcmp(argv[argc - 1], "_") == 0)
            argv[argc - 1][0] = '\0';
    }
    argv[argc] = NULL;
    assert_non_null(brig_verb_by_name(argv[0], &id));
    brig_settings_init(s);
    memset(fail, 0, sizeof *fail);
    return brig_option_parse(s, id, argc, argv, fail);
}

static void refused(const char *line, const char *flag, const char *why)
{
    struct brig_settings s;
    struct brig_fail fail;
    assert_int_equal(parse(line, &s, &fail), -BRIG_EUSAGE);
    assert_int_equal(brig_err_exit(fail.code), 2);
    if (strstr(fail.text, flag) == NULL || strstr(fail.text, why) == NULL)
        fail_msg("%s: %s", line, fail.text);
}

static void defaults_are_the_documented_ones(void **state)
{
    (void)state;
    struct brig_settings s;
    struct brig_fail fail;
    assert_int_equal(parse("run m.gguf", &s, &fail), 0);
    assert_string_equal(s.operand, "m.gguf");
    assert_float_equal(s.sample.temp, 0.8, 0);
    assert_int_equal(s.sample.top_k, 40);
    assert_float_equal(s.sample.top_p, 0.95, 0);
    assert_float_equal(s.sample.min_p, 0.05, 0);
    assert_float_equal(s.sample.repeat_penalty, 1, 0);
    assert_int_equal(s.sample.repeat_last_n, 64);
    assert_int_equal(s.shards, 1);
    assert_string_equal(s.mode->name, "warm");
    assert_int_equal(s.timeout_ms, 10000);
    assert_false(s.kv != BRIG_KV_F16 || s.exact || s.seed_given || s.raw || s.quiet);
    assert_null(s.prompt);
}

static void every_kind_of_value_is_taken(void **state)
{
    (void)state;
    struct brig_settings s;
    struct brig_fail fail;
    assert_int_equal(
        parse("run -p hello m.gguf -n 7 --ctx=99 --temp 0 --top-k 0 --top-p 1 --min-p 0 --seed 5 "
              "--shards all --mode cold -t 2 --kv f32 --timeout 0.5 -q",
              &s, &fail),
        0);
    assert_string_equal(s.operand, "m.gguf");
    assert_string_equal(s.prompt, "hello");
    assert_int_equal(s.n_predict, 7);
    assert_int_equal(s.ctx, 99);
    assert_float_equal(s.sample.temp, 0, 0);
    assert_int_equal(s.sample.top_k, 0);
    assert_int_equal(s.sample.seed, 5);
    assert_true(s.seed_given && s.kv == BRIG_KV_F32 && s.quiet);
    assert_true(s.shards == BRIG_SHARDS_ALL);
    assert_string_equal(s.mode->name, "cold");
    assert_int_equal(s.threads, 2);
    assert_int_equal(s.timeout_ms, 500);
    assert_int_equal(parse("run m --stop one --stop two --system _", &s, &fail), 0);
    assert_int_equal(s.n_stops, 2);
    assert_string_equal(s.stops[1], "two");
    assert_string_equal(s.system, "");
    assert_int_equal(parse("bench m -p 9 -n 3 --shards 1,all --json out", &s, &fail), 0);
    assert_int_equal(s.bench_prompt, 9);
    assert_int_equal(s.bench_generate, 3);
    assert_string_equal(s.bench_shards, "1,all");
    assert_string_equal(s.bench_json, "out");
    assert_int_equal(parse("inspect m --json", &s, &fail), 0);
    assert_true(s.json);
    assert_int_equal(parse("run --help", &s, &fail), 0);
    assert_true(s.help);
}

static void exact_keeps_the_cache_exact_unless_told_otherwise(void **state)
{
    (void)state;
    struct brig_settings s;
    struct brig_fail fail;
    assert_int_equal(parse("run m --exact", &s, &fail), 0);
    assert_true(s.exact && s.kv == BRIG_KV_F32);
    assert_int_equal(parse("run m --kv f16 --exact", &s, &fail), 0);
    assert_true(s.exact && s.kv == BRIG_KV_F16);
    assert_int_equal(parse("run m --exact --kv q8", &s, &fail), 0);
    assert_true(s.exact && s.kv == BRIG_KV_Q8);
}

static void bad_values_name_the_flag_and_the_reason(void **state)
{
    (void)state;
    refused("run m -n x", "--n-predict x", "whole number");
    refused("run m -n -5", "--n-predict -5", "whole number");
    refused("run m -n 0", "--n-predict 0", "from 1");
    refused("run m -n 99999999999999999999", "--n-predict", "whole number");
    refused("run m --temp nan", "--temp nan", "finite");
    refused("run m --top-p inf", "--top-p inf", "finite");
    refused("run m --temp 1x", "--temp 1x", "finite");
    refused("run m --temp _", "--temp", "finite");
    refused("run m --shards 0", "--shards 0", "from 1");
    refused("run m --shards some", "--shards some", "or all");
    refused("run m --mode tepid", "--mode tepid", "brigade list modes");
    refused("run m --kv q3", "--kv q3", "f16, f32 or q8");
    refused("run m --timeout 0", "--timeout 0", "seconds");
    refused("run m --timeout -1", "--timeout -1", "seconds");
    refused("run m --ctx 0", "--ctx 0", "from 1");
    refused("run m -t 0", "--threads 0", "from 1");
    refused("run m --stop _", "--stop", "empty");
    refused("run m --seed -1", "--seed -1", "whole number");
}

static void unknown_and_misplaced_words_are_refused(void **state)
{
    (void)state;
    refused("run", "MODEL", "missing");
    refused("run m --frobnicate", "--frobnicate", "unknown");
    refused("run --frobnicate=3 m", "--frobnicate=3", "unknown");
    refused("run m -z", "-z", "unknown");
    refused("run m -qz", "-z", "unknown");
    refused("run m -p", "-p", "TEXT is missing");
    refused("run m --prompt", "--prompt", "TEXT is missing");
    refused("run m --raw=1", "--raw", "no value");
    refused("run m --re 1", "--re", "ambiguous");
    refused("run m another", "another", "too many");
    refused("inspect m --shards 2", "--shards", "unknown");
    refused("tokenize m -p x", "-p", "unknown");
}

static void too_many_stop_strings_are_refused(void **state)
{
    (void)state;
    struct brig_settings s;
    struct brig_fail fail;
    char *argv[2 * BRIG_SETTINGS_MAX_STOPS + 5];
    int argc = 0;
    argv[argc++] = (char *)(uintptr_t) "run";
    for (unsigned i = 0; i <= BRIG_SETTINGS_MAX_STOPS; i++) {
        argv[argc++] = (char *)(uintptr_t) "--stop";
        argv[argc++] = (char *)(uintptr_t) "x";
    }
    argv[argc] = NULL;
    brig_settings_init(&s);
    assert_int_equal(brig_option_parse(&s, BRIG_VERB_run, argc, argv, &fail), -BRIG_EUSAGE);
    assert_non_null(strstr(fail.text, "--stop"));
}

/* Two rows of one verb may not claim the same name or letter, and each verb has help for people. */
static void the_tables_hold_together(void **state)
{
    (void)state;
    for (unsigned i = 0; brig_option_at(i) != NULL; i++) {
        const struct brig_option *a = brig_option_at(i);
        assert_true(a->verbs != 0 && a->help[0] != '\0' && a->name[0] != '\0');
        for (unsigned k = 0; k < i; k++) {
            const struct brig_option *b = brig_option_at(k);
            if ((a->verbs & b->verbs) == 0)
                continue;
            assert_string_not_equal(a->name, b->name);
            assert_true(a->letter == 0 || a->letter != b->letter);
        }
    }
    for (unsigned i = 0; i < BRIG_VERB_COUNT; i++) {
        const struct brig_verb *v = brig_verb_at(i);
        unsigned id;
        assert_ptr_equal(brig_verb_by_name(v->name, &id), v);
        assert_int_equal(id, i);
        assert_true(v->help[0] != '\0' && v->usage[0] != '\0');
        assert_non_null(strstr(v->about, "examples:\n"));
        assert_int_equal(v->about[strlen(v->about) - 1], '\n');
    }
    assert_null(brig_verb_at(BRIG_VERB_COUNT));
}

static void the_nearest_verb_is_suggested(void **state)
{
    (void)state;
    assert_string_equal(brig_verb_nearest("rnu"), "run");
    assert_string_equal(brig_verb_nearest("tokenise"), "tokenize");
    assert_string_equal(brig_verb_nearest("inspekt"), "inspect");
    assert_null(brig_verb_nearest("frobnicate"));
    assert_null(brig_verb_nearest("a word that is much longer than any verb"));
}

static void ids(const char *text, int want, const uint32_t *v, size_t n)
{
    struct brig_ids list = {0};
    struct brig_fail fail;
    assert_int_equal(brig_input_ids(&list, text, strlen(text), "--ids", &fail), want);
    if (want == 0) {
        assert_int_equal(list.n, n);
        if (n > 0)
            assert_memory_equal(list.v, v, n * sizeof *v);
    }
    brig_ids_release(&list);
}

static void lists_of_ids(void **state)
{
    (void)state;
    const uint32_t v[] = {1, 22, 4294967295u};
    ids("1,22,4294967295", 0, v, 3);
    ids(" 1 22\n4294967295\n", 0, v, 3);
    ids("[1, 22 , 4294967295]\n", 0, v, 3);
    ids("", 0, v, 0);
    ids("[]", 0, v, 0);
    ids(" \n", 0, v, 0);
    ids("1,,2", -BRIG_EUSAGE, NULL, 0);
    ids("1,", -BRIG_EUSAGE, NULL, 0);
    ids(",1", -BRIG_EUSAGE, NULL, 0);
    ids("[1", -BRIG_EUSAGE, NULL, 0);
    ids("[", -BRIG_EUSAGE, NULL, 0);
    ids("1]", -BRIG_EUSAGE, NULL, 0);
    ids("1 x", -BRIG_EUSAGE, NULL, 0);
    ids("-1", -BRIG_EUSAGE, NULL, 0);
    ids("1.5", -BRIG_EUSAGE, NULL, 0);
    ids("4294967296", -BRIG_EUSAGE, NULL, 0);
    ids("99999999999999999999999", -BRIG_EUSAGE, NULL, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults_are_the_documented_ones),
        cmocka_unit_test(every_kind_of_value_is_taken),
        cmocka_unit_test(exact_keeps_the_cache_exact_unless_told_otherwise),
        cmocka_unit_test(bad_values_name_the_flag_and_the_reason),
        cmocka_unit_test(unknown_and_misplaced_words_are_refused),
        cmocka_unit_test(too_many_stop_strings_are_refused),
        cmocka_unit_test(the_tables_hold_together),
        cmocka_unit_test(the_nearest_verb_is_suggested),
        cmocka_unit_test(lists_of_ids),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
