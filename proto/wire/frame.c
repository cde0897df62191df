/*
 * Frames, the writing side: where everything lies in a message, the header as a msgpack array, and the fields
 * that are changed in place. Called by the driver for each frame and by a shard for each answer; decode
 * (frame_decode.c) checks a message by laying it out again.
 */
#include "proto/wire/frame_parts.h"

#include <string.h>

#include <msgpack.h>

#include "proto/base/size.h"

#define TIMING_ALIGN  32u
#define PAYLOAD_ALIGN 64u

/* ---- header ---- */

/* Where the packer writes, or what it is compared with: bytes beyond cap are only counted. */
struct sink {
    uint8_t *write;      /* or NULL */
    const uint8_t *same; /* or NULL */
    size_t len, cap;
    bool differs;
};

static int sink_write(void *ctx, const char *bytes, size_t n)
{
    struct sink *s = ctx;
    bool inside = n <= s->cap && s->len <= s->cap - n;
    if (inside && s->write != NULL)
        memcpy(s->write + s->len, bytes, n);
    if (s->same != NULL && (!inside || memcmp(s->same + s->len, bytes, n) != 0))
        s->differs = true;
    s->len += n;
    return 0;
}

static void pack_header(const struct brig_frame *f, struct sink *s)
{
    msgpack_packer pk;
    msgpack_packer_init(&pk, s, sink_write);
    msgpack_pack_array(&pk, BRIG_FRAME_FIELDS);
    msgpack_pack_uint32(&pk, BRIG_PROTO_VERSION);
    msgpack_pack_fix_uint64(&pk, f->run_id);
    msgpack_pack_fix_uint64(&pk, f->frame_id);
    msgpack_pack_fix_uint32(&pk, f->epoch);
    msgpack_pack_fix_uint32(&pk, f->stage);
    const uint32_t plain[] = {f->n_stages, f->flags,   f->dtype,           f->cols,       f->top,
                              f->part,     f->n_parts, f->part_first_want, f->part_wants, f->n_choices};
    for (unsigned i = 0; i < sizeof plain / sizeof plain[0]; i++)
        msgpack_pack_uint32(&pk, plain[i]);
    msgpack_pack_uint64(&pk, f->payload_bytes);
    msgpack_pack_array(&pk, 3 * (size_t)f->n_runs);
    for (unsigned i = 0; i < f->n_runs; i++) {
        msgpack_pack_uint32(&pk, f->runs[i].slot);
        msgpack_pack_uint32(&pk, f->runs[i].pos);
        msgpack_pack_uint32(&pk, f->runs[i].count);
    }
    msgpack_pack_array(&pk, 2 * (size_t)f->n_wants);
    for (unsigned i = 0; i < f->n_wants; i++) {
        msgpack_pack_uint32(&pk, f->wants[i].first);
        msgpack_pack_uint32(&pk, f->wants[i].count);
    }
    msgpack_pack_array(&pk, 3 * (size_t)f->n_ops);
    for (unsigned i = 0; i < f->n_ops; i++) {
        msgpack_pack_uint32(&pk, f->ops[i].kind);
        msgpack_pack_uint32(&pk, f->ops[i].slot);
        msgpack_pack_uint32(&pk, f->ops[i].arg);
    }
}

bool brig_frame_head_is(const struct brig_frame *f, const void *head, size_t n)
{
    struct sink s = {.same = head, .cap = n};
    pack_header(f, &s);
    return !s.differs && s.len == n;
}

/* ---- checks ---- */

