/* The bounded msgpack reader: against the library's writer, and on bytes that lie. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>
#include <msgpack.h>

#include "proto/base/mem.h"
#include "proto/base/unpack.h"

static void integers(void **state)
{
    static const uint64_t values[] = {0,     1,     127,        128,        255,       256,
                                      65535, 65536, UINT32_MAX, 1ull << 32, INT64_MAX, UINT64_MAX};
    static const int64_t negative[] = {-1,     -32,    -33,       -128,         -129,
                                       -32768, -32769, INT32_MIN, -(1ll << 40), INT64_MIN};
    msgpack_sbuffer b;
    msgpack_packer pk;
    (void)state;
    msgpack_sbuffer_init(&b);
    msgpack_packer_init(&pk, &b, msgpack_sbuffer_write);
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        msgpack_pack_uint64(&pk, values[i]);
    for (size_t i = 0; i < sizeof negative / sizeof *negative; i++)
        msgpack_pack_int64(&pk, negative[i]);
    struct brig_unpack u = brig_unpack_of(b.data, b.size);
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        struct brig_unpack again = u, third = u;
        uint64_t v;
        uint32_t v32;
        int64_t s;
        assert_true(brig_unpack_u64(&u, &v));
        assert_true(v == values[i]);
        assert_int_equal(brig_unpack_u32(&again, &v32), values[i] <= UINT32_MAX);
        assert_true(v32 == (values[i] <= UINT32_MAX ? values[i] : 0));
        assert_int_equal(brig_unpack_i64(&third, &s), values[i] <= INT64_MAX);
    }
    for (size_t i = 0; i < sizeof negative / sizeof *negative; i++) {
        struct brig_unpack again = u;
        int64_t s;
        uint64_t v;
        assert_false(brig_unpack_u64(&again, &v));
        assert_true(brig_unpack_i64(&u, &s));
        assert_true(s == negative[i]);
    }
    assert_true(brig_unpack_done(&u));
    msgpack_sbuffer_destroy(&b);
}

static void other_kinds(void **state)
{
    msgpack_sbuffer b;
    msgpack_packer pk;
    static char text[70000];
    (void)state;
    memset(text, 'x', sizeof text);
    msgpack_sbuffer_init(&b);
    msgpack_packer_init(&pk, &b, msgpack_sbuffer_write);
    static const size_t lengths[] = {0, 5, 31, 32, 255, 256, 65535, 65536};
    for (size_t i = 0; i < 8; i++) {
        msgpack_pack_str(&pk, lengths[i]);
        msgpack_pack_str_body(&pk, text, lengths[i]);
        msgpack_pack_bin(&pk, lengths[i]);
        msgpack_pack_bin_body(&pk, text, lengths[i]);
    }
    msgpack_pack_true(&pk);
    msgpack_pack_false(&pk);
    msgpack_pack_float(&pk, 1.5f);
    msgpack_pack_float(&pk, 2.5f);
    msgpack_pack_double(&pk, 0.1);
    struct brig_unpack u = brig_unpack_of(b.data, b.size);
    for (size_t i = 0; i < 8; i++) {
        const char *s;
        const uint8_t *p;
        size_t n;
        assert_true(brig_unpack_str(&u, &s, &n));
        assert_true(n == lengths[i] && memcmp(s, text, n) == 0);
        assert_true(brig_unpack_bin(&u, &p, &n));
        assert_true(n == lengths[i] && memcmp(p, text, n) == 0);
    }
    bool yes, no;
    float f;
    double wide, d;
    assert_true(brig_unpack_bool(&u, &yes) && brig_unpack_bool(&u, &no) && yes && !no);
    assert_true(brig_unpack_f32(&u, &f) && f == 1.5f);
    assert_true(brig_unpack_f64(&u, &wide) && wide == 2.5);
    assert_true(brig_unpack_f64(&u, &d) && d == 0.1);
    assert_true(brig_unpack_done(&u));
    msgpack_sbuffer_destroy(&b);
}

/* n bytes of their own, so that a sanitizer sees a read beyond them. */
static uint8_t *exact(const void *bytes, size_t n)
{
    uint8_t *p = brig_alloc(n > 0 ? n : 1, 1);
    assert_non_null(p);
    memcpy(p, bytes, n);
    return p;
}

/* Read whatever comes first in every way that there is; the reader stays inside. */
static unsigned read_all_ways(const uint8_t *bytes, size_t n)
{
    uint8_t *p = exact(bytes, n);
    unsigned good = 0;
    for (unsigned way = 0; way < 9; way++) {
        struct brig_unpack u = brig_unpack_of(p, n);
        uint64_t u64;
        uint32_t u32;
        int64_t i64;
        bool b;
        float f;
        double d;
        const char *s;
        const uint8_t *q;
        size_t len = 0;
        bool ok = way == 0   ? brig_unpack_u64(&u, &u64)
                  : way == 1 ? brig_unpack_u32(&u, &u32)
                  : way == 2 ? brig_unpack_i64(&u, &i64)
                  : way == 3 ? brig_unpack_bool(&u, &b)
                  : way == 4 ? brig_unpack_f32(&u, &f)
                  : way == 5 ? brig_unpack_f64(&u, &d)
                  : way == 6 ? brig_unpack_array(&u, &u32)
                  : way == 7 ? brig_unpack_bin(&u, &q, &len)
                             : brig_unpack_str(&u, &s, &len);
        assert_true(ok == !u.bad);
        assert_true(u.n <= n && len <= n);
        good += ok;
    }
    brig_free(p);
    return good;
}

static void lies(void **state)
{
    static const uint8_t array32[] = {0xdd, 0xff, 0xff, 0xff, 0xff}, str32[] = {0xdb, 0xff, 0xff, 0xff, 0xff},
                         bin32[] = {0xc6, 0x7f, 0xff, 0xff, 0xff}, array16[] = {0xdc, 0, 2, 1};
    (void)state;
    assert_int_equal(read_all_ways(array32, 5), 0);
    assert_int_equal(read_all_ways(str32, 5), 0);
    assert_int_equal(read_all_ways(bin32, 5), 0);
    assert_int_equal(read_all_ways(array16, 4), 0); /* two elements said, one byte there */
    assert_int_equal(read_all_ways(array16, 0), 0);
    for (unsigned tag = 0; tag < 256; tag++)
        for (size_t n = 0; n <= 12; n++) {
            uint8_t bytes[12];
            memset(bytes, tag % 3 == 0 ? 0xff : 0x01, sizeof bytes);
            bytes[0] = (uint8_t)tag;
            read_all_ways(bytes, n);
        }
}

static void sticky(void **state)
{
    static const uint8_t bytes[] = {0xc0, 1, 2}; /* nil is of no kind that is known here */
    struct brig_unpack u = brig_unpack_of(bytes, sizeof bytes);
    uint64_t v = 7;
    (void)state;
    assert_false(brig_unpack_u64(&u, &v));
    assert_true(v == 0);
    assert_false(brig_unpack_u64(&u, &v)); /* though the next byte is one */
    assert_false(brig_unpack_done(&u));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(integers),
        cmocka_unit_test(other_kinds),
        cmocka_unit_test(lies),
        cmocka_unit_test(sticky),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
