/* Q5_K: blocks of 256 columns: an f16 scale of the scales, an f16 scale of the minimums, 12 bytes of 6-bit
 * scales and minimums for 32 columns each, 32 bytes of fifth bits (column c's is bit c / 32 of byte c % 32),
 * then 128 bytes: of each 32, low halves are 32 columns, high halves the next 32. value = (d * scale) * q -
 * (dmin * minimum). */
#include "proto/model/type.h"

#include "proto/base/half.h"
#include "proto/model/type_k.h"

#define ELEMS 256
#define BYTES 176

static void dequant(const void *src, float *dst, size_t n_elems)
{
    const uint8_t *p = src;
    for (size_t b = 0; b < n_elems / ELEMS; b++, p += BYTES, dst += ELEMS) {
        const uint8_t *fifth = p + 16;
        float d = brig_f16_to_f32(brig_load_u16(p));
        float dmin = brig_f16_to_f32(brig_load_u16(p + 2));
        for (unsigned g = 0; g < ELEMS / 32; g++) {
            unsigned scale, min;
            brig_k_scale_min(p + 4, g, &scale, &min);
            float ds = d * (float)scale, dm = dmin * (float)min;
            const uint8_t *q = p + 48 + g / 2 * 32;
            unsigned shift = g % 2 * 4;
            for (unsigned i = 0; i < 32; i++) {
                int v = ((q[i] >> shift) & 15) | ((fifth[i] >> g) & 1) << 4;
                dst[32 * g + i] = ds * (float)v - dm;
            }
        }
    }
}

const struct brig_type brig_type_q5_k = {
    .name = "Q5_K",
    .help = "5-bit integers, a 6-bit scale and minimum per 32 columns, two scales per 256",
    .id = BRIG_TYPE_Q5_K,
    .gguf_id = 13,
    .block_elems = ELEMS,
    .block_bytes = BYTES,
    .group = 32,
    .dequant = dequant,
};
