/* Spaces and bytes as SentencePiece spells them. */
#include "driver/token/space.h"

bool brig_is_space(const char *s, size_t n)
{
    return n >= BRIG_SPACE_BYTES && memcmp(s, BRIG_SPACE, BRIG_SPACE_BYTES) == 0;
}

bool brig_crosses_words(struct brig_str s)
{
    for (size_t i = 1; i + BRIG_SPACE_BYTES <= s.len; i++)
        if (brig_is_space(s.ptr + i, s.len - i) &&
            !(i >= BRIG_SPACE_BYTES && brig_is_space(s.ptr + i - BRIG_SPACE_BYTES, BRIG_SPACE_BYTES)))
            return true;
    return false;
}

size_t brig_word(const char *s, size_t n)
{
    size_t i = 0;
    while (brig_is_space(s + i, n - i))
        i += BRIG_SPACE_BYTES;
    while (i < n && !brig_is_space(s + i, n - i))
        i++;
    return i;
}

static int hex_digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

int brig_byte_of_spelling(struct brig_str s)
{
    if (s.len != 6 || memcmp(s.ptr, "<0x", 3) != 0 || s.ptr[5] != '>')
        return -1;
    int high = hex_digit(s.ptr[3]), low = hex_digit(s.ptr[4]);
    return high < 0 || low < 0 ? -1 : high * 16 + low;
}

int brig_space_piece(struct brig_str s, struct brig_buf *out)
{
    int r = 0;
    for (size_t i = 0; i < s.len && r == 0;) {
        bool space = brig_is_space(s.ptr + i, s.len - i);
        r = space ? brig_buf_add(out, " ", 1) : brig_buf_add(out, s.ptr + i, 1);
        i += space ? BRIG_SPACE_BYTES : 1;
    }
    return r;
}
