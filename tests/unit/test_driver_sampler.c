/* The sampler: each stage on rows made by hand, candidates against whole rows, and the draws themselves. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "driver/sample/philox.h"
#include "driver/sample/sampler.h"
#include "proto/base/mem.h"

static const struct brig_sample_opts plain = {
    .temp = 1, .top_p = 1, .repeat_penalty = 1, .repeat_last_n = 64};

static uint64_t state64 = 88172645463325252ull;

static uint32_t random_below(uint32_t n)
{
    state64 ^= state64 << 13;
    state64 ^= state64 >> 7;
    state64 ^= state64 << 17;
    return (uint32_t)((state64 >> 20) % n);
}

static uint32_t pick(struct brig_sampler *s, const float *row, uint32_t n, uint64_t index)
{
    uint32_t id = UINT32_MAX;
    struct brig_fail fail = {0};
    if (brig_sampler_pick(s, NULL, row, n, index, &id, &fail) < 0)
        fail_msg("%s", fail.text);
    return id;
}

static struct brig_sampler *make(const struct brig_sample_opts *o, uint32_t vocab)
{
    struct brig_sampler *s = NULL;
    struct brig_fail fail = {0};
    if (brig_sampler_new(&s, o, vocab, &fail) < 0)
        fail_msg("%s", fail.text);
    return s;
}

static void philox_known_answers(void **state)
{
    (void)state;
    /* From the test vectors that the generator was published with. */
    const uint32_t zero[4] = {0}, ones[4] = {~0u, ~0u, ~0u, ~0u};
    const uint32_t want_zero[4] = {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8};
    const uint32_t want_ones[4] = {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd};
    const uint32_t pi[4] = {0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
                   pi_key[2] = {0xa4093822, 0x299f31d0};
    const uint32_t want_pi[4] = {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1};
    uint32_t got[4];
    brig_philox(zero, zero, got);
    assert_memory_equal(got, want_zero, sizeof got);
    brig_philox(ones, ones, got);
    assert_memory_equal(got, want_ones, sizeof got);
    brig_philox(pi, pi_key, got);
    assert_memory_equal(got, want_pi, sizeof got);
}

static void uniform_is_even(void **state)
{
    (void)state;
    const unsigned n = 200000, n_bins = 50;
    for (uint64_t seed = 0; seed < 3; seed++) {
        unsigned bins[50] = {0};
        double chi2 = 0;
        for (unsigned i = 0; i < n; i++) {
            double u = brig_philox_uniform(seed, i);
            assert_true(u >= 0 && u < 1);
            bins[(unsigned)(u * n_bins)]++;
        }
        for (unsigned b = 0; b < n_bins; b++) {
            double off = bins[b] - (double)n / n_bins;
            chi2 += off * off / ((double)n / n_bins);
        }
        assert_true(chi2 < 100); /* 49 degrees of freedom: 85 is one in a thousand */
    }
}

static void greedy_takes_the_best_and_the_lower_id(void **state)
{
    (void)state;
    struct brig_sample_opts o = brig_sample_defaults();
    o.temp = 0;
    struct brig_sampler *s = make(&o, 6);
    const float row[] = {-1, 3, 2, 3, -INFINITY, 0}, zeros[] = {-1, -0.0f, 0, -0.0f, -2, -3};
    for (uint64_t i = 0; i < 20; i++) {
        assert_int_equal(pick(s, row, 6, i), 1);
        assert_int_equal(pick(s, zeros, 6, i), 1);
    }
    brig_sampler_free(s);
}

/* Draw many and compare with the probabilities: 0 where want is 0. */
static void check_shares(const struct brig_sample_opts *o, const float *row, const double *want, uint32_t n,
                         const uint32_t *said, unsigned n_said)
{
    const unsigned draws = 40000;
    unsigned count[16] = {0};
    struct brig_sampler *s = make(o, n);
    for (unsigned i = 0; i < n_said; i++)
        brig_sampler_accept(s, said[i]);
    for (unsigned i = 0; i < draws; i++)
        count[pick(s, row, n, i)]++;
    for (uint32_t i = 0; i < n; i++) {
        if (want[i] == 0)
            assert_int_equal(count[i], 0);
        double sigma = sqrt(want[i] * (1 - want[i]) * draws);
        if (fabs(count[i] - want[i] * draws) > 5 * sigma + 1)
            fail_msg("token %u: drawn %u times, expected %.0f", i, count[i], want[i] * draws);
    }
    brig_sampler_free(s);
}

