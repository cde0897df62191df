/* Constants of brig_expf, shared with the vector kernels that repeat it lane by lane: n = rint(x * log2 e),
 * r = x - n * ln 2 in two fused steps, Taylor polynomial of degree 7, 2^n by the exponent field. */
#ifndef BRIG_SHARD_KERNELS_EXPF_H
#define BRIG_SHARD_KERNELS_EXPF_H

#define BRIG_EXP_LOW    -87.3f
#define BRIG_EXP_HIGH   88.7f
#define BRIG_EXP_LOG2E  0x1.715476p+0f
#define BRIG_EXP_LN2_HI 0x1.62e43p-1f
#define BRIG_EXP_LN2_LO -0x1.05c61p-29f
#define BRIG_EXP_C2     0x1p-1f
#define BRIG_EXP_C3     0x1.555556p-3f
#define BRIG_EXP_C4     0x1.555556p-5f
#define BRIG_EXP_C5     0x1.111112p-7f
#define BRIG_EXP_C6     0x1.6c16c2p-10f
#define BRIG_EXP_C7     0x1.a01a02p-13f

#endif
