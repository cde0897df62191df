/* Q4_0_G16: Q4_0 in groups of 16 columns instead of 32: an f16 scale, then 8 bytes of two columns each. value
 * = (q - 8) * scale. */
#include "proto/model/type.h"

#include "proto/model/type_group.h"

/* A block is two groups, so that blocks and the groups of activations end together. */
#define GROUP 16
#define BYTES 10
#define ELEMS (2 * GROUP)

static void dequant(const void *src, float *dst, size_t n_elems)
{
    for (size_t g = 0; g < n_elems / GROUP; g++)
        brig_q4_0_read((const uint8_t *)src + g * BYTES, dst + g * GROUP, GROUP);
}

static void quantize(const float *src, void *dst, size_t n_elems)
{
    for (size_t g = 0; g < n_elems / GROUP; g++)
        brig_q4_0_write(src + g * GROUP, (uint8_t *)dst + g * BYTES, GROUP);
}

const struct brig_type brig_type_q4_0_g16 = {
    .name = "Q4_0_G16",
    .help = "4-bit integers around 8, one scale per 16 columns (Brigade's own)",
    .id = BRIG_TYPE_Q4_0_G16,
    .gguf_id = 1002,
    .block_elems = ELEMS,
    .block_bytes = 2 * BYTES,
    .group = GROUP,
    .dequant = dequant,
    .quantize = quantize,
};
