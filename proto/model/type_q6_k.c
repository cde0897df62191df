/* Q6_K: blocks of 256 columns: 128 bytes of lower halves, 64 bytes of upper bit pairs, 16 signed 8-bit scales
 * for 16 columns each, an f16 scale of the scales. Each half of the block has 64 bytes of lower halves (low
 * ones are its columns 0 to 63, high ones 64 to 127) and 32 bytes of pairs (bits 0-1 are its columns 0 to 31,
 * bits 2-3 the next 32, and so on). value = (d * scale) * (q - 32). */
#include "proto/model/type.h"

#include "proto/base/half.h"

#define ELEMS 256
#define BYTES 210

static void dequant(const void *src, float *dst, size_t n_elems)
{
    const uint8_t *p = src;
    for (size_t b = 0; b < n_elems / ELEMS; b++, p += BYTES, dst += ELEMS) {
        float d = brig_f16_to_f32(brig_load_u16(p + 208));
        for (int g = 0; g < ELEMS / 16; g++) {
            float scale = d * (float)(int8_t)p[192 + g];
            const uint8_t *low = p + g / 8 * 64 + g % 4 * 16, *high = p + 128 + g / 8 * 32 + g % 2 * 16;
            int low_shift = g % 8 / 4 * 4, high_shift = g % 8 / 2 * 2;
            for (int i = 0; i < 16; i++) {
                int v = ((low[i] >> low_shift) & 15) | ((high[i] >> high_shift) & 3) << 4;
                dst[16 * g + i] = scale * (float)(v - 32);
            }
        }
    }
}

const struct brig_type brig_type_q6_k = {
    .name = "Q6_K",
    .help = "6-bit integers around 32, an 8-bit scale per 16 columns, one scale per 256",
    .id = BRIG_TYPE_Q6_K,
    .gguf_id = 14,
    .block_elems = ELEMS,
    .block_bytes = BYTES,
    .group = 16,
    .dequant = dequant,
};
