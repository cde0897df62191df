/* GPTQ and AWQ matrices: their weights, the order of visits, and products with every kernel. */
#include <math.h>

#include "shard/kernels/kernel.h"
#include "tests/unit/packed_maker.h"

static struct pack_shape random_shape(unsigned n)
{
    static const char *const types[] = {"GPTQ4", "GPTQ8", "AWQ4"}, *const scales[] = {"F16", "BF16", "F32"};
    const uint32_t groups[] = {32, 64, 128, 40, 8, 1024};
    struct pack_shape s = {
        .type = types[n % 3],
        .scale_type = random_below(2) ? "F16" : scales[random_below(3)],
        .rows = 8 * (1 + random_below(random_below(4) == 0 ? 40 : 9)),
        .cols = 8 * (1 + random_below(random_below(4) == 0 ? 90 : 40)),
        .group_cols = groups[random_below(6)],
    };
    s.zero_bias = n % 3 == 2 ? 0 : random_below(2);
    s.ordered = n % 3 != 2 && random_below(2);
    return s;
}

static void weights_are_those(void **state)
{
    (void)state;
    float got[800];
    for (unsigned n = 0; n < 60; n++) {
        struct pack *p = pack_new(random_shape(n));
        uint32_t cols = p->shape.cols;
        for (uint32_t r = 0; r < p->shape.rows; r++) {
            uint32_t from = random_below(cols), many = 1 + random_below(cols - from);
            brig_packed_dequant(&p->packed, r, from, many, got);
            for (uint32_t i = 0; i < many; i++) {
                float want = p->weights[(size_t)r * cols + p->visits[from + i]];
                if (got[i] != want)
                    fail_msg("%s row %u visit %u: %g, must be %g", p->shape.type, r, from + i, (double)got[i],
                             (double)want);
            }
        }
        pack_free(p);
    }
}

/* x of one token in the order of visits times a row: units of `unit` columns, their tree. */
static float by_definition(const struct pack *p, uint32_t row, const float *x, uint32_t unit)
{
    uint32_t n = 0, cols = p->shape.cols;
    float sums[128] = {0};
    for (uint32_t first = 0; first < cols; first += unit, n++) {
        float acc = 0.0f;
        for (uint32_t i = first; i < cols && i < first + unit; i++)
            acc = fmaf(p->weights[(size_t)row * cols + p->visits[i]], x[i], acc);
        sums[n] = acc;
    }
    return brig_tree_sum(sums, n);
}

static void products_are_the_definition(void **state)
{
    (void)state;
    for (unsigned n = 0; n < 150; n++) {
        struct pack *p = pack_new(random_shape(n));
        const uint32_t units[] = {256, 64, p->shape.cols, 8 * (1 + random_below(12))};
        uint32_t rows = p->shape.rows, cols = p->shape.cols, n_rows = 1 + random_below(n % 5 == 0 ? 70 : 6);
        uint32_t unit = units[n % 4] < cols ? units[n % 4] : cols;
        struct brig_matrix w = {brig_type_by_name(p->shape.type),
                                p->words.data,
                                rows,
                                cols,
                                cols * p->bits / 8,
                                unit,
                                &p->packed,
                                0};
        struct edge f = edge_new((size_t)n_rows * cols * sizeof(float));
        struct brig_act x = {.n_rows = n_rows, .cols = cols, .f = f.data};
        float *want = brig_alloc((size_t)n_rows * rows, sizeof *want);
        float *got = brig_alloc((size_t)n_rows * rows, sizeof *got);
        char what[100];
        for (size_t i = 0; i < (size_t)n_rows * cols; i++)
            ((float *)f.data)[i] = random_f32() * 3.0f;
        for (size_t t = 0; t < n_rows; t++)
            for (uint32_t r = 0; r < rows; r++)
                want[t * rows + r] = by_definition(p, r, x.f + t * cols, unit);
        for (unsigned k = 0; brig_kernel_at(k) != NULL; k++) {
            const struct brig_kernel *kernel = brig_kernel_at(k);
            if (!kernel->usable())
                continue;
            snprintf(what, sizeof what, "%s %s %ux%u groups of %u%s unit %u tokens %u", kernel->name,
                     p->shape.type, rows, cols, p->shape.group_cols, p->shape.ordered ? " ordered" : "", unit,
                     n_rows);
            memset(got, 0x55, (size_t)n_rows * rows * sizeof *got);
            const uint32_t piece = n % 3 == 0 ? 32 : 512; /* cut, and all at once */
            for (uint64_t r = 0; r < rows; r += piece)
                kernel->matmul(&w, r, r + piece < rows ? r + piece : rows, &x, got, rows);
            assert_same_f32(got, want, (size_t)n_rows * rows, what);
        }
        brig_free(want);
        brig_free(got);
        edge_free(&f);
        pack_free(p);
    }
}

