/*
 * exp, log, sin, cos without libm, so that no value in a hidden vector depends on the machine's library.
 * Called by the kernels (exp, log) and by the block (rope angles). Only +, -, *, /, fmaf, fma and rint are
 * used: each is exactly defined by IEEE 754. Largest errors, measured by tests/unit/test_kernels_math.c:
 * exp 0.93 ulp, log 0.50 ulp, sin and cos 3e-8 absolute.
 */
#include "shard/kernels/math.h"

#include <math.h>
#include <stdint.h>

#include "proto/base/half.h"
#include "proto/base/real.h"
#include "shard/kernels/expf.h"

float brig_expf(float x)
{
    if (x < BRIG_EXP_LOW)
        return 0.0f;
    if (x > BRIG_EXP_HIGH)
        return INFINITY;
    if (x != x)
        return x;
    float n = rintf(x * BRIG_EXP_LOG2E);
    float r = fmaf(n, -BRIG_EXP_LN2_HI, x);
    r = fmaf(n, -BRIG_EXP_LN2_LO, r);
    float p = BRIG_EXP_C7;
    p = fmaf(p, r, BRIG_EXP_C6);
    p = fmaf(p, r, BRIG_EXP_C5);
    p = fmaf(p, r, BRIG_EXP_C4);
    p = fmaf(p, r, BRIG_EXP_C3);
    p = fmaf(p, r, BRIG_EXP_C2);
    p = fmaf(p, r, 1.0f);
    p = fmaf(p, r, 1.0f);
    /* Times 2^n by the exponent field: inside the two limits the result is a normal number. */
    return brig_bits_to_f32(brig_f32_to_bits(p) + ((uint32_t)(int32_t)n << 23));
}

float brig_logf(float x)
{
    if (x == 0.0f)
        return -INFINITY;
    if (!(x > 0.0f))
        return NAN;
    if (x > 3.4028235e38f)
        return x;
    return (float)brig_log((double)x);
}

void brig_sincosf(float x, float *ret_sin, float *ret_cos)
{
    if (!(fabsf(x) <= 0x1p28f)) {
        *ret_sin = *ret_cos = NAN;
        return;
    }
    double n = rint((double)x * 0.6366197723675814);
    double r = fma(n, -0x1.921fb54442d18p+0, (double)x);
    r = fma(n, -0x1.1a62633145c07p-54, r);
    double z = r * r;
    double s = 1.0, c = 1.0;
    for (int k = 16; k >= 2; k -= 2) { /* |r| <= 0.786: terms left out are below 1e-16 */
        s = 1.0 - s * z / (double)(k * (k + 1));
        c = 1.0 - c * z / (double)(k * (k - 1));
    }
    s *= r;
    switch ((int64_t)n & 3) {
    case 0:
        *ret_sin = (float)s;
        *ret_cos = (float)c;
        break;
    case 1:
        *ret_sin = (float)c;
        *ret_cos = (float)-s;
        break;
    case 2:
        *ret_sin = (float)-s;
        *ret_cos = (float)-c;
        break;
    default:
        *ret_sin = (float)-c;
        *ret_cos = (float)s;
        break;
    }
}
