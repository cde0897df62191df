/*
 * A reader of msgpack that allocates nothing and never reads outside its bytes: for headers, control
 * messages and slice descriptions, whose fields come in a fixed order. Failure is sticky: read all fields,
 * then ask `bad` once. The few kinds that this code base writes are all that it knows.
 */
#ifndef BRIG_PROTO_BASE_UNPACK_H
#define BRIG_PROTO_BASE_UNPACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct brig_unpack {
    const uint8_t *p; /* the next byte */
    size_t n;         /* bytes left */
    bool bad;         /* something was cut short or of another kind than asked */
};

static inline struct brig_unpack brig_unpack_of(const void *bytes, size_t n)
{
    return (struct brig_unpack){.p = (const uint8_t *)bytes, .n = n};
}

/* Each returns true when it read what was asked; else it sets bad and *ret is 0 (NULL, false). An integer
 * that does not fit *ret is bad, whatever width it was written with. */
bool brig_unpack_u64(struct brig_unpack *u, uint64_t *ret);
bool brig_unpack_u32(struct brig_unpack *u, uint32_t *ret);
bool brig_unpack_i64(struct brig_unpack *u, int64_t *ret);
bool brig_unpack_bool(struct brig_unpack *u, bool *ret);
bool brig_unpack_f32(struct brig_unpack *u, float *ret);
bool brig_unpack_f64(struct brig_unpack *u, double *ret); /* takes a float of 32 bits too */

/* The head of an array: how many elements follow. A count larger than the bytes left is bad, for each element
 * takes one at least: so a loop over count is bounded by the message. */
bool brig_unpack_array(struct brig_unpack *u, uint32_t *ret_count);

/* Borrowed bytes, inside the message. A string is not checked for UTF-8 or NUL. */
bool brig_unpack_bin(struct brig_unpack *u, const uint8_t **ret, size_t *ret_n);
bool brig_unpack_str(struct brig_unpack *u, const char **ret, size_t *ret_n);

/* Nothing was bad and nothing is left. */
static inline bool brig_unpack_done(const struct brig_unpack *u)
{
    return !u->bad && u->n == 0;
}

#endif
