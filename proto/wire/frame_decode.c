/*
 * Frames, the reading side: a message from a peer is data to be checked. The header is read with the bounded
 * reader, then laid out again by the rules of the writer: a message is accepted only when every field, offset
 * and size is what a writer of these contents would have written.
 */
#include "proto/wire/frame_parts.h"

#include <string.h>

#include "proto/base/unpack.h"

/* What a frame states of itself that layout computes or sets: kept to be compared. */
struct stated {
    uint32_t cols, part, n_parts, part_first_want, part_wants;
    uint64_t payload_bytes;
};

static bool read_fixed(struct brig_unpack *u, struct brig_frame *f, struct brig_fail *fail)
{
    uint32_t n_fields, version;
    if (!brig_unpack_array(u, &n_fields) || n_fields == 0 || !brig_unpack_u32(u, &version)) {
        brig_fail_set(fail, BRIG_EPROTO, "frame: it does not begin with a header");
        return false;
    }
    if (version != BRIG_PROTO_VERSION) {
        brig_fail_set(fail, BRIG_EVERSION, "frame: of protocol version %u, this is version %u", version,
                      BRIG_PROTO_VERSION);
        return false;
    }
    if (n_fields != BRIG_FRAME_FIELDS) {
        brig_fail_set(fail, BRIG_EPROTO, "frame: a header of %u fields instead of %u", n_fields,
                      BRIG_FRAME_FIELDS);
        return false;
    }
    return brig_unpack_u64(u, &f->run_id) && brig_unpack_u64(u, &f->frame_id) &&
           brig_unpack_u32(u, &f->epoch) && brig_unpack_u32(u, &f->stage);
}

static void read_plain(struct brig_unpack *u, struct brig_frame *f)
{
    uint32_t dtype = 0;
    brig_unpack_u32(u, &f->n_stages);
    brig_unpack_u32(u, &f->flags);
    brig_unpack_u32(u, &dtype);
    brig_unpack_u32(u, &f->cols);
    brig_unpack_u32(u, &f->top);
    brig_unpack_u32(u, &f->part);
    brig_unpack_u32(u, &f->n_parts);
    brig_unpack_u32(u, &f->part_first_want);
    brig_unpack_u32(u, &f->part_wants);
    brig_unpack_u32(u, &f->n_choices);
    brig_unpack_u64(u, &f->payload_bytes);
    f->dtype = dtype < BRIG_DTYPE_COUNT ? (enum brig_dtype)dtype : BRIG_DTYPE_COUNT;
}

/* The count of a list whose items are `width` integers each; too many is bad. */
static unsigned read_count(struct brig_unpack *u, unsigned width, unsigned max)
{
    uint32_t n;
    if (!brig_unpack_array(u, &n))
        return 0;
    if (n % width != 0 || n / width > max) {
        u->bad = true;
        return 0;
    }
    return n / width;
}

static void read_lists(struct brig_unpack *u, struct brig_frame *f)
{
    f->n_runs = read_count(u, 3, BRIG_FRAME_MAX_RUNS);
    for (unsigned i = 0; i < f->n_runs; i++) {
        brig_unpack_u32(u, &f->runs[i].slot);
        brig_unpack_u32(u, &f->runs[i].pos);
        brig_unpack_u32(u, &f->runs[i].count);
    }
    f->n_wants = read_count(u, 2, BRIG_FRAME_MAX_WANTS);
    for (unsigned i = 0; i < f->n_wants; i++) {
        brig_unpack_u32(u, &f->wants[i].first);
        brig_unpack_u32(u, &f->wants[i].count);
    }
    f->n_ops = read_count(u, 3, BRIG_FRAME_MAX_OPS);
    for (unsigned i = 0; i < f->n_ops; i++) {
        uint32_t kind;
        brig_unpack_u32(u, &kind);
        brig_unpack_u32(u, &f->ops[i].slot);
        brig_unpack_u32(u, &f->ops[i].arg);
        f->ops[i].kind = kind < BRIG_CACHE_OP_COUNT ? (enum brig_cache_op_kind)kind : BRIG_CACHE_OP_COUNT;
    }
}

