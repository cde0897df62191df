/* IQ2_XS: blocks of 256 columns: an f16 scale, 32 words of 16 bits for 8 columns each (a grid number in the
 * lower 9 bits, seven bits of signs above), 8 bytes of 4-bit scales for 16 columns each, low half first.
 * value = d * (scale + 1/2) / 4 * grid, with sign. */
#include "proto/model/type.h"

#include "proto/base/half.h"
#include "proto/model/iq.h"

#define ELEMS 256
#define BYTES 74

static void dequant(const void *src, float *dst, size_t n_elems)
{
    const uint8_t *p = src;
    for (size_t b = 0; b < n_elems / ELEMS; b++, p += BYTES, dst += ELEMS) {
        const uint8_t *scales = p + 66;
        float d = brig_f16_to_f32(brig_load_u16(p));
        for (int i = 0; i < ELEMS / 8; i++) {
            unsigned word = brig_load_u16(p + 2 + 2 * i);
            float scale = d * (0.5f + (float)((scales[i / 4] >> (i / 2 % 2 * 4)) & 15)) * 0.25f;
            brig_iq2_put(dst + 8 * i, scale, brig_iq2_xs_grid[word & 511], brig_iq_signs(word >> 9));
        }
    }
}

const struct brig_type brig_type_iq2_xs = {
    .name = "IQ2_XS",
    .help = "2.3 bits: 8 columns from a grid of 512, a 4-bit scale per 16 columns",
    .id = BRIG_TYPE_IQ2_XS,
    .gguf_id = 17,
    .block_elems = ELEMS,
    .block_bytes = BYTES,
    .group = 0,
    .dequant = dequant,
};
