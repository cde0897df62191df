/* The description as bytes and back: one table says where each field is and how it is written. */
#include "proto/model/desc_wire.h"

#include <stddef.h>
#include <string.h>

enum kind { WHOLE, FLOAT, BOOL };

struct field {
    enum kind kind;
    size_t at;
};

#define FIELD(kind, name)                                                                                    \
    {                                                                                                        \
        kind, offsetof(struct brig_desc, name)                                                               \
    }

/* An enumeration is written as its number. Any change here raises the version of the slice description. */
static const struct field fields[] = {
    FIELD(WHOLE, n_layers),    FIELD(WHOLE, hidden),         FIELD(WHOLE, n_heads),
    FIELD(WHOLE, n_kv_heads),  FIELD(WHOLE, head_dim),       FIELD(WHOLE, ffn),
    FIELD(WHOLE, vocab),       FIELD(WHOLE, ctx_trained),    FIELD(WHOLE, norm),
    FIELD(FLOAT, norm_eps),    FIELD(FLOAT, attn_scale),     FIELD(BOOL, tied),
    FIELD(BOOL, qkv_bias),     FIELD(BOOL, out_bias),        FIELD(BOOL, mlp_bias),
    FIELD(BOOL, post_norms),   FIELD(WHOLE, qk_norm),        FIELD(FLOAT, clip_qkv),
    FIELD(WHOLE, mlp),         FIELD(FLOAT, embed_scale),    FIELD(BOOL, learned_positions),
    FIELD(WHOLE, window),      FIELD(WHOLE, rope),           FIELD(WHOLE, rope_dims),
    FIELD(FLOAT, rope_base),   FIELD(FLOAT, rope_linear),    FIELD(FLOAT, rope_windowed_base),
    FIELD(FLOAT, rope_mscale), FIELD(WHOLE, n_rope_factors), FIELD(WHOLE, rope_long_from),
    FIELD(WHOLE, n_experts),   FIELD(WHOLE, n_experts_used), FIELD(WHOLE, expert_ffn),
    FIELD(WHOLE, expert_norm),
};

#define N_FIELDS (sizeof fields / sizeof fields[0])
#define N_LISTS  3u /* layer_flags as bytes, rope_factors, rope_long_factors */

_Static_assert(sizeof(enum brig_rope) == sizeof(uint32_t), "enumerations are read and written as u32");

static int pack_field(msgpack_packer *p, const char *from, enum kind kind)
{
    uint32_t whole;
    float number;
    switch (kind) {
    case WHOLE:
        memcpy(&whole, from, sizeof whole);
        return msgpack_pack_uint32(p, whole);
    case FLOAT:
        memcpy(&number, from, sizeof number);
        return msgpack_pack_float(p, number);
    default:
        return *(const bool *)from ? msgpack_pack_true(p) : msgpack_pack_false(p);
    }
}

static int pack_floats(msgpack_packer *p, const float *from, uint32_t n)
{
    int r = msgpack_pack_array(p, n);
    for (uint32_t i = 0; i < n && r == 0; i++)
        r = msgpack_pack_float(p, from[i]);
    return r;
}

int brig_desc_pack(msgpack_packer *p, const struct brig_desc *d)
{
    size_t n = strlen(d->arch);
    int r = msgpack_pack_array(p, 1 + N_FIELDS + N_LISTS);
    r = r != 0 ? r : msgpack_pack_str(p, n);
    r = r != 0 ? r : msgpack_pack_str_body(p, d->arch, n);
    for (unsigned i = 0; i < N_FIELDS && r == 0; i++)
        r = pack_field(p, (const char *)d + fields[i].at, fields[i].kind);
    r = r != 0 ? r : msgpack_pack_bin(p, d->n_layers);
    r = r != 0 ? r : msgpack_pack_bin_body(p, d->layer_flags, d->n_layers);
    r = r != 0 ? r : pack_floats(p, d->rope_factors, d->n_rope_factors);
    return r != 0 ? r : pack_floats(p, d->rope_long_factors, d->rope_long_from != 0 ? d->n_rope_factors : 0);
}

static bool unpack_field(struct brig_unpack *u, char *to, enum kind kind)
{
    uint32_t whole;
    float number;
    switch (kind) {
    case WHOLE:
        if (!brig_unpack_u32(u, &whole))
            return false;
        memcpy(to, &whole, sizeof whole);
        return true;
    case FLOAT:
        if (!brig_unpack_f32(u, &number))
            return false;
        memcpy(to, &number, sizeof number);
        return true;
    default:
        return brig_unpack_bool(u, (bool *)to);
    }
}

static bool unpack_floats(struct brig_unpack *u, float *to, uint32_t n)
{
    uint32_t found;
    if (!brig_unpack_array(u, &found) || found != n || n > BRIG_MAX_ROPE_PAIRS)
        return false;
    for (uint32_t i = 0; i < n; i++)
        if (!brig_unpack_f32(u, &to[i]))
            return false;
    return true;
}

static bool unpack_lists(struct brig_unpack *u, struct brig_desc *d)
{
    const uint8_t *flags;
    size_t n;
    if (!brig_unpack_bin(u, &flags, &n) || n != d->n_layers || n > sizeof d->layer_flags)
        return false;
    memcpy(d->layer_flags, flags, n);
    return unpack_floats(u, d->rope_factors, d->n_rope_factors) &&
           unpack_floats(u, d->rope_long_factors, d->rope_long_from != 0 ? d->n_rope_factors : 0);
}

bool brig_desc_unpack(struct brig_unpack *u, struct brig_desc *ret)
{
    const char *arch;
    size_t arch_bytes;
    uint32_t n;
    struct brig_desc d = {0};
    if (!brig_unpack_array(u, &n) || n != 1 + N_FIELDS + N_LISTS || !brig_unpack_str(u, &arch, &arch_bytes) ||
        arch_bytes >= sizeof d.arch)
        return false;
    memcpy(d.arch, arch, arch_bytes); /* the rest is zero */
    for (unsigned i = 0; i < N_FIELDS; i++)
        if (!unpack_field(u, (char *)&d + fields[i].at, fields[i].kind))
            return false;
    if (!unpack_lists(u, &d))
        return false;
    *ret = d;
    return true;
}
