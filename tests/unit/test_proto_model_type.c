/* Stored types: every row of the table, and the values of real blocks bit for bit. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "proto/base/half.h"
#include "proto/base/mem.h"
#include "proto/model/type.h"

#define DIR "tests/fixtures/dequant/"

/* A whole small file; .npy files by their data (version 1 header). */
static char *read_file(const char *path, size_t *ret_n)
{
    FILE *f = fopen(path, "rb");
    if (f == NULL)
        fail_msg("cannot open %s", path);
    char *p = brig_alloc(1 << 20, 1);
    *ret_n = fread(p, 1, 1 << 20, f);
    fclose(f);
    return p;
}

static char *read_npy(const char *path, size_t *ret_floats)
{
    size_t n;
    char *p = read_file(path, &n);
    assert_memory_equal(p, "\x93NUMPY\x01", 7);
    assert_non_null(strstr(p + 10, "'<f4'"));
    size_t start = 10 + brig_load_u16(p + 8);
    memmove(p, p + start, n - start);
    *ret_floats = (n - start) / sizeof(float);
    return p;
}

static void check_blocks(const struct brig_type *t, const void *blocks, size_t n_bytes, const float *want,
                         size_t n_elems)
{
    assert_int_equal(n_bytes, brig_type_row_bytes(t, n_elems));
    float *got = brig_alloc(n_elems, sizeof *got);
    char *odd = brig_alloc(n_bytes + 1, 1); /* any alignment is allowed */
    memcpy(odd + 1, blocks, n_bytes);
    t->dequant(odd + 1, got, n_elems);
    for (size_t i = 0; i < n_elems; i++)
        if (memcmp(&got[i], &want[i], sizeof got[i]) != 0)
            fail_msg("%s, element %zu: %.9g, must be %.9g", t->name, i, (double)got[i], (double)want[i]);
    brig_free(odd);
    brig_free(got);
}

static void test_quantised(void **state)
{
    (void)state;
    unsigned n_checked = 0, n_packed = 0;
    const struct brig_type *t;
    for (unsigned i = 0; (t = brig_type_at(i)) != NULL; i++) {
        char path[80];
        size_t n_bytes, n_elems;
        n_packed += t->packing != NULL;
        n_packed += t->native != NULL;
        if (t->block_elems == 1 || !brig_type_has_rows(t)) /* test_kernels_packed, test_proto_model_r16 */
            continue;
        snprintf(path, sizeof path, DIR "%s.bin", t->name);
        char *blocks = read_file(path, &n_bytes);
        snprintf(path, sizeof path, DIR "%s.npy", t->name);
        char *want = read_npy(path, &n_elems);
        assert_true(n_elems >= 2048 && n_elems >= 16 * t->block_elems);
        check_blocks(t, blocks, n_bytes, (const float *)want, n_elems);
        brig_free(blocks);
        brig_free(want);
        n_checked++;
    }
    assert_int_equal(n_checked, BRIG_TYPE_COUNT - 3 - n_packed); /* F32, F16, BF16 have no blocks */
}

/* What is written is what the reference writes, to the bit, for every type that we write and that has blocks;
 * and for BF16. */
static void test_quantize(void **state)
{
    (void)state;
    unsigned n_checked = 0;
    size_t n_elems;
    char *original = read_npy(DIR "quantize_input.npy", &n_elems);
    const struct brig_type *t;
    for (unsigned i = 0; (t = brig_type_at(i)) != NULL; i++) {
        char path[80];
        size_t n_bytes;
        if (t->quantize == NULL || t->id == BRIG_TYPE_F32 || t->id == BRIG_TYPE_F16)
            continue;
        snprintf(path, sizeof path, DIR "quantize_%s.bin", t->name);
        char *want = read_file(path, &n_bytes);
        assert_int_equal(n_bytes, brig_type_row_bytes(t, n_elems));
        char *got = brig_alloc(n_bytes + 1, 1);
        t->quantize((const float *)original, got + 1, n_elems); /* any alignment */
        for (size_t k = 0; k < n_bytes; k++)
            if (got[k + 1] != want[k])
                fail_msg("%s, byte %zu: %u, must be %u", t->name, k, (uint8_t)got[k + 1], (uint8_t)want[k]);
        brig_free(got);
        brig_free(want);
        n_checked++;
    }
    brig_free(original);
    assert_int_equal(n_checked, 12);
}

/* Blocks of zeros, of one number, of numbers so small that 1 / scale is no number, and of the largest. */
static void test_quantize_edges(void **state)
{
    (void)state;
    static const float values[] = {0.0f, -0.0f, 1.0f, -3.25f, 1e-45f, -1e-40f, 65504.0f, 3e38f};
    const struct brig_type *t;
    for (unsigned i = 0; (t = brig_type_at(i)) != NULL; i++) {
        for (unsigned k = 0; t->quantize != NULL && k < sizeof values / sizeof *values; k++) {
            float x[64], back[64];
            uint8_t stored[256];
            for (unsigned e = 0; e < 64; e++)
                x[e] = values[k];
            t->quantize(x, stored, 64);
            t->dequant(stored, back, 64);
            bool fits = fabsf(values[k]) < 1e6f || t->id == BRIG_TYPE_F32 || t->id == BRIG_TYPE_BF16;
            for (unsigned e = 0; e < 64; e++) {
                assert_true(fits == !!isfinite(back[e])); /* what does not fit can be seen */
                if (fits && fabsf(x[e] - back[e]) > 0.02f * fabsf(x[e]) + 1e-7f)
                    fail_msg("%s: %g became %g", t->name, (double)x[e], (double)back[e]);
            }
        }
    }
}

