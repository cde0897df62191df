/*
 * The one door for heap memory: zeroed, aligned to 64 bytes, overflow checked, counted (so that a test can
 * show that a token allocates nothing).
 */
#ifndef BRIG_PROTO_BASE_MEM_H
#define BRIG_PROTO_BASE_MEM_H

#include <stddef.h>
#include <stdint.h>

/* n elements of `size` bytes, zeroed, 64-byte aligned; NULL when it overflows or memory is out. n or size 0
 * gives a pointer that may be freed and not read. */
void *brig_alloc(size_t n, size_t size);

/* NULL is allowed. */
void brig_free(void *p);

/* A copy of n bytes with a NUL after them; NULL when memory is out. Free with brig_free. */
char *brig_strndup(const char *s, size_t n);

/* Calls of brig_alloc so far in this process. */
uint64_t brig_alloc_count(void);

#endif
