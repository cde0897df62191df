/* Philox4x32-10 (Salmon et al. 2011): random bits as a function of (key, counter), so that the n-th number
 * needs none before it. */
#ifndef BRIG_DRIVER_SAMPLE_PHILOX_H
#define BRIG_DRIVER_SAMPLE_PHILOX_H

#include <stdint.h>

void brig_philox(const uint32_t counter[4], const uint32_t key[2], uint32_t ret[4]);

/* Number `index` of the stream `seed`: in [0, 1), a multiple of 2^-53. */
double brig_philox_uniform(uint64_t seed, uint64_t index);

#endif
