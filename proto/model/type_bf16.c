/* BF16: 16-bit floats with the exponent of 32-bit ones. */
#include "proto/model/type.h"

#include "proto/base/half.h"

static void dequant(const void *src, float *dst, size_t n_elems)
{
    const uint8_t *p = src;
    for (size_t i = 0; i < n_elems; i++)
        dst[i] = brig_bf16_to_f32(brig_load_u16(p + 2 * i));
}

static void quantize(const float *src, void *dst, size_t n_elems)
{
    uint8_t *p = dst;
    for (size_t i = 0; i < n_elems; i++) {
        uint32_t u = brig_f32_to_bits(src[i]);
        uint16_t h =
            (uint16_t)((u + 0x7fffu + ((u >> 16) & 1u)) >> 16); /* finite: to the nearest, ties to even */
        memcpy(p + 2 * i, &h, sizeof h);
    }
}

const struct brig_type brig_type_bf16 = {
    .name = "BF16",
    .help = "16-bit floats with the exponent of 32-bit ones",
    .id = BRIG_TYPE_BF16,
    .gguf_id = 30,
    .block_elems = 1,
    .block_bytes = 2,
    .group = 0,
    .dequant = dequant,
    .quantize = quantize,
};
