/* NEON with dot products (every 64-bit ARM server core since Neoverse N1, Apple's since M1) for vec.h: 4
 * lanes. Flush-to-zero is off, as Linux starts every process. */
#ifndef BRIG_SHARD_KERNELS_VEC_VEC_NEON_H
#define BRIG_SHARD_KERNELS_VEC_VEC_NEON_H

#include <arm_neon.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/auxv.h>

#define BRIG_LANES      4u
#define BRIG_MANY_ROWS  BRIG_LANES
#define BRIG_ISA(name)  brig_neon_##name
#define BRIG_ISA_NAME   "neon"
#define BRIG_ISA_KERNEL brig_kernel_neon
#define BRIG_ISA_HELP   "64-bit ARM with dot products: 4 rows a vector"

typedef float brig_vf __attribute__((vector_size(16)));
typedef int32_t brig_vi __attribute__((vector_size(16)));
typedef uint32_t brig_vu __attribute__((vector_size(16)));

static inline bool brig_vec_usable(void)
{
    return (getauxval(AT_HWCAP) & HWCAP_ASIMDDP) != 0;
}

static inline brig_vf brig_vf_set1(float x)
{
    return (brig_vf)vdupq_n_f32(x);
}

static inline brig_vf brig_vf_load(const float *p)
{
    return (brig_vf)vld1q_f32(p);
}

static inline brig_vf brig_vf_load_n(const float *p, size_t n)
{
    float some[BRIG_LANES] = {0};
    if (n >= BRIG_LANES)
        return brig_vf_load(p);
    memcpy(some, p, n * sizeof *p);
    return brig_vf_load(some);
}

static inline void brig_vf_store(float *p, brig_vf v)
{
    vst1q_f32(p, (float32x4_t)v);
}

static inline void brig_vf_store_n(float *p, brig_vf v, size_t n)
{
    memcpy(p, &v, (n < BRIG_LANES ? n : BRIG_LANES) * sizeof *p);
}

static inline brig_vf brig_vf_keep_n(brig_vf kept, brig_vf v, size_t n)
{
    uint32x4_t below = vcltq_u32((uint32x4_t){0, 1, 2, 3}, vdupq_n_u32(n < BRIG_LANES ? (uint32_t)n : 4));
    return (brig_vf)vbslq_f32(below, (float32x4_t)v, (float32x4_t)kept);
}

static inline brig_vf brig_vf_load_f16(const void *p)
{
    float16x4_t half;
    memcpy(&half, p, sizeof half);
    return (brig_vf)vcvt_f32_f16(half);
}

static inline brig_vf brig_vf_load_f16_n(const uint16_t *p, size_t n)
{
    uint16_t some[BRIG_LANES] = {0};
    if (n >= BRIG_LANES)
        return brig_vf_load_f16(p);
    memcpy(some, p, n * sizeof *p);
    return brig_vf_load_f16(some);
}

static inline brig_vf brig_vf_load_i8(const int8_t *p)
{
    int8x8_t bytes = {0};
    memcpy(&bytes, p, BRIG_LANES);
    return (brig_vf)vcvtq_f32_s32(vmovl_s16(vget_low_s16(vmovl_s8(bytes))));
}

static inline void brig_vf_store_f16_n(uint16_t *p, brig_vf v, size_t n)
{
    float16x4_t half = vcvt_f16_f32((float32x4_t)v);
    memcpy(p, &half, (n < BRIG_LANES ? n : BRIG_LANES) * sizeof *p);
}

static inline brig_vf brig_vf_fma(brig_vf a, brig_vf b, brig_vf c)
{
    return (brig_vf)vfmaq_f32((float32x4_t)c, (float32x4_t)a, (float32x4_t)b);
}

static inline brig_vf brig_vf_select_lt(brig_vf a, brig_vf b, brig_vf yes, brig_vf no)
{
    uint32x4_t less = vcltq_f32((float32x4_t)a, (float32x4_t)b);
    return (brig_vf)vbslq_f32(less, (float32x4_t)yes, (float32x4_t)no);
}

static inline brig_vf brig_vf_larger(brig_vf a, brig_vf b)
{
    return brig_vf_select_lt(b, a, a, b);
}

static inline brig_vf brig_vf_round(brig_vf v)
{
    return (brig_vf)vrndnq_f32((float32x4_t)v);
}

static inline brig_vi brig_vf_nearest(brig_vf v)
{
    return (brig_vi)vcvtnq_s32_f32((float32x4_t)v);
}

static inline brig_vu brig_vu_max(brig_vu a, brig_vu b)
{
    return (brig_vu)vmaxq_u32((uint32x4_t)a, (uint32x4_t)b);
}