static void draws_follow_the_probabilities(void **state)
{
    (void)state;
    const double p[] = {0.1, 0.4, 0.05, 0.25, 0.2, 0};
    float row[6];
    for (unsigned i = 0; i < 6; i++)
        row[i] = p[i] > 0 ? (float)log(p[i]) + 3 : -INFINITY;
    check_shares(&plain, row, p, 6, NULL, 0);
}

static void temperature_sharpens(void **state)
{
    (void)state;
    const float row[] = {0.6931472f, 0, 0}; /* 2 : 1 : 1 */
    struct brig_sample_opts o = plain;
    o.temp = 0.5; /* 4 : 1 : 1 */
    check_shares(&o, row, (const double[]){4.0 / 6, 1.0 / 6, 1.0 / 6}, 3, NULL, 0);
    o.temp = 1e-320; /* nothing divides by nothing */
    check_shares(&o, row, (const double[]){1, 0, 0}, 3, NULL, 0);
}

static void top_k_keeps_k_and_the_lower_id(void **state)
{
    (void)state;
    const float row[] = {1, 0, 1, 2, 1};
    struct brig_sample_opts o = plain;
    const double e = exp(1);
    o.top_k = 3;
    check_shares(&o, row, (const double[]){1 / (2 + e), 0, 1 / (2 + e), e / (2 + e), 0}, 5, NULL, 0);
    o.top_k = 1;
    check_shares(&o, row, (const double[]){0, 0, 0, 1, 0}, 5, NULL, 0);
}

static void top_p_keeps_the_shortest_beginning(void **state)
{
    (void)state;
    const float row[] = {logf(0.125f), logf(0.5f), logf(0.25f), logf(0.125f)};
    struct brig_sample_opts o = plain;
    o.top_p = 0.6;
    check_shares(&o, row, (const double[]){0, 2.0 / 3, 1.0 / 3, 0}, 4, NULL, 0);
    o.top_p = 0.8; /* the third is the lower id of a tie */
    check_shares(&o, row, (const double[]){1.0 / 7, 4.0 / 7, 2.0 / 7, 0}, 4, NULL, 0);
    o.top_p = 1e-9; /* one is always left */
    check_shares(&o, row, (const double[]){0, 1, 0, 0}, 4, NULL, 0);
    o.top_p = 0.6; /* taken at temperature 1: the temperature does not change what is kept */
    o.temp = 100;
    double w = exp(log(0.5) / 100);
    check_shares(&o, row, (const double[]){0, 1 / (1 + w), w / (1 + w), 0}, 4, NULL, 0);
    o.temp = 1;
    o.top_k = 2; /* the share is of what top-k kept */
    check_shares(&o, row, (const double[]){0, 1, 0, 0}, 4, NULL, 0);
}

static void min_p_drops_what_is_small(void **state)
{
    (void)state;
    const float row[] = {logf(0.1f), logf(0.5f), logf(0.36f), logf(0.04f)};
    struct brig_sample_opts o = plain;
    o.min_p = 0.5;
    check_shares(&o, row, (const double[]){0, 0.5 / 0.86, 0.36 / 0.86, 0}, 4, NULL, 0);
    o.min_p = 0.9;
    check_shares(&o, row, (const double[]){0, 1, 0, 0}, 4, NULL, 0);
}

static void penalties_are_as_stated(void **state)
{
    (void)state;
    const float row[] = {2, -1, 1, 0};
    const uint32_t said[] = {0, 0, 1, 0};
    struct brig_sample_opts o = plain;
    double want[4], sum = 0;
    o.repeat_penalty = 2;
    o.presence_penalty = 0.25;
    o.frequency_penalty = 0.125;
    const double logits[] = {2 / 2.0 - 0.25 - 3 * 0.125, -1 * 2 - 0.25 - 0.125, 1, 0};
    for (unsigned i = 0; i < 4; i++)
        sum += want[i] = exp(logits[i]);
    for (unsigned i = 0; i < 4; i++)
        want[i] /= sum;
    check_shares(&o, row, want, 4, said, 4);
}

