/* MXFP4 (OCP Microscaling Formats 1.0): blocks of 32 columns: a byte e for the scale 2^(e - 127), then 16
 * bytes of 4-bit floats (sign, two bits of exponent, one of mantissa): low halves are columns 0 to 15, high
 * halves 16 to 31. The values stand here doubled and the scale halved, so that both are exact. */
#include "proto/model/type.h"

#include "proto/base/half.h"

#define ELEMS 32
#define BYTES 17

static const float values[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

/* 2^(e - 128): the two smallest are subnormal. */
static float half_scale(uint32_t e)
{
    return brig_bits_to_f32(e < 2 ? 0x00200000u << e : (e - 1) << 23);
}

static void dequant(const void *src, float *dst, size_t n_elems)
{
    const uint8_t *p = src;
    for (size_t b = 0; b < n_elems / ELEMS; b++, p += BYTES, dst += ELEMS) {
        float d = half_scale(p[0]);
        for (int i = 0; i < ELEMS / 2; i++) {
            dst[i] = d * values[p[1 + i] & 15];
            dst[i + ELEMS / 2] = d * values[p[1 + i] >> 4];
        }
    }
}

const struct brig_type brig_type_mxfp4 = {
    .name = "MXFP4",
    .help = "4-bit floats, a power of two per 32 columns",
    .id = BRIG_TYPE_MXFP4,
    .gguf_id = 39,
    .block_elems = ELEMS,
    .block_bytes = BYTES,
    .group = 0,
    .dequant = dequant,
};
