/*
 * Open addressing with linear probing, at most half full. Keys come from files, so the hash is seeded with
 * random bits: nobody can write a file whose strings all meet in one place.
 */
#include "driver/token/strmap.h"

#include <string.h>
#include <sys/random.h>

#include "proto/base/clock.h"
#include "proto/base/err.h"
#include "proto/base/mem.h"

#define NO_PAIR  UINT64_MAX
#define BATCH    64u
#define MULTIPLY 0x9fb21c651e98df25ull

static uint64_t random_seed(void)
{
    uint64_t seed;
    if (getrandom(&seed, sizeof seed, GRND_NONBLOCK) != (ssize_t)sizeof seed)
        seed = brig_clock_ns() * MULTIPLY;
    return seed;
}

static uint64_t mix(uint64_t h, uint64_t word)
{
    __uint128_t product = (__uint128_t)(h ^ word) * MULTIPLY;
    return (uint64_t)product ^ (uint64_t)(product >> 64) ^ h;
}

static uint64_t hash(const char *s, size_t n, uint64_t seed)
{
    uint64_t h = mix(seed, n), word;
    for (; n >= 8; s += 8, n -= 8) {
        memcpy(&word, s, 8);
        h = mix(h, word);
    }
    word = 0;
    if (n > 0)
        memcpy(&word, s, n);
    return mix(h, word);
}

/* A power of two, at least twice n. */
static uint64_t room_for(uint32_t n)
{
    uint64_t room = 16;
    while (room < (uint64_t)n * 2)
        room *= 2;
    return room;
}

int brig_strmap_init(struct brig_strmap *m, const struct brig_str *strings, uint32_t n)
{
    uint64_t room = room_for(n);
    *m = (struct brig_strmap){.strings = strings, .mask = room - 1, .seed = random_seed()};
    m->slots = brig_alloc(room, sizeof *m->slots);
    return m->slots != NULL ? 0 : -BRIG_ENOMEM;
}

void brig_strmap_release(struct brig_strmap *m)
{
    brig_free(m->slots);
    *m = (struct brig_strmap){0};
}

/* The slot that holds the key with this hash, or the free one where it would go. A slot's high half is the
 * hash's, so that strings are read only where they very likely match. */
static uint64_t *find_slot(const struct brig_strmap *m, const char *key, size_t n, uint64_t h)
{
    for (uint64_t at = h;; at++) {
        uint64_t *slot = &m->slots[at & m->mask];
        if (*slot == 0)
            return slot;
        if ((*slot ^ h) >> 32 != 0)
            continue;
        struct brig_str s = m->strings[(uint32_t)*slot - 1];
        if (s.len == n && (n == 0 || memcmp(s.ptr, key, n) == 0))
            return slot;
    }
}

static uint64_t *slot_of(const struct brig_strmap *m, const char *key, size_t n, uint64_t *ret_high)
{
    uint64_t h = hash(key, n, m->seed);
    *ret_high = h & 0xffffffff00000000u;
    return find_slot(m, key, n, h);
}

bool brig_strmap_add(struct brig_strmap *m, uint32_t index, uint32_t *ret_old)
{
    uint64_t h, *slot = slot_of(m, m->strings[index].ptr, m->strings[index].len, &h);
    if (*slot != 0) {
        *ret_old = (uint32_t)*slot - 1;
        return false;
    }
    *slot = h | (index + 1);
    return true;
}

void brig_strmap_replace(struct brig_strmap *m, uint32_t old, uint32_t index)
{
    uint64_t h, *slot = slot_of(m, m->strings[old].ptr, m->strings[old].len, &h);
    *slot = h | (index + 1);
}

uint32_t brig_strmap_get(const struct brig_strmap *m, const char *key, size_t n)
{
    uint64_t h, slot = *slot_of(m, key, n, &h);
    return slot == 0 ? BRIG_NO_ID : (uint32_t)slot - 1;
}

void brig_strmap_prefetch(const struct brig_strmap *m, struct brig_str key)
{
    __builtin_prefetch(&m->slots[hash(key.ptr, key.len, m->seed) & m->mask], 1);
}

/* Slots, then the strings' places, then the strings: each is asked for in one round and used in the next. */
static void get_batch(const struct brig_strmap *m, const struct brig_str *keys, size_t n, uint32_t *ret)
{
    uint64_t hashes[BATCH];
    for (size_t i = 0; i < n; i++) {
        hashes[i] = hash(keys[i].ptr, keys[i].len, m->seed);
        __builtin_prefetch(&m->slots[hashes[i] & m->mask]);
    }
    for (size_t i = 0; i < n; i++) {
        uint64_t slot = m->slots[hashes[i] & m->mask];
        if (slot != 0)
            __builtin_prefetch(&m->strings[(uint32_t)slot - 1]);
    }
    for (size_t i = 0; i < n; i++) {
        uint64_t slot = m->slots[hashes[i] & m->mask];
        if (slot != 0)
            __builtin_prefetch(m->strings[(uint32_t)slot - 1].ptr);
    }
    for (size_t i = 0; i < n; i++) {
        uint64_t slot = *find_slot(m, keys[i].ptr, keys[i].len, hashes[i]);
        ret[i] = slot == 0 ? BRIG_NO_ID : (uint32_t)slot - 1;
    }
}

void brig_strmap_get_many(const struct brig_strmap *m, const struct brig_str *keys, size_t n, uint32_t *ret)
{
    for (size_t at = 0; at < n; at += BATCH)
        get_batch(m, keys + at, n - at < BATCH ? n - at : BATCH, ret + at);
}

int brig_pairmap_init(struct brig_pairmap *m, uint32_t n)
{
    uint64_t room = room_for(n);
    *m = (struct brig_pairmap){.mask = room - 1, .seed = random_seed()};
    m->keys = brig_alloc(room, sizeof *m->keys);
    m->values = brig_alloc(room, sizeof *m->values);
    if (m->keys == NULL || m->values == NULL) {
        brig_pairmap_release(m);
        return -BRIG_ENOMEM;
    }
    memset(m->keys, 0xff, room * sizeof *m->keys);
    return 0;
}

void brig_pairmap_release(struct brig_pairmap *m)
{
    brig_free(m->keys);
    brig_free(m->values);
    *m = (struct brig_pairmap){0};
}

/* Where the pair is, or the free place where it would go. */
static uint64_t place_of(const struct brig_pairmap *m, uint64_t pair)
{
    uint64_t at = mix(m->seed, pair);
    while (m->keys[at & m->mask] != NO_PAIR && m->keys[at & m->mask] != pair)
        at++;
    return at & m->mask;
}

void brig_pairmap_prefetch(const struct brig_pairmap *m, uint32_t left, uint32_t right)
{
    uint64_t at = mix(m->seed, (uint64_t)left << 32 | right) & m->mask;
    __builtin_prefetch(&m->keys[at], 1);
    __builtin_prefetch(&m->values[at], 1);
}

void brig_pairmap_add(struct brig_pairmap *m, uint32_t left, uint32_t right, uint32_t value)
{
    uint64_t pair = (uint64_t)left << 32 | right, at = place_of(m, pair);
    if (m->keys[at] != NO_PAIR)
        return;
    m->keys[at] = pair;
    m->values[at] = value;
}

uint32_t brig_pairmap_get(const struct brig_pairmap *m, uint32_t left, uint32_t right)
{
    uint64_t at = place_of(m, (uint64_t)left << 32 | right);
    return m->keys[at] == NO_PAIR ? BRIG_NO_ID : m->values[at];
}
