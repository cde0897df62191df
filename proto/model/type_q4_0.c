/* Q4_0: blocks of 32 columns: an f16 scale, then 16 bytes: low halves are columns 0 to 15, high halves 16 to
 * 31. value = (q - 8) * scale. */
#include "proto/model/type.h"

#include "proto/base/half.h"

#define ELEMS 32
#define BYTES 18

static void dequant(const void *src, float *dst, size_t n_elems)
{
    const uint8_t *p = src;
    for (size_t b = 0; b < n_elems / ELEMS; b++, p += BYTES, dst += ELEMS) {
        float d = brig_f16_to_f32(brig_load_u16(p));
        for (int i = 0; i < ELEMS / 2; i++) {
            dst[i] = (float)((p[2 + i] & 0x0f) - 8) * d;
            dst[i + ELEMS / 2] = (float)((p[2 + i] >> 4) - 8) * d;
        }
    }
}

const struct brig_type brig_type_q4_0 = {
    .name = "Q4_0",
    .help = "4-bit integers around 8, one scale per 32 columns",
    .id = BRIG_TYPE_Q4_0,
    .gguf_id = 2,
    .block_elems = ELEMS,
    .block_bytes = BYTES,
    .group = ELEMS,
    .dequant = dequant,
};
