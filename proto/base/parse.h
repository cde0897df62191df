/* Text to numbers: the whole string must be the number; nothing is silently cut. */
#ifndef BRIG_PROTO_BASE_PARSE_H
#define BRIG_PROTO_BASE_PARSE_H

#include <stdbool.h>
#include <stdint.h>

bool brig_parse_u64(const char *s, uint64_t *ret); /* decimal digits only */
bool brig_parse_f64(const char *s, double *ret);   /* finite only: no nan, no inf */

/* Bytes: a number, and K, M, G or T (small ones too) for powers of 1024 if one stands behind it; at most
 * 2^50. */
bool brig_parse_size(const char *s, uint64_t *ret);

#endif
