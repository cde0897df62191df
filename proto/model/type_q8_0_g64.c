/* Q8_0_G64: Q8_0 in blocks of 64 columns instead of 32: an f16 scale, then 64 signed bytes. value = q *
 * scale. */
#include "proto/model/type.h"

#include "proto/model/type_group.h"

#define ELEMS 64
#define BYTES 66

static void dequant(const void *src, float *dst, size_t n_elems)
{
    for (size_t b = 0; b < n_elems / ELEMS; b++)
        brig_q8_0_read((const uint8_t *)src + b * BYTES, dst + b * ELEMS, ELEMS);
}

static void quantize(const float *src, void *dst, size_t n_elems)
{
    for (size_t b = 0; b < n_elems / ELEMS; b++)
        brig_q8_0_write(src + b * ELEMS, (uint8_t *)dst + b * BYTES, ELEMS);
}

const struct brig_type brig_type_q8_0_g64 = {
    .name = "Q8_0_G64",
    .help = "8-bit integers, one scale per 64 columns (Brigade's own)",
    .id = BRIG_TYPE_Q8_0_G64,
    .gguf_id = 1001,
    .block_elems = ELEMS,
    .block_bytes = BYTES,
    .group = 32, /* of the activations: one scale serves two of them */
    .dequant = dequant,
    .quantize = quantize,
};
