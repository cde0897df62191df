/* UTF-8 by the byte, as table 3-7 of the Unicode standard has it. */
#include "driver/token/utf8.h"

int brig_utf8_step(const char *s, size_t n)
{
    unsigned char lead = (unsigned char)s[0], low = 0x80, high = 0xbf;
    int need;
    if (lead < 0x80)
        return 1;
    if (lead < 0xc2 || lead > 0xf4)
        return -1;
    need = lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
    /* The second byte is narrower after four leads: no overlong forms, no surrogates, nothing past U+10FFFF.
     */
    if (lead == 0xe0)
        low = 0xa0;
    else if (lead == 0xed)
        high = 0x9f;
    else if (lead == 0xf0)
        low = 0x90;
    else if (lead == 0xf4)
        high = 0x8f;
    for (int i = 1; i < need; i++) {
        if ((size_t)i >= n)
            return 0;
        if ((unsigned char)s[i] < low || (unsigned char)s[i] > high)
            return -i;
        low = 0x80;
        high = 0xbf;
    }
    return need;
}

bool brig_utf8_valid(const char *s, size_t n)
{
    size_t i = 0;
    while (i < n) {
        int step = brig_utf8_step(s + i, n - i);
        if (step <= 0)
            return false;
        i += (size_t)step;
    }
    return true;
}

uint32_t brig_utf8_code_point(const char *s, int n)
{
    static const unsigned char lead_mask[5] = {0, 0x7f, 0x1f, 0x0f, 0x07};
    uint32_t c = (unsigned char)s[0] & lead_mask[n];
    for (int i = 1; i < n; i++)
        c = c << 6 | ((unsigned char)s[i] & 0x3fu);
    return c;
}

size_t brig_utf8_before(const char *s, size_t n)
{
    size_t at = n - 1;
    while (at > 0 && ((unsigned char)s[at] & 0xc0) == 0x80)
        at--;
    return at;
}

bool brig_utf8_is_white(uint32_t c)
{
    return (c >= 0x09 && c <= 0x0d) || c == 0x20 || c == 0x85 || c == 0xa0 || c == 0x1680 ||
           (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 || c == 0x202f || c == 0x205f ||
           c == 0x3000;
}
