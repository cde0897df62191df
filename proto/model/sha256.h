/*
 * SHA-256 (FIPS 180-4). mbed TLS has one too; this one uses the processor's instructions where there are any,
 * for opening a model should cost a few milliseconds, most of which are this hash.
 */
#ifndef BRIG_PROTO_MODEL_SHA256_H
#define BRIG_PROTO_MODEL_SHA256_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BRIG_SHA256_BYTES 32

struct brig_sha256 {
    uint32_t state[8];
    uint8_t block[64]; /* what does not fill a block yet */
    uint64_t n_bytes;
    bool fast; /* by the processor's instructions */
};

void brig_sha256_init(struct brig_sha256 *s);
void brig_sha256_add(struct brig_sha256 *s, const void *bytes, size_t n);
void brig_sha256_finish(struct brig_sha256 *s, uint8_t out[BRIG_SHA256_BYTES]);

/* For tests: the portable way only, in place of init. */
void brig_sha256_init_portable(struct brig_sha256 *s);

#endif
