/* IQ4_XS: blocks of 256 columns: an f16 scale of the scales, 16 bits with the upper two bits of the 6-bit
 * scales for 32 columns each, 4 bytes with their low halves, then 16 bytes for each 32 columns: low halves
 * are the first 16. value = (d * (scale - 32)) * values[q]. */
#include "proto/model/type.h"

#include "proto/base/half.h"
#include "proto/model/type_iq4.h"

#define ELEMS 256
#define BYTES 136

static void dequant(const void *src, float *dst, size_t n_elems)
{
    const uint8_t *p = src;
    for (size_t b = 0; b < n_elems / ELEMS; b++, p += BYTES, dst += ELEMS) {
        float d = brig_f16_to_f32(brig_load_u16(p));
        int high = brig_load_u16(p + 2);
        for (int g = 0; g < ELEMS / 32; g++) {
            int scale = ((p[4 + g / 2] >> (g % 2 * 4)) & 15) | ((high >> (2 * g)) & 3) << 4;
            float ds = d * (float)(scale - 32);
            const uint8_t *q = p + 8 + 16 * g;
            for (int i = 0; i < 16; i++) {
                dst[32 * g + i] = ds * brig_iq4_values[q[i] & 15];
                dst[32 * g + 16 + i] = ds * brig_iq4_values[q[i] >> 4];
            }
        }
    }
}

const struct brig_type brig_type_iq4_xs = {
    .name = "IQ4_XS",
    .help = "one of 16 uneven values, a 6-bit scale per 32 columns, one scale per 256",
    .id = BRIG_TYPE_IQ4_XS,
    .gguf_id = 23,
    .block_elems = ELEMS,
    .block_bytes = BYTES,
    .group = 0,
    .dequant = dequant,
};