static void penalties_forget_what_left_the_window(void **state)
{
    (void)state;
    const float row[] = {1, 0.9f, 0.8f, 0.7f};
    struct brig_sample_opts o = plain;
    o.temp = 0;
    o.presence_penalty = 2;
    o.repeat_last_n = 2;
    struct brig_sampler *s = make(&o, 4);
    assert_int_equal(pick(s, row, 4, 0), 0);
    brig_sampler_accept(s, 0);
    assert_int_equal(pick(s, row, 4, 1), 1);
    brig_sampler_accept(s, 1);
    assert_int_equal(pick(s, row, 4, 2), 2);
    brig_sampler_accept(s, 9999); /* not of this vocabulary: not counted */
    brig_sampler_accept(s, 2);
    assert_int_equal(pick(s, row, 4, 3), 0);
    brig_sampler_accept(s, 2);
    brig_sampler_accept(s, 2);
    assert_int_equal(pick(s, row, 4, 4), 0);
    brig_sampler_free(s);
    o.repeat_last_n = 0;
    s = make(&o, 4);
    brig_sampler_accept(s, 0);
    assert_int_equal(pick(s, row, 4, 0), 0);
    brig_sampler_free(s);
}

static void how_many_candidates_are_asked_for(void **state)
{
    (void)state;
    struct brig_sample_opts o = brig_sample_defaults();
    static const struct {
        uint32_t top_k;
        double temp, repeat, presence, frequency;
        uint32_t said, want;
    } rows[] = {
        {40, 0.8, 1, 0, 0, 10, 64},  {100, 0.8, 1, 0, 0, 10, 100},   {256, 1, 1.1, 0, 0, 10, 266},
        {257, 1, 1, 0, 0, 0, 0},     {0, 1, 1, 0, 0, 0, 0},          {0, 0, 1, 0, 0, 0, 64},
        {0, 0, 1.1, 0, 0, 64, 65},   {40, 1, 0.9, 0, 0, 0, 0},       {40, 1, 1, -0.1, 0, 0, 0},
        {40, 1, 1.5, 1, -0.1, 0, 0}, {40, 0, 0.5, 0, 0, 0, 0},       {60, 1, 1, 0.5, 0.5, 30, 90},
        {256, 1, 1.1, 0, 0, 900, 0}, {256, 1, 1.1, 0, 0, 768, 1024},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        o.top_k = rows[i].top_k;
        o.temp = rows[i].temp;
        o.repeat_penalty = rows[i].repeat;
        o.presence_penalty = rows[i].presence;
        o.frequency_penalty = rows[i].frequency;
        o.repeat_last_n = 2000;
        struct brig_sampler *s = make(&o, 5000);
        for (uint32_t k = 0; k < 2 * rows[i].said; k++) /* each twice: distinct ones count */
            brig_sampler_accept(s, k / 2);
        assert_int_equal(brig_sampler_top(s, 0), rows[i].want);
        brig_sampler_free(s);
    }
    o = brig_sample_defaults();
    struct brig_sampler *s = make(&o, 50); /* never more than there are */
    assert_int_equal(brig_sampler_top(s, 0), 50);
    brig_sampler_free(s);
    o.top_k = 100;
    s = make(&o, 5000); /* without penalties later tokens change nothing */
    assert_int_equal(brig_sampler_top(s, 9), 100);
    brig_sampler_free(s);
    o.presence_penalty = 1;
    s = make(&o, 5000);
    brig_sampler_accept(s, 3);
    assert_int_equal(brig_sampler_top(s, 9), 110);
    brig_sampler_free(s);
}

struct scored {
    float logit;
    uint32_t id;
};

static int by_order(const void *x, const void *y)
{
    const struct scored *a = x, *b = y;
    if (a->logit != b->logit)
        return a->logit > b->logit ? -1 : 1;
    return a->id < b->id ? -1 : a->id > b->id;
}