static void sorting(void **state)
{
    (void)state;
    uint32_t groups[] = {3, 0, 3, 1, 0}, order[5], starts[6];
    assert_true(brig_packed_sort(groups, 5, 5, order, starts) < 0);
    const uint32_t want[] = {1, 4, 3, 0, 2}, begins[] = {0, 2, 3, 3, 5, 5};
    assert_memory_equal(order, want, sizeof want);
    assert_memory_equal(starts, begins, sizeof begins);
    struct brig_packed p = {.cols = 5, .n_groups = 5, .order = order, .starts = starts};
    const uint32_t group[] = {0, 0, 1, 3, 3}, ends[] = {2, 2, 3, 5, 5};
    for (uint32_t i = 0; i < 5; i++) {
        uint64_t end;
        assert_int_equal(brig_packed_group(&p, i, &end), group[i]);
        assert_int_equal(end, ends[i]);
    }
    assert_int_equal(brig_packed_sort(groups, 5, 3, order, starts), 0);
    groups[0] = 0;
    groups[2] = UINT32_MAX; /* -1 */
    assert_int_equal(brig_packed_sort(groups, 5, 3, order, starts), 2);
}

static void refuse(struct brig_sides s, const char *type, uint64_t rows, uint64_t cols, const char *why)
{
    struct brig_fail fail = {0};
    assert_int_equal(brig_sides_check(&s, brig_type_by_name(type), rows, cols, &fail), -BRIG_EFORMAT);
    if (strstr(fail.text, why) == NULL)
        fail_msg("'%s' does not say '%s'", fail.text, why);
}

static void sizes_are_checked(void **state)
{
    (void)state;
    const struct brig_sides good = {
        .group_cols = 128,
        .zero_bias = 1,
        .scale_type = brig_type_by_name("F16"),
        .side = {{0, 0, 2 * 64 * 2}, {0, 0, 2 * 64 / 2}, {0, 0, 4 * 192}},
    };
    struct brig_sides s = good;
    struct brig_fail fail;
    assert_int_equal(brig_sides_check(&s, brig_type_by_name("GPTQ4"), 64, 192, &fail), 0);
    assert_int_equal(brig_sides_bytes(&s), 256 + 64 + 768);
    s.side[BRIG_SIDE_GROUPS].bytes = 0;
    assert_int_equal(brig_sides_check(&s, brig_type_by_name("GPTQ4"), 64, 192, &fail), 0);
    s.group_cols = 192;
    refuse(s, "GPTQ4", 64, 192, "its scales have 256 bytes, groups of 192 columns need 1 times 128");
    s = good;
    s.side[BRIG_SIDE_ZEROS].bytes *= 2;
    refuse(s, "GPTQ4", 64, 192, "zeros have 128 bytes");
    refuse(good, "GPTQ8", 64, 192, "zeros have 64 bytes");
    refuse(good, "GPTQ4", 64, 256, "the groups of its columns have 768 bytes, not 1024");
    refuse(good, "GPTQ4", 60, 192, "rows by the 8");
    refuse(good, "GPTQ4", 64, 188, "columns by the 8");
    refuse(good, "GPTQ4", 0, 192, "rows by the 8");
    refuse(good, "GPTQ4", 64, (uint64_t)1 << 32, "columns by the 8");
    refuse(good, "GPTQ4", UINT64_MAX / 8 * 8, 192, "larger than any file");
    refuse(good, "F32", 64, 192, "type F32 has");
    s.group_cols = 0;
    refuse(s, "GPTQ4", 64, 192, "lacks a group size");
    s = good;
    s.zero_bias = 2;
    refuse(s, "GPTQ4", 64, 192, "lacks a group size");
    s = good;
    s.scale_type = brig_type_by_name("Q8_0");
    refuse(s, "GPTQ4", 64, 192, "scales' type");
    refuse((struct brig_sides){0}, "AWQ4", 64, 192, "lacks a group size");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(weights_are_those),
        cmocka_unit_test(products_are_the_definition),
        cmocka_unit_test(sorting),
        cmocka_unit_test(sizes_are_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
