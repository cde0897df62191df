/* TQ2_0: blocks of 256 columns: 64 bytes, an f16 scale. Each half of the block has 32 bytes; their bits 0-1
 * are its columns 0 to 31, bits 2-3 the next 32, and so on. value = scale * (q - 1). */
#include "proto/model/type.h"

#include "proto/base/half.h"

#define ELEMS 256
#define BYTES 66

static void dequant(const void *src, float *dst, size_t n_elems)
{
    const uint8_t *p = src;
    for (size_t b = 0; b < n_elems / ELEMS; b++, p += BYTES, dst += ELEMS) {
        float d = brig_f16_to_f32(brig_load_u16(p + 64));
        for (int g = 0; g < ELEMS / 32; g++)
            for (int i = 0; i < 32; i++)
                dst[32 * g + i] = d * (float)(((p[g / 4 * 32 + i] >> (g % 4 * 2)) & 3) - 1);
    }
}

const struct brig_type brig_type_tq2_0 = {
    .name = "TQ2_0",
    .help = "-1, 0 or 1 in two bits, one scale per 256 columns",
    .id = BRIG_TYPE_TQ2_0,
    .gguf_id = 35,
    .block_elems = ELEMS,
    .block_bytes = BYTES,
    .group = 0,
    .dequant = dequant,
};
