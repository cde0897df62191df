/*
 * Matrix products: the scalar kernel against plain double arithmetic, and every other kernel against the
 * scalar one bit for bit. Weights and activations end where a page ends, and the next page faults.
 */
#include "tests/unit/blocks_util.h"
#include "tests/unit/kernels_util.h"

#include <math.h>

#include "proto/base/mem.h"
#include "proto/model/r16.h"
#include "shard/kernels/kernel.h"

/* A matrix and activations for it, in both forms. */
struct problem {
    struct brig_matrix w;
    struct brig_act x; /* q and f both set */
    struct edge weights, f, q, d, sum;
};

enum content { SANE, ANY_BITS, EXTREME };

static float sane_scale(void)
{
    return random_f32() * 0.02f;
}

static void fill_block(const struct brig_type *type, uint8_t *b, enum content content)
{
    for (uint32_t i = 0; i < type->block_bytes; i++)
        b[i] = content == EXTREME ? (uint8_t)(random_below(2) == 0 ? 0x80 : 0xff) : (uint8_t)random_u32();
    if (content == ANY_BITS)
        return;
    if (type->id == BRIG_TYPE_F32) {
        float v = random_f32();
        memcpy(b, &v, sizeof v);
    } else if (type->id == BRIG_TYPE_BF16) {
        uint16_t half = (uint16_t)(brig_f32_to_bits(random_f32()) >> 16);
        memcpy(b, &half, sizeof half);
    } else {
        float scale = sane_scale();
        block_set_scales(type, b, scale, sane_scale());
    }
}

static void fill_activations(struct problem *p, enum content content)
{
    float *f = p->f.data;
    size_t n = (size_t)p->x.n_rows * p->x.cols;
    for (size_t i = 0; i < n; i++)
        f[i] = content == ANY_BITS && random_below(200) == 0 ? random_bits() : random_f32() * 3.0f;
    if (content == EXTREME)
        for (size_t i = 0; i < n; i++)
            f[i] = copysignf(random_below(4) == 0 ? 0.0f : 127.0f, f[i]);
    if (p->x.cols % BRIG_ACT_GROUP != 0)
        return;
    size_t stride = brig_act_stride(p->x.cols);
    for (size_t t = 0; t < p->x.n_rows; t++)
        brig_kernel_by_name("scalar")->quantize(
            f + t * p->x.cols, p->x.cols, (int8_t *)p->q.data + t * stride,
            (float *)p->d.data + t * (stride / 32), (int32_t *)p->sum.data + t * (stride / 16));
}

/* Interleave what lies row by row. */
static void interleave(struct problem *p)
{
    size_t panel_bytes = BRIG_R16_ROWS * p->w.row_bytes;
    uint8_t *rows = brig_alloc(panel_bytes, 1), *data = p->weights.data;
    for (uint64_t r = 0; r < p->w.rows; r += BRIG_R16_ROWS, data += panel_bytes) {
        memcpy(rows, data, panel_bytes);
        brig_r16_join(p->w.type, rows, p->w.row_bytes, data);
    }
    brig_free(rows);
}

static struct problem problem_new(const struct brig_type *type, uint32_t rows, uint32_t cols, uint32_t unit,
                                  uint32_t n_rows, enum content content)
{
    struct problem p = {0};
    uint32_t panel = brig_type_panel_rows(type);
    rows = (rows + panel - 1) / panel * panel;
    size_t row_bytes = cols / type->block_elems * type->block_bytes;
    size_t n = n_rows > 0 ? (n_rows - 1) * brig_act_stride(cols) + cols : 0; /* the last row ends there */
    p.weights = edge_new(rows * row_bytes);
    p.f = edge_new((size_t)n_rows * cols * sizeof(float));
    p.q = edge_new(n);
    p.d = edge_new(n / 32 * sizeof(float));
    p.sum = edge_new(n / 16 * sizeof(int32_t));
    p.w = (struct brig_matrix){type, p.weights.data, rows, cols, row_bytes, unit, NULL, 0};
    p.x = (struct brig_act){n_rows, cols, p.f.data, p.q.data, p.d.data, p.sum.data};
    for (size_t i = 0; i < rows * row_bytes; i += type->block_bytes)
        fill_block(brig_type_native(type), (uint8_t *)p.weights.data + i, content);
    if (type->native != NULL)
        interleave(&p);
    fill_activations(&p, content);
    return p;
}

