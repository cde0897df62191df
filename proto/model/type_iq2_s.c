/* IQ2_S: blocks of 256 columns: an f16 scale, 32 bytes with the lower 8 bits of the grid numbers for 8
 * columns each, 32 bytes of signs, 8 bytes with the upper two bits of the grid numbers, 8 bytes of 4-bit
 * scales for 16 columns each, low half first. value = d * (scale + 1/2) / 4 * grid, with sign. */
#include "proto/model/type.h"

#include "proto/base/half.h"
#include "proto/model/iq.h"

#define ELEMS 256
#define BYTES 82

static void dequant(const void *src, float *dst, size_t n_elems)
{
    const uint8_t *p = src;
    for (size_t b = 0; b < n_elems / ELEMS; b++, p += BYTES, dst += ELEMS) {
        const uint8_t *low = p + 2, *signs = p + 34, *high = p + 66, *scales = p + 74;
        float d = brig_f16_to_f32(brig_load_u16(p));
        for (int i = 0; i < ELEMS / 8; i++) {
            unsigned number = low[i] | ((unsigned)high[i / 4] >> (i % 4 * 2) & 3) << 8;
            float scale = d * (0.5f + (float)((scales[i / 4] >> (i / 2 % 2 * 4)) & 15)) * 0.25f;
            brig_iq2_put(dst + 8 * i, scale, brig_iq2_s_grid[number], signs[i]);
        }
    }
}

const struct brig_type brig_type_iq2_s = {
    .name = "IQ2_S",
    .help = "2.6 bits: 8 columns from a grid of 1,024, a 4-bit scale per 16 columns",
    .id = BRIG_TYPE_IQ2_S,
    .gguf_id = 22,
    .block_elems = ELEMS,
    .block_bytes = BYTES,
    .group = 0,
    .dequant = dequant,
};