static void random_row(float *row, uint32_t n)
{
    uint32_t kind = random_below(4);
    for (uint32_t i = 0; i < n; i++) {
        float wide = ((float)random_below(1u << 24) / (1u << 23) - 1) * 12;
        /* wide, many ties, nearly flat, mostly ruled out */
        row[i] = kind == 0 ? wide : kind == 1 ? rintf(wide) : kind == 2 ? wide * 1e-3f : wide;
        if (kind == 1 && row[i] == 0 && i % 2 == 0)
            row[i] = -0.0f;
        if (kind == 3 && i > 2 && random_below(10) != 0)
            row[i] = -INFINITY;
    }
}

static struct brig_sample_opts random_opts(void)
{
    static const double temps[] = {0, 0.3, 0.8, 1, 2.5}, top_ps[] = {1, 0.95, 0.5, 1e-3},
                        min_ps[] = {0, 0.05, 0.5};
    static const double repeats[] = {1, 1.1, 3}, presences[] = {0, 0.4, 2}, frequencies[] = {0, 0.2, 2};
    static const uint32_t top_ks[] = {1, 5, 40, 64, 100, 256, 0}, windows[] = {0, 1, 64, 500};
    struct brig_sample_opts o = {
        .temp = temps[random_below(5)],
        .top_k = top_ks[random_below(7)],
        .top_p = top_ps[random_below(4)],
        .min_p = min_ps[random_below(3)],
        .repeat_penalty = repeats[random_below(3)],
        .repeat_last_n = windows[random_below(4)],
        .presence_penalty = presences[random_below(3)],
        .frequency_penalty = frequencies[random_below(3)],
        .seed = random_below(1u << 30),
    };
    return o;
}

/* The head's part: the best of a row in order. */
static uint32_t candidates_of(const float *row, uint32_t n, uint32_t top, uint32_t *ids, float *logits)
{
    struct scored *all = calloc(n, sizeof *all);
    assert_non_null(all);
    for (uint32_t i = 0; i < n; i++)
        all[i] = (struct scored){row[i], i};
    qsort(all, n, sizeof *all, by_order);
    for (uint32_t i = 0; i < top && i < n; i++) {
        ids[i] = all[i].id;
        logits[i] = all[i].logit;
    }
    free(all);
    return top < n ? top : n;
}

static void candidates_and_whole_rows_agree(void **state)
{
    (void)state;
    unsigned compared = 0;
    for (unsigned round = 0; round < 6000; round++) {
        uint32_t n = round % 3 == 0 ? 5 + random_below(90) : 300 + random_below(900);
        if (round % 500 == 0)
            n = 40000;
        struct brig_sample_opts o = random_opts();
        struct brig_sampler *s = make(&o, n);
        float *row = calloc(n, sizeof *row), logits[1024];
        uint32_t ids[1024], n_said = random_below(400);
        random_row(row, n);
        candidates_of(row, n, 5, ids, logits);
        for (uint32_t i = 0; i < n_said; i++) /* the likely ones are said most */
            brig_sampler_accept(s, i % 2 == 0 ? ids[random_below(5)] : random_below(n));
        uint32_t ahead = random_below(20), top = brig_sampler_top(s, ahead);
        for (uint32_t i = 0; i < ahead; i++) /* the draw after tokens that were not known then */
            brig_sampler_accept(s, i % 2 == 0 ? ids[random_below(5)] : random_below(n));
        if (top > 0) {
            uint32_t n_top = candidates_of(row, n, top, ids, logits), a, b;
            for (uint64_t index = 0; index < 4; index++) {
                assert_int_equal(brig_sampler_pick(s, NULL, row, n, index, &a, NULL), 0);
                assert_int_equal(brig_sampler_pick(s, ids, logits, n_top, index, &b, NULL), 0);
                if (a != b)
                    fail_msg("round %u: whole row %u, candidates %u (n %u, top %u, k %u)", round, a, b, n,
                             top, o.top_k);
                compared++;
            }
        }
        free(row);
        brig_sampler_free(s);
    }
    assert_true(compared > 10000);
}

