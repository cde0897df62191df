/* A growing byte buffer with a cap that cannot be passed. data is always followed by a NUL once anything was
 * added, so text can be read as a C string. */
#ifndef BRIG_PROTO_BASE_BUF_H
#define BRIG_PROTO_BASE_BUF_H

#include <stddef.h>

struct brig_buf {
    char *data; /* NULL while empty */
    size_t len;
    size_t cap;
    size_t max; /* len never passes it; 0 means BRIG_BUF_MAX */
};

#define BRIG_BUF_MAX ((size_t)1 << 30)

/* {0} is a valid empty buffer. Release frees; clear keeps the memory and sets len to 0. */
void brig_buf_release(struct brig_buf *b);
void brig_buf_clear(struct brig_buf *b);

/* 0, -BRIG_ENOMEM or -BRIG_ELIMIT; on failure the buffer is unchanged. */
int brig_buf_add(struct brig_buf *b, const void *bytes, size_t n);
int brig_buf_printf(struct brig_buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Make room for n more bytes without changing len. */
int brig_buf_reserve(struct brig_buf *b, size_t n);

#endif
