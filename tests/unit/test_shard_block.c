/*
 * The block and the head against references of a tiny model, and against themselves: however rows are
 * batched, cut into slices, spread over threads or computed by another instruction set, the bits are the
 * same.
 */
#include "shard_util.h"

#include <math.h>

enum { TOTAL_MAX = 56 };

/* Of the tiny llama, and a mixture of experts. */
static const char *const TYPES[] = {"f32", "f16", "q8_0", "q4_0", "q5_0", "../olmoe/q4_0"};

static struct brig_cells whole(const struct brig_model *m)
{
    return (struct brig_cells){0, m->desc.n_layers + 1};
}

static void greedy(const struct brig_model *m, const struct reference *ref, struct rig_how how, uint32_t *ids)
{
    struct rig g;
    uint32_t n = ref->n_prompt, hidden = m->desc.hidden;
    float *h = brig_alloc((size_t)TOTAL_MAX * hidden, sizeof *h);
    float *logits = brig_alloc(m->desc.vocab, sizeof *logits);
    rig_open(&g, m, whole(m), how);
    embed(m, ref->prompt, n, h);
    struct brig_run run = {.slot = 0, .pos = 0, .count = n};
    for (uint32_t i = 0; i < ref->n_greedy; i++) {
        struct brig_candidate best;
        uint32_t last = run.count - 1;
        rig_run(&g, h, &run, 1);
        assert_int_equal(brig_head_logits(g.block, h, &last, 1, logits, NULL), 0);
        assert_int_equal(top_of(logits, m->desc.vocab, 1, &best), 1);
        ids[i] = best.id;
        embed(m, &ids[i], 1, h);
        run = (struct brig_run){.slot = 0, .pos = n + i, .count = 1};
    }
    rig_close(&g);
    brig_free(h);
    brig_free(logits);
}

static void exact_is_near_the_reference(void **state)
{
    (void)state;
    for (unsigned t = 0; t < sizeof TYPES / sizeof TYPES[0]; t++) {
        struct brig_model *m = open_fixture(TYPES[t]);
        struct reference ref;
        read_reference(&ref, TYPES[t], m->desc.vocab);
        size_t n = (size_t)ref.n_prompt * m->desc.vocab;
        float *logits = logits_of(m, ref.prompt, ref.n_prompt, rig_exact(), ref.n_prompt, NULL, 0);
        float worst = 0;
        for (size_t i = 0; i < n; i++)
            worst = fmaxf(worst, fabsf(logits[i] - ref.logits[i]));
        if (!(worst <= 2e-4f))
            fail_msg("%s: logits differ by %g from the reference", TYPES[t], (double)worst);
        print_message("%s: largest difference of logits %.2g\n", TYPES[t], (double)worst);
        brig_free(logits);
        brig_free(ref.logits);
        brig_model_close(m);
    }
}

static void exact_continues_as_the_reference(void **state)
{
    (void)state;
    for (unsigned t = 0; t < sizeof TYPES / sizeof TYPES[0]; t++) {
        struct brig_model *m = open_fixture(TYPES[t]);
        struct reference ref;
        uint32_t ids[128];
        read_reference(&ref, TYPES[t], m->desc.vocab);
        greedy(m, &ref, rig_exact(), ids);
        assert_memory_equal(ids, ref.greedy, ref.n_greedy * sizeof *ids);
        brig_free(ref.logits);
        brig_model_close(m);
    }
}

/* The ways that must not matter. */
static struct rig_how usual(const char *kernel, unsigned threads)
{
    return (struct rig_how){
        .kernel = kernel, .exact = false, .threads = threads, .max_rows = 64, .ctx = 64, .slots = 2};
}

