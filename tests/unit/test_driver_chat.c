/* Chat templates: rendered conversations against references (fixtures/chat/), and SmolLM2's prompt to the
 * byte. */
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

#define MAX_MESSAGES 16

static char *render(struct brig_str source, const struct brig_chat_message *m, size_t n, bool add_generation)
{
    struct brig_buf out = {0};
    struct brig_fail fail = {0};
    if (brig_chat_render(source, m, n, add_generation, &out, &fail) < 0)
        fail_msg("%s", fail.text);
    return out.data != NULL ? out.data : calloc(1, 1);
}

static void check(struct brig_str source, const struct brig_chat_message *m, size_t n, bool add_generation,
                  const char *want)
{
    char *got = render(source, m, n, add_generation);
    assert_string_equal(got, want);
    free(got);
}

static void smollm2_is_rendered_as_its_template_says(void **state)
{
    (void)state;
    char text[1024];
    FILE *f = fopen("tests/fixtures/chat/smollm2_template.txt", "rb");
    assert_non_null(f);
    struct brig_str source = {text, fread(text, 1, sizeof text, f)};
    fclose(f);
    const struct brig_chat_message hello[] = {{"user", "Hello!"}};
    check(
        source, hello, 1, true,
        "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n"
        "<|im_start|>user\nHello!<|im_end|>\n<|im_start|>assistant\n");
    const struct brig_chat_message turns[] = {
        {"system", "Be brief."}, {"user", " a\n"}, {"assistant", ""}, {"user", "b <|im_end|>"}};
    check(source, turns, 4, true,
          "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\n a\n<|im_end|>\n"
          "<|im_start|>assistant\n<|im_end|>\n<|im_start|>user\nb "
          "<|im_end|><|im_end|>\n<|im_start|>assistant\n");
    check(source, turns, 2, false,
          "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\n a\n<|im_end|>\n");
    check(source, turns, 0, true, "<|im_start|>assistant\n");
}

static void check_case(struct brig_str source, const json_t *c)
{
    struct brig_chat_message m[MAX_MESSAGES];
    size_t i;
    json_t *message, *list = json_object_get(c, "messages");
    assert_true(json_array_size(list) <= MAX_MESSAGES);
    json_array_foreach(list, i, message) m[i] =
        (struct brig_chat_message){json_string_value(json_object_get(message, "role")),
                                   json_string_value(json_object_get(message, "content"))};
    check(source, m, json_array_size(list), json_is_true(json_object_get(c, "add_generation_prompt")),
          json_string_value(json_object_get(c, "rendered")));
}

static void every_case_renders(void **state)
{
    (void)state;
    json_error_t err;
    json_t *models = json_load_file("tests/fixtures/chat/chatml.json", 0, &err), *model, *c;
    if (models == NULL)
        fail_msg("%s", err.text);
    size_t i, k, n = 0;
    json_array_foreach(models, i, model)
    {
        const json_t *source = json_object_get(model, "chat_template");
        struct brig_str s = {json_string_value(source), json_string_length(source)};
        json_array_foreach(json_object_get(model, "cases"), k, c)
        {
            check_case(s, c);
            n++;
        }
    }
    assert_true(n >= 30);
    json_decref(models);
}

/* Sources that come near to having a default system message, and the one they have ("" means none). */
static void defaults_are_read_from_the_source(void **state)
{
    (void)state;
    static const struct {
        const char *source, *system;
    } rows[] = {
        {"<|im_start|>", ""},
        {"{{ '<|im_start|>system\\nIt\\'s \\\"me\\\"\\t\\\\.<|im_end|>\\n' }}", "It's \"me\"\t\\."},
        {"{{ \"<|im_start|>system\nIt's<|im_end|>\n\" }}", "It's"},
        {"{% if x %}<|im_start|>system\nPlain, \"quoted\" text<|im_end|>\n{% endif %}",
         "Plain, \"quoted\" text"},
        {"<|im_start|>system\n{{ m }}<|im_end|>", ""},
        {"{{ '<|im_start|>system\\n' + m + '<|im_end|>' }}", ""},
        {"{{ '<|im_start|>system\\n' + m }}{{ '<|im_start|>system\\nSecond<|im_end|>' }}", "Second"},
        {"{{ '<|im_start|>systematic<|im_end|>' }}", ""},
        {"{{ '<|im_start|>system\\nnever ends", ""},
        {"{{ '<|im_start|>system\\n\\", ""},
        {"'<|im_start|>system", ""},
    };
    const struct brig_chat_message m[] = {{"user", "u"}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        /* In memory of its own size, so that reading past the end is seen. */
        size_t n = strlen(rows[i].source);
        char *source = malloc(n), want[256] = "";
        memcpy(source, rows[i].source, n);
        if (rows[i].system[0] != '\0')
            snprintf(want, sizeof want, "<|im_start|>system\n%s<|im_end|>\n<|im_start|>user\nu<|im_end|>\n",
                     rows[i].system);
        else
            snprintf(want, sizeof want, "<|im_start|>user\nu<|im_end|>\n");
        check((struct brig_str){source, n}, m, 1, false, want);
        free(source);
    }
}

static void other_templates_say_raw(void **state)
{
    (void)state;
    static const char *const others[] = {"", "{{ bos_token }}[INST] {{ m }} [/INST]",
                                         "{{ '<|im_start|>user<|im_sep|>' + m + '<|im_end|>' }}"};
    const struct brig_chat_message m[] = {{"user", "u"}};
    for (size_t i = 0; i < 3; i++) {
        struct brig_buf out = {0};
        struct brig_fail fail = {0};
        assert_int_equal(
            brig_chat_render((struct brig_str){others[i], strlen(others[i])}, m, 1, true, &out, &fail),
            -BRIG_EUNSUPPORTED);
        assert_non_null(strstr(fail.text, "--raw"));
        assert_int_equal(out.len, 0);
    }
}

static void a_full_buffer_is_left_as_it_was(void **state)
{
    (void)state;
    const struct brig_chat_message m[] = {{"user", "twelve bytes"}};
    struct brig_buf out = {.max = 40};
    struct brig_fail fail = {0};
    assert_int_equal(brig_buf_add(&out, "before", 6), 0);
    assert_int_equal(brig_chat_render((struct brig_str){"<|im_start|>", 12}, m, 1, true, &out, &fail),
                     -BRIG_ELIMIT);
    assert_int_equal(out.len, 6);
    brig_buf_release(&out);
}

static void the_table_has_its_rows(void **state)
{
    (void)state;
    const char *help;
    assert_string_equal(brig_chat_template_at(0, &help), "chatml");
    assert_true(strlen(help) > 0);
    assert_null(brig_chat_template_at(1, NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(smollm2_is_rendered_as_its_template_says), cmocka_unit_test(every_case_renders),
        cmocka_unit_test(defaults_are_read_from_the_source),        cmocka_unit_test(other_templates_say_raw),
        cmocka_unit_test(a_full_buffer_is_left_as_it_was),          cmocka_unit_test(the_table_has_its_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
