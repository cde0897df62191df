/* IQ3_XXS: blocks of 256 columns: an f16 scale, 64 grid numbers for 4 columns each, then a word for each 32
 * columns with seven bits of signs for each 8 columns and a 4-bit scale at the top. value = d * (scale + 1/2)
 * / 2 * grid, with sign. */
#include "proto/model/type.h"

#include "proto/base/half.h"
#include "proto/model/iq.h"

#define ELEMS 256
#define BYTES 98

static const float values[8] = {4, 12, 20, 28, 36, 44, 52, 62};

static void dequant(const void *src, float *dst, size_t n_elems)
{
    const uint8_t *p = src;
    for (size_t b = 0; b < n_elems / ELEMS; b++, p += BYTES) {
        const uint8_t *q = p + 2, *words = p + 66;
        float d = brig_f16_to_f32(brig_load_u16(p));
        for (int g = 0; g < ELEMS / 32; g++) {
            uint32_t word;
            memcpy(&word, words + 4 * g, sizeof word);
            float scale = d * (0.5f + (float)(word >> 28)) * 0.5f;
            for (int i = 0; i < 4; i++, q += 2, dst += 8) {
                unsigned signs = brig_iq_signs((word >> (7 * i)) & 127);
                brig_iq3_put(dst, scale, brig_iq3_xxs_grid[q[0]], values, signs);
                brig_iq3_put(dst + 4, scale, brig_iq3_xxs_grid[q[1]], values, signs >> 4);
            }
        }
    }
}

const struct brig_type brig_type_iq3_xxs = {
    .name = "IQ3_XXS",
    .help = "3.1 bits: 4 columns from a grid of 256, a 4-bit scale per 32 columns",
    .id = BRIG_TYPE_IQ3_XXS,
    .gguf_id = 18,
    .block_elems = ELEMS,
    .block_bytes = BYTES,
    .group = 0,
    .dequant = dequant,
};
