/* Streaming decode: bytes of tokens in, text that holds only whole characters out. */
#include "driver/token/tokenizer.h"

#include <string.h>

#include "driver/token/utf8.h"

static int replace(struct brig_buf *out)
{
    return brig_buf_add(out, BRIG_UTF8_REPLACEMENT, BRIG_UTF8_REPLACEMENT_BYTES);
}

/* One more byte for a character that has begun. */
static int add_held(struct brig_stream *s, char byte, struct brig_buf *out)
{
    s->held[s->n_held++] = (unsigned char)byte;
    while (s->n_held > 0) {
        int step = brig_utf8_step((const char *)s->held, s->n_held);
        if (step == 0)
            return 0;
        unsigned gone = (unsigned)(step > 0 ? step : -step);
        int r = step > 0 ? brig_buf_add(out, s->held, gone) : replace(out);
        if (r < 0)
            return r;
        s->n_held -= gone;
        memmove(s->held, s->held + gone, s->n_held);
    }
    return 0;
}

int brig_stream_add(struct brig_stream *s, const char *bytes, size_t n, struct brig_buf *out)
{
    size_t i = 0;
    while (i < n) {
        if (s->n_held > 0) {
            int r = add_held(s, bytes[i++], out);
            if (r < 0)
                return r;
            continue;
        }
        size_t whole = i;
        int step = 1;
        while (whole < n && (step = brig_utf8_step(bytes + whole, n - whole)) > 0)
            whole += (size_t)step;
        int r = brig_buf_add(out, bytes + i, whole - i);
        i = whole;
        if (r == 0 && step < 0) {
            r = replace(out);
            i += (size_t)-step;
        } else if (r == 0 && i < n) {
            s->n_held = (unsigned)(n - i); /* at most three bytes begin a character */
            memcpy(s->held, bytes + i, n - i);
            i = n;
        }
        if (r < 0)
            return r;
    }
    return 0;
}

int brig_stream_finish(struct brig_stream *s, struct brig_buf *out)
{
    if (s->n_held == 0)
        return 0;
    s->n_held = 0; /* what is held is always one beginning, so one replacement */
    return replace(out);
}
