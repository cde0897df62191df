/* Blocks of any stored type made of random bits with scales that a test chooses. */
#ifndef BRIG_TESTS_UNIT_BLOCKS_UTIL_H
#define BRIG_TESTS_UNIT_BLOCKS_UTIL_H

#include <math.h>

#include "proto/model/type.h"
#include "tests/unit/random_util.h"

/* Where a block keeps the f16 that scales it, and the one that scales its minimums (or -1). */
static inline void block_scales_at(const struct brig_type *type, int *scale, int *min)
{
    *scale = 0;
    *min = -1;
    switch (type->id) {
    case BRIG_TYPE_Q4_1:
    case BRIG_TYPE_Q5_1:
    case BRIG_TYPE_Q4_1_G16:
    case BRIG_TYPE_Q4_1_G64:
    case BRIG_TYPE_Q4_K:
    case BRIG_TYPE_Q5_K:
        *min = 2;
        break;
    case BRIG_TYPE_Q2_K:
        *scale = 80;
        *min = 82;
        break;
    case BRIG_TYPE_Q3_K:
    case BRIG_TYPE_Q6_K:
    case BRIG_TYPE_TQ1_0:
    case BRIG_TYPE_TQ2_0:
        *scale = (int)type->block_bytes - 2;
        break;
    default:
        break;
    }
}

/* scale: of the block (MXFP4 takes the nearest smaller power of two); min: of its minimums, where it has
 * them. */
static inline void block_set_scales(const struct brig_type *type, uint8_t *b, float scale, float min)
{
    uint16_t half = brig_f32_to_f16(scale);
    int scale_at, min_at;
    if (type->id == BRIG_TYPE_MXFP4) {
        b[0] = (uint8_t)(scale == 0.0f ? 0 : 127 + ilogbf(scale));
        return;
    }
    if (type->id == BRIG_TYPE_IQ1_M) { /* a quarter on top of each of the last four words */
        for (int i = 0; i < 4; i++)
            b[49 + 2 * i] = (uint8_t)((b[49 + 2 * i] & 15) | (half >> (4 * i) & 15) << 4);
        return;
    }
    block_scales_at(type, &scale_at, &min_at);
    memcpy(b + scale_at, &half, sizeof half);
    half = brig_f32_to_f16(min);
    if (min_at >= 0)
        memcpy(b + min_at, &half, sizeof half);
    if (type->gguf_id >= 1000 && type->group == 16) /* two groups of the same kind */
        memcpy(b + type->block_bytes / 2, b, min_at >= 0 ? 4 : 2);
}

/* One block whose numbers have about the size rms; one number for the types without blocks. */
static inline void block_of_size(const struct brig_type *type, uint8_t *b, float rms)
{
    float v[256], square = 0;
    uint16_t half;
    if (type->block_elems == 1) {
        v[0] = random_f32() * rms * 1.7f;
        half = type->id == BRIG_TYPE_F16 ? brig_f32_to_f16(v[0]) : (uint16_t)(brig_f32_to_bits(v[0]) >> 16);
        memcpy(b, type->id == BRIG_TYPE_F32 ? (const void *)v : &half, type->block_bytes);
        return;
    }
    for (uint32_t i = 0; i < type->block_bytes; i++)
        b[i] = (uint8_t)random_u32();
    block_set_scales(type, b, 0x1p-6f, -0x1p-6f);
    type->dequant(b, v, type->block_elems);
    for (uint32_t i = 0; i < type->block_elems; i++)
        square += v[i] * v[i];
    float scale = 0x1p-6f * rms / sqrtf(square / (float)type->block_elems);
    block_set_scales(type, b, random_below(2) ? scale : -scale, random_f32() * scale);
}

#endif
