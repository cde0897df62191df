/* GGUF: reading the head with every length checked against what remains of the file, before anything is read
 * or allocated for it. */
#include "proto/model/gguf.h"

#include <inttypes.h>
#include <string.h>

#include "proto/base/size.h"
#include "proto/model/private.h"

#define MAX_KEYS    (1u << 16)
#define MAX_TENSORS (1u << 20)
#define MAX_DEPTH   4
/* The smallest key with its value, and the smallest tensor row: what the counts are checked against. */
#define MIN_KEY_BYTES    13u
#define MIN_TENSOR_BYTES 32u
#define MAX_NAME_BYTES   65535u
/* Reading ahead: at least this much, at most that much; between them a quarter of what is there already. */
#define STEP_MIN (64u << 10)
#define STEP_MAX (4u << 20)

static const struct {
    const char *name;
    unsigned bytes;
} kinds[BRIG_GGUF_KIND_COUNT] = {
    [BRIG_GGUF_U8] = {"u8", 1},   [BRIG_GGUF_I8] = {"i8", 1},       [BRIG_GGUF_U16] = {"u16", 2},
    [BRIG_GGUF_I16] = {"i16", 2}, [BRIG_GGUF_U32] = {"u32", 4},     [BRIG_GGUF_I32] = {"i32", 4},
    [BRIG_GGUF_F32] = {"f32", 4}, [BRIG_GGUF_BOOL] = {"bool", 1},   [BRIG_GGUF_STRING] = {"string", 0},
    [BRIG_GGUF_U64] = {"u64", 8}, [BRIG_GGUF_ARRAY] = {"array", 0}, [BRIG_GGUF_I64] = {"i64", 8},
    [BRIG_GGUF_F64] = {"f64", 8},
};

unsigned brig_gguf_kind_bytes(uint32_t kind)
{
    return kind < BRIG_GGUF_KIND_COUNT ? kinds[kind].bytes : 0;
}

const char *brig_gguf_kind_name(uint32_t kind)
{
    return kind < BRIG_GGUF_KIND_COUNT ? kinds[kind].name : "unknown";
}

static int past_end(const struct brig_gguf_reader *r, uint64_t n)
{
    return brig_fail_set(r->fail, BRIG_EFORMAT,
                         "truncated or malformed: %.*s needs %" PRIu64 " bytes at byte %" PRIu64
                         ", the file has %" PRIu64,
                         (int)r->what.len, r->what.ptr, n, r->pos, r->file_bytes);
}

/* A kind of reading: n bytes from pos on are in memory afterwards. */
static int need(struct brig_gguf_reader *r, uint64_t n)
{
    if (brig_range_ok(r->pos, n, r->head->len))
        return 0;
    if (!brig_range_ok(r->pos, n, r->file_bytes))
        return past_end(r, n);
    uint64_t have = r->head->len, step = have / 4;
    step = step < STEP_MIN ? STEP_MIN : step > STEP_MAX ? STEP_MAX : step;
    uint64_t more = r->pos + n - have;
    if (more < step)
        more = step;
    if (more > r->file_bytes - have)
        more = r->file_bytes - have;
    int e = brig_buf_reserve(r->head, more);
    if (e == -BRIG_ELIMIT && more > r->pos + n - have) { /* near the cap: only what is asked for */
        more = r->pos + n - have;
        e = brig_buf_reserve(r->head, more);
    }
    if (e == -BRIG_ELIMIT)
        return brig_fail_set(r->fail, BRIG_ELIMIT, "its metadata are larger than %zu bytes", BRIG_BUF_MAX);
    if (e < 0)
        return brig_fail_set(r->fail, BRIG_ENOMEM, "no memory for %" PRIu64 " bytes of metadata",
                             have + more);
    e = brig_model_file_read(r->fd, r->head->data + have, more, have, r->fail);
    if (e < 0)
        return e;
    r->head->len = have + more;
    r->head->data[r->head->len] = '\0';
    return 0;
}

int brig_gguf_bytes(struct brig_gguf_reader *r, uint64_t n, struct brig_str *ret)
{
    int e = need(r, n);
    if (e < 0)
        return e;
    *ret = (struct brig_str){r->head->data + r->pos, (size_t)n};
    r->pos += n;
    return 0;
}

