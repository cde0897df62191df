/* A message is NNG's own: what was received is sent on without a copy. */
#include "proto/link/parts.h"

#include <string.h>

static nng_msg *nng_of(const struct brig_msg *m)
{
    return (nng_msg *)(uintptr_t)m;
}

struct brig_msg *brig_msg_new(size_t n)
{
    nng_msg *m;
    return nng_msg_alloc(&m, n) == 0 ? (struct brig_msg *)m : NULL;
}

void brig_msg_free(struct brig_msg *m)
{
    if (m != NULL)
        nng_msg_free(nng_of(m));
}

void *brig_msg_data(struct brig_msg *m)
{
    return nng_msg_body(nng_of(m));
}

size_t brig_msg_len(const struct brig_msg *m)
{
    return nng_msg_len(nng_of(m));
}

struct brig_msg *brig_msg_dup(const struct brig_msg *m)
{
    struct brig_msg *copy = brig_msg_new(brig_msg_len(m));
    if (copy != NULL)
        memcpy(brig_msg_data(copy), nng_msg_body(nng_of(m)), brig_msg_len(m));
    return copy;
}
