/* Size arithmetic that cannot overflow. Every length that comes from a file or a peer passes through here. */
#ifndef BRIG_PROTO_BASE_SIZE_H
#define BRIG_PROTO_BASE_SIZE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* *ret = a * b (or a + b); false, and *ret untouched, when it does not fit. */
static inline bool brig_mul_u64(uint64_t a, uint64_t b, uint64_t *ret)
{
    uint64_t r;
    if (__builtin_mul_overflow(a, b, &r))
        return false;
    *ret = r;
    return true;
}

static inline bool brig_add_u64(uint64_t a, uint64_t b, uint64_t *ret)
{
    uint64_t r;
    if (__builtin_add_overflow(a, b, &r))
        return false;
    *ret = r;
    return true;
}

/* Round up to a power of two; the caller has checked that x is far from the top of the type. */
static inline uint64_t brig_align_up(uint64_t x, uint64_t power_of_two)
{
    return (x + power_of_two - 1) & ~(power_of_two - 1);
}

/* The range [offset, offset + length) lies inside [0, total). */
static inline bool brig_range_ok(uint64_t offset, uint64_t length, uint64_t total)
{
    return offset <= total && length <= total - offset;
}

#endif
