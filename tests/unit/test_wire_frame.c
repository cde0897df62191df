/* Frames: what is written is read, by the rules of docs/wire.md, and what breaks them is refused. */
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "proto/base/mem.h"
#include "proto/wire/control.h"
#include "proto/wire/frame.h"

/* Of experts, that fill puts in. */
static uint32_t choices;

/* Rows 5, 6, 7 of slot 1 and row 900 of slot 0; the last of each is wanted; one cache operation. */
static void fill(struct brig_frame *f, enum brig_dtype dtype)
{
    memset(f, 0, sizeof *f);
    f->run_id = 0x1122334455667788ull;
    f->frame_id = 300;
    f->epoch = 2;
    f->n_stages = 3;
    f->flags = BRIG_FRAME_PSS;
    f->dtype = dtype;
    f->n_runs = 2;
    f->runs[0] = (struct brig_run){1, 5, 3};
    f->runs[1] = (struct brig_run){0, 900, 1};
    f->n_wants = 1;
    f->wants[0] = (struct brig_want){2, 2};
    f->wants[1] = (struct brig_want){0, 1}; /* not counted, until n_wants is made 2 */
    f->n_ops = 1;
    f->ops[0] = (struct brig_cache_op){BRIG_CACHE_COPY, 1, 0};
    f->cols = 16;
    f->n_parts = 1;
    f->n_choices = choices;
    if (dtype == BRIG_DTYPE_NONE)
        f->n_wants = f->n_runs = 0;
    if (dtype == BRIG_DTYPE_CANDIDATES || dtype == BRIG_DTYPE_HIDDEN)
        f->top = 40;
    if (dtype == BRIG_DTYPE_NORMED)
        f->flags |= BRIG_FRAME_NORMED;
    if (dtype == BRIG_DTYPE_CANDIDATES || dtype == BRIG_DTYPE_LOGITS || dtype == BRIG_DTYPE_NORMED)
        f->stage = f->n_stages;
    if (dtype == BRIG_DTYPE_LOGITS || dtype == BRIG_DTYPE_NORMED)
        f->part_wants = 2;
    if (dtype == BRIG_DTYPE_ERROR)
        f->payload_bytes = 11;
}

/* Laid out and written, payload bytes 0xa5; from brig_alloc. */
static uint8_t *message(struct brig_frame *f)
{
    struct brig_fail fail = {0};
    if (brig_frame_layout(f, &fail) != 0)
        fail_msg("layout: %s", fail.text);
    uint8_t *m = brig_alloc(f->message_bytes, 1);
    assert_non_null(m);
    memset(m, 0xa5, f->message_bytes);
    assert_int_equal(brig_frame_encode(f, m, f->message_bytes, &fail), 0);
    return m;
}

static void same(const struct brig_frame *a, const struct brig_frame *b)
{
    assert_true(a->run_id == b->run_id && a->frame_id == b->frame_id && a->epoch == b->epoch);
    assert_true(a->stage == b->stage && a->n_stages == b->n_stages && a->flags == b->flags);
    assert_true(a->dtype == b->dtype && a->cols == b->cols && a->top == b->top);
    assert_true(a->part == b->part && a->n_parts == b->n_parts);
    assert_true(a->part_first_want == b->part_first_want && a->part_wants == b->part_wants);
    assert_true(a->n_runs == b->n_runs && a->n_wants == b->n_wants && a->n_ops == b->n_ops);
    assert_memory_equal(a->runs, b->runs, a->n_runs * sizeof *a->runs);
    assert_memory_equal(a->wants, b->wants, a->n_wants * sizeof *a->wants);
    assert_memory_equal(a->ops, b->ops, a->n_ops * sizeof *a->ops);
    assert_true(a->n_rows == b->n_rows && a->n_want_rows == b->n_want_rows);
    assert_true(a->timing_offset == b->timing_offset && a->payload_offset == b->payload_offset);
    assert_true(a->n_choices == b->n_choices && a->choices_offset == b->choices_offset);
    assert_true(a->payload_bytes == b->payload_bytes && a->message_bytes == b->message_bytes);
}

static struct brig_frame f, g; /* large */