/* The definition once more, slowly and on its own: sort everything, then walk. */
static uint32_t pick_slowly(const struct brig_sample_opts *o, const float *row, uint32_t n, uint64_t index)
{
    struct scored *all = calloc(n, sizeof *all);
    double *p = calloc(n, sizeof *p), sum = 0, acc = 0;
    assert_true(all != NULL && p != NULL);
    for (uint32_t i = 0; i < n; i++)
        all[i] = (struct scored){row[i], i};
    qsort(all, n, sizeof *all, by_order);
    uint32_t kept = o->temp == 0 ? 1 : o->top_k == 0 || o->top_k > n ? n : o->top_k;
    for (uint32_t i = 0; i < kept; i++)
        sum += p[i] = exp((double)all[i].logit - all[0].logit);
    for (uint32_t i = 0; i < kept && o->top_p < 1; i++)
        if ((acc += p[i]) >= o->top_p * sum)
            kept = i + 1;
    while (kept > 1 && p[kept - 1] < o->min_p)
        kept--;
    sum = 0;
    for (uint32_t i = 0; i < kept; i++)
        sum += p[i] = i == 0 ? 1 : exp(((double)all[i].logit - all[0].logit) / o->temp);
    double target = brig_philox_uniform(o->seed, index) * sum;
    uint32_t at = 0;
    for (acc = p[0]; acc <= target && at + 1 < kept; acc += p[at])
        at++;
    uint32_t id = all[at].id;
    free(all);
    free(p);
    return id;
}

static void picks_are_the_definition(void **state)
{
    (void)state;
    for (unsigned round = 0; round < 3000; round++) {
        uint32_t n = round % 200 == 0 ? 30000 : 1 + random_below(3000);
        struct brig_sample_opts o = random_opts();
        o.repeat_last_n = 0;
        struct brig_sampler *s = make(&o, n);
        float *row = calloc(n, sizeof *row);
        random_row(row, n);
        uint32_t want = pick_slowly(&o, row, n, round);
        if (row[want] > -INFINITY)
            assert_int_equal(pick(s, row, n, round), want);
        free(row);
        brig_sampler_free(s);
    }
}

static void seeds_and_indices_decide_alone(void **state)
{
    (void)state;
    float row[100];
    uint32_t first[64];
    for (unsigned i = 0; i < 100; i++)
        row[i] = (float)(i % 10) * 0.01f;
    struct brig_sample_opts o = brig_sample_defaults();
    o.seed = 7;
    struct brig_sampler *s = make(&o, 100);
    for (unsigned i = 0; i < 64; i++)
        first[i] = pick(s, row, 100, i);
    for (unsigned i = 64; i-- > 0;) /* in another order, some twice */
        assert_int_equal(pick(s, row, 100, i), first[i]);
    brig_sampler_free(s);
    s = make(&o, 100);
    assert_int_equal(pick(s, row, 100, 40), first[40]);
    brig_sampler_free(s);
    o.seed = 8;
    unsigned same = 0;
    s = make(&o, 100);
    for (unsigned i = 0; i < 64; i++)
        same += pick(s, row, 100, i) == first[i];
    assert_true(same < 20);
    brig_sampler_free(s);
}

static void a_pick_allocates_nothing(void **state)
{
    (void)state;
    float row[3000];
    random_row(row, 3000);
    row[0] = 0;
    struct brig_sample_opts o = brig_sample_defaults();
    for (unsigned k = 0; k < 2; k++) {
        o.top_k = k * 40;
        o.repeat_penalty = 1.2;
        struct brig_sampler *s = make(&o, 3000);
        uint64_t before = brig_alloc_count();
        for (unsigned i = 0; i < 100; i++)
            brig_sampler_accept(s, pick(s, row, 3000, i));
        assert_int_equal(brig_alloc_count(), before);
        brig_sampler_free(s);
    }
}

static void bad_answers_are_refused(void **state)
{
    (void)state;
    struct brig_sample_opts o = brig_sample_defaults();
    struct brig_sampler *s = make(&o, 3);
    const float with_nan[] = {0, NAN, 1}, with_inf[] = {0, 1, INFINITY}, good[] = {2, 1, 0};
    const float none[] = {-INFINITY, -INFINITY, -INFINITY};
    const uint32_t outside[] = {0, 1, 3};
    struct brig_fail fail = {0};
    uint32_t id = 77;
    assert_int_equal(brig_sampler_pick(s, NULL, with_nan, 3, 0, &id, &fail), -BRIG_EPROTO);
    assert_non_null(strstr(fail.text, "token 1"));
    assert_int_equal(brig_sampler_pick(s, NULL, with_inf, 3, 0, &id, &fail), -BRIG_EPROTO);
    assert_int_equal(brig_sampler_pick(s, NULL, none, 3, 0, &id, &fail), -BRIG_EPROTO);
    assert_int_equal(brig_sampler_pick(s, NULL, good, 2, 0, &id, &fail), -BRIG_EPROTO);
    assert_int_equal(brig_sampler_pick(s, outside, good, 3, 0, &id, &fail), -BRIG_EPROTO);
    assert_int_equal(brig_sampler_pick(s, outside, good, 0, 0, &id, &fail), -BRIG_EPROTO);
    assert_int_equal(id, 77);
    brig_sampler_free(s);
}

