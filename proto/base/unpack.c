/* A bounded msgpack reader. Tags: https://github.com/msgpack/msgpack/blob/master/spec.md */
#include "proto/base/unpack.h"

#include <string.h>

enum tag {
    TAG_FALSE = 0xc2,
    TAG_TRUE = 0xc3,
    TAG_BIN8 = 0xc4, /* then 16, 32 */
    TAG_F32 = 0xca,
    TAG_F64 = 0xcb,
    TAG_U8 = 0xcc,      /* then 16, 32, 64 */
    TAG_I8 = 0xd0,      /* then 16, 32, 64 */
    TAG_STR8 = 0xd9,    /* then 16, 32 */
    TAG_ARRAY16 = 0xdc, /* then 32 */
};

static bool fail(struct brig_unpack *u)
{
    u->bad = true;
    return false;
}

static bool take_tag(struct brig_unpack *u, uint8_t *tag)
{
    if (u->bad || u->n == 0)
        return fail(u);
    *tag = *u->p++;
    u->n--;
    return true;
}

/* A big-endian number of 1, 2, 4 or 8 bytes. */
static bool take_be(struct brig_unpack *u, unsigned width, uint64_t *ret)
{
    uint64_t v = 0;
    if (u->n < width)
        return fail(u);
    for (unsigned i = 0; i < width; i++)
        v = v << 8 | u->p[i];
    u->p += width;
    u->n -= width;
    *ret = v;
    return true;
}

bool brig_unpack_u64(struct brig_unpack *u, uint64_t *ret)
{
    uint8_t tag;
    *ret = 0;
    if (!take_tag(u, &tag))
        return false;
    if (tag < 0x80) {
        *ret = tag;
        return true;
    }
    if (tag < TAG_U8 || tag > TAG_U8 + 3)
        return fail(u);
    return take_be(u, 1u << (tag - TAG_U8), ret);
}

bool brig_unpack_u32(struct brig_unpack *u, uint32_t *ret)
{
    uint64_t v;
    *ret = 0;
    if (!brig_unpack_u64(u, &v))
        return false;
    if (v > UINT32_MAX)
        return fail(u);
    *ret = (uint32_t)v;
    return true;
}

bool brig_unpack_i64(struct brig_unpack *u, int64_t *ret)
{
    uint64_t v;
    *ret = 0;
    if (u->bad || u->n == 0)
        return fail(u);
    uint8_t tag = u->p[0];
    if (tag >= 0xe0) {
        *ret = (int8_t)tag;
        u->p++;
        u->n--;
        return true;
    }
    if (tag >= TAG_I8 && tag <= TAG_I8 + 3) {
        unsigned width = 1u << (tag - TAG_I8);
        u->p++;
        u->n--;
        if (!take_be(u, width, &v))
            return false;
        unsigned unused = 64 - 8 * width;
        *ret = (int64_t)(v << unused) >> unused;
        return true;
    }
    if (!brig_unpack_u64(u, &v))
        return false;
    if (v > INT64_MAX)
        return fail(u);
    *ret = (int64_t)v;
    return true;
}

bool brig_unpack_bool(struct brig_unpack *u, bool *ret)
{
    uint8_t tag;
    *ret = false;
    if (!take_tag(u, &tag))
        return false;
    if (tag != TAG_FALSE && tag != TAG_TRUE)
        return fail(u);
    *ret = tag == TAG_TRUE;
    return true;
}

bool brig_unpack_f32(struct brig_unpack *u, float *ret)
{
    uint8_t tag;
    uint64_t v;
    *ret = 0;
    if (!take_tag(u, &tag))
        return false;
    if (tag != TAG_F32 || !take_be(u, 4, &v))
        return fail(u);
    uint32_t bits = (uint32_t)v;
    memcpy(ret, &bits, sizeof bits);
    return true;
}

bool brig_unpack_f64(struct brig_unpack *u, double *ret)
{
    uint64_t v;
    *ret = 0;
    if (u->bad || u->n == 0)
        return fail(u);
    if (u->p[0] == TAG_F32) {
        float f;
        bool ok = brig_unpack_f32(u, &f);
        *ret = (double)f;
        return ok;
    }
    uint8_t tag;
    if (!take_tag(u, &tag) || tag != TAG_F64 || !take_be(u, 8, &v))
        return fail(u);
    memcpy(ret, &v, sizeof v);
    return true;
}

bool brig_unpack_array(struct brig_unpack *u, uint32_t *ret_count)
{
    uint8_t tag;
    uint64_t count;
    *ret_count = 0;
    if (!take_tag(u, &tag))
        return false;
    if ((tag & 0xf0) == 0x90)
        count = tag & 0x0f;
    else if (tag != TAG_ARRAY16 && tag != TAG_ARRAY16 + 1)
        return fail(u);
    else if (!take_be(u, 2u << (tag - TAG_ARRAY16), &count))
        return false;
    if (count > u->n)
        return fail(u);
    *ret_count = (uint32_t)count;
    return true;
}

/* The length after the tag of a bin or str, then that many bytes. */
static bool take_bytes(struct brig_unpack *u, unsigned length_width, uint64_t length, const uint8_t **ret,
                       size_t *ret_n)
{
    if (length_width != 0 && !take_be(u, length_width, &length))
        return false;
    if (length > u->n)
        return fail(u);
    *ret = u->p;
    *ret_n = (size_t)length;
    u->p += length;
    u->n -= (size_t)length;
    return true;
}

bool brig_unpack_bin(struct brig_unpack *u, const uint8_t **ret, size_t *ret_n)
{
    uint8_t tag;
    *ret = NULL;
    *ret_n = 0;
    if (!take_tag(u, &tag))
        return false;
    if (tag < TAG_BIN8 || tag > TAG_BIN8 + 2)
        return fail(u);
    return take_bytes(u, 1u << (tag - TAG_BIN8), 0, ret, ret_n);
}

bool brig_unpack_str(struct brig_unpack *u, const char **ret, size_t *ret_n)
{
    uint8_t tag;
    const uint8_t *bytes = NULL;
    *ret = NULL;
    *ret_n = 0;
    if (!take_tag(u, &tag))
        return false;
    bool ok;
    if ((tag & 0xe0) == 0xa0)
        ok = take_bytes(u, 0, tag & 0x1f, &bytes, ret_n);
    else if (tag >= TAG_STR8 && tag <= TAG_STR8 + 2)
        ok = take_bytes(u, 1u << (tag - TAG_STR8), 0, &bytes, ret_n);
    else
        return fail(u);
    *ret = (const char *)bytes;
    return ok;
}