int brig_gguf_u32(struct brig_gguf_reader *r, uint32_t *ret)
{
    struct brig_str s;
    int e = brig_gguf_bytes(r, sizeof *ret, &s);
    if (e == 0)
        memcpy(ret, s.ptr, sizeof *ret);
    return e;
}

int brig_gguf_u64(struct brig_gguf_reader *r, uint64_t *ret)
{
    struct brig_str s;
    int e = brig_gguf_bytes(r, sizeof *ret, &s);
    if (e == 0)
        memcpy(ret, s.ptr, sizeof *ret);
    return e;
}

int brig_gguf_string(struct brig_gguf_reader *r, struct brig_str *ret)
{
    uint64_t n, start = r->pos;
    int e = brig_gguf_u64(r, &n);
    if (e == 0)
        e = brig_gguf_bytes(r, n, ret);
    if (e < 0)
        r->pos = start;
    return e;
}

int brig_gguf_array(struct brig_gguf_reader *r, uint32_t *ret_elem, uint64_t *ret_n)
{
    uint32_t elem;
    uint64_t n, start = r->pos;
    int e = brig_gguf_u32(r, &elem);
    if (e == 0)
        e = brig_gguf_u64(r, &n);
    if (e < 0) {
        r->pos = start;
        return e;
    }
    *ret_elem = elem;
    *ret_n = n;
    return 0;
}

static int unknown_kind(const struct brig_gguf_reader *r, uint32_t kind)
{
    return brig_fail_set(r->fail, BRIG_EFORMAT, "%.*s: a value of kind %u, which does not exist",
                         (int)r->what.len, r->what.ptr, kind);
}

/* An array whose head has not been read yet; depth arrays are around it. */
static int skip_array(struct brig_gguf_reader *r, unsigned depth)
{
    uint32_t elem;
    uint64_t n, bytes;
    struct brig_str s;
    int e = brig_gguf_array(r, &elem, &n);
    if (e < 0)
        return e;
    if (depth >= MAX_DEPTH)
        return brig_fail_set(r->fail, BRIG_EFORMAT, "%.*s: arrays inside arrays more than %d deep",
                             (int)r->what.len, r->what.ptr, MAX_DEPTH);
    if (elem >= BRIG_GGUF_KIND_COUNT)
        return unknown_kind(r, elem);
    /* A string takes 8 bytes or more, an array 12: fewer left than that is told at once, not after the walk.
     */
    unsigned size = kinds[elem].bytes;
    unsigned least = size > 0 ? size : elem == BRIG_GGUF_STRING ? 8 : 12;
    if (!brig_mul_u64(n, least, &bytes))
        bytes = UINT64_MAX;
    if (!brig_range_ok(r->pos, bytes, r->file_bytes))
        return past_end(r, bytes);
    if (size > 0)
        return brig_gguf_bytes(r, bytes, &s);
    for (uint64_t i = 0; i < n && e == 0; i++)
        e = elem == BRIG_GGUF_STRING ? brig_gguf_string(r, &s) : skip_array(r, depth + 1);
    return e;
}

int brig_gguf_skip(struct brig_gguf_reader *r, uint32_t kind)
{
    struct brig_str s;
    if (kind >= BRIG_GGUF_KIND_COUNT)
        return unknown_kind(r, kind);
    if (kind == BRIG_GGUF_ARRAY)
        return skip_array(r, 0);
    return kind == BRIG_GGUF_STRING ? brig_gguf_string(r, &s) : brig_gguf_bytes(r, kinds[kind].bytes, &s);
}

int brig_gguf_name(struct brig_gguf_reader *r, const char *kind, size_t most, struct brig_str *ret)
{
    struct brig_str s;
    int e = brig_gguf_string(r, &s);
    if (e < 0)
        return e;
    if (s.len == 0 || s.len > most)
        return brig_fail_set(r->fail, BRIG_EFORMAT,
                             "%s at byte %" PRIu64 " has a name of %zu bytes (1 to %zu)", kind,
                             r->pos - s.len, s.len, most);
    for (size_t i = 0; i < s.len; i++)
        if (s.ptr[i] < 0x20 || s.ptr[i] > 0x7e)
            return brig_fail_set(r->fail, BRIG_EFORMAT, "%s at byte %" PRIu64 " has a name that is not ASCII",
                                 kind, r->pos - s.len);
    *ret = s;
    return 0;
}

