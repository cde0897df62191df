/* Q8_0: blocks of 32 columns: an f16 scale, then 32 signed bytes. value = q * scale. */
#include "proto/model/type.h"

#include "proto/base/half.h"

#define ELEMS 32
#define BYTES 34

static void dequant(const void *src, float *dst, size_t n_elems)
{
    const uint8_t *p = src;
    for (size_t b = 0; b < n_elems / ELEMS; b++, p += BYTES, dst += ELEMS) {
        float d = brig_f16_to_f32(brig_load_u16(p));
        for (int i = 0; i < ELEMS; i++)
            dst[i] = (float)(int8_t)p[2 + i] * d;
    }
}

const struct brig_type brig_type_q8_0 = {
    .name = "Q8_0",
    .help = "8-bit integers, one scale per 32 columns",
    .id = BRIG_TYPE_Q8_0,
    .gguf_id = 8,
    .block_elems = ELEMS,
    .block_bytes = BYTES,
    .group = ELEMS,
    .dequant = dequant,
};
