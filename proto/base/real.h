/*
 * Real functions in double precision for numbers that are computed once for a model: rotary frequencies and
 * their scaling. The same bits on every machine. Largest errors, measured by tests/unit/test_kernels_math.c:
 * pow 3e-14 relative.
 */
#ifndef BRIG_PROTO_BASE_REAL_H
#define BRIG_PROTO_BASE_REAL_H

/* Natural logarithm. NaN unless x is a positive normal number. */
double brig_log(double x);
/* base^e. NaN unless base is a positive normal number. */
double brig_pow(double base, double e);

#endif
