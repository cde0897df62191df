/*
 * Control messages as bytes: written with the msgpack library, read with the bounded reader. Driver and shard
 * both use both sides.
 */
#include "proto/wire/control.h"

#include <stdio.h>
#include <string.h>

#include <msgpack.h>

#include "proto/base/unpack.h"
#include "proto/base/version.h"
#include "proto/wire/frame.h"

/* Elements of each array. */
#define REQUEST_FIELDS 2u /* version, kind */
#define REPLY_FIELDS   4u /* version, kind, error, text */

static const uint32_t request_fields[BRIG_CONTROL_COUNT] = {
    [BRIG_CONTROL_HELLO] = REQUEST_FIELDS,      [BRIG_CONTROL_ATTACH] = REQUEST_FIELDS + 9,
    [BRIG_CONTROL_STATUS] = REQUEST_FIELDS + 1, [BRIG_CONTROL_DRAIN] = REQUEST_FIELDS + 1,
    [BRIG_CONTROL_STOP] = REQUEST_FIELDS + 1,
};
static const uint32_t reply_fields[BRIG_CONTROL_COUNT] = {
    [BRIG_CONTROL_HELLO] = REPLY_FIELDS + 16, [BRIG_CONTROL_ATTACH] = REPLY_FIELDS + 1,
    [BRIG_CONTROL_STATUS] = REPLY_FIELDS + 5, [BRIG_CONTROL_DRAIN] = REPLY_FIELDS,
    [BRIG_CONTROL_STOP] = REPLY_FIELDS,
};

/* ---- writing ---- */

struct writer {
    msgpack_packer pk;
    struct brig_buf *out;
    int err; /* of the buffer; sticky */
};

static int writer_add(void *ctx, const char *bytes, size_t n)
{
    struct writer *w = ctx;
    if (w->err == 0)
        w->err = brig_buf_add(w->out, bytes, n);
    return w->err;
}

static void writer_init(struct writer *w, struct brig_buf *out)
{
    w->out = out;
    w->err = 0;
    brig_buf_clear(out);
    msgpack_packer_init(&w->pk, w, writer_add);
}

static void put_u64(struct writer *w, uint64_t v)
{
    msgpack_pack_uint64(&w->pk, v);
}

/* A member array: at most cap - 1 bytes, whether its NUL is there or not. */
static void put_str(struct writer *w, const char *s, size_t cap)
{
    size_t n = strnlen(s, cap - 1);
    msgpack_pack_str(&w->pk, n);
    msgpack_pack_str_body(&w->pk, s, n);
}

static void put_identity(struct writer *w, const uint8_t identity[32])
{
    msgpack_pack_bin(&w->pk, 32);
    msgpack_pack_bin_body(&w->pk, identity, 32);
}

static int writer_end(const struct writer *w)
{
    if (w->err == 0 && w->out->len > BRIG_CONTROL_MAX_BYTES)
        return -BRIG_ELIMIT;
    return w->err;
}

int brig_request_encode(const struct brig_request *r, struct brig_buf *out)
{
    struct writer w;
    if ((unsigned)r->kind >= BRIG_CONTROL_COUNT)
        return -BRIG_EINTERNAL;
    writer_init(&w, out);
    msgpack_pack_array(&w.pk, request_fields[r->kind]);
    put_u64(&w, BRIG_PROTO_VERSION);
    put_u64(&w, r->kind);
    if (r->kind != BRIG_CONTROL_HELLO)
        put_u64(&w, r->run_id);
    if (r->kind == BRIG_CONTROL_ATTACH) {
        put_u64(&w, r->stage);
        put_u64(&w, r->n_stages);
        put_u64(&w, r->max_rows);
        put_u64(&w, r->ctx);
        put_u64(&w, r->slots);
        put_identity(&w, r->identity);
        put_str(&w, r->numeric_class, sizeof r->numeric_class);
        put_str(&w, r->next_url, sizeof r->next_url);
    }
    return writer_end(&w);
}

static void put_hello(struct writer *w, const struct brig_reply *r)
{
    put_identity(w, r->identity);
    put_u64(w, r->n_layers);
    put_u64(w, r->cells_first);
    put_u64(w, r->cells_last);
    put_u64(w, r->hidden);
    put_u64(w, r->vocab);
    put_u64(w, r->ctx);
    put_u64(w, r->slots);
    put_str(w, r->numeric_class, sizeof r->numeric_class);
    put_str(w, r->kernel, sizeof r->kernel);
    put_str(w, r->host, sizeof r->host);
    put_u64(w, r->pid);
    put_u64(w, r->threads);
    put_u64(w, r->mapped_bytes);
    put_u64(w, r->unlocked_bytes);
    put_u64(w, r->state);
}

