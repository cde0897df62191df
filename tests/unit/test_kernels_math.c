/* shard/kernels/math.c against the library's double precision functions. */
#include "tests/unit/kernels_util.h"

#include <math.h>

#include "proto/base/real.h"
#include "shard/kernels/math.h"

/* Distance in units of the last place of the f32 nearest to want. */
static double ulps(float got, double want)
{
    float near = (float)want;
    double ulp = (double)(nextafterf(fabsf(near), INFINITY) - fabsf(near));
    return fabs((double)got - want) / ulp;
}

static void exp_error(void **state)
{
    (void)state;
    double worst = 0;
    for (double x = -87.3; x <= 88.7; x += 0.00013) {
        double u = ulps(brig_expf((float)x), exp((double)(float)x));
        worst = u > worst ? u : worst;
    }
    for (int i = 0; i < 300000; i++) { /* close to 0, where attention's largest weights lie */
        float x = random_f32() * 0.5f;
        double u = ulps(brig_expf(x), exp((double)x));
        worst = u > worst ? u : worst;
    }
    print_message("exp: largest error %.3f ulp\n", worst);
    assert_true(worst <= 1.1);
}

static void exp_edges(void **state)
{
    (void)state;
    assert_true(brig_expf(0.0f) == 1.0f);
    assert_true(brig_expf(-0.0f) == 1.0f);
    assert_true(brig_expf(-87.4f) == 0.0f);
    assert_true(brig_expf(-INFINITY) == 0.0f);
    assert_true(isinf(brig_expf(88.8f)));
    assert_true(isinf(brig_expf(INFINITY)));
    assert_true(isnan(brig_expf(NAN)));
    assert_true(isnormal(brig_expf(-87.3f)));
    assert_true(isnormal(brig_expf(88.7f)));
}

static void log_error(void **state)
{
    (void)state;
    double worst = 0;
    for (int i = 0; i < 600000; i++) {
        float x = i % 2 == 0 ? 1.0f + 0.3f * random_f32()
                             : brig_bits_to_f32(0x00800000u + random_below(0x7f000000u));
        float got = brig_logf(x);
        if (x == 1.0f)
            assert_true(got == 0.0f);
        else if (ulps(got, log((double)x)) > worst)
            worst = ulps(got, log((double)x));
    }
    print_message("log: largest error %.3f ulp\n", worst);
    assert_true(worst <= 0.52);
    assert_true(isinf(brig_logf(0.0f)) && brig_logf(0.0f) < 0);
    assert_true(isnan(brig_logf(-1.0f)) && isnan(brig_logf(NAN)));
    assert_true(isinf(brig_logf(INFINITY)));
}

static void sincos_error(void **state)
{
    (void)state;
    double worst = 0;
    for (int i = 0; i < 600000; i++) {
        float x = i % 3 == 0 ? (float)i : fabsf(random_f32()) * (i % 3 == 1 ? 7.0f : 0x1p27f);
        float s, c;
        brig_sincosf(x, &s, &c);
        double a = fabs((double)s - sin((double)x)), b = fabs((double)c - cos((double)x));
        worst = a > worst ? a : worst;
        worst = b > worst ? b : worst;
    }
    print_message("sin, cos: largest error %.3g\n", worst);
    assert_true(worst <= 3.1e-8);
    float s, c;
    brig_sincosf(0.0f, &s, &c);
    assert_true(s == 0.0f && c == 1.0f);
    brig_sincosf(NAN, &s, &c);
    assert_true(isnan(s) && isnan(c));
    brig_sincosf(INFINITY, &s, &c);
    assert_true(isnan(s) && isnan(c));
}

static void pow_error(void **state)
{
    (void)state;
    double worst = 0;
    const double bases[] = {10000.0, 500000.0, 1000000.0, 1.5, 0.01, 1e100};
    for (size_t b = 0; b < sizeof bases / sizeof bases[0]; b++) {
        for (int i = -512; i <= 512; i++) {
            double want = pow(bases[b], i / 512.0);
            double error = fabs(brig_pow(bases[b], i / 512.0) - want) / want;
            worst = error > worst ? error : worst;
        }
    }
    print_message("pow: largest relative error %.3g\n", worst);
    assert_true(worst <= 1e-13);
    assert_true(brig_pow(10000.0, 0.0) == 1.0);
    assert_true(isnan(brig_pow(-1.0, 0.5)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exp_error),    cmocka_unit_test(exp_edges), cmocka_unit_test(log_error),
        cmocka_unit_test(sincos_error), cmocka_unit_test(pow_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