static void bits_do_not_depend_on_the_way(void **state)
{
    (void)state;
    const uint32_t cut_all[] = {1, 2, 3, 4}, cut_two[] = {2};
    for (unsigned t = 0; t < sizeof TYPES / sizeof TYPES[0]; t++) {
        struct brig_model *m = open_fixture(TYPES[t]);
        struct reference ref;
        read_reference(&ref, TYPES[t], m->desc.vocab);
        assert_in_range(m->desc.n_layers, 3, 7);
        uint32_t n = ref.n_prompt;
        size_t cells = (size_t)n * m->desc.vocab;
        unsigned n_all = m->desc.n_layers < 4 ? m->desc.n_layers : 4;
        for (unsigned exact = 0; exact < 2; exact++) {
            struct rig_how one = usual("scalar", 1), two = usual("scalar", 2);
            one.exact = two.exact = exact != 0;
            float *want = logits_of(m, ref.prompt, n, one, n, NULL, 0);
            float *others[] = {
                logits_of(m, ref.prompt, n, one, 1, NULL, 0),
                logits_of(m, ref.prompt, n, one, 5, NULL, 0),
                logits_of(m, ref.prompt, n, two, n, NULL, 0),
                logits_of(m, ref.prompt, n, two, 1, cut_two, 1),
                logits_of(m, ref.prompt, n, one, n, cut_all, n_all),
            };
            for (unsigned i = 0; i < sizeof others / sizeof others[0]; i++) {
                assert_same_bits(others[i], want, cells);
                brig_free(others[i]);
            }
            brig_free(want);
        }
        brig_free(ref.logits);
        brig_model_close(m);
    }
}

static void every_kernel_gives_the_same_bits(void **state)
{
    (void)state;
    for (unsigned t = 0; t < sizeof TYPES / sizeof TYPES[0]; t++) {
        struct brig_model *m = open_fixture(TYPES[t]);
        struct reference ref;
        read_reference(&ref, TYPES[t], m->desc.vocab);
        uint32_t n = ref.n_prompt;
        float *want = logits_of(m, ref.prompt, n, usual("scalar", 1), n, NULL, 0);
        for (unsigned i = 0; brig_kernel_at(i) != NULL; i++) {
            const struct brig_kernel *k = brig_kernel_at(i);
            if (!k->usable()) {
                print_message("%s: this CPU lacks it, skipped\n", k->name);
                continue;
            }
            float *got = logits_of(m, ref.prompt, n, usual(k->name, 2), 7, NULL, 0);
            assert_same_bits(got, want, (size_t)n * m->desc.vocab);
            brig_free(got);
        }
        brig_free(want);
        brig_free(ref.logits);
        brig_model_close(m);
    }
}

static void quantised_activations_keep_the_ids_of_f16(void **state)
{
    (void)state;
    struct brig_model *m = open_fixture("f16");
    struct reference ref;
    uint32_t ids[128];
    read_reference(&ref, "f16", m->desc.vocab);
    greedy(m, &ref, usual(NULL, 2), ids);
    assert_memory_equal(ids, ref.greedy, ref.n_greedy * sizeof *ids);
    brig_free(ref.logits);
    brig_model_close(m);
}

/* Two sequences in one frame: each gets what it gets alone. */
static void sequences_side_by_side(void **state)
{
    (void)state;
    struct brig_model *m = open_fixture("q4_0");
    struct reference ref;
    struct rig g;
    uint32_t hidden = m->desc.hidden;
    read_reference(&ref, "q4_0", m->desc.vocab);
    float *want = logits_of(m, ref.prompt, 8, usual(NULL, 1), 8, NULL, 0);
    float *h = brig_alloc((size_t)16 * hidden, sizeof *h);
    float *logits = brig_alloc((size_t)16 * m->desc.vocab, sizeof *logits);
    embed(m, ref.prompt, 8, h);
    embed(m, ref.prompt + 8, 8, h + (size_t)8 * hidden);
    /* slot 1 has the same tokens as `want`, the rows of slot 0 stand between them */
    memmove(h + (size_t)12 * hidden, h + (size_t)4 * hidden, (size_t)4 * hidden * sizeof *h);
    embed(m, ref.prompt + 8, 8, h + (size_t)4 * hidden);
    const struct brig_run runs[] = {{1, 0, 4}, {0, 0, 8}, {1, 4, 4}};
    rig_open(&g, m, whole(m), usual(NULL, 2));
    rig_run(&g, h, runs, 3);
    head_all(&g, h, 16, logits);
    assert_same_bits(logits, want, (size_t)4 * m->desc.vocab);
    assert_same_bits(logits + (size_t)12 * m->desc.vocab, want + (size_t)4 * m->desc.vocab,
                     (size_t)4 * m->desc.vocab);
    rig_close(&g);
    brig_free(h);
    brig_free(logits);
    brig_free(want);
    brig_free(ref.logits);
    brig_model_close(m);
}