static void put_status(struct writer *w, const struct brig_reply *r)
{
    put_u64(w, r->state);
    put_u64(w, r->frame_id);
    put_u64(w, r->progress);
    put_u64(w, r->layer);
    if (r->working)
        msgpack_pack_true(&w->pk);
    else
        msgpack_pack_false(&w->pk);
}

int brig_reply_encode(const struct brig_reply *r, struct brig_buf *out)
{
    struct writer w;
    bool good = r->err == BRIG_OK;
    if ((unsigned)r->kind >= BRIG_CONTROL_COUNT || (unsigned)r->err >= BRIG_ERR_COUNT ||
        (unsigned)r->state >= BRIG_SHARD_STATE_COUNT)
        return -BRIG_EINTERNAL;
    writer_init(&w, out);
    msgpack_pack_array(&w.pk, good ? reply_fields[r->kind] : REPLY_FIELDS);
    put_u64(&w, BRIG_PROTO_VERSION);
    put_u64(&w, r->kind);
    put_u64(&w, r->err);
    put_str(&w, r->text, sizeof r->text);
    if (good && r->kind == BRIG_CONTROL_HELLO)
        put_hello(&w, r);
    if (good && r->kind == BRIG_CONTROL_ATTACH)
        put_str(&w, r->data_url, sizeof r->data_url);
    if (good && r->kind == BRIG_CONTROL_STATUS)
        put_status(&w, r);
    return writer_end(&w);
}

/* ---- reading ---- */

/* Text of a peer: it must fit and hold no control characters (it will be printed, compared, dialled). */
static void get_str(struct brig_unpack *u, char *out, size_t cap)
{
    const char *s;
    size_t n;
    out[0] = '\0';
    if (!brig_unpack_str(u, &s, &n))
        return;
    for (size_t i = 0; i < n && !u->bad; i++)
        u->bad = (unsigned char)s[i] < 0x20 || s[i] == 0x7f;
    if (n >= cap || u->bad) {
        u->bad = true;
        return;
    }
    memcpy(out, s, n);
    out[n] = '\0';
}

/* As get_str, but text for people is cut and made printable instead of refused. */
static void get_text(struct brig_unpack *u, char *out, size_t cap)
{
    const char *s;
    size_t n;
    out[0] = '\0';
    if (!brig_unpack_str(u, &s, &n))
        return;
    n = n < cap ? n : cap - 1;
    for (size_t i = 0; i < n; i++)
        out[i] = (unsigned char)s[i] < 0x20 || s[i] == 0x7f ? '?' : s[i];
    out[n] = '\0';
}

static void get_identity(struct brig_unpack *u, uint8_t identity[32])
{
    const uint8_t *p;
    size_t n;
    if (!brig_unpack_bin(u, &p, &n))
        return;
    if (n == 32)
        memcpy(identity, p, 32);
    else
        u->bad = true;
}

static void get_state(struct brig_unpack *u, enum brig_shard_state *ret)
{
    uint32_t v;
    brig_unpack_u32(u, &v);
    if (v < BRIG_SHARD_STATE_COUNT)
        *ret = (enum brig_shard_state)v;
    else
        u->bad = true;
}

/* Array head, version and kind. The kind is given also when the version is another one. */
static int read_head(struct brig_unpack *u, const char *what, uint32_t *n_fields,
                     enum brig_control_kind *kind, struct brig_fail *fail)
{
    uint32_t version, k;
    if (!brig_unpack_array(u, n_fields) || *n_fields < REQUEST_FIELDS || !brig_unpack_u32(u, &version))
        return brig_fail_set(fail, BRIG_EPROTO, "control %s: it does not begin with a version", what);
    bool known = brig_unpack_u32(u, &k) && k < BRIG_CONTROL_COUNT;
    *kind = known ? (enum brig_control_kind)k : BRIG_CONTROL_HELLO;
    if (version != BRIG_PROTO_VERSION)
        return brig_fail_set(fail, BRIG_EVERSION, "control %s: of protocol version %u, this is version %u",
                             what, version, BRIG_PROTO_VERSION);
    if (!known)
        return brig_fail_set(fail, BRIG_EPROTO, "control %s: of an unknown kind", what);
    return 0;
}

