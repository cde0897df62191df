/* Q4_1: blocks of 32 columns: an f16 scale, an f16 minimum, then 16 bytes: low halves are columns 0 to 15,
 * high halves 16 to 31. value = q * scale + minimum. */
#include "proto/model/type.h"

#include "proto/model/type_group.h"

#define ELEMS 32
#define BYTES 20

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

const struct brig_type brig_type_q4_1 = {
    .name = "Q4_1",
    .help = "4-bit integers, a scale and a minimum per 32 columns",
    .id = BRIG_TYPE_Q4_1,
    .gguf_id = 3,
    .block_elems = ELEMS,
    .block_bytes = BYTES,
    .group = ELEMS,
    .dequant = dequant,
    .quantize = quantize,
};
