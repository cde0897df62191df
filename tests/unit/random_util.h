/* Repeatable numbers: the same on every machine. */
#ifndef BRIG_TESTS_UNIT_RANDOM_UTIL_H
#define BRIG_TESTS_UNIT_RANDOM_UTIL_H

#include <stdint.h>

#include "proto/base/half.h"

static uint64_t random_state = 88172645463325252ull;

static inline uint32_t random_u32(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (uint32_t)(random_state >> 16);
}

static inline uint32_t random_below(uint32_t n)
{
    return random_u32() % n;
}

/* In (-1, 1). */
static inline float random_f32(void)
{
    return (float)(int32_t)random_u32() * 0x1p-31f;
}

/* Any bits: infinities, NaNs and subnormals included. */
static inline float random_bits(void)
{
    return brig_bits_to_f32(random_u32());
}

#endif
