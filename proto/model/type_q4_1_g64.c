/* Q4_1_G64: Q4_1 in blocks of 64 columns instead of 32: an f16 scale, an f16 minimum, then 32 bytes of two
 * columns each. value = q * scale + minimum. */
#include "proto/model/type.h"

#include "proto/model/type_group.h"

#define ELEMS 64
#define BYTES 36

static void dequant(const void *src, float *dst, size_t n_elems)
{
    for (size_t b = 0; b < n_elems / ELEMS; b++)
        brig_q4_1_read((const uint8_t *)src + b * BYTES, dst + b * ELEMS, ELEMS);
}

static void quantize(const float *src, void *dst, size_t n_elems)
{
    for (size_t b = 0; b < n_elems / ELEMS; b++)
        brig_q4_1_write(src + b * ELEMS, (uint8_t *)dst + b * BYTES, ELEMS);
}

const struct brig_type brig_type_q4_1_g64 = {
    .name = "Q4_1_G64",
    .help = "4-bit integers, a scale and a minimum per 64 columns (Brigade's own)",
    .id = BRIG_TYPE_Q4_1_G64,
    .gguf_id = 1005,
    .block_elems = ELEMS,
    .block_bytes = BYTES,
    .group = 32, /* of the activations: one scale serves two of them */
    .dequant = dequant,
    .quantize = quantize,
};