static int check_start(struct brig_gguf *g, struct brig_gguf_reader *r)
{
    struct brig_str magic;
    uint32_t version;
    int e;
    if ((e = brig_gguf_bytes(r, 4, &magic)) < 0)
        return e;
    if (memcmp(magic.ptr, "GGUF", 4) != 0)
        return brig_fail_set(r->fail, BRIG_EFORMAT, "wrong magic: a GGUF file begins with 'GGUF'");
    if ((e = brig_gguf_u32(r, &version)) < 0)
        return e;
    if (version != 0 && (version & 0xffffu) == 0)
        return brig_fail_set(r->fail, BRIG_EUNSUPPORTED,
                             "a big-endian GGUF file; only little-endian ones are read");
    if (version != 2 && version != 3)
        return brig_fail_set(r->fail, BRIG_EUNSUPPORTED, "GGUF version %u; versions 2 and 3 are read",
                             version);
    if ((e = brig_gguf_u64(r, &g->n_tensors)) < 0 || (e = brig_gguf_u64(r, &g->n_keys)) < 0)
        return e;
    uint64_t left = r->file_bytes - r->pos;
    if (g->n_keys > MAX_KEYS || g->n_keys > left / MIN_KEY_BYTES)
        return brig_fail_set(r->fail, BRIG_EFORMAT,
                             "it claims %" PRIu64 " metadata keys, more than fit or than %u", g->n_keys,
                             MAX_KEYS);
    if (g->n_tensors > MAX_TENSORS || g->n_tensors > left / MIN_TENSOR_BYTES)
        return brig_fail_set(r->fail, BRIG_EFORMAT, "it claims %" PRIu64 " tensors, more than fit or than %u",
                             g->n_tensors, MAX_TENSORS);
    return 0;
}

/* The lengths in one key and value, or one row of the tensor table. */
static int scan_key(struct brig_gguf_reader *r)
{
    struct brig_str key;
    uint32_t kind;
    int e = brig_gguf_name(r, "the metadata key", MAX_NAME_BYTES, &key);
    if (e < 0 || (e = brig_gguf_u32(r, &kind)) < 0)
        return e;
    return brig_gguf_skip(r, kind);
}

static int scan_tensor(struct brig_gguf_reader *r)
{
    struct brig_str name, rest;
    uint32_t n_dims;
    int e = brig_gguf_name(r, "the tensor", MAX_NAME_BYTES, &name);
    if (e < 0 || (e = brig_gguf_u32(r, &n_dims)) < 0)
        return e;
    return brig_gguf_bytes(r, (uint64_t)n_dims * 8 + 12, &rest); /* dims, type, offset */
}

int brig_gguf_scan(struct brig_gguf *g, int fd, uint64_t file_bytes, struct brig_fail *fail)
{
    struct brig_gguf_reader r = {fd, file_bytes, &g->head, 0, {"the file's start", 16}, fail};
    int e = check_start(g, &r);
    char what[64];
    for (uint64_t i = 0; i < g->n_keys && e == 0; i++) {
        int n = snprintf(what, sizeof what, "metadata key %" PRIu64 " of %" PRIu64, i + 1, g->n_keys);
        r.what = (struct brig_str){what, (size_t)n};
        e = scan_key(&r);
    }
    for (uint64_t i = 0; i < g->n_tensors && e == 0; i++) {
        int n = snprintf(what, sizeof what, "row %" PRIu64 " of %" PRIu64 " of the tensor table", i + 1,
                         g->n_tensors);
        r.what = (struct brig_str){what, (size_t)n};
        e = scan_tensor(&r);
    }
    if (e < 0)
        return e;
    g->head.len = r.pos; /* what was read ahead is not ours */
    return 0;
}
