/* Inside proto/model: what the IQ1, IQ2 and IQ3 types share. They store numbers of entries of a grid; an
 * entry is four or eight values, packed here as 2 or 3 bits each, the first one lowest, which a map of the
 * type makes values of. The IQ2 and IQ3 types give the values their signs by bits beside. */
#ifndef BRIG_PROTO_MODEL_IQ_H
#define BRIG_PROTO_MODEL_IQ_H

#include <stdint.h>

/* Eight values of 2 bits. */
extern const uint16_t brig_iq1_grid[2048];
extern const uint16_t brig_iq2_xxs_grid[256];
extern const uint16_t brig_iq2_xs_grid[512];
extern const uint16_t brig_iq2_s_grid[1024];
/* Four values of 3 bits. */
extern const uint16_t brig_iq3_xxs_grid[256];
extern const uint16_t brig_iq3_s_grid[512];

/* Eight columns of an IQ2 type. Bit i of signs: column i is negative. */
static inline void brig_iq2_put(float *dst, float scale, unsigned entry, unsigned signs)
{
    static const float values[4] = {8, 25, 43, 0}; /* the fourth never occurs */
    for (unsigned i = 0; i < 8; i++) {
        float v = scale * values[(entry >> (2 * i)) & 3];
        dst[i] = (signs >> i) & 1 ? -v : v;
    }
}

/* Four columns of an IQ3 type, whose eight values are given. */
static inline void brig_iq3_put(float *dst, float scale, unsigned entry, const float *values, unsigned signs)
{
    for (unsigned i = 0; i < 4; i++) {
        float v = scale * values[(entry >> (3 * i)) & 7];
        dst[i] = (signs >> i) & 1 ? -v : v;
    }
}

/* Eight columns of an IQ1 type: -1, 0 or 1, moved by delta. */
static inline void brig_iq1_put(float *dst, float scale, unsigned entry, float delta)
{
    for (unsigned i = 0; i < 8; i++)
        dst[i] = scale * ((float)((int)((entry >> (2 * i)) & 3) - 1) + delta);
}

/* Eight signs from seven bits: the eighth makes the number of negative ones even. */
static inline unsigned brig_iq_signs(unsigned seven)
{
    unsigned parity = seven ^ (seven >> 4);
    parity ^= parity >> 2;
    parity ^= parity >> 1;
    return seven | (parity & 1) << 7;
}

#endif
