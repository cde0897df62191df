/* IEEE half and bfloat16 to and from float: exact widening, round to nearest even narrowing, as F16C does. */
#ifndef BRIG_PROTO_BASE_HALF_H
#define BRIG_PROTO_BASE_HALF_H

#include <stdint.h>
#include <string.h>

static inline float brig_bits_to_f32(uint32_t u)
{
    float f;
    memcpy(&f, &u, sizeof f);
    return f;
}

static inline uint32_t brig_f32_to_bits(float f)
{
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    return u;
}

static inline float brig_f16_to_f32(uint16_t h)
{
    uint32_t sign = (uint32_t)(h & 0x8000u) << 16;
    uint32_t exp = (h >> 10) & 0x1fu;
    uint32_t man = h & 0x3ffu;
    if (exp == 0) /* zero and subnormals: man * 2^-24 is exact in f32 */
        return brig_bits_to_f32(sign | brig_f32_to_bits((float)man * 0x1p-24f));
    if (exp == 31) /* NaNs become quiet, as the hardware does */
        return brig_bits_to_f32(sign | 0x7f800000u | (man << 13) | (man != 0 ? 0x400000u : 0));
    return brig_bits_to_f32(sign | ((exp + 112) << 23) | (man << 13));
}

static inline uint16_t brig_f32_to_f16(float f)
{
    uint32_t u = brig_f32_to_bits(f);
    uint16_t sign = (uint16_t)((u >> 16) & 0x8000u);
    uint32_t abs = u & 0x7fffffffu;
    if (abs >= 0x7f800000u) /* infinity, NaN */
        return (uint16_t)(sign | 0x7c00u | (abs > 0x7f800000u ? 0x200u | ((abs >> 13) & 0x3ffu) : 0));
    if (abs >= 0x477ff000u) /* rounds to 65536 or more */
        return (uint16_t)(sign | 0x7c00u);
    if (abs < 0x38800000u) { /* subnormal or zero: adding 0.5 lines the result up with the last bits */
        float r = brig_bits_to_f32(abs) + 0.5f;
        return (uint16_t)(sign | (brig_f32_to_bits(r) - 0x3f000000u));
    }
    uint32_t rounded = abs + 0xfffu + ((abs >> 13) & 1u);
    return (uint16_t)(sign | ((rounded - 0x38000000u) >> 13));
}

static inline float brig_bf16_to_f32(uint16_t h)
{
    return brig_bits_to_f32((uint32_t)h << 16);
}

static inline uint16_t brig_load_u16(const void *p)
{
    uint16_t v;
    memcpy(&v, p, sizeof v);
    return v;
}

#endif
