/* F32: plain little-endian floats. */
#include "proto/model/type.h"

#include <string.h>

static void dequant(const void *src, float *dst, size_t n_elems)
{
    memcpy(dst, src, n_elems * sizeof *dst);
}

static void quantize(const float *src, void *dst, size_t n_elems)
{
    memcpy(dst, src, n_elems * sizeof *src);
}

const struct brig_type brig_type_f32 = {
    .name = "F32",
    .help = "32-bit floats",
    .id = BRIG_TYPE_F32,
    .gguf_id = 0,
    .block_elems = 1,
    .block_bytes = 4,
    .group = 0,
    .dequant = dequant,
    .quantize = quantize,
};
