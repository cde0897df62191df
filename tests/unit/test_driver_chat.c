/* Chat templates: rendered conversations against references (fixtures/chat/), SmolLM2's prompt to the byte,
 * and the bounds of the interpreter. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "driver/chat/chat.h"
#include "driver/chat/jinja.h"

static struct brig_str str(const char *text)
{
    return (struct brig_str){text, strlen(text)};
}

static struct brig_chat_message say(const char *role, const char *text)
{
    return (struct brig_chat_message){str(role), str(text)};
}

static void check(struct brig_str source, const struct brig_chat_message *m, size_t n, bool add_generation,
                  const char *want)
{
    struct brig_buf out = {0};
    struct brig_fail fail = {0};
    struct brig_chat_template t = {source, "the chat template"};
    if (brig_chat_render(&t, NULL, m, n, add_generation, &out, &fail) < 0)
        fail_msg("%s", fail.text);
    assert_string_equal(out.data == NULL ? "" : out.data, want);
    brig_buf_release(&out);
}

static void smollm2_is_rendered_as_its_template_says(void **state)
{
    (void)state;
    char text[1024];
    FILE *f = fopen("tests/fixtures/chat/smollm2_template.txt", "rb");
    assert_non_null(f);
    struct brig_str source = {text, fread(text, 1, sizeof text, f)};
    fclose(f);
    const struct brig_chat_message hello[] = {say("user", "Hello!")};
    check(
        source, hello, 1, true,
        "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n"
        "<|im_start|>user\nHello!<|im_end|>\n<|im_start|>assistant\n");
    const struct brig_chat_message turns[] = {say("system", "Be brief."), say("user", " a\n"),
                                              say("assistant", ""), say("user", "b <|im_end|>")};
    check(source, turns, 4, true,
          "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\n a\n<|im_end|>\n"
          "<|im_start|>assistant\n<|im_end|>\n<|im_start|>user\nb "
          "<|im_end|><|im_end|>\n<|im_start|>assistant\n");
    check(source, turns, 2, false,
          "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\n a\n<|im_end|>\n");
    check(source, turns, 0, true, "<|im_start|>assistant\n");
}

/* A vocabulary of nothing but the special tokens that a reference names. */
static struct brig_vocab vocab_of(const json_t *special, struct brig_str tokens[4])
{
    struct brig_vocab v = {.n_tokens = 4, .tokens = tokens, .bos = -1, .eos = -1, .pad = -1, .unk = -1};
    const char *const names[] = {"bos_token", "eos_token", "pad_token", "unk_token"};
    int64_t *const ids[] = {&v.bos, &v.eos, &v.pad, &v.unk};
    for (int i = 0; i < 4; i++) {
        const char *token = json_string_value(json_object_get(special, names[i]));
        tokens[i] = str(token == NULL ? "" : token);
        *ids[i] = token == NULL ? -1 : i;
    }
    return v;
}

/* What the reference library rendered, or that it failed: which kind, and what a template raised. */
static void check_case(const struct brig_chat_template *t, const struct brig_vocab *vocab, json_t *c)
{
    struct brig_buf out = {0};
    struct brig_fail fail = {0};
    const char *error = json_string_value(json_object_get(c, "error"));
    const char *want = json_string_value(json_object_get(c, "rendered"));
    int r = brig_chat_render_json(t, vocab, c, &out, &fail);
    if (error == NULL && r < 0)
        fail_msg("%s: %s", json_string_value(json_object_get(c, "name")), fail.text);
    if (error == NULL)
        assert_string_equal(out.data, want);
    else if (strncmp(error, "TemplateError: ", 15) == 0)
        assert_true(r == -BRIG_EUNSUPPORTED && strstr(fail.text, error + 15) != NULL);
    else
        assert_true(r == -BRIG_EFORMAT && strstr(fail.text, strchr(error, ':') + 2) != NULL);
    brig_buf_release(&out);
}

