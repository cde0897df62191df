/* A growing byte buffer with a cap. */
#include "proto/base/buf.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base/err.h"

void brig_buf_release(struct brig_buf *b)
{
    free(b->data);
    b->data = NULL;
    b->len = b->cap = 0;
}

void brig_buf_clear(struct brig_buf *b)
{
    b->len = 0;
    if (b->data != NULL)
        b->data[0] = '\0';
}

int brig_buf_reserve(struct brig_buf *b, size_t n)
{
    size_t max = b->max != 0 ? b->max : BRIG_BUF_MAX;
    if (n > max - b->len)
        return -BRIG_ELIMIT;
    size_t need = b->len + n + 1;
    if (need <= b->cap)
        return 0;
    size_t cap = b->cap < 128 ? 256 : b->cap * 2;
    if (cap < need)
        cap = need;
    char *p = realloc(b->data, cap);
    if (p == NULL)
        return -BRIG_ENOMEM;
    b->data = p;
    b->cap = cap;
    return 0;
}

int brig_buf_add(struct brig_buf *b, const void *bytes, size_t n)
{
    int r = brig_buf_reserve(b, n);
    if (r < 0)
        return r;
    if (n > 0)
        memcpy(b->data + b->len, bytes, n);
    b->len += n;
    b->data[b->len] = '\0';
    return 0;
}

int brig_buf_printf(struct brig_buf *b, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    if (n < 0)
        return -BRIG_EINTERNAL;
    int r = brig_buf_reserve(b, (size_t)n);
    if (r < 0)
        return r;
    va_start(ap, fmt);
    vsnprintf(b->data + b->len, (size_t)n + 1, fmt, ap);
    va_end(ap);
    b->len += (size_t)n;
    return 0;
}