static void round_trip(void **state)
{
    (void)state;
    static const uint64_t payload[] = {0, 4 * 4 * 16, 2 * (8 + 16 * 8), 2 * 16 * 4, 11, 2 * 16 * 4};
    for (int d = 0; d < BRIG_DTYPE_COUNT; d++) {
        struct brig_fail fail = {0};
        fill(&f, (enum brig_dtype)d);
        uint8_t *m = message(&f);
        memset(&g, 0xee, sizeof g);
        if (brig_frame_decode(&g, m, f.message_bytes, &fail) != 0)
            fail_msg("dtype %d: %s", d, fail.text);
        same(&f, &g);
        assert_true(f.payload_bytes == payload[d]);
        assert_true(f.payload_offset % 64 == 0 && f.timing_offset % 32 == 0);
        assert_true(f.timing_offset + 3 * BRIG_STAGE_TIMING_BYTES <= f.choices_offset);
        assert_true(f.choices_offset % 64 == 0 && brig_frame_choices_bytes(&f) == 2 * f.n_rows * choices);
        assert_true(f.choices_offset + brig_frame_choices_bytes(&f) <= f.payload_offset);
        assert_true(f.message_bytes == f.payload_offset + f.payload_bytes);
        for (uint64_t i = 0; i < f.payload_bytes; i++) /* encode leaves the payload alone */
            assert_true(m[f.payload_offset + i] == 0xa5);
        brig_free(m);
    }
}

/* Byte for byte, as docs/wire.md shows it. */
static void known_bytes(void **state)
{
    static const uint8_t head[] = {
        0xdc, 0x00, 0x13, 0x03,                               /* 19 fields, version 3 */
        0xcf, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, /* run id */
        0xcf, 0,    0,    0,    0,    0,    0,    1,    0x2c, /* frame id 300 */
        0xce, 0,    0,    0,    2,                            /* epoch */
        0xce, 0,    0,    0,    0,                            /* stage */
        0x03, 0x01, 0x01, 0x10, 0x28,                         /* stages, flags, dtype, cols, top */
        0x00, 0x01, 0x00, 0x00, 0x00,                         /* part 0 of 1, first want, wants; no choices */
        0xcd, 0x01, 0x00,                                     /* 256 bytes of payload */
        0x96, 0x01, 0x05, 0x03, 0x00, 0xcd, 0x03, 0x84, 0x01, /* runs */
        0x92, 0x02, 0x02,                                     /* wants */
        0x93, 0x02, 0x01, 0x00,                               /* operations */
    };
    (void)state;
    fill(&f, BRIG_DTYPE_HIDDEN);
    uint8_t *m = message(&f);
    assert_memory_equal(m, head, sizeof head);
    assert_true(f.timing_offset == 64 && f.payload_offset == 320 && f.message_bytes == 576);
    for (size_t i = sizeof head; i < 320; i++)
        assert_true(m[i] == 0);
    brig_free(m);
}

static void in_place(void **state)
{
    (void)state;
    struct brig_fail fail = {0};
    struct brig_stage_timing t = {0x0102030405060708ull, 2, UINT64_MAX, 4, 5, (uint64_t)1 << 63, 7, 8, 9},
                             got;
    fill(&f, BRIG_DTYPE_HIDDEN);
    uint8_t *m = message(&f);
    brig_frame_put_timing(&f, m, 2, &t);
    assert_true(m[f.timing_offset + 144] == 8 && m[f.timing_offset + 151] == 1); /* little-endian */
    for (uint32_t stage = 0; stage <= 3; stage++) {
        brig_frame_patch_stage(&f, m, stage);
        assert_int_equal(brig_frame_decode(&g, m, f.message_bytes, &fail), 0);
        f.stage = stage;
        same(&f, &g);
    }
    brig_frame_get_timing(&g, m, 2, &got);
    assert_memory_equal(&t, &got, sizeof t);
    brig_frame_get_timing(&g, m, 1, &got);
    assert_true(got.wait_ns == 0 && got.compute_ns == 0 && got.pss_bytes == 0 && got.mapped_bytes == 0 &&
                got.read_bytes == 0 && got.stall_ns == 0 && got.experts_used == 0 && got.expert_hits == 0 &&
                got.expert_read_bytes == 0);
    brig_frame_patch_stage(&f, m, 4);
    assert_int_equal(brig_frame_decode(&g, m, f.message_bytes, &fail), -BRIG_EPROTO);
    brig_free(m);
}

/* The head's answer when nothing was wanted; a frame in the middle of the line may not look like an answer.
 */