/* Row C2 of the table of what others had: no number is farther from its original than half a scale (a whole
 * one at the end of the range that has no integer), and a little for the scale's own rounding. */
static void test_quantize_error(void **state)
{
    (void)state;
    size_t n_elems;
    char *original = read_npy(DIR "quantize_input.npy", &n_elems);
    const float *x = (const float *)original;
    const struct brig_type *t;
    unsigned n_checked = 0;
    for (unsigned i = 0; (t = brig_type_at(i)) != NULL; i++) {
        if (t->quantize == NULL || t->block_elems == 1)
            continue;
        bool has_min = strncmp(t->name, "Q4_1", 4) == 0 || strncmp(t->name, "Q5_1", 4) == 0;
        float whole = strncmp(t->name, "Q8_0", 4) == 0 || has_min ? 0.5f : 1.0f;
        uint8_t stored[256];
        float back[64];
        for (size_t at = 0; at + t->block_elems <= n_elems; at += t->block_elems) {
            t->quantize(x + at, stored, t->block_elems);
            t->dequant(stored, back, t->block_elems);
            bool two = t->group == 16; /* groups in a block */
            float most = 0.0f, d = fabsf(brig_f16_to_f32(brig_load_u16(stored)));
            if (two)
                d = fmaxf(d, fabsf(brig_f16_to_f32(brig_load_u16(stored + t->block_bytes / 2))));
            for (unsigned e = 0; e < t->block_elems; e++)
                most = fmaxf(most, fabsf(x[at + e]));
            for (unsigned e = 0; e < t->block_elems; e++)
                assert_true(fabsf(back[e] - x[at + e]) <= whole * d + 1.5e-3f * most + 127 * 0x1p-25f);
        }
        n_checked++;
    }
    assert_int_equal(n_checked, 11);
    brig_free(original);
}

/* The file holds numbers rounded to BF16: each is the nearest one to its f32 original. */
static void test_bf16(void **state)
{
    (void)state;
    size_t n_bytes, n_elems;
    char *stored = read_file(DIR "quantize_BF16.bin", &n_bytes);
    char *original = read_npy(DIR "quantize_input.npy", &n_elems);
    const struct brig_type *t = brig_type_by_name("BF16");
    float *got = brig_alloc(n_elems, sizeof *got);
    assert_int_equal(n_bytes, 2 * n_elems);
    t->dequant(stored, got, n_elems);
    for (size_t i = 0; i < n_elems; i++) {
        float want;
        memcpy(&want, original + i * sizeof want, sizeof want);
        uint32_t u = brig_f32_to_bits(want), rounded = (u + 0x7fff + ((u >> 16) & 1)) & 0xffff0000u;
        assert_int_equal(brig_f32_to_bits(got[i]), rounded);
    }
    brig_free(got);
    brig_free(stored);
    brig_free(original);
}

/* All 65,536 halves against the definition of the format. */
static void test_f16(void **state)
{
    (void)state;
    const struct brig_type *t = brig_type_by_name("F16");
    for (uint32_t h = 0; h < 65536; h++) {
        uint16_t stored = (uint16_t)h;
        float got;
        t->dequant(&stored, &got, 1);
        int exp = (int)(h >> 10 & 31), man = (int)(h & 1023);
        double want = exp == 0 ? ldexp(man, -24) : ldexp(1024 + man, exp - 25);
        if (exp == 31 && man != 0)
            assert_true(isnan(got));
        else if (exp == 31)
            assert_true(isinf(got) && !!signbit(got) == (h >> 15));
        else
            assert_true((double)got == (h >> 15 ? -want : want) && !!signbit(got) == (h >> 15));
    }
}

static void test_table(void **state)
{
    (void)state;
    unsigned n = 0;
    const struct brig_type *t;
    for (; (t = brig_type_at(n)) != NULL; n++) {
        assert_int_equal(t->id, n);
        assert_ptr_equal(brig_type_by_gguf(t->gguf_id), t);
        assert_ptr_equal(brig_type_by_name(t->name), t);
        assert_string_equal(brig_type_gguf_name(t->gguf_id), t->name);
        assert_true(strlen(t->help) > 0 && (t->dequant != NULL) == brig_type_has_rows(t));
        assert_true(t->native == NULL || (t->native->block_bytes == t->block_bytes && t->gguf_id >= 1200 &&
                                          t->native->block_elems == t->block_elems && t->quantize == NULL &&
                                          t->native->group == t->group && t->packing == NULL));
        assert_true(t->block_elems >= 1 && t->block_bytes >= 1 &&
                    t->block_elems % (t->group ? t->group : 1) == 0);
        assert_int_equal(brig_type_row_bytes(t, t->block_elems * 3), t->block_bytes * 3);
        assert_int_equal(brig_type_row_bytes(t, 0), 0);
        if (t->block_elems > 1)
            assert_int_equal(brig_type_row_bytes(t, t->block_elems + 1), 0);
    }
    assert_int_equal(n, BRIG_TYPE_COUNT);
    assert_null(brig_type_by_gguf(15));
    assert_string_equal(brig_type_gguf_name(15), "Q8_K");
    assert_null(brig_type_gguf_name(4000000000u));
    assert_null(brig_type_by_name("Q9"));
    assert_int_equal(brig_type_row_bytes(brig_type_by_name("F32"), UINT64_MAX / 2), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table),
        cmocka_unit_test(test_quantised),
        cmocka_unit_test(test_quantize),
        cmocka_unit_test(test_quantize_edges),
        cmocka_unit_test(test_quantize_error),
        cmocka_unit_test(test_bf16),
        cmocka_unit_test(test_f16),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