/* ---- words of the description, by changing one and looking at what must not or must change ---- */

static void window_all(struct brig_model *m, uint32_t window, bool every)
{
    m->desc.window = window;
    for (uint32_t i = 0; i < m->desc.n_layers; i++)
        m->desc.layer_flags[i] = every || i == 0 ? BRIG_LAYER_WINDOWED : 0;
}

static float *logits_here(const struct brig_model *m, const struct reference *ref, uint32_t batch)
{
    return logits_of(m, ref->prompt, ref->n_prompt, usual(NULL, 2), batch, NULL, 0);
}

static bool same(const float *a, const float *b, size_t n)
{
    return memcmp(a, b, n * sizeof *a) == 0;
}

/* A window that reaches back to position 0 is none; one position less changes the last row and only it. With
 * one windowed layer of a window w, rows before position w are untouched. */
static void windows_hide_what_is_before_them(void **state)
{
    (void)state;
    struct brig_model *m = open_fixture("q8_0");
    struct reference ref;
    read_reference(&ref, "q8_0", m->desc.vocab);
    size_t vocab = m->desc.vocab, n = ref.n_prompt;
    float *want = logits_here(m, &ref, ref.n_prompt);
    for (uint32_t w = 1; w <= n; w += w < 3 || w + 1 == n ? 1 : (uint32_t)n - 4) {
        window_all(m, w, false);
        float *got = logits_here(m, &ref, ref.n_prompt), *singly = logits_here(m, &ref, 1);
        assert_same_bits(singly, got, n * vocab);
        assert_same_bits(got, want, (w < n ? w : n) * vocab);
        for (size_t row = w; row < n; row++)
            assert_false(same(got + row * vocab, want + row * vocab, vocab));
        brig_free(got);
        brig_free(singly);
    }
    window_all(m, (uint32_t)n, true);
    float *all = logits_here(m, &ref, 5);
    assert_same_bits(all, want, n * vocab);
    brig_free(all);
    brig_free(want);
    brig_free(ref.logits);
    brig_model_close(m);
}

/* With activations in f32: what a cache of integers adds to the logits is not nothing, and little of them. */
static void cache_costs_little(const struct brig_model *m, const uint32_t *ids, uint32_t n_rows,
                               struct rig_how how)
{
    double whole_sum = 0, apart_sum = 0;
    how.exact = true;
    float *half = logits_of(m, ids, n_rows, how, n_rows, NULL, 0);
    how.kv = BRIG_KV_Q8;
    float *got = logits_of(m, ids, n_rows, how, n_rows, NULL, 0);
    for (size_t i = 0; i < (size_t)n_rows * m->desc.vocab; i++) {
        double apart = (double)got[i] - (double)half[i];
        apart_sum += apart * apart;
        whole_sum += (double)half[i] * (double)half[i];
    }
    assert_true(apart_sum > 0);
    assert_true(apart_sum < 0.05 * 0.05 * whole_sum);
    brig_free(half);
    brig_free(got);
}