static void answers_come_from_the_end(void **state)
{
    (void)state;
    struct brig_fail fail = {0};
    for (int d = 0; d < BRIG_DTYPE_COUNT; d++) {
        if (d == BRIG_DTYPE_HIDDEN || d == BRIG_DTYPE_ERROR)
            continue;
        fill(&f, (enum brig_dtype)d);
        if (d == BRIG_DTYPE_NONE)
            f.n_runs = 2;
        f.stage = 0;
        uint8_t *m = message(&f);
        assert_int_equal(brig_frame_decode(&g, m, f.message_bytes, &fail), -BRIG_EPROTO);
        brig_frame_patch_stage(&f, m, 3);
        assert_int_equal(brig_frame_decode(&g, m, f.message_bytes, &fail), 0);
        assert_int_equal(g.n_rows, 4);
        brig_free(m);
    }
}

/* ---- what layout refuses ---- */

/* One or two fields of a good frame, changed. All of them are 32 bits wide. */
struct wrong {
    const char *what;
    size_t at;
    uint32_t value;
    size_t at2;
    uint32_t value2;
};
#define AT(field) offsetof(struct brig_frame, field)
static const struct wrong wrongs[] = {
    {.what = "no stages", AT(n_stages), 0},
    {.what = "many stages", AT(n_stages), BRIG_FRAME_MAX_STAGES + 1},
    {.what = "stage beyond", AT(stage), 4},
    {.what = "flag", AT(flags), 4},
    {.what = "normed, not asked", AT(dtype), BRIG_DTYPE_NORMED},
    {.what = "many runs", AT(n_runs), BRIG_FRAME_MAX_RUNS + 1},
    {.what = "many wants", AT(n_wants), BRIG_FRAME_MAX_WANTS + 1},
    {.what = "many operations", AT(n_ops), BRIG_FRAME_MAX_OPS + 1},
    {.what = "empty run", AT(runs[0].count), 0},
    {.what = "one row too many", AT(runs[0].count), BRIG_FRAME_MAX_ROWS},
    {.what = "row count wraps", AT(runs[1].count), UINT32_MAX - 2},
    {.what = "position wraps", AT(runs[0].pos), (1u << 31) - 2},
    {.what = "empty want", AT(wants[0].count), 0},
    {.what = "want beyond", AT(wants[0].first), 3},
    {.what = "want wraps", AT(wants[0].first), UINT32_MAX},
    {.what = "wants out of order", AT(n_wants), 2},
    {.what = "wants overlap", AT(wants[1]), 3, AT(n_wants), 2},
    {.what = "operation", AT(ops[0].kind), BRIG_CACHE_OP_COUNT},
    {.what = "truncate beyond", AT(ops[0].kind), BRIG_CACHE_TRUNCATE, AT(ops[0].arg), UINT32_MAX},
    {.what = "dtype", AT(dtype), BRIG_DTYPE_COUNT},
    {.what = "no rows", AT(n_runs), 0, AT(n_wants), 0},
    {.what = "no columns", AT(cols), 0},
    {.what = "many columns", AT(cols), BRIG_FRAME_MAX_COLS + 1},
    {.what = "many choices of experts", AT(n_choices), BRIG_FRAME_MAX_CHOICES + 1},
    {.what = "many candidates", AT(top), BRIG_FRAME_MAX_TOP + 1},
};

static void change(size_t at, uint32_t value)
{
    memcpy((uint8_t *)&f + at, &value, sizeof value);
}

static void layout_refuses(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof wrongs / sizeof *wrongs; i++) {
        const struct wrong *w = &wrongs[i];
        struct brig_fail fail = {0};
        fill(&f, BRIG_DTYPE_HIDDEN);
        assert_int_equal(brig_frame_layout(&f, NULL), 0);
        change(w->at, w->value);
        if (w->at2 != 0)
            change(w->at2, w->value2);
        int r = brig_frame_layout(&f, &fail);
        if ((r != -BRIG_EPROTO && r != -BRIG_ELIMIT) || fail.text[0] == '\0')
            fail_msg("%s: gave %d", w->what, r);
    }
    fill(&f, BRIG_DTYPE_ERROR);
    f.payload_bytes = BRIG_FRAME_MAX_ERROR + 1;
    assert_int_equal(brig_frame_layout(&f, NULL), -BRIG_EPROTO);
    fill(&f, BRIG_DTYPE_CANDIDATES);
    f.top = 15; /* fewer asked than given */
    assert_int_equal(brig_frame_layout(&f, NULL), -BRIG_EPROTO);
}