static inline uint32_t brig_vu_top(brig_vu v)
{
    return vmaxvq_u32((uint32x4_t)v);
}

static inline int32_t brig_vi_sum(brig_vi v)
{
    return vaddvq_s32((int32x4_t)v);
}

static inline void brig_vi_store_bytes(int8_t *p, brig_vi v)
{
    int16x4_t words = vmovn_s32((int32x4_t)v);
    int8x8_t bytes = vmovn_s16(vcombine_s16(words, words));
    memcpy(p, &bytes, BRIG_LANES);
}

static inline brig_vf brig_vu_half(brig_vu v)
{
    return (brig_vf)vcvt_f32_f16(vreinterpret_f16_u16(vmovn_u32((uint32x4_t)v)));
}

static inline brig_vu brig_vu_words(uint32_t low, uint32_t high)
{
    (void)high;
    return (brig_vu)vdupq_n_u32(low);
}

static inline void brig_vu_transpose(const uint8_t *p, size_t stride, brig_vu t[4])
{
    uint32x4_t r0 = vreinterpretq_u32_u8(vld1q_u8(p)), r1 = vreinterpretq_u32_u8(vld1q_u8(p + stride));
    uint32x4_t r2 = vreinterpretq_u32_u8(vld1q_u8(p + 2 * stride));
    uint32x4_t r3 = vreinterpretq_u32_u8(vld1q_u8(p + 3 * stride));
    uint32x4_t a = vtrn1q_u32(r0, r1), b = vtrn1q_u32(r2, r3); /* dwords 0 and 2 */
    uint32x4_t c = vtrn2q_u32(r0, r1), d = vtrn2q_u32(r2, r3); /* 1 and 3 */
    t[0] = (brig_vu)vtrn1q_u64((uint64x2_t)a, (uint64x2_t)b);
    t[1] = (brig_vu)vtrn1q_u64((uint64x2_t)c, (uint64x2_t)d);
    t[2] = (brig_vu)vtrn2q_u64((uint64x2_t)a, (uint64x2_t)b);
    t[3] = (brig_vu)vtrn2q_u64((uint64x2_t)c, (uint64x2_t)d);
}

static inline void brig_vf_halves(const uint8_t *p, size_t stride, brig_vf w[8])
{
    brig_vu t[4];
    brig_vu_transpose(p, stride, t);
    for (unsigned i = 0; i < 4; i++) {
        w[2 * i] = brig_vu_half(t[i]);
        w[2 * i + 1] = brig_vu_half(t[i] >> 16);
    }
}

static inline brig_vu brig_vu_gather(const uint8_t *p, size_t stride)
{
    uint32_t v[BRIG_LANES];
    for (unsigned r = 0; r < BRIG_LANES; r++)
        memcpy(&v[r], p + r * stride, sizeof v[r]);
    return (brig_vu){v[0], v[1], v[2], v[3]};
}

static inline brig_vu brig_vu_add_fifth(brig_vu u, brig_vu bits, int c)
{
    const uint8x16_t dwords = {0, 0, 0, 0, 4, 4, 4, 4, 8, 8, 8, 8, 12, 12, 12, 12};
    uint8x16_t which = vreinterpretq_u8_u32(vdupq_n_u32(c % 2 == 0 ? 0x08040201u : 0x80402010u));
    uint8x16_t at = vaddq_u8(dwords, vdupq_n_u8((uint8_t)(c / 2)));
    uint8x16_t set = vtstq_u8(vqtbl1q_u8((uint8x16_t)bits, at), which);
    return u | (brig_vu)vandq_u8(set, vdupq_n_u8(16));
}

/* A row of 16 chains: the sums of each four. */
static inline float32x4_t brig_neon_fours(const brig_vf v[4])
{
    return vpaddq_f32(vpaddq_f32((float32x4_t)v[0], (float32x4_t)v[1]),
                      vpaddq_f32((float32x4_t)v[2], (float32x4_t)v[3]));
}

static inline brig_vf brig_vf_tree16(const brig_vf v[16])
{
    return (brig_vf)vpaddq_f32(vpaddq_f32(brig_neon_fours(v), brig_neon_fours(v + 4)),
                               vpaddq_f32(brig_neon_fours(v + 8), brig_neon_fours(v + 12)));
}

static inline float brig_vf_tree(const brig_vf chain[4])
{
    float32x4_t v = brig_neon_fours(chain);
    v = vpaddq_f32(v, v);
    return vgetq_lane_f32(vpaddq_f32(v, v), 0);
}

#endif