static int check_counts(const struct brig_frame *f, struct brig_fail *fail)
{
    if (f->n_runs > BRIG_FRAME_MAX_RUNS || f->n_wants > BRIG_FRAME_MAX_WANTS || f->n_ops > BRIG_FRAME_MAX_OPS)
        return brig_fail_set(fail, BRIG_ELIMIT, "frame: %u runs, %u wants, %u cache operations (limits %u)",
                             f->n_runs, f->n_wants, f->n_ops, BRIG_FRAME_MAX_RUNS);
    if (f->n_stages == 0 || f->n_stages > BRIG_FRAME_MAX_STAGES || f->stage > f->n_stages)
        return brig_fail_set(fail, BRIG_EPROTO, "frame: stage %u of %u (at most %u)", f->stage, f->n_stages,
                             BRIG_FRAME_MAX_STAGES);
    if ((f->flags & ~BRIG_FRAME_FLAGS) != 0)
        return brig_fail_set(fail, BRIG_EPROTO, "frame: unknown flags %#x", f->flags);
    if (f->n_choices > BRIG_FRAME_MAX_CHOICES)
        return brig_fail_set(fail, BRIG_ELIMIT, "frame: %u choices of experts a row (at most %u)",
                             f->n_choices, BRIG_FRAME_MAX_CHOICES);
    if (f->cols > BRIG_FRAME_MAX_COLS || f->top > BRIG_FRAME_MAX_TOP)
        return brig_fail_set(fail, BRIG_ELIMIT, "frame: %u columns, %u candidates (limits %u, %u)", f->cols,
                             f->top, BRIG_FRAME_MAX_COLS, BRIG_FRAME_MAX_TOP);
    return 0;
}

static int check_runs(struct brig_frame *f, struct brig_fail *fail)
{
    uint32_t rows = 0;
    for (unsigned i = 0; i < f->n_runs; i++) {
        const struct brig_run *r = &f->runs[i];
        if (r->count == 0 || r->count > BRIG_FRAME_MAX_ROWS - rows)
            return brig_fail_set(fail, BRIG_ELIMIT, "frame: run %u of %u rows (a frame has 1 to %u)", i,
                                 r->count, BRIG_FRAME_MAX_ROWS);
        if (r->pos > BRIG_FRAME_MAX_POS - r->count)
            return brig_fail_set(fail, BRIG_EPROTO, "frame: run %u of %u rows at position %u", i, r->count,
                                 r->pos);
        rows += r->count;
    }
    f->n_rows = rows;
    return 0;
}

static int check_wants(struct brig_frame *f, struct brig_fail *fail)
{
    uint32_t rows = 0, free_from = 0;
    for (unsigned i = 0; i < f->n_wants; i++) {
        const struct brig_want *w = &f->wants[i];
        if (w->count == 0 || w->first < free_from || !brig_range_ok(w->first, w->count, f->n_rows))
            return brig_fail_set(fail, BRIG_EPROTO, "frame: wants %u rows from row %u of %u, or out of order",
                                 w->count, w->first, f->n_rows);
        free_from = w->first + w->count;
        rows += w->count;
    }
    f->n_want_rows = rows;
    return 0;
}

static int check_ops(const struct brig_frame *f, struct brig_fail *fail)
{
    for (unsigned i = 0; i < f->n_ops; i++) {
        if ((unsigned)f->ops[i].kind >= BRIG_CACHE_OP_COUNT)
            return brig_fail_set(fail, BRIG_EPROTO, "frame: unknown cache operation %u",
                                 (unsigned)f->ops[i].kind);
        if (f->ops[i].kind == BRIG_CACHE_TRUNCATE && f->ops[i].arg > BRIG_FRAME_MAX_POS)
            return brig_fail_set(fail, BRIG_EPROTO, "frame: truncate slot %u to %u positions", f->ops[i].slot,
                                 f->ops[i].arg);
    }
    return 0;
}

/* A part of whole rows: inside the wanted rows, the first part at their start, the last at their end, and no
 * larger than the cap unless it is a single row. */
static int check_logits_part(const struct brig_frame *f, struct brig_fail *fail)
{
    bool inside = f->part_wants > 0 && brig_range_ok(f->part_first_want, f->part_wants, f->n_want_rows);
    bool first_ok = (f->part == 0) == (f->part_first_want == 0) && f->part <= f->part_first_want;
    if (!inside || !first_ok || f->part >= f->n_parts || f->n_parts > f->n_want_rows ||
        (f->part + 1 == f->n_parts) != (f->part_first_want + f->part_wants == f->n_want_rows))
        return brig_fail_set(fail, BRIG_EPROTO, "frame: part %u of %u with rows %u + %u of %u", f->part,
                             f->n_parts, f->part_first_want, f->part_wants, f->n_want_rows);
    if (f->part_wants > 1 && 4 * (uint64_t)f->part_wants * f->cols > BRIG_FRAME_MAX_PART)
        return brig_fail_set(fail, BRIG_ELIMIT, "frame: a part of %u rows of %u is over %u bytes",
                             f->part_wants, f->cols, BRIG_FRAME_MAX_PART);
    return 0;
}

