/* SHA-256: the standard's own answers, and both ways against another implementation at every length and cut.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <mbedtls/sha256.h>

#include "proto/base/mem.h"
#include "proto/model/sha256.h"

static void hash(bool portable, const uint8_t *p, size_t n, size_t step, uint8_t out[32])
{
    struct brig_sha256 s;
    if (portable)
        brig_sha256_init_portable(&s);
    else
        brig_sha256_init(&s);
    for (size_t at = 0; at < n; at += step)
        brig_sha256_add(&s, p + at, n - at < step ? n - at : step);
    brig_sha256_finish(&s, out);
}

static void test_standard(void **state)
{
    (void)state;
    static const struct {
        const char *text, *sum;
    } rows[] = {
        {"", "\xe3\xb0\xc4\x42\x98\xfc\x1c\x14\x9a\xfb\xf4\xc8\x99\x6f\xb9\x24\x27\xae\x41\xe4\x64\x9b\x93"
             "\x4c\xa4\x95"
             "\x99\x1b\x78\x52\xb8\x55"},
        {"abc", "\xba\x78\x16\xbf\x8f\x01\xcf\xea\x41\x41\x40\xde\x5d\xae\x22\x23\xb0\x03\x61\xa3\x96\x17\x7a"
                "\x9c\xb4"
                "\x10\xff\x61\xf2\x00\x15\xad"},
        {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
         "\x24\x8d\x6a\x61\xd2\x06\x38\xb8\xe5\xc0\x26\x93\x0c\x3e\x60\x39\xa3\x3c\xe4\x59\x64\xff\x21\x67"
         "\xf6\xec\xed"
         "\xd4\x19\xdb\x06\xc1"},
    };
    uint8_t out[32];
    for (unsigned i = 0; i < 3; i++)
        for (int portable = 0; portable < 2; portable++) {
            hash(portable, (const uint8_t *)rows[i].text, strlen(rows[i].text), 1000, out);
            assert_memory_equal(out, rows[i].sum, 32);
        }
}

static void test_lengths(void **state)
{
    (void)state;
    size_t most = 1000;
    uint8_t *bytes = brig_alloc(most, 1), out[32], want[32];
    for (size_t i = 0; i < most; i++)
        bytes[i] = (uint8_t)(i * i * 31 + i);
    for (size_t n = 0; n <= most; n++) {
        assert_int_equal(mbedtls_sha256_ret(bytes, n, want, 0), 0);
        for (size_t step = 1; step < 200; step = step * 3 + 1)
            for (int portable = 0; portable < 2; portable++) {
                hash(portable, bytes, n, step, out);
                assert_memory_equal(out, want, 32);
            }
    }
    brig_free(bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_standard), cmocka_unit_test(test_lengths)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
