/* IQ2_XXS: blocks of 256 columns: an f16 scale, then 8 bytes for each 32 columns: four grid numbers, and a
 * word with seven bits of signs for each of the four and a 4-bit scale at the top. value = d * (scale + 1/2)
 * / 4 * grid, with sign. */
#include "proto/model/type.h"

#include "proto/base/half.h"
#include "proto/model/iq.h"

#define ELEMS 256
#define BYTES 66

static void dequant(const void *src, float *dst, size_t n_elems)
{
    const uint8_t *p = src;
    for (size_t b = 0; b < n_elems / ELEMS; b++, p += BYTES) {
        float d = brig_f16_to_f32(brig_load_u16(p));
        for (const uint8_t *q = p + 2; q < p + BYTES; q += 8, dst += 32) {
            uint32_t word;
            memcpy(&word, q + 4, sizeof word);
            float scale = d * (0.5f + (float)(word >> 28)) * 0.25f;
            for (int i = 0; i < 4; i++)
                brig_iq2_put(dst + 8 * i, scale, brig_iq2_xxs_grid[q[i]],
                             brig_iq_signs((word >> (7 * i)) & 127));
        }
    }
}

const struct brig_type brig_type_iq2_xxs = {
    .name = "IQ2_XXS",
    .help = "2.1 bits: 8 columns from a grid of 256, a 4-bit scale per 32 columns",
    .id = BRIG_TYPE_IQ2_XXS,
    .gguf_id = 16,
    .block_elems = ELEMS,
    .block_bytes = BYTES,
    .group = 0,
    .dequant = dequant,
};