static void every_case_renders(void **state)
{
    (void)state;
    json_error_t err;
    json_t *models = json_load_file("tests/fixtures/chat/references.json", 0, &err), *model, *c;
    if (models == NULL)
        fail_msg("%s", err.text);
    size_t i, k, n = 0;
    json_array_foreach(models, i, model)
    {
        struct brig_str tokens[4];
        struct brig_vocab vocab = vocab_of(json_object_get(model, "special"), tokens);
        struct brig_chat_template t = {str(json_string_value(json_object_get(model, "chat_template"))),
                                       json_string_value(json_object_get(model, "tokenizer"))};
        json_array_foreach(json_object_get(model, "cases"), k, c)
        {
            check_case(&t, &vocab, c);
            n++;
        }
    }
    assert_int_equal(n, 92);
    json_decref(models);
}

/* Render with a context in JSON and limits; the text, or the failure's. */
static int render(const char *source, const char *context, const struct brig_jinja_limits *limits,
                  struct brig_buf *out, struct brig_fail *fail)
{
    json_error_t err;
    json_t *given = json_loads(context, JSON_ALLOW_NUL, &err);
    size_t n = strlen(source);
    char *exact = malloc(n + 1); /* of its own size, so that reading past the end is seen */
    assert_non_null(given);
    memcpy(exact, source, n);
    exact = realloc(exact, n > 0 ? n : 1);
    int r = brig_jinja_render((struct brig_str){exact, n}, given, limits, out, fail);
    free(exact);
    json_decref(given);
    return r;
}

static void expect(const char *source, const char *context, const char *want)
{
    struct brig_buf out = {0};
    struct brig_fail fail = {0};
    if (render(source, context, &brig_jinja_default_limits, &out, &fail) < 0)
        fail_msg("%s: %s", source, fail.text);
    assert_string_equal(out.data == NULL ? "" : out.data, want);
    brig_buf_release(&out);
}

static void expect_failure(const char *source, const struct brig_jinja_limits *limits, int code,
                           const char *says)
{
    struct brig_buf out = {0};
    struct brig_fail fail = {0};
    assert_int_equal(brig_buf_add(&out, "before", 6), 0);
    assert_int_equal(render(source, "{\"n\": 7, \"s\": \"text\"}", limits, &out, &fail), -code);
    if (strstr(fail.text, says) != fail.text)
        fail_msg("%s: wanted %s, got %s", source, says, fail.text);
    assert_int_equal(out.len, 6);
    brig_buf_release(&out);
}

/* What jinja2 says to these is known; the e2e tests ask it about many more. */
static void the_language(void **state)
{
    (void)state;
    expect("", "{}", "");
    expect("plain\n", "{}", "plain");
    expect("{{ a.b[1:] }}{% for x in a.b if x > 1 -%} {{ x }}{{ ',' if not loop.last }}{% endfor %}",
           "{\"a\": {\"b\": [1, 2, 3]}}", "[2, 3]2,3");
    expect(
        "{% set ns = namespace(n=0) %}{% for x in range(5) %}{% set ns.n = ns.n + x %}{% endfor %}{{ ns.n }}",
        "{}", "10");
    expect("{% macro m(a, b='-') %}[{{ a }}{{ b }}]{% endmacro %}{{ m(1) }}{{ m(2, b='+') }}", "{}",
           "[1-][2+]");
    expect("{{ t | tojson(indent=2) }}", "{\"t\": {\"z\": [1.5, null, \"\u00e9\\n\"], \"a\": {}}}",
           "{\n  \"z\": [\n    1.5,\n    null,\n    \"\xc3\xa9\\n\"\n  ],\n  \"a\": {}\n}");
    expect("{{ 'missing: ' ~ missing }}{{ missing is defined }}", "{}", "missing: False");
    expect("{{ strftime_now('%Y-%m-%d') }}", "{}", "2024-07-26");
}

