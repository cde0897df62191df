/*
 * The head's candidates and log-sum-exp, picked during the product, against a sorted whole row: vocabularies
 * of several strips, ties, NaN, infinities, any number of threads and rows, every kernel.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>

#include "proto/base/mem.h"
#include "shard/block/parts.h"

enum { HIDDEN = 32, MAX_VOCAB = 3 * 4096 + 77 };

static float weights[MAX_VOCAB][HIDDEN], ones[HIDDEN], h[BRIG_HEAD_ROWS * 2][HIDDEN];
static float logits[BRIG_HEAD_ROWS][MAX_VOCAB];
static uint32_t sorted[MAX_VOCAB];

struct rig {
    struct brig_slice slice;
    struct brig_block b;
};

static void rig_open(struct rig *r, const struct brig_kernel *kernel, unsigned threads, uint32_t vocab)
{
    struct brig_fail fail;
    memset(r, 0, sizeof *r);
    r->slice.desc = (struct brig_desc){
        .n_layers = 1, .hidden = HIDDEN, .vocab = vocab, .n_heads = 1, .n_kv_heads = 1, .norm_eps = 1e-6f};
    r->b.setup = (struct brig_block_setup){
        .slice = &r->slice, .kernel = kernel, .exact = true, .max_rows = BRIG_HEAD_ROWS, .ctx = 16};
    assert_int_equal(brig_team_new(&r->b.setup.team, threads, &fail), 0);
    r->b.desc = &r->slice.desc;
    r->b.n_threads = threads;
    r->b.rows_cap = BRIG_HEAD_ROWS;
    r->b.output_norm.weight = ones;
    r->b.output = (struct brig_matrix){.type = brig_type_at(BRIG_TYPE_F32),
                                       .data = weights,
                                       .rows = vocab,
                                       .cols = HIDDEN,
                                       .row_bytes = sizeof weights[0],
                                       .unit_cols = HIDDEN};
    assert_int_equal(brig_scratch_new(&r->b, &fail), 0);
}

static void rig_close(struct rig *r)
{
    brig_scratch_free(&r->b);
    brig_team_free(r->b.setup.team);
}

static uint32_t next(void)
{
    static uint32_t x = 1;
    x = x * 1664525u + 1013904223u;
    return x >> 8;
}

/* Logits of few different sizes, so that there are many ties; one column each, so that they can be chosen. */
static void fill(uint32_t vocab, bool broken)
{
    memset(weights, 0, sizeof weights);
    for (uint32_t i = 0; i < HIDDEN; i++)
        ones[i] = 1;
    for (uint32_t i = 0; i < vocab; i++)
        weights[i][0] = (float)(next() % 37) - 20;
    for (uint32_t i = 0; broken && i < vocab / 3; i++)
        weights[next() % vocab][0] = next() % 2 == 0 ? NAN : -INFINITY;
    for (uint32_t row = 0; row < 2 * BRIG_HEAD_ROWS; row++)
        for (uint32_t i = 0; i < HIDDEN; i++)
            h[row][i] = i == 0 ? 1.0f + (float)row : (float)(next() % 100) / 50 - 1;
}

static const float *sort_by;

static int in_order(const void *pa, const void *pb)
{
    uint32_t a = *(const uint32_t *)pa, b = *(const uint32_t *)pb;
    float x = sort_by[a], y = sort_by[b];
    if (isnan(x) != isnan(y))
        return isnan(x) ? 1 : -1;
    if (!isnan(x) && x != y)
        return x > y ? -1 : 1;
    return a < b ? -1 : 1;
}

/* docs/arithmetic.md, word by word. */
static float lse_of(const float *x, uint32_t vocab)
{
    const struct brig_kernel *scalar = brig_kernel_by_name("scalar");
    float strips[MAX_VOCAB / 4096 + 1];
    uint32_t n = 0;
    for (uint32_t first = 0; first < vocab; first += 4096, n++) {
        uint32_t end = vocab - first < 4096 ? vocab : first + 4096;
        bool nothing = true;
        for (uint32_t i = first; i < end; i++)
            nothing &= x[i] == -INFINITY;
        strips[n] = nothing ? -INFINITY : scalar->log_sum_exp(x + first, end - first);
    }
    return scalar->log_sum_exp(strips, n);
}

static void compare(struct rig *r, uint32_t vocab, uint32_t n_want, uint32_t top)
{
    struct brig_head_answer got[BRIG_HEAD_ROWS];
    uint32_t rows[BRIG_HEAD_ROWS];
    for (uint32_t i = 0; i < n_want; i++)
        rows[i] = 2 * i;
    assert_int_equal(brig_head_logits(&r->b, h[0], rows, n_want, logits[0], NULL), 0);
    assert_int_equal(brig_head_best(&r->b, h[0], rows, n_want, top, got, NULL), 0);
    for (uint32_t row = 0; row < n_want; row++) {
        const float *x = logits[0] + (size_t)row * vocab;
        for (uint32_t i = 0; i < vocab; i++)
            sorted[i] = i;
        sort_by = x;
        qsort(sorted, vocab, sizeof *sorted, in_order);
        assert_int_equal(got[row].n, top < vocab ? top : vocab);
        for (uint32_t i = 0; i < got[row].n; i++) {
            assert_int_equal(got[row].best[i].id, sorted[i]);
            assert_memory_equal(&got[row].best[i].logit, &x[sorted[i]], sizeof(float));
        }
        float lse = lse_of(x, vocab);
        if (isnan(lse))
            assert_true(isnan(got[row].lse));
        else
            assert_memory_equal(&got[row].lse, &lse, sizeof lse);
    }
}

static void same_as_a_sorted_row(void **state)
{
    (void)state;
    const uint32_t vocabs[] = {1, 15, 17, 517, 4095, 4096, 4097, 8192, MAX_VOCAB};
    const uint32_t tops[] = {1, 2, 64, 1024};
    const struct brig_kernel *k;
    for (unsigned row = 0; (k = brig_kernel_at(row)) != NULL; row++)
        for (unsigned v = 0; k->usable() && v < sizeof vocabs / sizeof *vocabs; v++)
            for (unsigned threads = 1; threads <= 3; threads++) {
                struct rig r;
                rig_open(&r, k, threads, vocabs[v]);
                for (unsigned t = 0; t < sizeof tops / sizeof *tops; t++) {
                    fill(vocabs[v], t % 2 == 1);
                    compare(&r, vocabs[v], t == 1 ? BRIG_HEAD_ROWS : t + 1, tops[t]);
                }
                rig_close(&r);
            }
}

/* Nothing but minus infinity in one strip is no reason to lose the sum of the others. */
static void empty_strips(void **state)
{
    (void)state;
    struct rig r;
    rig_open(&r, brig_kernel_choose(), 2, MAX_VOCAB);
    fill(MAX_VOCAB, false);
    for (uint32_t i = 4096; i < 8192; i++)
        weights[i][0] = -INFINITY;
    compare(&r, MAX_VOCAB, 2, 5);
    struct brig_head_answer got;
    uint32_t row = 0;
    assert_int_equal(brig_head_best(&r.b, h[0], &row, 1, 5, &got, NULL), 0);
    assert_true(isfinite(got.lse));
    for (uint32_t i = 0; i < MAX_VOCAB; i++) /* all alike: the lowest ids */
        weights[i][0] = 3;
    compare(&r, MAX_VOCAB, 1, 1024);
    rig_close(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_as_a_sorted_row),
        cmocka_unit_test(empty_strips),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
