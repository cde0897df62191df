/* The characters of bytes. */
#include "driver/token/bytechars.h"

#include <stdbool.h>
#include <string.h>

#include "driver/token/utf8.h"

/* Printable Latin-1 stands for itself; the other bytes, in order, are U+0100 and so on. */
void brig_bytechars_init(struct brig_bytechars *c)
{
    memset(c->byte_of, 0xff, sizeof c->byte_of);
    uint16_t next = 0x100;
    for (uint16_t b = 0; b < 256; b++) {
        bool itself = (b >= 0x21 && b <= 0x7e) || (b >= 0xa1 && b <= 0xac) || b >= 0xae;
        c->char_of[b] = itself ? b : next++;
        c->byte_of[c->char_of[b]] = (int16_t)b;
    }
}

size_t brig_bytechar_spell(const struct brig_bytechars *c, uint32_t byte, char ret[2])
{
    unsigned point = c->char_of[byte & 0xff];
    if (point < 0x80) {
        ret[0] = (char)point;
        return 1;
    }
    ret[0] = (char)(0xc0 | point >> 6);
    ret[1] = (char)(0x80 | (point & 0x3f));
    return 2;
}

int brig_bytechars_piece(const struct brig_bytechars *c, const char *s, size_t n, struct brig_buf *out)
{
    size_t start = out->len;
    for (size_t i = 0; i < n;) {
        int step = brig_utf8_step(s + i, n - i);
        uint32_t point = step > 0 ? brig_utf8_code_point(s + i, step) : BRIG_N_BYTECHARS;
        if (point >= BRIG_N_BYTECHARS || c->byte_of[point] < 0) { /* it means itself */
            out->len = start;
            return brig_buf_add(out, s, n);
        }
        char byte = (char)c->byte_of[point];
        int r = brig_buf_add(out, &byte, 1);
        if (r < 0)
            return r;
        i += (size_t)step;
    }
    return 0;
}