/* Strings may hold anything; what is no UTF-8 passes and counts as characters of its own. */
static void any_bytes_pass(void **state)
{
    (void)state;
    static const char wild[] = "a\0b\xff\xe2\x82 c";
    const struct brig_chat_message m[] = {{str("user"), {wild, sizeof wild - 1}}};
    struct brig_chat_template t = {
        str("{% for m in messages %}<{{ m.content | trim }}>{{ m.content | length }}{% endfor %}"), "t"};
    static const char want[] = "<a\0b\xff\xe2\x82 c>7";
    struct brig_buf out = {0};
    assert_int_equal(brig_chat_render(&t, NULL, m, 1, true, &out, NULL), 0);
    assert_int_equal(out.len, sizeof want - 1);
    assert_memory_equal(out.data, want, sizeof want - 1);
    brig_buf_release(&out);
}

static void failures_name_line_and_reason(void **state)
{
    (void)state;
    const struct brig_jinja_limits *l = &brig_jinja_default_limits;
    expect_failure("a\n\n{{ x.y }}", l, BRIG_EFORMAT, "line 3: undefined: 'x' is undefined");
    expect_failure("{{ n.y.z }}", l, BRIG_EFORMAT, "line 1: undefined: 'int object' has no attribute 'y'");
    expect_failure("\n{% if n %}", l, BRIG_EFORMAT, "line 2: syntax: ");
    expect_failure("{{ n + s }}", l, BRIG_EFORMAT, "line 1: wrong type: ");
    expect_failure("{{ n // 0 }}", l, BRIG_EFORMAT, "line 1: wrong value: ");
    expect_failure("{{ {}.update(n) }}", l, BRIG_EFORMAT, "line 1: not allowed: ");
    expect_failure("{{ raise_exception('Roles must\\nalternate') }}", l, BRIG_EUNSUPPORTED,
                   "line 1: it refuses this conversation: Roles must?alternate");
    expect_failure("{% include 'x' %}", l, BRIG_EFORMAT, "line 1: syntax: not in the subset");
}

/* Every template ends, soon and with a reason. */
static void nothing_runs_for_ever(void **state)
{
    (void)state;
    struct brig_jinja_limits l = {
        .steps = 100000, .memory_bytes = 4 << 20, .out_bytes = 1 << 16, .depth = 100};
    static const char *const endless[] = {
        "{% for a in range(99999) %}{% for b in range(99999) %}{% for c in range(99999) %}{% endfor %}{% "
        "endfor %}{% "
        "endfor %}",
        "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
        "{% macro m(x) %}{{ m(x + 1) }}{{ m(x + 2) }}{% endmacro %}{{ m(0) }}",
        "{% for x in [[1]] recursive %}{{ loop([x]) }}{% endfor %}",
        "{{ range(9999999999) }}",
        "{{ 'x' * 99999999999 }}",
        "{{ [0] * 99999999999 }}",
        "{% set ns = namespace(s='x') %}{% for i in range(99) %}{% set ns.s = ns.s + ns.s %}{% endfor %}{{ "
        "ns.s }}",
        "{% set ns = namespace(a=[]) %}{% for i in range(99) %}{% set ns.a = [ns.a, ns.a] %}{% endfor %}{{ "
        "ns.a }}",
        "{% set ns = namespace(a=[]) %}{% for i in range(90) %}{% set ns.a = [ns.a, ns.a] %}{% endfor %}"
        "{% set other = namespace(a=[]) %}{% for i in range(90) %}{% set other.a = [other.a, other.a] %}{% "
        "endfor %}"
        "{{ ns.a == other.a }}",
        "{% set ns = namespace(a=[]) %}{% for i in range(99) %}{% set ns.a = [ns.a, ns.a] %}{% endfor %}{{ "
        "ns.a | tojson }}",
        "{% for i in range(9999) %}{{ 'twelve bytes' }}{% endfor %}",
        "{{ s | center(99999999999) }}",
        "{{ 2 ** 99999999999 }}",
        "{{ '%99999999999d' % 1 }}",
        "{% for i in range(99999) %}{{ range(99999) | list | length }}{% endfor %}",
    };
    for (size_t i = 0; i < sizeof endless / sizeof endless[0]; i++)
        expect_failure(endless[i], &l, BRIG_ELIMIT, "line ");
    char deep[8192];
    memset(deep, '(', sizeof deep);
    memcpy(deep, "{{ ", 3);
    deep[sizeof deep - 1] = '\0';
    expect_failure(deep, &l, BRIG_ELIMIT, "line 1: limit: more than 100 levels");
    expect_failure(deep, &brig_jinja_default_limits, BRIG_EFORMAT, "line 1: syntax: too many brackets");
    size_t n = (size_t)snprintf(deep, sizeof deep, "{{ ");
    while (n + 8 < sizeof deep)
        n += (size_t)snprintf(deep + n, sizeof deep - n, "not ");
    snprintf(deep + n, sizeof deep - n, "1 }}");
    expect_failure(deep, &l, BRIG_ELIMIT, "line 1: limit: more than 100 levels");
}

