/*
 * log and pow in double without libm (whose last bits differ between machines): +, -, *, /, fma and rint
 * alone.
 */
#include "proto/base/real.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

static double bits_to_f64(uint64_t u)
{
    double d;
    memcpy(&d, &u, sizeof d);
    return d;
}

/* x positive, normal, finite: x = 2^e * m, m in [sqrt(1/2), sqrt(2)); log m = 2 atanh((m - 1) / (m + 1)). */
static double log_of(double x)
{
    uint64_t u;
    memcpy(&u, &x, sizeof u);
    int64_t e = (int64_t)(u >> 52) - 1023;
    double m = bits_to_f64((u & 0xfffffffffffffull) | 0x3ff0000000000000ull);
    if (m > 1.4142135623730951) {
        m *= 0.5;
        e++;
    }
    double s = (m - 1.0) / (m + 1.0);
    double z = s * s;
    double p = 0.0;
    for (int k = 23; k >= 3; k -= 2) /* z <= 0.0295: the first term left out is below 1e-18 */
        p = (p + 1.0 / k) * z;
    double log_m = 2.0 * s + 2.0 * s * p;
    /* The high part of ln 2 has 32 bits, so its product with e is exact. */
    return (double)e * 0x1.62e42feep-1 + (log_m + (double)e * 0x1.a39ef35793c76p-33);
}

static double exp_of(double x)
{
    if (x < -708.0)
        return 0.0;
    if (x > 709.0)
        return (double)INFINITY;
    if (x != x)
        return x;
    double n = rint(x * 1.4426950408889634);
    double r = fma(n, -0x1.62e42fefa39efp-1, x);
    r = fma(n, -0x1.abc9e3b39803fp-56, r);
    double p = 1.0;
    for (int k = 14; k >= 1; k--) /* |r| <= 0.347: the first term left out is below 1e-19 */
        p = fma(p, r / k, 1.0);
    return p * bits_to_f64((uint64_t)((int64_t)n + 1023) << 52);
}

double brig_log(double x)
{
    if (!(x >= 0x1p-1022 && x <= 0x1.fffffffffffffp+1023))
        return (double)NAN;
    return log_of(x);
}

double brig_pow(double base, double e)
{
    if (!(base >= 0x1p-1022 && base <= 0x1.fffffffffffffp+1023))
        return (double)NAN;
    return exp_of(e * log_of(base));
}
