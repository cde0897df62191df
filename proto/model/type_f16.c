/* F16: 16-bit IEEE floats. */
#include "proto/model/type.h"

#include "proto/base/half.h"

static void dequant(const void *src, float *dst, size_t n_elems)
{
    const uint8_t *p = src;
    for (size_t i = 0; i < n_elems; i++)
        dst[i] = brig_f16_to_f32(brig_load_u16(p + 2 * i));
}

static void quantize(const float *src, void *dst, size_t n_elems)
{
    uint8_t *p = dst;
    for (size_t i = 0; i < n_elems; i++) {
        uint16_t h = brig_f32_to_f16(src[i]);
        memcpy(p + 2 * i, &h, sizeof h);
    }
}

const struct brig_type brig_type_f16 = {
    .name = "F16",
    .help = "16-bit IEEE floats",
    .id = BRIG_TYPE_F16,
    .gguf_id = 1,
    .block_elems = 1,
    .block_bytes = 2,
    .group = 0,
    .dequant = dequant,
    .quantize = quantize,
};
