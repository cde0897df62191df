/* Q3_K: blocks of 256 columns: 32 bytes of third bits, 64 bytes of the two lower bits, 12 bytes of 6-bit
 * scales for 16 columns each, an f16 scale of the scales. Each half of the block has 32 bytes of lower bits;
 * their bits 0-1 are its columns 0 to 31, bits 2-3 the next 32, and so on. The third bit of column c is bit c
 * / 32 of byte c % 32. value = (d * (scale - 32)) * (q - 4). */
#include "proto/model/type.h"

#include "proto/base/half.h"

#define ELEMS 256
#define BYTES 110

/* Bytes 0 to 7 hold the low halves of scales 0 to 15, bytes 8 to 11 their upper two bits. */
static int scale_at(const uint8_t *packed, int g)
{
    int low = g < 8 ? packed[g] & 15 : packed[g - 8] >> 4;
    int high = (packed[8 + g % 4] >> (g / 4 * 2)) & 3;
    return (low | high << 4) - 32;
}

static void dequant(const void *src, float *dst, size_t n_elems)
{
    const uint8_t *p = src;
    for (size_t b = 0; b < n_elems / ELEMS; b++, p += BYTES, dst += ELEMS) {
        const uint8_t *quants = p + 32, *scales = p + 96;
        float d = brig_f16_to_f32(brig_load_u16(p + 108));
        for (int g = 0; g < ELEMS / 16; g++) {
            float scale = d * (float)scale_at(scales, g);
            const uint8_t *q = quants + g / 8 * 32 + g % 2 * 16, *third = p + g % 2 * 16;
            int shift = g % 8 / 2 * 2;
            for (int i = 0; i < 16; i++) {
                int v = ((q[i] >> shift) & 3) | ((third[i] >> (g / 2)) & 1) << 2;
                dst[16 * g + i] = scale * (float)(v - 4);
            }
        }
    }
}

const struct brig_type brig_type_q3_k = {
    .name = "Q3_K",
    .help = "3-bit integers around 4, a 6-bit scale per 16 columns, one scale per 256",
    .id = BRIG_TYPE_Q3_K,
    .gguf_id = 11,
    .block_elems = ELEMS,
    .block_bytes = BYTES,
    .group = 0,
    .dequant = dequant,
};
