/* IQ1_M: blocks of 256 columns: 32 bytes with the lower 8 bits of the grid numbers for 8 columns each, 16
 * bytes with a half for each of them (the upper three bits, and whether the values move down or up by 1/8),
 * then four words of 16 bits: four 3-bit scales for 16 columns each, and at the top a quarter of an f16
 * scale, the lowest first. value = d * (2 * scale + 1) * (grid +- 1/8). */
#include "proto/model/type.h"

#include "proto/base/half.h"
#include "proto/model/iq.h"

#define ELEMS 256
#define BYTES 56

static float block_scale(const uint8_t *words)
{
    unsigned half = 0;
    for (int i = 0; i < 4; i++)
        half |= (unsigned)brig_load_u16(words + 2 * i) >> 12 << (4 * i);
    return brig_f16_to_f32((uint16_t)half);
}

static void dequant(const void *src, float *dst, size_t n_elems)
{
    const uint8_t *p = src;
    for (size_t b = 0; b < n_elems / ELEMS; b++, p += BYTES, dst += ELEMS) {
        const uint8_t *words = p + 48;
        float d = block_scale(words);
        for (int i = 0; i < ELEMS / 8; i++) {
            unsigned half = (unsigned)p[32 + i / 2] >> (i % 2 * 4) & 15;
            unsigned scale = (unsigned)brig_load_u16(words + i / 8 * 2) >> (i / 2 % 4 * 3) & 7;
            brig_iq1_put(dst + 8 * i, d * (float)(2 * scale + 1), brig_iq1_grid[p[i] | (half & 7) << 8],
                         half >> 3 ? -0.125f : 0.125f);
        }
    }
}

const struct brig_type brig_type_iq1_m = {
    .name = "IQ1_M",
    .help = "1.8 bits: 8 columns from a grid of 2,048, a 3-bit scale per 16 columns",
    .id = BRIG_TYPE_IQ1_M,
    .gguf_id = 29,
    .block_elems = ELEMS,
    .block_bytes = BYTES,
    .group = 0,
    .dequant = dequant,
};