/* 10 rows wanted, answered in parts. */
static int part(uint32_t number, uint32_t n_parts, uint32_t first, uint32_t wants, uint32_t cols)
{
    fill(&f, BRIG_DTYPE_LOGITS);
    f.runs[0].count = 9;
    f.wants[0] = (struct brig_want){0, 10};
    f.part = number;
    f.n_parts = n_parts;
    f.part_first_want = first;
    f.part_wants = wants;
    f.cols = cols;
    return brig_frame_layout(&f, NULL);
}

static void parts(void **state)
{
    const uint32_t big = BRIG_FRAME_MAX_PART / 4;
    (void)state;
    assert_int_equal(part(0, 1, 0, 10, 100), 0);
    assert_int_equal(part(0, 2, 0, 5, 100), 0);
    assert_int_equal(part(1, 2, 5, 5, 100), 0);
    assert_int_equal(part(0, 10, 0, 1, big), 0);
    assert_int_equal(part(9, 10, 9, 1, big + 1), 0); /* a single row may be larger */
    assert_int_equal(part(4, 5, 8, 2, big / 2), 0);
    assert_int_equal(part(4, 5, 8, 2, big / 2 + 1), -BRIG_ELIMIT);
    assert_int_equal(part(0, 1, 0, 9, 100), -BRIG_EPROTO);  /* one row is missing */
    assert_int_equal(part(0, 2, 0, 10, 100), -BRIG_EPROTO); /* nothing left for the second */
    assert_int_equal(part(0, 2, 1, 5, 100), -BRIG_EPROTO);
    assert_int_equal(part(1, 2, 0, 10, 100), -BRIG_EPROTO);
    assert_int_equal(part(2, 2, 5, 5, 100), -BRIG_EPROTO);
    assert_int_equal(part(1, 2, 5, 6, 100), -BRIG_EPROTO);
    assert_int_equal(part(1, 2, 9, UINT32_MAX, 100), -BRIG_EPROTO);
    assert_int_equal(part(3, 4, 2, 8, 100), -BRIG_EPROTO); /* three parts before, two rows */
    assert_int_equal(part(0, 0, 0, 10, 100), -BRIG_EPROTO);
    assert_int_equal(part(0, 11, 0, 1, 100), -BRIG_EPROTO);
    assert_int_equal(part(1, 2, 10, 0, 100), -BRIG_EPROTO);
}

static void largest(void **state)
{
    (void)state;
    memset(&f, 0xff, sizeof f);
    f.stage = 0;
    f.n_stages = BRIG_FRAME_MAX_STAGES;
    f.flags = BRIG_FRAME_PSS;
    f.dtype = BRIG_DTYPE_HIDDEN;
    f.cols = 1;
    f.n_choices = 0;
    f.top = BRIG_FRAME_MAX_TOP;
    f.n_runs = f.n_wants = f.n_ops = 256;
    for (unsigned i = 0; i < 256; i++) {
        f.runs[i] = (struct brig_run){UINT32_MAX, (1u << 31) - 16, 16};
        f.wants[i] = (struct brig_want){16 * i, 16};
        f.ops[i].kind = BRIG_CACHE_DROP;
    }
    uint8_t *m = message(&f);
    assert_int_equal(brig_frame_decode(&g, m, f.message_bytes, NULL), 0);
    same(&f, &g);
    assert_true(f.timing_offset <= BRIG_FRAME_MAX_HEAD);
    assert_true(f.message_bytes <= brig_frame_max_message(BRIG_FRAME_MAX_STAGES, 4096, 1, 1, 0));
    brig_free(m);
    f.n_choices = BRIG_FRAME_MAX_CHOICES;
    assert_int_equal(brig_frame_layout(&f, NULL), 0);
    assert_true(f.message_bytes > (uint64_t)4096 * 2 * BRIG_FRAME_MAX_CHOICES);
    assert_true(f.message_bytes <= brig_frame_max_message(BRIG_FRAME_MAX_STAGES, 4096, 1, 1, UINT64_MAX));
    f.n_choices = 0;
    f.dtype = BRIG_DTYPE_CANDIDATES;
    f.cols = BRIG_FRAME_MAX_TOP;
    assert_int_equal(brig_frame_layout(&f, NULL), 0);
    assert_true(f.message_bytes <= brig_frame_max_message(BRIG_FRAME_MAX_STAGES, 4096, 1, 1, 0));
    f.dtype = BRIG_DTYPE_HIDDEN;
    f.cols = 1u << 20;
    assert_int_equal(brig_frame_layout(&f, NULL), 0);
    assert_true(f.message_bytes <= brig_frame_max_message(BRIG_FRAME_MAX_STAGES, 4096, 1u << 20, 1, 0));
    /* no overflow at the ends of the types */
    assert_true(brig_frame_max_message(UINT32_MAX, UINT32_MAX, UINT32_MAX, UINT32_MAX, UINT64_MAX) >
                1ull << 38);
    assert_true(brig_frame_max_message(1, 1, 576, 49152, 0) < (1u << 20));
}

