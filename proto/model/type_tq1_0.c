/* TQ1_0: blocks of 256 columns, each -1, 0 or 1 times an f16 scale at the end. A byte holds five digits of
 * base 3 (the last four bytes: four) as a fixed-point fraction of 256, so that digit n is the whole part of 3
 * * (fraction * 3^n). The first 32 bytes hold columns 0 to 159 (digit n of byte i is column 32 n + i), the
 * next 16 columns 160 to 239, the last 4 columns 240 to 255. */
#include "proto/model/type.h"

#include "proto/base/half.h"

#define ELEMS 256
#define BYTES 54

/* Digits first to last of n bytes to dst; returns the end of what was written. */
static float *digits(const uint8_t *p, int n, int n_digits, float d, float *dst)
{
    unsigned power = 1;
    for (int digit = 0; digit < n_digits; digit++, power *= 3)
        for (int i = 0; i < n; i++)
            *dst++ = d * (float)((int)((p[i] * power & 255u) * 3 >> 8) - 1);
    return dst;
}

static void dequant(const void *src, float *dst, size_t n_elems)
{
    const uint8_t *p = src;
    for (size_t b = 0; b < n_elems / ELEMS; b++, p += BYTES) {
        float d = brig_f16_to_f32(brig_load_u16(p + 52));
        dst = digits(p, 32, 5, d, dst);
        dst = digits(p + 32, 16, 5, d, dst);
        dst = digits(p + 48, 4, 4, d, dst);
    }
}

const struct brig_type brig_type_tq1_0 = {
    .name = "TQ1_0",
    .help = "-1, 0 or 1, five in a byte, one scale per 256 columns",
    .id = BRIG_TYPE_TQ1_0,
    .gguf_id = 34,
    .block_elems = ELEMS,
    .block_bytes = BYTES,
    .group = 0,
    .dequant = dequant,
};
