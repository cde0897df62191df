/* The choice of experts: order, ties, NaN, weights, against a definition that is written another way. */
#include "shard_util.h"

#include <math.h>

#include "shard/block/parts.h"
#include "shard/kernels/math.h"

enum { MOST = 64 };

static uint64_t seed = 0x9e3779b97f4a7c15ull;

static uint32_t random_below(uint32_t n)
{
    seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
    return (uint32_t)((seed >> 32) % n);
}

static struct brig_desc mixture(uint32_t n, uint32_t used, enum brig_expert_norm norm)
{
    return (struct brig_desc){.n_experts = n, .n_experts_used = used, .expert_norm = norm};
}

static void choose(struct brig_desc d, const float *logits, uint32_t *chosen, float *weights)
{
    float copy[MOST];
    memcpy(copy, logits, d.n_experts * sizeof *copy);
    brig_experts_choose(&d, copy, chosen, weights);
}

/* How many stand before expert e: the larger logit, then the lower index; NaN behind all. */
static uint32_t rank_of(const float *x, uint32_t n, uint32_t e)
{
    uint32_t rank = 0;
    for (uint32_t i = 0; i < n; i++) {
        bool same = x[i] == x[e] || (isnan(x[i]) && isnan(x[e]));
        rank += i != e && (same ? i < e : isnan(x[e]) || x[i] > x[e]);
    }
    return rank;
}

static void the_best_are_chosen(void **state)
{
    (void)state;
    for (unsigned round = 0; round < 3000; round++) {
        uint32_t n = 1 + random_below(MOST), used = 1 + random_below(n), at = 0, chosen[MOST];
        float x[MOST], weights[MOST];
        for (uint32_t i = 0; i < n; i++) { /* many ties; infinities and NaN at times */
            x[i] = (float)random_below(9) - 4;
            if (round % 3 == 0 && random_below(5) == 0)
                x[i] = (const float[]){NAN, INFINITY, -INFINITY, -0.0f}[random_below(4)];
        }
        choose(mixture(n, used, BRIG_EXPERTS_AS_THEY_ARE), x, chosen, weights);
        for (uint32_t e = 0; e < n; e++)
            if (rank_of(x, n, e) < used)
                assert_int_equal(chosen[at++], e); /* ascending */
        assert_int_equal(at, used);
    }
}

/* The whole softmax, then the choice; both orders of addition by index. */
static void weights_are_those_of_the_whole_softmax(void **state)
{
    (void)state;
    const float x[] = {0.5f, 3.0f, -2.0f, 2.75f, 3.0f, 0.0f};
    uint32_t chosen[3];
    float as_they_are[3], to_one[3], sum = 0, of_chosen = 0;
    choose(mixture(6, 3, BRIG_EXPERTS_AS_THEY_ARE), x, chosen, as_they_are);
    choose(mixture(6, 3, BRIG_EXPERTS_SUM_TO_ONE), x, chosen, to_one);
    for (int i = 0; i < 6; i++)
        sum += brig_expf(x[i] - 3.0f);
    assert_true(chosen[0] == 1 && chosen[1] == 3 && chosen[2] == 4);
    for (int k = 0; k < 3; k++) {
        float want = brig_expf(x[chosen[k]] - 3.0f) / sum;
        assert_true(as_they_are[k] == want);
        of_chosen += want;
    }
    for (int k = 0; k < 3; k++)
        assert_true(to_one[k] == as_they_are[k] / of_chosen);
    assert_true(of_chosen < 0.98f);
}

static void one_and_all(void **state)
{
    (void)state;
    const float x[] = {1.0f, 4.0f, 4.0f, -1.0f};
    uint32_t chosen[4];
    float weights[4], sum = 0;
    choose(mixture(4, 1, BRIG_EXPERTS_SUM_TO_ONE), x, chosen, weights);
    assert_true(chosen[0] == 1 && weights[0] == 1.0f);
    choose(mixture(4, 4, BRIG_EXPERTS_AS_THEY_ARE), x, chosen, weights);
    for (uint32_t k = 0; k < 4; k++) {
        assert_int_equal(chosen[k], k);
        sum += weights[k];
    }
    assert_true(fabsf(sum - 1.0f) < 1e-6f && weights[1] == weights[2]);
    choose(mixture(1, 1, BRIG_EXPERTS_SUM_TO_ONE), x, chosen, weights);
    assert_true(chosen[0] == 0 && weights[0] == 1.0f);
}

/* A NaN or an infinity of the router makes every weight NaN: it stays visible. */
static void nan_is_not_hidden(void **state)
{
    (void)state;
    const float broken[] = {NAN, INFINITY};
    for (int i = 0; i < 2; i++) {
        const float x[] = {1.0f, broken[i], 2.0f, 0.0f};
        uint32_t chosen[2];
        float weights[2];
        choose(mixture(4, 2, BRIG_EXPERTS_SUM_TO_ONE), x, chosen, weights);
        assert_true(i == 0 ? chosen[0] == 0 && chosen[1] == 2 : chosen[0] == 1 && chosen[1] == 2);
        assert_true(isnan(weights[0]) && isnan(weights[1]));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_best_are_chosen),
        cmocka_unit_test(weights_are_those_of_the_whole_softmax),
        cmocka_unit_test(one_and_all),
        cmocka_unit_test(nan_is_not_hidden),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
