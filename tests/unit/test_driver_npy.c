/* The NPY writer: the bytes that the format demands. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "driver/run/npy.h"

static void header_and_values(void **state)
{
    (void)state;
    const float v[6] = {1, -2, 0.5f, 0, 3e30f, -0.0f};
    char *bytes = NULL;
    size_t n = 0;
    FILE *f = open_memstream(&bytes, &n);
    assert_non_null(f);
    assert_int_equal(brig_npy_header(f, (const uint64_t[]){2, 3}, 2), 0);
    assert_int_equal(brig_npy_values(f, v, 6), 0);
    fclose(f);
    assert_int_equal(n % 4, 0);
    assert_memory_equal(bytes, "\x93NUMPY\x01\x00", 8);
    size_t head = (size_t)(uint8_t)bytes[8] + ((size_t)(uint8_t)bytes[9] << 8);
    assert_int_equal((10 + head) % 64, 0);
    assert_int_equal(n, 10 + head + sizeof v);
    assert_int_equal(bytes[10 + head - 1], '\n');
    const char *dict = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }";
    assert_memory_equal(bytes + 10, dict, strlen(dict));
    assert_memory_equal(bytes + 10 + head, v, sizeof v);
    free(bytes);
}

static void the_largest_shape_fits(void **state)
{
    (void)state;
    char *bytes = NULL;
    size_t n = 0;
    FILE *f = open_memstream(&bytes, &n);
    assert_non_null(f);
    assert_int_equal(brig_npy_header(f, (const uint64_t[]){UINT64_MAX, UINT64_MAX, UINT64_MAX}, 3), 0);
    fclose(f);
    assert_int_equal(n % 64, 0);
    assert_non_null(
        strstr(bytes + 10, "(18446744073709551615, 18446744073709551615, 18446744073709551615), }"));
    free(bytes);
}

static void a_full_disk_is_noticed(void **state)
{
    (void)state;
    FILE *f = fopen("/dev/full", "w");
    if (f == NULL)
        skip();
    setvbuf(f, NULL, _IONBF, 0);
    assert_true(brig_npy_header(f, (const uint64_t[]){1, 1}, 2) < 0);
    fclose(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(header_and_values),
        cmocka_unit_test(the_largest_shape_fits),
        cmocka_unit_test(a_full_disk_is_noticed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