/* ---- what decode refuses ---- */

/* Decode n bytes of their own (so that a sanitizer sees a read beyond them); what is accepted must be what
 * encode would write. */
static int decode_exact(const uint8_t *bytes, size_t n)
{
    struct brig_fail fail = {0};
    uint8_t *p = brig_alloc(n > 0 ? n : 1, 1);
    assert_non_null(p);
    memcpy(p, bytes, n);
    int r = brig_frame_decode(&g, p, n, &fail);
    if (r == 0) {
        uint8_t *again = brig_alloc(n, 1);
        assert_non_null(again);
        assert_true(g.message_bytes == n);
        assert_int_equal(brig_frame_encode(&g, again, n, &fail), 0);
        assert_memory_equal(p, again, g.timing_offset);
        brig_free(again);
    } else {
        assert_true(fail.text[0] != '\0' && -r == (int)fail.code);
    }
    brig_free(p);
    return r;
}

static void truncated(void **state)
{
    (void)state;
    for (int d = 0; d < BRIG_DTYPE_COUNT; d++) {
        fill(&f, (enum brig_dtype)d);
        uint8_t *m = message(&f);
        for (size_t n = 0; n < f.message_bytes; n++)
            assert_true(decode_exact(m, n) < 0);
        assert_int_equal(decode_exact(m, f.message_bytes), 0);
        brig_free(m);
        m = brig_alloc(f.message_bytes + 64, 1);
        assert_int_equal(brig_frame_encode(&f, m, f.message_bytes, NULL), 0);
        for (size_t n = 1; n <= 64; n++) /* more than it says */
            assert_true(decode_exact(m, f.message_bytes + n) < 0);
        brig_free(m);
    }
}

/* Room for the choices of experts lies between timings and payload, and what is around it must be zero. */
static void choices_of_experts(void **state)
{
    (void)state;
    choices = 5;
    round_trip(state);
    truncated(state);
    fill(&f, BRIG_DTYPE_HIDDEN);
    uint8_t *m = message(&f);
    assert_true(f.choices_offset == 320 && f.payload_offset == 384); /* 4 rows of 5, 2 bytes each */
    memset(m + f.choices_offset, 0xff, 40);
    assert_int_equal(brig_frame_decode(&g, m, f.message_bytes, NULL), 0);
    for (size_t at = 320 + 40; at < 384; at++) {
        m[at] = 1;
        assert_int_equal(brig_frame_decode(&g, m, f.message_bytes, NULL), -BRIG_EPROTO);
        m[at] = 0;
    }
    brig_free(m);
    choices = 0;
}

static void every_byte_changed(void **state)
{
    (void)state;
    unsigned refused = 0;
    for (int d = 0; d < BRIG_DTYPE_COUNT; d++) {
        fill(&f, (enum brig_dtype)d);
        uint8_t *m = message(&f);
        for (size_t at = 0; at < f.timing_offset; at++)
            for (unsigned v = 0; v < 256; v++) {
                uint8_t was = m[at];
                m[at] = (uint8_t)v;
                refused += decode_exact(m, f.message_bytes) < 0;
                m[at] = was;
            }
        brig_free(m);
    }
    assert_true(refused > 10000);
}