static void problem_free(struct problem *p)
{
    edge_free(&p->weights);
    edge_free(&p->f);
    edge_free(&p->q);
    edge_free(&p->d);
    edge_free(&p->sum);
}

static double half_at(const uint8_t *p)
{
    return (double)brig_f16_to_f32(brig_load_u16(p));
}

/* One weight, from the description of the formats, in double; those of the larger formats from their dequant,
 * which test_proto_model_type holds to references. */
static double weight(const struct brig_matrix *w, uint64_t row, uint64_t col)
{
    const uint8_t *b =
        (const uint8_t *)w->data + row * w->row_bytes + col / w->type->block_elems * w->type->block_bytes;
    unsigned i = (unsigned)(col % w->type->block_elems);
    float f32, block[256];
    if (w->type->native != NULL) { /* test_proto_model_r16 */
        brig_r16_dequant(w->type, w->data, w->row_bytes, row, col / 32 * 32, 32, block);
        return (double)block[i];
    }
    switch (w->type->id) {
    case BRIG_TYPE_F32:
        memcpy(&f32, b, sizeof f32);
        return (double)f32;
    case BRIG_TYPE_F16:
        return half_at(b);
    case BRIG_TYPE_BF16:
        return (double)brig_bf16_to_f32(brig_load_u16(b));
    case BRIG_TYPE_Q8_0:
        return half_at(b) * (int8_t)b[2 + i];
    case BRIG_TYPE_Q4_0:
        return half_at(b) * ((b[2 + i % 16] >> (i / 16 * 4) & 15) - 8);
    case BRIG_TYPE_Q4_1:
        return half_at(b) * (b[4 + i % 16] >> (i / 16 * 4) & 15) + half_at(b + 2);
    case BRIG_TYPE_Q5_0:
        return half_at(b) * ((b[6 + i % 16] >> (i / 16 * 4) & 15) + (b[2 + i / 8] >> i % 8 & 1) * 16 - 16);
    case BRIG_TYPE_Q5_1:
        return half_at(b) * ((b[8 + i % 16] >> (i / 16 * 4) & 15) + (b[4 + i / 8] >> i % 8 & 1) * 16) +
               half_at(b + 2);
    default:
        assert_in_range(w->type->block_elems, 32, 256);
        w->type->dequant(b, block, w->type->block_elems);
        return (double)block[i];
    }
}

static void assert_near_double(const struct problem *p, bool integer, const float *y)
{
    for (uint64_t r = 0; r < p->w.rows; r++) {
        for (size_t t = 0; t < p->x.n_rows; t++) {
            double sum = 0, size = 1e-30;
            for (uint64_t c = 0; c < p->w.cols; c++) {
                size_t at = t * brig_act_stride(p->x.cols) + c;
                double x = integer ? p->x.q[at] * (double)p->x.d[at / 32] : (double)p->x.f[t * p->x.cols + c];
                sum += weight(&p->w, r, c) * x;
                size += fabs(weight(&p->w, r, c) * x);
            }
            if (!(fabs((double)y[t * p->w.rows + r] - sum) <= 2e-6 * size))
                fail_msg("%s: row %u token %zu is %g, in double %g", p->w.type->name, (unsigned)r, t,
                         (double)y[t * p->w.rows + r], sum);
        }
    }
}

static void run(const struct brig_kernel *k, const struct problem *p, bool integer, float *y)
{
    struct brig_act x = p->x;
    if (!integer)
        x.q = NULL;
    memset(y, 0x55, p->w.rows * x.n_rows * sizeof *y);
    k->matmul(&p->w, 0, p->w.rows, &x, y, p->w.rows);
}

static void scalar_is_right(void **state)
{
    (void)state;
    for (unsigned i = 0; brig_type_at(i) != NULL; i++) {
        const struct brig_type *type = brig_type_at(i);
        if (type->packing != NULL)
            continue; /* test_kernels_packed */
        bool large = type->block_elems > 32;
        const uint32_t cols = large ? 1280 : 576;
        const uint32_t units[] = {256, large ? 512 : 192, cols, large ? 256 : 32};
        for (size_t u = 0; u < 4; u++) {
            struct problem p = problem_new(type, 5, cols, units[u], 3, u == 3 ? EXTREME : SANE);
            float y[3 * 16];
            for (int integer = 0; integer <= (type->group != 0); integer++) {
                run(brig_kernel_by_name("scalar"), &p, integer, y);
                assert_near_double(&p, integer, y);
            }
            problem_free(&p);
        }
    }
}

