/* A borrowed run of bytes, not NUL-terminated. */
#ifndef BRIG_PROTO_BASE_STR_H
#define BRIG_PROTO_BASE_STR_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

struct brig_str {
    const char *ptr;
    size_t len;
};

static inline bool brig_str_eq(struct brig_str a, const char *b)
{
    return a.len == strlen(b) && memcmp(a.ptr, b, a.len) == 0;
}

#endif
