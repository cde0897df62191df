/* Two maps that a byte-pair tokenizer is built on: spelling -> id, and pair of ids -> rank of its merge. */
#ifndef BRIG_DRIVER_TOKEN_STRMAP_H
#define BRIG_DRIVER_TOKEN_STRMAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/base/str.h"

#define BRIG_NO_ID UINT32_MAX

struct brig_strmap {
    const struct brig_str *strings; /* borrowed: entry i has the key strings[i] */
    uint64_t *slots;                /* high half of the hash << 32 | index + 1; 0 free */
    uint64_t mask, seed;
};

/* Room for n entries; 0 or -BRIG_ENOMEM. Release accepts a zeroed map. */
int brig_strmap_init(struct brig_strmap *m, const struct brig_str *strings, uint32_t n);
void brig_strmap_release(struct brig_strmap *m);
/* At most as many calls as the room was made for. false, and nothing added, when the key is there already:
 * *ret_old is its entry. */
bool brig_strmap_add(struct brig_strmap *m, uint32_t index, uint32_t *ret_old);
/* Entry `old` (same key) gives way to `index`. */
void brig_strmap_replace(struct brig_strmap *m, uint32_t old, uint32_t index);
uint32_t brig_strmap_get(const struct brig_strmap *m, const char *key, size_t n); /* BRIG_NO_ID: none */
/* The same for n keys, whose waits for memory overlap: several times as fast where the map is larger than the
 * caches. */
void brig_strmap_get_many(const struct brig_strmap *m, const struct brig_str *keys, size_t n, uint32_t *ret);
/* An add or a get of this key comes soon. */
void brig_strmap_prefetch(const struct brig_strmap *m, struct brig_str key);

struct brig_pairmap {
    uint64_t *keys; /* left << 32 | right */
    uint32_t *values;
    uint64_t mask, seed;
};

int brig_pairmap_init(struct brig_pairmap *m, uint32_t n);
void brig_pairmap_release(struct brig_pairmap *m);
/* Keeps the first value of a pair. */
void brig_pairmap_add(struct brig_pairmap *m, uint32_t left, uint32_t right, uint32_t value);
void brig_pairmap_prefetch(const struct brig_pairmap *m, uint32_t left, uint32_t right);
uint32_t brig_pairmap_get(const struct brig_pairmap *m, uint32_t left, uint32_t right); /* BRIG_NO_ID: none */

#endif