int brig_request_decode(struct brig_request *ret, const void *msg, size_t n, struct brig_fail *fail)
{
    struct brig_unpack u = brig_unpack_of(msg, n);
    uint32_t n_fields;
    *ret = (struct brig_request){.kind = BRIG_CONTROL_HELLO};
    if (n > BRIG_CONTROL_MAX_BYTES)
        return brig_fail_set(fail, BRIG_ELIMIT, "control request: %zu bytes", n);
    int r = read_head(&u, "request", &n_fields, &ret->kind, fail);
    if (r < 0)
        return r;
    if (ret->kind != BRIG_CONTROL_HELLO)
        brig_unpack_u64(&u, &ret->run_id);
    if (ret->kind == BRIG_CONTROL_ATTACH) {
        brig_unpack_u32(&u, &ret->stage);
        brig_unpack_u32(&u, &ret->n_stages);
        brig_unpack_u32(&u, &ret->max_rows);
        brig_unpack_u32(&u, &ret->ctx);
        brig_unpack_u32(&u, &ret->slots);
        get_identity(&u, ret->identity);
        get_str(&u, ret->numeric_class, sizeof ret->numeric_class);
        get_str(&u, ret->next_url, sizeof ret->next_url);
        if (!u.bad && (ret->stage >= ret->n_stages || ret->n_stages > BRIG_FRAME_MAX_STAGES ||
                       ret->max_rows == 0 || ret->max_rows > BRIG_FRAME_MAX_ROWS))
            return brig_fail_set(fail, BRIG_EPROTO, "control request: attach as stage %u of %u, %u rows",
                                 ret->stage, ret->n_stages, ret->max_rows);
    }
    if (n_fields != request_fields[ret->kind] || !brig_unpack_done(&u))
        return brig_fail_set(fail, BRIG_EPROTO, "control request: its fields are malformed");
    return 0;
}

static void get_hello(struct brig_unpack *u, struct brig_reply *r)
{
    get_identity(u, r->identity);
    brig_unpack_u32(u, &r->n_layers);
    brig_unpack_u32(u, &r->cells_first);
    brig_unpack_u32(u, &r->cells_last);
    brig_unpack_u32(u, &r->hidden);
    brig_unpack_u32(u, &r->vocab);
    brig_unpack_u32(u, &r->ctx);
    brig_unpack_u32(u, &r->slots);
    get_str(u, r->numeric_class, sizeof r->numeric_class);
    get_str(u, r->kernel, sizeof r->kernel);
    get_str(u, r->host, sizeof r->host);
    brig_unpack_u32(u, &r->pid);
    brig_unpack_u32(u, &r->threads);
    brig_unpack_u64(u, &r->mapped_bytes);
    brig_unpack_u64(u, &r->unlocked_bytes);
    get_state(u, &r->state);
}

static void get_status(struct brig_unpack *u, struct brig_reply *r)
{
    get_state(u, &r->state);
    brig_unpack_u64(u, &r->frame_id);
    brig_unpack_u64(u, &r->progress);
    brig_unpack_u32(u, &r->layer);
    brig_unpack_bool(u, &r->working);
}

int brig_reply_decode(struct brig_reply *ret, const void *msg, size_t n, struct brig_fail *fail)
{
    struct brig_unpack u = brig_unpack_of(msg, n);
    uint32_t n_fields, err;
    *ret = (struct brig_reply){.kind = BRIG_CONTROL_HELLO};
    if (n > BRIG_CONTROL_MAX_BYTES)
        return brig_fail_set(fail, BRIG_ELIMIT, "control reply: %zu bytes", n);
    int r = read_head(&u, "reply", &n_fields, &ret->kind, fail);
    if (r < 0)
        return r;
    brig_unpack_u32(&u, &err);
    if (err < BRIG_ERR_COUNT)
        ret->err = (enum brig_err)err;
    else
        u.bad = true;
    get_text(&u, ret->text, sizeof ret->text);
    bool good = ret->err == BRIG_OK;
    if (good && ret->kind == BRIG_CONTROL_HELLO)
        get_hello(&u, ret);
    if (good && ret->kind == BRIG_CONTROL_ATTACH)
        get_str(&u, ret->data_url, sizeof ret->data_url);
    if (good && ret->kind == BRIG_CONTROL_STATUS)
        get_status(&u, ret);
    if (n_fields != (good ? reply_fields[ret->kind] : REPLY_FIELDS) || !brig_unpack_done(&u))
        return brig_fail_set(fail, BRIG_EPROTO, "control reply: its fields are malformed");
    return 0;
}

void brig_numeric_class(char *out, bool exact, const char *kv_name)
{
    snprintf(out, BRIG_CLASS_MAX, "a%u act=%s kv=%s", BRIG_ARITHMETIC_VERSION, exact ? "f32" : "q8", kv_name);
}
