/* Q2_K: blocks of 256 columns: 16 bytes of scales (low halves) and minimums (high halves) for 16 columns
 * each, 64 bytes of 2-bit integers, an f16 scale of the scales, an f16 scale of the minimums. Each half of
 * the block has 32 bytes; their bits 0-1 are its columns 0 to 31, bits 2-3 the next 32, and so on. value = (d
 * * scale) * q - (dmin * minimum). */
#include "proto/model/type.h"

#include "proto/base/half.h"

#define ELEMS 256
#define BYTES 84

static void dequant(const void *src, float *dst, size_t n_elems)
{
    const uint8_t *p = src;
    for (size_t b = 0; b < n_elems / ELEMS; b++, p += BYTES, dst += ELEMS) {
        const uint8_t *quants = p + 16;
        float d = brig_f16_to_f32(brig_load_u16(p + 80));
        float dmin = brig_f16_to_f32(brig_load_u16(p + 82));
        for (int g = 0; g < ELEMS / 16; g++) {
            float scale = d * (float)(p[g] & 15), min = dmin * (float)(p[g] >> 4);
            const uint8_t *q = quants + g / 8 * 32 + g % 2 * 16;
            int shift = g % 8 / 2 * 2;
            for (int i = 0; i < 16; i++)
                dst[16 * g + i] = scale * (float)((q[i] >> shift) & 3) - min;
        }
    }
}

const struct brig_type brig_type_q2_k = {
    .name = "Q2_K",
    .help = "2-bit integers, a 4-bit scale and minimum per 16 columns, two scales per 256",
    .id = BRIG_TYPE_Q2_K,
    .gguf_id = 10,
    .block_elems = ELEMS,
    .block_bytes = BYTES,
    .group = 0,
    .dequant = dequant,
};