static void a_template_of_nothing_says_raw(void **state)
{
    (void)state;
    const struct brig_chat_message m[] = {say("user", "u")};
    struct brig_chat_template t = {str(""), "t"};
    struct brig_buf out = {0};
    struct brig_fail fail = {0};
    assert_int_equal(brig_chat_render(&t, NULL, m, 1, true, &out, &fail), -BRIG_EUNSUPPORTED);
    assert_non_null(strstr(fail.text, "--raw"));
    assert_int_equal(out.len, 0);
}

static void a_full_buffer_is_left_as_it_was(void **state)
{
    (void)state;
    const struct brig_chat_message m[] = {say("user", "twelve bytes")};
    struct brig_chat_template t;
    struct brig_buf out = {.max = 40};
    struct brig_fail fail = {0};
    assert_true(brig_chat_template_named("chatml", &t));
    assert_int_equal(brig_buf_add(&out, "before", 6), 0);
    assert_int_equal(brig_chat_render(&t, NULL, m, 1, true, &out, &fail), -BRIG_ELIMIT);
    assert_int_equal(out.len, 6);
    brig_buf_release(&out);
}

/* Every named template takes a whole conversation, and the last thing said is in it. */
static void the_named_templates(void **state)
{
    (void)state;
    const struct brig_chat_message m[] = {say("system", "SYS"), say("user", "ONE"), say("assistant", "TWO"),
                                          say("user", "THREE")};
    const char *name, *help;
    unsigned n = 0;
    for (; (name = brig_chat_template_at(n, &help)) != NULL; n++) {
        struct brig_chat_template t;
        struct brig_buf out = {0};
        assert_true(strlen(help) > 0);
        assert_true(brig_chat_template_named(name, &t));
        assert_int_equal(brig_chat_render(&t, NULL, m, 4, true, &out, NULL), 0);
        const char *sys = strstr(out.data, "SYS"), *one = strstr(out.data, "ONE"),
                   *two = strstr(out.data, "TWO");
        assert_true(sys != NULL && one > sys && two > one && strstr(two, "THREE") != NULL);
        brig_buf_release(&out);
    }
    assert_true(n >= 6);
    struct brig_chat_template gemma;
    assert_true(brig_chat_template_named("gemma", &gemma));
    check(gemma.text, m, 4, true,
          "<start_of_turn>user\nSYS\n\nONE<end_of_turn>\n<start_of_turn>model\nTWO<end_of_turn>\n"
          "<start_of_turn>user\nTHREE<end_of_turn>\n<start_of_turn>model\n");
    assert_false(brig_chat_template_named("nothing", &gemma));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(smollm2_is_rendered_as_its_template_says),
        cmocka_unit_test(every_case_renders),
        cmocka_unit_test(the_language),
        cmocka_unit_test(any_bytes_pass),
        cmocka_unit_test(failures_name_line_and_reason),
        cmocka_unit_test(nothing_runs_for_ever),
        cmocka_unit_test(a_template_of_nothing_says_raw),
        cmocka_unit_test(a_full_buffer_is_left_as_it_was),
        cmocka_unit_test(the_named_templates),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
