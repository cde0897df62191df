/* IQ4_NL: blocks of 32 columns: an f16 scale, then 16 bytes: low halves are columns 0 to 15, high halves 16
 * to 31. value = scale * values[q]. */
#include "proto/model/type.h"

#include "proto/base/half.h"
#include "proto/model/type_iq4.h"

#define ELEMS 32
#define BYTES 18

static void dequant(const void *src, float *dst, size_t n_elems)
{
    const uint8_t *p = src;
    for (size_t b = 0; b < n_elems / ELEMS; b++, p += BYTES, dst += ELEMS) {
        float d = brig_f16_to_f32(brig_load_u16(p));
        for (int i = 0; i < ELEMS / 2; i++) {
            dst[i] = d * brig_iq4_values[p[2 + i] & 15];
            dst[i + ELEMS / 2] = d * brig_iq4_values[p[2 + i] >> 4];
        }
    }
}

const struct brig_type brig_type_iq4_nl = {
    .name = "IQ4_NL",
    .help = "one of 16 uneven values, one scale per 32 columns",
    .id = BRIG_TYPE_IQ4_NL,
    .gguf_id = 20,
    .block_elems = ELEMS,
    .block_bytes = BYTES,
    .group = 0,
    .dequant = dequant,
};
