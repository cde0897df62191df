/* The packed scales that Q4_K and Q5_K share: for their dequant and for the scalar integer product. */
#ifndef BRIG_PROTO_MODEL_TYPE_K_H
#define BRIG_PROTO_MODEL_TYPE_K_H

#include <stdint.h>

/* Scale and minimum, 6 bits each, of group g (0 to 7, 32 columns each) from 12 bytes. The first four groups
 * have theirs in the low bits of bytes 0 to 3 and 4 to 7. The last four have their low halves in bytes 8 to
 * 11 and their upper two bits on top of the bytes of the first four. */
static inline void brig_k_scale_min(const uint8_t *packed, unsigned g, unsigned *scale, unsigned *min)
{
    if (g < 4) {
        *scale = packed[g] & 63;
        *min = packed[g + 4] & 63;
    } else {
        *scale = (packed[g + 4] & 15u) | (unsigned)(packed[g - 4] >> 6) << 4;
        *min = (unsigned)(packed[g + 4] >> 4) | (unsigned)(packed[g] >> 6) << 4;
    }
}

#endif