/* Batches of 1 to 64 rows, windows, cuts and kernels over a cache of 8-bit integers. */
static void a_cache_of_integers_gives_the_same_bits(void **state)
{
    (void)state;
    enum { ROWS = 64 };
    const uint32_t batches[] = {1, 2, 3, 7, 16, 33, 63, 64}, windows[] = {0, 1, 5, 33}, cuts[] = {1, 2};
    struct brig_model *m = open_fixture("q8_0");
    struct reference ref;
    uint32_t ids[ROWS];
    read_reference(&ref, "q8_0", m->desc.vocab);
    size_t n = (size_t)ROWS * m->desc.vocab;
    for (uint32_t i = 0; i < ROWS; i++)
        ids[i] = ref.prompt[i * 7 % ref.n_prompt];
    for (unsigned w = 0; w < sizeof windows / sizeof windows[0]; w++) {
        struct rig_how how = usual("scalar", 1);
        if (windows[w] > 0)
            window_all(m, windows[w], w % 2 == 1);
        cache_costs_little(m, ids, ROWS, how);
        how.kv = BRIG_KV_Q8;
        float *want = logits_of(m, ids, ROWS, how, ROWS, NULL, 0);
        float *pieces = logits_of(m, ids, ROWS, how, 5, cuts, 2);
        assert_same_bits(pieces, want, n);
        brig_free(pieces);
        for (unsigned i = 0; brig_kernel_at(i) != NULL; i++)
            for (unsigned b = 0; brig_kernel_at(i)->usable() && b < sizeof batches / sizeof batches[0]; b++) {
                how.kernel = brig_kernel_at(i)->name;
                how.threads = 1 + b % 2;
                float *got = logits_of(m, ids, ROWS, how, batches[b], NULL, 0);
                assert_same_bits(got, want, n);
                brig_free(got);
            }
        brig_free(want);
    }
    brig_free(ref.logits);
    brig_model_close(m);
}

/* What a row depends on reaches back window - 1 rows a layer and not one row more: those before may be NaN.
 */
static void nothing_before_a_window_is_read(void **state)
{
    (void)state;
    struct brig_model *m = open_fixture("f16");
    struct reference ref;
    struct rig g;
    read_reference(&ref, "f16", m->desc.vocab);
    window_all(m, 3, true);
    uint32_t n = ref.n_prompt, hidden = m->desc.hidden, reach = 2 * m->desc.n_layers;
    assert_in_range(n, reach + 2, 64);
    uint32_t broken = n - 1 - reach;
    float *h = brig_alloc((size_t)n * hidden, sizeof *h);
    embed(m, ref.prompt, n, h);
    rig_open(&g, m, whole(m), usual(NULL, 1));
    for (size_t i = 0; i < (size_t)broken * hidden; i++)
        h[i] = NAN;
    const struct brig_run run = {0, 0, n};
    rig_run(&g, h, &run, 1);
    for (uint32_t i = 0; i < hidden; i++) {
        assert_false(isnan(h[(size_t)(n - 1) * hidden + i]));
        assert_true(isnan(h[(size_t)(n - 2) * hidden + i]));
    }
    rig_close(&g);
    brig_free(h);
    brig_free(ref.logits);
    brig_model_close(m);
}

static void set_factors(struct brig_model *m, float usual_factor, float long_factor, uint32_t long_from)
{
    m->desc.n_rope_factors = m->desc.rope_dims / 2;
    m->desc.rope_long_from = long_from;
    for (uint32_t i = 0; i < m->desc.n_rope_factors; i++) {
        m->desc.rope_factors[i] = usual_factor;
        m->desc.rope_long_factors[i] = long_factor;
    }
}

/* The run's context (64 here) chooses the factors; factors of 2 are positions divided by 2; windowed layers
 * with a base of their own turn without all that. */
