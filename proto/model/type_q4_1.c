/* Q4_1: blocks of 32 columns: an f16 scale, an f16 minimum, then 16 bytes: low halves are columns 0 to 15,
 * high halves 16 to 31. value = q * scale + minimum. */
#include "proto/model/type.h"

#include "proto/base/half.h"

#define ELEMS 32
#define BYTES 20

static void dequant(const void *src, float *dst, size_t n_elems)
{
    const uint8_t *p = src;
    for (size_t b = 0; b < n_elems / ELEMS; b++, p += BYTES, dst += ELEMS) {
        float d = brig_f16_to_f32(brig_load_u16(p));
        float m = brig_f16_to_f32(brig_load_u16(p + 2));
        for (int i = 0; i < ELEMS / 2; i++) {
            dst[i] = (float)(p[4 + i] & 0x0f) * d + m;
            dst[i + ELEMS / 2] = (float)(p[4 + i] >> 4) * d + m;
        }
    }
}

const struct brig_type brig_type_q4_1 = {
    .name = "Q4_1",
    .help = "4-bit integers, a scale and a minimum per 32 columns",
    .id = BRIG_TYPE_Q4_1,
    .gguf_id = 3,
    .block_elems = ELEMS,
    .block_bytes = BYTES,
    .group = ELEMS,
    .dequant = dequant,
};
