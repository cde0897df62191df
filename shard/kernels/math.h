/*
 * exp, log, sin, cos of our own: fmaf polynomials with a stated error, the same bits in every instruction
 * set. Scalar forms here; vector kernels repeat the same operations lane by lane.
 */
#ifndef BRIG_SHARD_KERNELS_MATH_H
#define BRIG_SHARD_KERNELS_MATH_H

/* Error at most 2 ulp for results that are normal numbers; exp of less than -87.3 is 0, of more than 88.7 is
 * infinity; NaN gives NaN. */
float brig_expf(float x);
/* Natural logarithm of a positive normal number, error at most 2 ulp. */
float brig_logf(float x);
/* sin and cos of an angle in radians, 0 <= x < 2^27, absolute error at most 1e-6 (argument reduction in
 * double). */
void brig_sincosf(float x, float *ret_sin, float *ret_cos);

#endif