static void rotary_tables(void **state)
{
    (void)state;
    struct brig_model *m = open_fixture("q4_0");
    struct reference ref;
    read_reference(&ref, "q4_0", m->desc.vocab);
    size_t n = (size_t)ref.n_prompt * m->desc.vocab;
    float *plain = logits_here(m, &ref, 7);
    m->desc.rope_linear = 2.0f;
    float *halved = logits_here(m, &ref, 7);
    assert_false(same(plain, halved, n));
    m->desc.rope_linear = 1.0f;
    const struct {
        float usual_factor, long_factor;
        uint32_t long_from;
        const float *want;
    } rows[] = {
        {1, 2, 64, plain}, {1, 2, 63, halved}, {2, 1, 64, halved}, {2, 1, 63, plain}, {2, 1, 0, halved}};
    for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        set_factors(m, rows[i].usual_factor, rows[i].long_factor, rows[i].long_from);
        float *got = logits_here(m, &ref, 7);
        assert_same_bits(got, rows[i].want, n);
        brig_free(got);
    }
    window_all(m, 64, true);
    m->desc.rope_windowed_base = m->desc.rope_base;
    m->desc.rope_mscale = m->desc.rope_linear = 3.0f;
    float *own = logits_here(m, &ref, 7);
    assert_same_bits(own, plain, n);
    m->desc.rope_windowed_base = 0.0f;
    float *scaled = logits_here(m, &ref, 7);
    assert_false(same(scaled, plain, n));
    brig_free(own);
    brig_free(scaled);
    brig_free(plain);
    brig_free(halved);
    brig_free(ref.logits);
    brig_model_close(m);
}

static void top_is_in_order(void **state)
{
    (void)state;
    const float nan = NAN, inf = INFINITY;
    const float x[] = {1, nan, 3, 3, -inf, 2, inf, nan, 3, 0};
    const uint32_t want[] = {6, 2, 3, 8, 5, 0, 9, 4, 1, 7};
    struct brig_candidate out[16];
    for (uint32_t top = 0; top <= 12; top++) {
        uint32_t n = top > 0 ? top_of(x, 10, top, out) : 0;
        assert_int_equal(n, top < 10 ? top : 10);
        for (uint32_t i = 0; i < n; i++)
            assert_int_equal(out[i].id, want[i]);
    }
}

static void allocates_nothing(const char *type)
{
    struct brig_model *m = open_fixture(type);
    struct rig g;
    float *h = brig_alloc(2 * m->desc.hidden, sizeof *h);
    float *logits = brig_alloc(m->desc.vocab, sizeof *logits);
    rig_open(&g, m, whole(m), usual(NULL, 2));
    uint64_t before = brig_alloc_count();
    for (uint32_t pos = 0; pos < 60; pos++) {
        struct brig_run run = {0, pos, 1 + pos % 2};
        uint32_t row = 0;
        for (uint32_t i = 0; i < 2 * m->desc.hidden; i++)
            h[i] = (float)((pos * 31 + i) % 17) - 8;
        rig_run(&g, h, &run, 1);
        assert_int_equal(brig_head_logits(g.block, h, &row, 1, logits, NULL), 0);
    }
    assert_int_equal(brig_alloc_count(), before);
    rig_close(&g);
    brig_free(h);
    brig_free(logits);
    brig_model_close(m);
}

static void a_token_allocates_nothing(void **state)
{
    (void)state;
    allocates_nothing("q4_0");
    allocates_nothing("../olmoe/q4_0");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exact_is_near_the_reference),
        cmocka_unit_test(exact_continues_as_the_reference),
        cmocka_unit_test(bits_do_not_depend_on_the_way),
        cmocka_unit_test(every_kernel_gives_the_same_bits),
        cmocka_unit_test(quantised_activations_keep_the_ids_of_f16),
        cmocka_unit_test(sequences_side_by_side),
        cmocka_unit_test(windows_hide_what_is_before_them),
        cmocka_unit_test(a_cache_of_integers_gives_the_same_bits),
        cmocka_unit_test(nothing_before_a_window_is_read),
        cmocka_unit_test(rotary_tables),
        cmocka_unit_test(top_is_in_order),
        cmocka_unit_test(a_token_allocates_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