static void versions_and_lies(void **state)
{
    (void)state;
    fill(&f, BRIG_DTYPE_HIDDEN);
    uint8_t *m = message(&f);
    m[3] = 2;
    assert_int_equal(decode_exact(m, f.message_bytes), -BRIG_EVERSION);
    m[3] = 3;
    m[2] = 0x14; /* a field more */
    assert_int_equal(decode_exact(m, f.message_bytes), -BRIG_EPROTO);
    m[2] = 0x13;
    m[43] = 0x02; /* a payload twice as long */
    assert_int_equal(decode_exact(m, f.message_bytes), -BRIG_EPROTO);
    m[43] = 0x01;
    assert_int_equal(decode_exact(m, f.message_bytes), 0);
    m[63] = 1; /* padding before the timings */
    assert_int_equal(decode_exact(m, f.message_bytes), -BRIG_EPROTO);
    m[63] = 0;
    m[f.timing_offset + 216] = 1; /* and after them */
    assert_int_equal(decode_exact(m, f.message_bytes), -BRIG_EPROTO);
    m[f.timing_offset + 216] = 0;
    static const uint8_t huge[] = {0xdd, 0xff, 0xff, 0xff, 0xff};
    memcpy(m + 45, huge, sizeof huge); /* four thousand million runs */
    assert_int_equal(decode_exact(m, f.message_bytes), -BRIG_EPROTO);
    brig_free(m);
}

/* The same header with `stage` in another width would be patched at the wrong place. */
static void widths_are_fixed(void **state)
{
    (void)state;
    fill(&f, BRIG_DTYPE_NONE);
    f.n_ops = 0;
    f.flags = 0;
    uint8_t *m = message(&f);
    /* epoch in 9 bytes and stage in 1: the same length in all */
    static const uint8_t other[] = {0xcf, 0, 0, 0, 0, 0, 0, 0, 2, 0x00};
    memcpy(m + 22, other, sizeof other);
    assert_int_equal(decode_exact(m, f.message_bytes), -BRIG_EPROTO);
    brig_free(m);
}

static void encode_checks_its_room(void **state)
{
    (void)state;
    uint8_t small[64] = {0};
    fill(&f, BRIG_DTYPE_HIDDEN);
    assert_int_equal(brig_frame_layout(&f, NULL), 0);
    assert_int_equal(brig_frame_encode(&f, small, sizeof small, NULL), -BRIG_EINTERNAL);
    f.n_runs = 30; /* after layout */
    uint8_t *m = brig_alloc(f.message_bytes, 1);
    assert_int_equal(brig_frame_encode(&f, m, f.message_bytes, NULL), -BRIG_EINTERNAL);
    brig_free(m);
}

/* The seeds of the fuzz target (`make fuzz-seeds`): each is accepted, and every kind of message is there. */
static void seeds_are_of_this_version(void **state)
{
    (void)state;
    const char *const folder = "tests/fuzz/corpus_frame";
    unsigned dtypes = 0, requests = 0, replies = 0;
    DIR *d = opendir(folder);
    assert_non_null(d);
    for (const struct dirent *e; (e = readdir(d)) != NULL;) {
        static uint8_t m[65536];
        static struct brig_request q;
        static struct brig_reply p;
        struct brig_fail fail = {0};
        char path[512];
        if (e->d_name[0] == '.')
            continue;
        snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        FILE *in = fopen(path, "rb");
        assert_non_null(in);
        int kind = fgetc(in), r = -1;
        size_t n = fread(m, 1, sizeof m, in);
        fclose(in);
        if (kind == 0 && (r = brig_frame_decode(&g, m, n, &fail)) == 0)
            dtypes |= 1u << g.dtype;
        if (kind == 1 && (r = brig_request_decode(&q, m, n, &fail)) == 0)
            requests |= 1u << q.kind;
        if (kind == 2 && (r = brig_reply_decode(&p, m, n, &fail)) == 0)
            replies |= 1u << p.kind;
        if (r != 0)
            fail_msg("%s: %s: `make fuzz-seeds` makes them anew", path, fail.text);
    }
    closedir(d);
    assert_int_equal(dtypes, (1u << BRIG_DTYPE_COUNT) - 1);
    assert_int_equal(requests, (1u << BRIG_CONTROL_COUNT) - 1);
    assert_int_equal(replies, (1u << BRIG_CONTROL_COUNT) - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(round_trip),
        cmocka_unit_test(known_bytes),
        cmocka_unit_test(in_place),
        cmocka_unit_test(answers_come_from_the_end),
        cmocka_unit_test(layout_refuses),
        cmocka_unit_test(parts),
        cmocka_unit_test(largest),
        cmocka_unit_test(truncated),
        cmocka_unit_test(choices_of_experts),
        cmocka_unit_test(every_byte_changed),
        cmocka_unit_test(versions_and_lies),
        cmocka_unit_test(widths_are_fixed),
        cmocka_unit_test(encode_checks_its_room),
        cmocka_unit_test(seeds_are_of_this_version),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