static void one_part(struct brig_frame *f, uint32_t wants)
{
    f->part = 0;
    f->n_parts = 1;
    f->part_first_want = 0;
    f->part_wants = wants;
}

/* Fields that follow from dtype, and payload_bytes. The products fit: rows < 2^13, cols <= 2^24. */
static int shape(struct brig_frame *f, struct brig_fail *fail)
{
    bool fits = false;
    switch (f->dtype) {
    case BRIG_DTYPE_NONE:
        one_part(f, 0);
        f->cols = 0;
        f->payload_bytes = 0;
        fits = f->n_want_rows == 0;
        break;
    case BRIG_DTYPE_HIDDEN:
        one_part(f, 0);
        f->payload_bytes = 4 * (uint64_t)f->n_rows * f->cols;
        fits = f->n_rows > 0 && f->cols > 0;
        break;
    case BRIG_DTYPE_CANDIDATES:
        one_part(f, f->n_want_rows);
        f->payload_bytes = (uint64_t)f->n_want_rows * (8 + 8 * (uint64_t)f->cols);
        fits = f->n_want_rows > 0 && f->cols > 0 && f->cols <= f->top;
        break;
    case BRIG_DTYPE_LOGITS:
        f->payload_bytes = 4 * (uint64_t)f->part_wants * f->cols;
        fits = f->n_want_rows > 0 && f->cols > 0 && f->top == 0;
        break;
    case BRIG_DTYPE_ERROR:
        one_part(f, 0);
        f->cols = 0;
        fits = f->payload_bytes <= BRIG_FRAME_MAX_ERROR;
        break;
    case BRIG_DTYPE_NORMED:
        one_part(f, f->n_want_rows);
        f->payload_bytes = 4 * (uint64_t)f->n_want_rows * f->cols;
        fits = f->n_want_rows > 0 && f->cols > 0 && (f->flags & BRIG_FRAME_NORMED) != 0;
        break;
    case BRIG_DTYPE_COUNT:
    default:
        break;
    }
    if (!fits)
        return brig_fail_set(fail, BRIG_EPROTO,
                             "frame: payload of kind %u with %u columns does not go with %u rows, %u wanted "
                             "(top %u)",
                             (unsigned)f->dtype, f->cols, f->n_rows, f->n_want_rows, f->top);
    return f->dtype == BRIG_DTYPE_LOGITS ? check_logits_part(f, fail) : 0;
}

int brig_frame_layout(struct brig_frame *f, struct brig_fail *fail)
{
    int r = check_counts(f, fail);
    if (r == 0)
        r = check_runs(f, fail);
    if (r == 0)
        r = check_wants(f, fail);
    if (r == 0)
        r = check_ops(f, fail);
    if (r == 0)
        r = shape(f, fail);
    if (r < 0)
        return r;
    struct sink count = {0};
    pack_header(f, &count);
    f->timing_offset = brig_align_up(count.len, TIMING_ALIGN);
    f->choices_offset =
        brig_align_up(f->timing_offset + (uint64_t)f->n_stages * BRIG_STAGE_TIMING_BYTES, PAYLOAD_ALIGN);
    f->payload_offset = brig_align_up(f->choices_offset + brig_frame_choices_bytes(f), PAYLOAD_ALIGN);
    f->message_bytes = f->payload_offset + f->payload_bytes;
    return 0;
}

uint64_t brig_frame_choices_bytes(const struct brig_frame *f)
{
    return 2 * (uint64_t)f->n_rows * f->n_choices;
}

/* ---- writing ---- */