/* Work cut into ranges of rows, and y with room between its rows, must give the same. */
static void assert_ranges(const struct brig_kernel *k, const struct problem *p, bool integer,
                          const float *want)
{
    size_t stride = p->w.rows + 3;
    float *y = brig_alloc(stride * p->x.n_rows, sizeof *y);
    struct brig_act x = p->x;
    if (!integer)
        x.q = NULL;
    for (uint64_t r = 0; r < p->w.rows; r += 32)
        k->matmul(&p->w, r, r + 32 < p->w.rows ? r + 32 : p->w.rows, &x, y, stride);
    for (size_t t = 0; t < x.n_rows; t++) {
        assert_same_f32(y + t * stride, want + t * p->w.rows, p->w.rows, k->name);
        for (size_t i = p->w.rows; i < stride; i++)
            assert_true(y[t * stride + i] == 0.0f);
    }
    brig_free(y);
}

static void compare(const struct brig_kernel *k, const struct problem *p)
{
    size_t n = p->w.rows * p->x.n_rows;
    float *want = brig_alloc(n, sizeof *want), *got = brig_alloc(n, sizeof *got);
    char what[128];
    for (int integer = 0; integer <= (p->w.type->group != 0); integer++) {
        snprintf(what, sizeof what, "%s %s %ux%u unit %u tokens %u %s", k->name, p->w.type->name,
                 (unsigned)p->w.rows, (unsigned)p->w.cols, p->w.unit_cols, p->x.n_rows,
                 integer ? "integer" : "float");
        run(brig_kernel_by_name("scalar"), p, integer, want);
        run(k, p, integer, got);
        assert_same_f32(got, want, n, what);
        assert_ranges(k, p, integer, want);
    }
    brig_free(want);
    brig_free(got);
}

/* The rows of an interleaved matrix one by one: what its products must be. */
static void compare_native(const struct brig_kernel *k, const struct problem *p)
{
    size_t n = p->w.rows * p->x.n_rows, panel_bytes = BRIG_R16_ROWS * p->w.row_bytes;
    float *want = brig_alloc(n, sizeof *want), *got = brig_alloc(n, sizeof *got);
    struct problem native = *p;
    native.weights = edge_new(p->w.rows * p->w.row_bytes);
    native.w.type = p->w.type->native;
    native.w.data = native.weights.data;
    for (uint64_t i = 0; i < p->w.rows / BRIG_R16_ROWS; i++)
        brig_r16_split(p->w.type, (const uint8_t *)p->w.data + i * panel_bytes, p->w.row_bytes,
                       (uint8_t *)native.weights.data + i * panel_bytes);
    for (int integer = 0; integer <= 1; integer++) {
        run(brig_kernel_by_name("scalar"), &native, integer, want);
        run(k, p, integer, got);
        assert_same_f32(got, want, n, k->name);
    }
    edge_free(&native.weights);
    brig_free(want);
    brig_free(got);
}

static uint32_t pick_unit(const struct brig_type *type, uint32_t cols)
{
    const uint32_t units[] = {256, 192, 64, 32, 96, 288, 512, cols};
    uint32_t u = units[random_below(8)];
    return u > cols || u % type->block_elems != 0 ? cols : u;
}

static void rows_equal_scalar(void **state)
{
    (void)state;
    for (unsigned i = 0; brig_kernel_at(i) != NULL; i++) {
        const struct brig_kernel *k = brig_kernel_at(i);
        if (!k->usable()) {
            print_message("%s: this CPU does not have it, not compared\n", k->name);
            continue;
        }
        for (unsigned n = 0; n < 32 * BRIG_TYPE_COUNT; n++) {
            const struct brig_type *type = brig_type_at(n % BRIG_TYPE_COUNT);
            if (type->packing != NULL)
                continue;
            uint32_t cols = type->block_elems == 1 && random_below(3) == 0
                                ? 1 + random_below(700)
                                : 32 * (1 + random_below(random_below(5) == 0 ? 66 : 20));
            cols = (cols + type->block_elems - 1) / type->block_elems * type->block_elems;
            uint32_t form = random_below(16);
            uint32_t n_rows = form < 4    ? 1
                              : form == 4 ? 32 + random_below(10)
                              : form == 5 ? 60 + random_below(100) /* more than one tile */
                                          : 1 + random_below(20);
            enum content content = n / BRIG_TYPE_COUNT % 4 == 1   ? ANY_BITS
                                   : n / BRIG_TYPE_COUNT % 4 == 2 ? EXTREME
                                                                  : SANE;
            struct problem p =
                problem_new(type, 1 + random_below(50), cols, pick_unit(type, cols), n_rows, content);
            compare(k, &p);
            if (type->native != NULL)
                compare_native(k, &p);
            problem_free(&p);
        }
    }
}

