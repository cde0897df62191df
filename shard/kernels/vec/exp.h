/* brig_expf (math.h) in every lane. */
#ifndef BRIG_SHARD_KERNELS_VEC_EXP_H
#define BRIG_SHARD_KERNELS_VEC_EXP_H

#include <math.h>

#include "shard/kernels/expf.h"
#include "shard/kernels/vec/vec.h"

/* p * r + c */
static inline brig_vf brig_vf_exp_step(brig_vf p, brig_vf r, float c)
{
    return brig_vf_fma(p, r, brig_vf_set1(c));
}

static inline brig_vf brig_vf_exp(brig_vf x)
{
    brig_vf n = brig_vf_round(x * BRIG_EXP_LOG2E);
    brig_vf r = brig_vf_fma(n, brig_vf_set1(-BRIG_EXP_LN2_HI), x);
    r = brig_vf_fma(n, brig_vf_set1(-BRIG_EXP_LN2_LO), r);
    brig_vf p = brig_vf_exp_step(brig_vf_set1(BRIG_EXP_C7), r, BRIG_EXP_C6);
    p = brig_vf_exp_step(p, r, BRIG_EXP_C5);
    p = brig_vf_exp_step(p, r, BRIG_EXP_C4);
    p = brig_vf_exp_step(p, r, BRIG_EXP_C3);
    p = brig_vf_exp_step(p, r, BRIG_EXP_C2);
    p = brig_vf_exp_step(p, r, 1.0f);
    p = brig_vf_exp_step(p, r, 1.0f);
    /* What nearest makes of NaN (0, or the sign bit alone) leaves the NaN in p as it is. */
    brig_vf e = (brig_vf)((brig_vu)p + ((brig_vu)brig_vf_nearest(n) << 23));
    e = brig_vf_select_lt(x, brig_vf_set1(BRIG_EXP_LOW), brig_vf_zero(), e);
    return brig_vf_select_lt(brig_vf_set1(BRIG_EXP_HIGH), x, brig_vf_set1(INFINITY), e);
}

#endif
