/* Q5_1: blocks of 32 columns: an f16 scale, an f16 minimum, 32 fifth bits (bit i is column i's), then 16
 * bytes: low halves are columns 0 to 15, high halves 16 to 31. value = q * scale + minimum. */
#include "proto/model/type.h"

#include "proto/model/type_group.h"

#define ELEMS 32
#define BYTES 24

static void dequant(const void *src, float *dst, size_t n_elems)
{
    const uint8_t *p = src;
    for (size_t b = 0; b < n_elems / ELEMS; b++, p += BYTES, dst += ELEMS) {
        float d = brig_f16_to_f32(brig_load_u16(p));
        float m = brig_f16_to_f32(brig_load_u16(p + 2));
        uint32_t high;
        memcpy(&high, p + 4, sizeof high);
        for (int i = 0; i < ELEMS / 2; i++) {
            int lo = (p[8 + i] & 0x0f) | (int)((high >> i) & 1u) << 4;
            int hi = (p[8 + i] >> 4) | (int)((high >> (i + ELEMS / 2)) & 1u) << 4;
            dst[i] = (float)lo * d + m;
            dst[i + ELEMS / 2] = (float)hi * d + m;
        }
    }
}

static void quantize(const float *src, void *dst, size_t n_elems)
{
    uint8_t *p = dst;
    for (size_t b = 0; b < n_elems / ELEMS; b++, p += BYTES, src += ELEMS) {
        float least, most;
        brig_group_range(src, ELEMS, &least, &most);
        float d = (most - least) / 31.0f, inverse = brig_group_inverse(d);
        uint32_t high = 0;
        brig_store_f16(p, d);
        brig_store_f16(p + 2, least);
        for (int i = 0; i < ELEMS / 2; i++) {
            uint8_t lo = brig_group_cut((src[i] - least) * inverse + 0.5f, 31);
            uint8_t hi = brig_group_cut((src[i + ELEMS / 2] - least) * inverse + 0.5f, 31);
            p[8 + i] = (uint8_t)((lo & 15) | (hi & 15) << 4);
            high |= (uint32_t)(lo >> 4) << i | (uint32_t)(hi >> 4) << (i + ELEMS / 2);
        }
        memcpy(p + 4, &high, sizeof high);
    }
}

const struct brig_type brig_type_q5_1 = {
    .name = "Q5_1",
    .help = "5-bit integers, a scale and a minimum per 32 columns",
    .id = BRIG_TYPE_Q5_1,
    .gguf_id = 7,
    .block_elems = ELEMS,
    .block_bytes = BYTES,
    .group = ELEMS,
    .dequant = dequant,
    .quantize = quantize,
};
