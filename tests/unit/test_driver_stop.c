/* Stop strings: what passes, what is held back, whatever the pieces that the text comes in. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "driver/run/stop.h"

static void passes(const char *const *strings, unsigned n, const char *text, const char *want, bool hit)
{
    size_t len = strlen(text);
    for (size_t piece = 1; piece <= len; piece++) {
        struct brig_stop s;
        struct brig_buf out = {0};
        brig_stop_init(&s, strings, n);
        for (size_t at = 0; at < len; at += piece)
            assert_int_equal(brig_stop_add(&s, text + at, len - at < piece ? len - at : piece, &out), 0);
        assert_int_equal(brig_stop_finish(&s, &out), 0);
        assert_string_equal(out.data == NULL ? "" : out.data, want);
        assert_int_equal(s.hit, hit);
        brig_stop_release(&s);
        brig_buf_release(&out);
    }
}

static void text_without_stop_strings_passes(void **state)
{
    (void)state;
    passes(NULL, 0, "abc", "abc", false);
}

static void text_ends_before_a_stop_string(void **state)
{
    (void)state;
    const char *one[] = {"END"};
    passes(one, 1, "some text END and more", "some text ", true);
    passes(one, 1, "END", "", true);
    passes(one, 1, "text E EN ENd", "text E EN ENd", false);
    passes(one, 1, "ends with EN", "ends with EN", false);
    passes(one, 1, "EEND", "E", true);
}

static void the_first_of_several_ends_it(void **state)
{
    (void)state;
    const char *two[] = {"\n\n", "stop"};
    passes(two, 2, "a\nb stop c\n\nd", "a\nb ", true);
    passes(two, 2, "a\n\nb stop", "a", true);
}

static void a_string_inside_another(void **state)
{
    (void)state;
    const char *nested[] = {"abab", "ba"};
    passes(nested, 2, "xbay", "x", true);
    passes(nested, 2, "ab", "ab", false);
    passes(nested, 2, "aab", "aab", false);
}

static void repeated_beginnings(void **state)
{
    (void)state;
    const char *one[] = {"aab"};
    passes(one, 1, "aaaab", "aa", true);
    passes(one, 1, "aaaaa", "aaaaa", false);
}

static void what_may_begin_one_is_held_back(void **state)
{
    (void)state;
    const char *one[] = {"<end>"};
    struct brig_stop s;
    struct brig_buf out = {0};
    brig_stop_init(&s, one, 1);
    assert_int_equal(brig_stop_add(&s, "yes <e", 6, &out), 0);
    assert_string_equal(out.data, "yes ");
    assert_int_equal(brig_stop_add(&s, "n", 1, &out), 0);
    assert_string_equal(out.data, "yes ");
    assert_int_equal(brig_stop_add(&s, "!", 1, &out), 0);
    assert_string_equal(out.data, "yes <en!");
    brig_stop_release(&s);
    brig_buf_release(&out);
}

static void nothing_passes_after_the_hit(void **state)
{
    (void)state;
    const char *one[] = {"x"};
    struct brig_stop s;
    struct brig_buf out = {0};
    brig_stop_init(&s, one, 1);
    assert_int_equal(brig_stop_add(&s, "ax", 2, &out), 0);
    assert_int_equal(brig_stop_add(&s, "more", 4, &out), 0);
    assert_int_equal(brig_stop_finish(&s, &out), 0);
    assert_string_equal(out.data, "a");
    brig_stop_release(&s);
    brig_buf_release(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_without_stop_strings_passes),
        cmocka_unit_test(text_ends_before_a_stop_string),
        cmocka_unit_test(the_first_of_several_ends_it),
        cmocka_unit_test(a_string_inside_another),
        cmocka_unit_test(repeated_beginnings),
        cmocka_unit_test(what_may_begin_one_is_held_back),
        cmocka_unit_test(nothing_passes_after_the_hit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
