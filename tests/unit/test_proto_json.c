/* JSON files of a folder: what is there, what is not, and what is refused, each in one line. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <unistd.h>

#include "proto/model/json.h"

static json_t *parse(const char *text)
{
    json_t *ret = NULL;
    struct brig_fail fail;
    int r = brig_json_parse(&ret, text, strlen(text), &fail);
    if (r < 0)
        fail_msg("%s: %s", text, fail.text);
    return ret;
}

static void test_keys(void **state)
{
    (void)state;
    struct brig_fail fail = {0};
    json_t *o = parse("{\"s\": \"a\\u0000b\", \"n\": 7, \"f\": 0.5, \"b\": true, \"o\": {}, \"a\": [3, -1, "
                      "\"x\"], \"z\": null}");
    struct brig_str s = {"default", 7};
    uint64_t u = 42;
    double f = 1;
    bool b = false;
    const json_t *v = NULL;
    assert_int_equal(brig_json_str(o, "s", &s, &fail), 1);
    assert_int_equal(s.len, 3);
    assert_memory_equal(s.ptr, "a\0b", 4);
    assert_int_equal(brig_json_u64(o, "n", &u, &fail), 1);
    assert_int_equal(u, 7);
    assert_int_equal(brig_json_f64(o, "n", &f, &fail), 1);
    assert_true(f == 7);
    assert_int_equal(brig_json_f64(o, "f", &f, &fail), 1);
    assert_true(f == 0.5);
    assert_int_equal(brig_json_bool(o, "b", &b, &fail), 1);
    assert_true(b);
    assert_int_equal(brig_json_object(o, "o", &v, &fail), 1);
    assert_int_equal(brig_json_array(o, "a", &v, &fail), 1);
    assert_int_equal(brig_json_as_u64(json_array_get(v, 0), "a", &u, &fail), 0);
    assert_int_equal(u, 3);
    /* absent and null leave the default */
    assert_int_equal(brig_json_u64(o, "z", &u, &fail), 0);
    assert_int_equal(brig_json_u64(o, "none", &u, &fail), 0);
    assert_int_equal(u, 3);
    /* the wrong kind */
    assert_int_equal(brig_json_str(o, "n", &s, &fail), -BRIG_EFORMAT);
    assert_string_equal(fail.text, "n is a whole number, a string is wanted");
    assert_int_equal(brig_json_u64(o, "f", &u, &fail), -BRIG_EFORMAT);
    assert_int_equal(brig_json_f64(o, "s", &f, &fail), -BRIG_EFORMAT);
    assert_int_equal(brig_json_bool(o, "n", &b, &fail), -BRIG_EFORMAT);
    assert_int_equal(brig_json_object(o, "a", &v, &fail), -BRIG_EFORMAT);
    assert_int_equal(brig_json_array(o, "o", &v, &fail), -BRIG_EFORMAT);
    assert_int_equal(brig_json_as_u64(json_array_get(v, 1), "a[1]", &u, &fail), -BRIG_EFORMAT);
    assert_string_equal(fail.text, "a[1] is -1, less than 0");
    assert_int_equal(brig_json_as_str(NULL, "a[9]", &s, &fail), -BRIG_EFORMAT);
    assert_string_equal(fail.text, "a[9] is nothing, a string is wanted");
    json_decref(o);
}

static void test_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "",      "{",           "[]", "\"x\"", "{\"a\": 1, \"a\": 2}", "{\"a\": \"\xff\"}", "{\"a\": 1e999}",
        "{} {}", "{\"a\": NaN}"};
    struct brig_fail fail;
    json_t *ret = NULL;
    for (unsigned i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        fail.text[0] = '\0';
        assert_int_equal(brig_json_parse(&ret, bad[i], strlen(bad[i]), &fail), -BRIG_EFORMAT);
        assert_true(fail.text[0] != '\0' && ret == NULL);
    }
    /* a hundred thousand brackets: bounded */
    static char deep[100000];
    memset(deep, '[', sizeof deep);
    memcpy(deep, "{\"a\":", 5);
    assert_int_equal(brig_json_parse(&ret, deep, sizeof deep, &fail), -BRIG_EFORMAT);
}

static void test_file(void **state)
{
    (void)state;
    char path[] = "/tmp/brig_json_XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, "{\"a\": 1}", 8), 8);
    close(fd);
    struct brig_fail fail;
    json_t *ret = NULL;
    assert_int_equal(brig_json_open(&ret, path, 8, &fail), 0);
    json_decref(ret);
    ret = NULL;
    assert_int_equal(brig_json_open(&ret, path, 7, &fail), -BRIG_ELIMIT);
    assert_string_equal(fail.text, "it has 8 bytes, more than 7");
    unlink(path);
    assert_int_equal(brig_json_open(&ret, path, 8, &fail), -BRIG_EIO);
    assert_int_equal(brig_json_open(&ret, "/tmp", 8, &fail), -BRIG_EFORMAT);
    assert_null(ret);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_keys),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
