/*
 * The simple quantised types, for groups of any even number of columns: one f16 scale (and minimum), then the
 * integers. In the 4-bit types the low halves of the bytes are the first half of the columns, the high halves
 * the second. The numbers are rounded as ggml's reference does for 32 columns: every
 * operation is one of f32, in this order.
 */
#ifndef BRIG_PROTO_MODEL_TYPE_GROUP_H
#define BRIG_PROTO_MODEL_TYPE_GROUP_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "proto/base/half.h"

static inline void brig_store_f16(uint8_t *p, float f)
{
    uint16_t h = brig_f32_to_f16(f);
    memcpy(p, &h, sizeof h);
}

/* 1 / d, or 0 when there is nothing to divide by. */
static inline float brig_group_inverse(float d)
{
    float inverse = 1.0f / d;
    return d != 0.0f && isfinite(inverse) ? inverse : 0.0f;
}

/* The number of largest magnitude, the first of several, with its sign. */
static inline float brig_group_extreme(const float *x, int n)
{
    float most = x[0];
    for (int i = 1; i < n; i++)
        if (fabsf(x[i]) > fabsf(most))
            most = x[i];
    return most;
}

static inline void brig_group_range(const float *x, int n, float *least, float *most)
{
    *least = *most = x[0];
    for (int i = 1; i < n; i++) {
        *least = x[i] < *least ? x[i] : *least;
        *most = x[i] > *most ? x[i] : *most;
    }
}

/* v rounded by cutting off what is behind the point, from 0 to `most`; the caller has added the half. */
static inline uint8_t brig_group_cut(float v, int most)
{
    int q = v > 0.0f ? (int)fminf(v, (float)most) : 0;
    return (uint8_t)q;
}

/* Q8_0: 2 + n bytes. value = q * d */
static inline void brig_q8_0_read(const uint8_t *p, float *x, int n)
{
    float d = brig_f16_to_f32(brig_load_u16(p));
    for (int i = 0; i < n; i++)
        x[i] = (float)(int8_t)p[2 + i] * d;
}

static inline void brig_q8_0_write(const float *x, uint8_t *p, int n)
{
    float d = fabsf(brig_group_extreme(x, n)) / 127.0f, inverse = brig_group_inverse(d);
    brig_store_f16(p, d);
    for (int i = 0; i < n; i++)
        p[2 + i] = (uint8_t)(int8_t)roundf(x[i] * inverse);
}

/* Q4_0: 2 + n / 2 bytes. value = (q - 8) * d */
static inline void brig_q4_0_read(const uint8_t *p, float *x, int n)
{
    float d = brig_f16_to_f32(brig_load_u16(p));
    for (int i = 0; i < n / 2; i++) {
        x[i] = (float)((p[2 + i] & 15) - 8) * d;
        x[i + n / 2] = (float)((p[2 + i] >> 4) - 8) * d;
    }
}

static inline void brig_q4_0_write(const float *x, uint8_t *p, int n)
{
    float d = brig_group_extreme(x, n) / -8.0f, inverse = brig_group_inverse(d);
    brig_store_f16(p, d);
    for (int i = 0; i < n / 2; i++) {
        uint8_t low = brig_group_cut(x[i] * inverse + 8.5f, 15);
        uint8_t high = brig_group_cut(x[i + n / 2] * inverse + 8.5f, 15);
        p[2 + i] = (uint8_t)(low | high << 4);
    }
}

/* Q4_1: 4 + n / 2 bytes. value = q * d + m */
static inline void brig_q4_1_read(const uint8_t *p, float *x, int n)
{
    float d = brig_f16_to_f32(brig_load_u16(p)), m = brig_f16_to_f32(brig_load_u16(p + 2));
    for (int i = 0; i < n / 2; i++) {
        x[i] = (float)(p[4 + i] & 15) * d + m;
        x[i + n / 2] = (float)(p[4 + i] >> 4) * d + m;
    }
}

static inline void brig_q4_1_write(const float *x, uint8_t *p, int n)
{
    float least, most;
    brig_group_range(x, n, &least, &most);
    float d = (most - least) / 15.0f, inverse = brig_group_inverse(d);
    brig_store_f16(p, d);
    brig_store_f16(p + 2, least);
    for (int i = 0; i < n / 2; i++) {
        uint8_t low = brig_group_cut((x[i] - least) * inverse + 0.5f, 15);
        uint8_t high = brig_group_cut((x[i + n / 2] - least) * inverse + 0.5f, 15);
        p[4 + i] = (uint8_t)(low | high << 4);
    }
}

#endif
