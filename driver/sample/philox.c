/* Philox4x32-10: ten rounds of two widening products. */
#include "driver/sample/philox.h"

#include <string.h>

void brig_philox(const uint32_t counter[4], const uint32_t key[2], uint32_t ret[4])
{
    uint32_t c[4], k0 = key[0], k1 = key[1];
    memcpy(c, counter, sizeof c);
    for (int round = 0; round < 10; round++) {
        uint64_t p0 = (uint64_t)0xd2511f53u * c[0], p1 = (uint64_t)0xcd9e8d57u * c[2];
        uint32_t next[4] = {(uint32_t)(p1 >> 32) ^ c[1] ^ k0, (uint32_t)p1, (uint32_t)(p0 >> 32) ^ c[3] ^ k1,
                            (uint32_t)p0};
        memcpy(c, next, sizeof c);
        k0 += 0x9e3779b9u;
        k1 += 0xbb67ae85u;
    }
    memcpy(ret, c, sizeof c);
}

double brig_philox_uniform(uint64_t seed, uint64_t index)
{
    const uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
    const uint32_t counter[4] = {(uint32_t)index, (uint32_t)(index >> 32), 0, 0};
    uint32_t out[4];
    brig_philox(counter, key, out);
    uint64_t bits = (uint64_t)out[1] << 32 | out[0];
    return (double)(bits >> 11) * 0x1p-53;
}
