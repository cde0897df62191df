/* IQ3_S: blocks of 256 columns: an f16 scale, 64 bytes with the lower 8 bits of the grid numbers for 4
 * columns each, 8 bytes with their ninth bits, 32 bytes of signs, 4 bytes of 4-bit scales for 32 columns
 * each, low half first. value = d * (1 + 2 * scale) * grid, with sign. */
#include "proto/model/type.h"

#include "proto/base/half.h"
#include "proto/model/iq.h"

#define ELEMS 256
#define BYTES 110

static const float values[8] = {1, 3, 5, 7, 9, 11, 13, 15};

static void dequant(const void *src, float *dst, size_t n_elems)
{
    const uint8_t *p = src;
    for (size_t b = 0; b < n_elems / ELEMS; b++, p += BYTES, dst += ELEMS) {
        const uint8_t *low = p + 2, *ninth = p + 66, *signs = p + 74, *scales = p + 106;
        float d = brig_f16_to_f32(brig_load_u16(p));
        for (int i = 0; i < ELEMS / 4; i++) {
            unsigned number = low[i] | ((unsigned)ninth[i / 8] >> (i % 8) & 1) << 8;
            float scale = d * (float)(1 + 2 * ((scales[i / 16] >> (i / 8 % 2 * 4)) & 15));
            brig_iq3_put(dst + 4 * i, scale, brig_iq3_s_grid[number], values, signs[i / 2] >> (i % 2 * 4));
        }
    }
}

const struct brig_type brig_type_iq3_s = {
    .name = "IQ3_S",
    .help = "3.4 bits: 4 columns from a grid of 512, a 4-bit scale per 32 columns",
    .id = BRIG_TYPE_IQ3_S,
    .gguf_id = 21,
    .block_elems = ELEMS,
    .block_bytes = BYTES,
    .group = 0,
    .dequant = dequant,
};