int brig_frame_encode(const struct brig_frame *f, void *msg, size_t n, struct brig_fail *fail)
{
    if (n != f->message_bytes || f->payload_offset > n || f->timing_offset > f->payload_offset)
        return brig_fail_set(fail, BRIG_EINTERNAL, "frame: a message of %zu bytes for a frame of %llu", n,
                             (unsigned long long)f->message_bytes);
    struct sink s = {.write = msg, .cap = (size_t)f->timing_offset};
    pack_header(f, &s);
    if (s.len > s.cap)
        return brig_fail_set(fail, BRIG_EINTERNAL, "frame: changed after it was laid out");
    memset(s.write + s.len, 0, (size_t)f->payload_offset - s.len);
    return 0;
}

void brig_frame_patch_stage(const struct brig_frame *f, void *msg, uint32_t stage)
{
    (void)f; /* the place is the same in every frame */
    uint8_t *p = (uint8_t *)msg + BRIG_FRAME_STAGE_AT + 1;
    for (unsigned i = 0; i < 4; i++)
        p[i] = (uint8_t)(stage >> (24 - 8 * i));
}

static void put_le64(uint8_t *p, uint64_t v)
{
    for (unsigned i = 0; i < 8; i++)
        p[i] = (uint8_t)(v >> (8 * i));
}

static uint64_t get_le64(const uint8_t *p)
{
    uint64_t v = 0;
    for (unsigned i = 0; i < 8; i++)
        v |= (uint64_t)p[i] << (8 * i);
    return v;
}

void brig_frame_put_timing(const struct brig_frame *f, void *msg, uint32_t stage,
                           const struct brig_stage_timing *t)
{
    uint8_t *p = (uint8_t *)msg + f->timing_offset + (size_t)stage * BRIG_STAGE_TIMING_BYTES;
    put_le64(p, t->wait_ns);
    put_le64(p + 8, t->compute_ns);
    put_le64(p + 16, t->pss_bytes);
    put_le64(p + 24, t->mapped_bytes);
    put_le64(p + 32, t->read_bytes);
    put_le64(p + 40, t->stall_ns);
    put_le64(p + 48, t->experts_used);
    put_le64(p + 56, t->expert_hits);
    put_le64(p + 64, t->expert_read_bytes);
}

void brig_frame_get_timing(const struct brig_frame *f, const void *msg, uint32_t stage,
                           struct brig_stage_timing *t)
{
    const uint8_t *p = (const uint8_t *)msg + f->timing_offset + (size_t)stage * BRIG_STAGE_TIMING_BYTES;
    t->wait_ns = get_le64(p);
    t->compute_ns = get_le64(p + 8);
    t->pss_bytes = get_le64(p + 16);
    t->mapped_bytes = get_le64(p + 24);
    t->read_bytes = get_le64(p + 32);
    t->stall_ns = get_le64(p + 40);
    t->experts_used = get_le64(p + 48);
    t->expert_hits = get_le64(p + 56);
    t->expert_read_bytes = get_le64(p + 64);
}

static uint64_t at_most(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t at_least(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

uint64_t brig_frame_max_message(uint32_t n_stages, uint32_t max_rows, uint32_t hidden, uint32_t vocab,
                                uint64_t n_choices)
{
    uint64_t rows = at_most(max_rows, BRIG_FRAME_MAX_ROWS);
    uint64_t row_hidden = 4 * at_most(hidden, BRIG_FRAME_MAX_COLS);
    uint64_t row_logits = 4 * at_most(vocab, BRIG_FRAME_MAX_COLS);
    uint64_t candidates =
        rows * (8 + 8 * (uint64_t)BRIG_FRAME_MAX_TOP); /* padded when the vocabulary is smaller */
    uint64_t part = at_least(at_most(rows * row_logits, BRIG_FRAME_MAX_PART), row_logits);
    uint64_t choices = 2 * rows * at_most(n_choices, BRIG_FRAME_MAX_CHOICES) + PAYLOAD_ALIGN;
    uint64_t head = BRIG_FRAME_MAX_HEAD + (uint64_t)n_stages * BRIG_STAGE_TIMING_BYTES + TIMING_ALIGN +
                    PAYLOAD_ALIGN + choices;
    return head + at_least(at_least(rows * row_hidden, candidates), part) + BRIG_FRAME_MAX_ERROR;
}