static void wild_penalties_do_no_harm(void **state)
{
    (void)state;
    const float row[] = {3e38f, -3e38f, 0, 1e-30f};
    static const double repeats[] = {1e300, 1e-300, 2};
    for (unsigned i = 0; i < 3; i++) {
        struct brig_sample_opts o = plain;
        o.repeat_penalty = repeats[i];
        struct brig_sampler *s = make(&o, 4);
        for (uint32_t id = 0; id < 4; id++)
            brig_sampler_accept(s, id);
        uint32_t id = pick(s, row, 4, i);
        assert_true(id < 4);
        brig_sampler_free(s);
    }
}

static void flags_out_of_range_are_named(void **state)
{
    (void)state;
    struct brig_sample_opts good = brig_sample_defaults();
    assert_int_equal(brig_sample_check(&good, NULL), 0);
#define BAD(member, value, flag)                                                                             \
    do {                                                                                                     \
        struct brig_sample_opts o = good;                                                                    \
        struct brig_fail fail = {0};                                                                         \
        o.member = value;                                                                                    \
        assert_int_equal(brig_sample_check(&o, &fail), -BRIG_EUSAGE);                                        \
        assert_non_null(strstr(fail.text, flag));                                                            \
    } while (0)
    BAD(temp, -1, "--temp");
    BAD(temp, NAN, "--temp");
    BAD(temp, INFINITY, "--temp");
    BAD(top_p, 0, "--top-p");
    BAD(top_p, 1.01, "--top-p");
    BAD(top_p, NAN, "--top-p");
    BAD(min_p, 1, "--min-p");
    BAD(min_p, -0.1, "--min-p");
    BAD(repeat_penalty, 0, "--repeat-penalty");
    BAD(repeat_last_n, 2000000, "--repeat-last-n");
    BAD(presence_penalty, 2.5, "--presence-penalty");
    BAD(frequency_penalty, NAN, "--frequency-penalty");
}

static void stages_are_in_order(void **state)
{
    (void)state;
    static const char *const names[] = {"penalties", "top-k", "top-p", "min-p", "temperature", "draw"};
    const char *help;
    for (unsigned i = 0; i < 6; i++) {
        assert_string_equal(brig_sampler_stage_at(i, &help), names[i]);
        assert_true(strlen(help) > 0);
    }
    assert_null(brig_sampler_stage_at(6, NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(philox_known_answers),
        cmocka_unit_test(uniform_is_even),
        cmocka_unit_test(greedy_takes_the_best_and_the_lower_id),
        cmocka_unit_test(draws_follow_the_probabilities),
        cmocka_unit_test(temperature_sharpens),
        cmocka_unit_test(top_k_keeps_k_and_the_lower_id),
        cmocka_unit_test(top_p_keeps_the_shortest_beginning),
        cmocka_unit_test(min_p_drops_what_is_small),
        cmocka_unit_test(penalties_are_as_stated),
        cmocka_unit_test(penalties_forget_what_left_the_window),
        cmocka_unit_test(how_many_candidates_are_asked_for),
        cmocka_unit_test(candidates_and_whole_rows_agree),
        cmocka_unit_test(picks_are_the_definition),
        cmocka_unit_test(seeds_and_indices_decide_alone),
        cmocka_unit_test(a_pick_allocates_nothing),
        cmocka_unit_test(bad_answers_are_refused),
        cmocka_unit_test(wild_penalties_do_no_harm),
        cmocka_unit_test(flags_out_of_range_are_named),
        cmocka_unit_test(stages_are_in_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
