/* Q5_0: blocks of 32 columns: an f16 scale, 32 fifth bits (bit i is column i's), then 16 bytes: low halves
 * are columns 0 to 15, high halves 16 to 31. value = (q - 16) * scale. */
#include "proto/model/type.h"

#include "proto/model/type_group.h"

#define ELEMS 32
#define BYTES 22

static void dequant(const void *src, float *dst, size_t n_elems)
{
    const uint8_t *p = src;
    for (size_t b = 0; b < n_elems / ELEMS; b++, p += BYTES, dst += ELEMS) {
        float d = brig_f16_to_f32(brig_load_u16(p));
        uint32_t high;
        memcpy(&high, p + 2, sizeof high);
        for (int i = 0; i < ELEMS / 2; i++) {
            int lo = (p[6 + i] & 0x0f) | (int)((high >> i) & 1u) << 4;
            int hi = (p[6 + i] >> 4) | (int)((high >> (i + ELEMS / 2)) & 1u) << 4;
            dst[i] = (float)(lo - 16) * d;
            dst[i + ELEMS / 2] = (float)(hi - 16) * d;
        }
    }
}

static void quantize(const float *src, void *dst, size_t n_elems)
{
    uint8_t *p = dst;
    for (size_t b = 0; b < n_elems / ELEMS; b++, p += BYTES, src += ELEMS) {
        float d = brig_group_extreme(src, ELEMS) / -16.0f, inverse = brig_group_inverse(d);
        uint32_t high = 0;
        brig_store_f16(p, d);
        for (int i = 0; i < ELEMS / 2; i++) {
            uint8_t lo = brig_group_cut(src[i] * inverse + 16.5f, 31);
            uint8_t hi = brig_group_cut(src[i + ELEMS / 2] * inverse + 16.5f, 31);
            p[6 + i] = (uint8_t)((lo & 15) | (hi & 15) << 4);
            high |= (uint32_t)(lo >> 4) << i | (uint32_t)(hi >> 4) << (i + ELEMS / 2);
        }
        memcpy(p + 2, &high, sizeof high);
    }
}

const struct brig_type brig_type_q5_0 = {
    .name = "Q5_0",
    .help = "5-bit integers around 16, one scale per 32 columns",
    .id = BRIG_TYPE_Q5_0,
    .gguf_id = 6,
    .block_elems = ELEMS,
    .block_bytes = BYTES,
    .group = ELEMS,
    .dequant = dequant,
    .quantize = quantize,
};