static bool all_zero(const uint8_t *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (p[i] != 0)
            return false;
    return true;
}

/* Only what comes out of the end of the line is an answer. */
static bool stage_fits(const struct brig_frame *f)
{
    bool answer = f->dtype == BRIG_DTYPE_CANDIDATES || f->dtype == BRIG_DTYPE_LOGITS ||
                  f->dtype == BRIG_DTYPE_NORMED || (f->dtype == BRIG_DTYPE_NONE && f->n_rows > 0);
    return !answer || f->stage == f->n_stages;
}

/* After layout: f says what must be, s and the message what is. */
static int check_stated(const struct brig_frame *f, const struct stated *s, const uint8_t *msg, size_t n,
                        size_t head_bytes, struct brig_fail *fail)
{
    if (f->cols != s->cols || f->part != s->part || f->n_parts != s->n_parts ||
        f->part_first_want != s->part_first_want || f->part_wants != s->part_wants ||
        f->payload_bytes != s->payload_bytes)
        return brig_fail_set(fail, BRIG_EPROTO,
                             "frame: states a payload of %llu bytes, %u columns, part %u of %u, that its "
                             "rows do not give",
                             (unsigned long long)s->payload_bytes, s->cols, s->part, s->n_parts);
    if (f->message_bytes != n)
        return brig_fail_set(fail, BRIG_EPROTO, "frame: a message of %zu bytes, its header says %llu", n,
                             (unsigned long long)f->message_bytes);
    if (!brig_frame_head_is(f, msg, head_bytes))
        return brig_fail_set(fail, BRIG_EPROTO,
                             "frame: header fields are not of the width that they must be");
    size_t timings_end = (size_t)f->timing_offset + (size_t)f->n_stages * BRIG_STAGE_TIMING_BYTES;
    size_t choices_end = (size_t)(f->choices_offset + brig_frame_choices_bytes(f));
    if (!all_zero(msg + head_bytes, (size_t)f->timing_offset - head_bytes) ||
        !all_zero(msg + timings_end, (size_t)f->choices_offset - timings_end) ||
        !all_zero(msg + choices_end, (size_t)f->payload_offset - choices_end))
        return brig_fail_set(fail, BRIG_EPROTO, "frame: padding is not zero");
    if (!stage_fits(f))
        return brig_fail_set(fail, BRIG_EPROTO, "frame: an answer from stage %u of %u", f->stage,
                             f->n_stages);
    return 0;
}

int brig_frame_decode(struct brig_frame *f, const void *msg, size_t n, struct brig_fail *fail)
{
    const uint8_t *bytes = msg;
    struct brig_unpack u = brig_unpack_of(msg, n < BRIG_FRAME_MAX_HEAD ? n : BRIG_FRAME_MAX_HEAD);
    struct brig_fail why = {.code = BRIG_OK};
    if (!read_fixed(&u, f, &why)) {
        if (why.code == BRIG_OK)
            return brig_fail_set(fail, BRIG_EPROTO, "frame: its header is cut short or malformed");
        return brig_fail_set(fail, why.code, "%s", why.text);
    }
    read_plain(&u, f);
    read_lists(&u, f);
    if (u.bad)
        return brig_fail_set(fail, BRIG_EPROTO, "frame: its header is cut short or malformed");
    const struct stated s = {.cols = f->cols,
                             .part = f->part,
                             .n_parts = f->n_parts,
                             .part_first_want = f->part_first_want,
                             .part_wants = f->part_wants,
                             .payload_bytes = f->payload_bytes};
    int r = brig_frame_layout(f, fail);
    return r < 0 ? r : check_stated(f, &s, bytes, n, (size_t)(u.p - bytes), fail);
}
