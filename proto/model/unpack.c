/* A cursor over msgpack bytes. */
#include "proto/model/unpack.h"

#include <string.h>

/* n bytes of a big-endian number. */
static bool take_number(struct brig_unpack *u, unsigned n, uint64_t *ret)
{
    uint64_t v = 0;
    if (n > u->left)
        return false;
    for (unsigned i = 0; i < n; i++)
        v = v << 8 | u->p[i];
    u->p += n;
    u->left -= n;
    *ret = v;
    return true;
}

static bool take_tag(struct brig_unpack *u, uint8_t *ret)
{
    uint64_t v;
    if (!take_number(u, 1, &v))
        return false;
    *ret = (uint8_t)v;
    return true;
}

static bool take_bytes(struct brig_unpack *u, uint64_t n, struct brig_str *ret)
{
    if (n > u->left)
        return false;
    *ret = (struct brig_str){(const char *)u->p, (size_t)n};
    u->p += n;
    u->left -= (size_t)n;
    return true;
}

bool brig_unpack_u64(struct brig_unpack *u, uint64_t *ret)
{
    uint8_t tag;
    if (!take_tag(u, &tag))
        return false;
    if (tag < 0x80) { /* positive fixint */
        *ret = tag;
        return true;
    }
    return tag >= 0xcc && tag <= 0xcf && take_number(u, 1u << (tag - 0xcc), ret); /* uint 8 to 64 */
}

bool brig_unpack_f32(struct brig_unpack *u, float *ret)
{
    uint8_t tag;
    uint64_t bits;
    if (!take_tag(u, &tag) || tag != 0xca || !take_number(u, 4, &bits))
        return false;
    uint32_t low = (uint32_t)bits;
    memcpy(ret, &low, sizeof *ret);
    return true;
}

bool brig_unpack_bool(struct brig_unpack *u, bool *ret)
{
    uint8_t tag;
    if (!take_tag(u, &tag) || (tag != 0xc2 && tag != 0xc3))
        return false;
    *ret = tag == 0xc3;
    return true;
}

bool brig_unpack_str(struct brig_unpack *u, struct brig_str *ret)
{
    uint8_t tag;
    uint64_t n;
    if (!take_tag(u, &tag))
        return false;
    if ((tag & 0xe0) == 0xa0) /* fixstr */
        n = tag & 0x1f;
    else if (tag < 0xd9 || tag > 0xdb || !take_number(u, 1u << (tag - 0xd9), &n))
        return false;
    return take_bytes(u, n, ret);
}

bool brig_unpack_bin(struct brig_unpack *u, struct brig_str *ret)
{
    uint8_t tag;
    uint64_t n;
    return take_tag(u, &tag) && tag >= 0xc4 && tag <= 0xc6 && take_number(u, 1u << (tag - 0xc4), &n) &&
           take_bytes(u, n, ret);
}

bool brig_unpack_array(struct brig_unpack *u, uint32_t *ret_n)
{
    uint8_t tag;
    uint64_t n;
    if (!take_tag(u, &tag))
        return false;
    if ((tag & 0xf0) == 0x90) /* fixarray */
        n = tag & 0x0f;
    else if ((tag != 0xdc && tag != 0xdd) || !take_number(u, tag == 0xdc ? 2 : 4, &n))
        return false;
    if (n > u->left) /* each element takes a byte at least */
        return false;
    *ret_n = (uint32_t)n;
    return true;
}
