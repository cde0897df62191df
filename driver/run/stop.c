/* Stop strings, with what may begin one held back. */
#include "driver/run/stop.h"

#include <string.h>

#include "proto/base/err.h"

void brig_stop_init(struct brig_stop *s, const char *const *strings, unsigned n_strings)
{
    *s = (struct brig_stop){.strings = strings, .n_strings = n_strings};
}

void brig_stop_release(struct brig_stop *s)
{
    brig_buf_release(&s->held);
}

/* Does a stop string stand at p whole (1), might one begin there (0: the text ends inside it), or not (-1).
 */
static int at(const struct brig_stop *s, const char *p, size_t left)
{
    int best = -1;
    for (unsigned i = 0; i < s->n_strings; i++) {
        size_t len = strlen(s->strings[i]);
        if (memcmp(p, s->strings[i], len < left ? len : left) != 0)
            continue;
        if (len <= left)
            return 1;
        best = 0;
    }
    return best;
}

int brig_stop_add(struct brig_stop *s, const char *text, size_t n, struct brig_buf *out)
{
    if (s->hit || n == 0)
        return 0;
    int r = brig_buf_add(&s->held, text, n);
    if (r < 0)
        return r;
    size_t sure = s->held.len; /* the first place that may begin a stop string */
    for (size_t i = 0; i < s->held.len; i++) {
        int found = at(s, s->held.data + i, s->held.len - i);
        if (found < 0)
            continue;
        if (i < sure)
            sure = i;
        if (found == 1) {
            s->hit = true;
            sure = i; /* a whole one ends the text here, whatever an earlier half might have become */
            break;
        }
    }
    r = brig_buf_add(out, s->held.data, sure);
    if (r < 0)
        return r;
    memmove(s->held.data, s->held.data + sure, s->held.len - sure + 1);
    s->held.len -= sure;
    return 0;
}

int brig_stop_finish(struct brig_stop *s, struct brig_buf *out)
{
    int r = s->hit ? 0 : brig_buf_add(out, s->held.data, s->held.len);
    brig_buf_clear(&s->held);
    return r;
}