/* A matrix in a file begins at any address. */
static void any_alignment(void **state)
{
    (void)state;
    for (unsigned i = 0; brig_kernel_at(i) != NULL; i++) {
        if (!brig_kernel_at(i)->usable())
            continue;
        for (unsigned n = 0; n < BRIG_TYPE_COUNT; n++) {
            if (brig_type_at(n)->packing != NULL)
                continue;
            struct problem p = problem_new(brig_type_at(n), 16, 256, 256, 1, SANE);
            size_t bytes = p.w.rows * p.w.row_bytes;
            struct edge moved = edge_new(bytes + 1);
            memcpy(moved.data, p.w.data, bytes);
            float want[16], got[16];
            run(brig_kernel_by_name("scalar"), &p, p.w.type->group != 0, want);
            p.w.data = moved.data;
            run(brig_kernel_at(i), &p, p.w.type->group != 0, got);
            assert_same_f32(got, want, 16, brig_kernel_at(i)->name);
            edge_free(&moved);
            problem_free(&p);
        }
    }
}

/* The tree that joins units, against its definition written out for small counts. */
static void tree_shape(void **state)
{
    (void)state;
    float a = 1.0f, b = 0x1p-24f, c = 0x1p-24f, d = 0x1p-23f, e = -1.0f;
    assert_true(brig_tree_sum((float[]){a}, 1) == a);
    assert_true(brig_tree_sum((float[]){a, b, c}, 3) == (a + b) + c);
    assert_true(brig_tree_sum((float[]){b, c, a}, 3) == (b + c) + a);
    assert_true(brig_tree_sum((float[]){a, b, c, d, e}, 5) == ((a + b) + c) + (d + e));
    assert_true((a + b) + c != a + (b + c)); /* the values do tell orders apart */
}

static void registry(void **state)
{
    (void)state;
    unsigned n = 0;
    for (; brig_kernel_at(n) != NULL; n++)
        assert_ptr_equal(brig_kernel_by_name(brig_kernel_at(n)->name), brig_kernel_at(n));
    assert_string_equal(brig_kernel_at(n - 1)->name, "scalar");
    assert_null(brig_kernel_by_name("no such kernel"));
    setenv("BRIGADE_KERNEL", "scalar", 1);
    assert_ptr_equal(brig_kernel_choose(), brig_kernel_at(n - 1));
    setenv("BRIGADE_KERNEL", "no such kernel", 1);
    assert_null(brig_kernel_choose());
    unsetenv("BRIGADE_KERNEL");
    assert_true(brig_kernel_choose()->usable());
}

/* In the definition nothing is fused but what it calls fmaf for: built without fused instructions, fmaf is a
 * call, so the object files must hold none. */
static void scalar_fuses_nothing(void **state)
{
    (void)state;
#if defined(__x86_64__) && !defined(BRIG_SANITIZED)
    FILE *p = popen("objdump -d build/release/obj/shard/kernels/scalar.o "
                    "build/release/obj/shard/kernels/scalar_matmul.o build/release/obj/shard/kernels/math.o",
                    "r");
    assert_non_null(p);
    char line[512];
    unsigned lines = 0, calls = 0, fused = 0;
    while (fgets(line, sizeof line, p) != NULL) {
        lines++;
        calls += strstr(line, "call") != NULL;
        fused += strstr(line, "vfm") != NULL || strstr(line, "vfnm") != NULL;
    }
    if (pclose(p) != 0 || lines < 100) {
        print_message("objdump is not installed or the objects are elsewhere: skipped\n");
        skip();
    }
    assert_true(calls > 10);
    assert_int_equal(fused, 0);
#else
    print_message("looks at the release objects on x86-64 only: skipped\n");
    skip();
#endif
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scalar_is_right), cmocka_unit_test(rows_equal_scalar),
        cmocka_unit_test(any_alignment),   cmocka_unit_test(tree_shape),
        cmocka_unit_test(registry),        cmocka_unit_test(scalar_fuses_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
