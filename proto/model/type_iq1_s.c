/* IQ1_S: blocks of 256 columns: an f16 scale, 32 bytes with the lower 8 bits of the grid numbers for 8
 * columns each, then 16 bits for each 32 columns: the upper three bits of their four grid numbers, a 3-bit
 * scale, and whether the values move down (1) or up by 1/8. value = d * (2 * scale + 1) * (grid +- 1/8). */
#include "proto/model/type.h"

#include "proto/base/half.h"
#include "proto/model/iq.h"

#define ELEMS 256
#define BYTES 50

static void dequant(const void *src, float *dst, size_t n_elems)
{
    const uint8_t *p = src;
    for (size_t b = 0; b < n_elems / ELEMS; b++, p += BYTES) {
        const uint8_t *low = p + 2;
        float d = brig_f16_to_f32(brig_load_u16(p));
        for (int g = 0; g < ELEMS / 32; g++) {
            unsigned word = brig_load_u16(p + 34 + 2 * g);
            float scale = d * (float)(2 * ((word >> 12) & 7) + 1);
            float delta = word >> 15 ? -0.125f : 0.125f;
            for (int i = 0; i < 4; i++, low++, dst += 8)
                brig_iq1_put(dst, scale, brig_iq1_grid[*low | ((word >> (3 * i)) & 7) << 8], delta);
        }
    }
}

const struct brig_type brig_type_iq1_s = {
    .name = "IQ1_S",
    .help = "1.6 bits: 8 columns from a grid of 2,048, a 3-bit scale per 32 columns",
    .id = BRIG_TYPE_IQ1_S,
    .gguf_id = 19,
    .block_elems = ELEMS,
    .block_bytes = BYTES,
    .group = 0,
    .dequant = dequant,
};
