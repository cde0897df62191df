/*
 * Fuzz target: the first byte says what the rest is taken for, a frame, a request or a reply. What decode
 * accepts must be what encode writes, and can be worked on in place. clang
 * -fsanitize=fuzzer,address,undefined; seeds in corpus_frame/, made by seeds_frame.c.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base/mem.h"
#include "proto/wire/control.h"
#include "proto/wire/frame.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

static void check(int good)
{
    if (!good)
        abort();
}

static void check_rows(const struct brig_frame *f)
{
    uint64_t rows = 0, wanted = 0;
    for (unsigned i = 0; i < f->n_runs; i++) {
        rows += f->runs[i].count;
        check((uint64_t)f->runs[i].pos + f->runs[i].count <= 1ull << 31);
    }
    for (unsigned i = 0; i < f->n_wants; i++) {
        wanted += f->wants[i].count;
        check((uint64_t)f->wants[i].first + f->wants[i].count <= rows);
    }
    check(rows == f->n_rows && wanted == f->n_want_rows && rows <= BRIG_FRAME_MAX_ROWS);
    if (f->dtype == BRIG_DTYPE_HIDDEN)
        check(f->payload_bytes == rows * f->cols * 4);
    if (f->dtype == BRIG_DTYPE_LOGITS)
        check((uint64_t)f->part_first_want + f->part_wants <= wanted);
}

static void try_frame(uint8_t *m, size_t n)
{
    static struct brig_frame f, again;
    struct brig_fail fail = {0};
    if (brig_frame_decode(&f, m, n, &fail) < 0) {
        check(fail.code != BRIG_OK && fail.text[0] != '\0');
        return;
    }
    check_rows(&f);
    check(f.payload_offset % 64 == 0 && f.payload_offset + f.payload_bytes == n && f.message_bytes == n);
    check(n <= brig_frame_max_message(f.n_stages, f.n_rows, f.cols, f.cols, f.n_choices));
    uint8_t *copy = brig_alloc(n, 1);
    check(copy != NULL && brig_frame_encode(&f, copy, n, NULL) == 0);
    check(memcmp(m, copy, f.timing_offset) == 0);
    brig_free(copy);
    const struct brig_stage_timing t = {.wait_ns = 1,
                                        .compute_ns = 2,
                                        .pss_bytes = 3,
                                        .mapped_bytes = UINT64_MAX,
                                        .read_bytes = 5,
                                        .stall_ns = 6,
                                        .experts_used = 7,
                                        .expert_hits = 8,
                                        .expert_read_bytes = 9};
    struct brig_stage_timing got;
    for (uint32_t stage = 0; stage < f.n_stages; stage++) {
        brig_frame_put_timing(&f, m, stage, &t);
        brig_frame_get_timing(&f, m, stage, &got);
        check(memcmp(&t, &got, sizeof t) == 0);
    }
    brig_frame_patch_stage(&f, m, f.n_stages);
    check(brig_frame_decode(&again, m, n, NULL) == 0 && again.stage == f.n_stages);
}

/* What was accepted is written in its shortest form, which says the same. */
static void try_request(const uint8_t *m, size_t n)
{
    struct brig_request r, again;
    struct brig_buf b = {0};
    if (brig_request_decode(&r, m, n, NULL) < 0)
        return;
    check(brig_request_encode(&r, &b) == 0 && b.len <= n);
    check(brig_request_decode(&again, b.data, b.len, NULL) == 0 && memcmp(&r, &again, sizeof r) == 0);
    brig_buf_release(&b);
}

static void try_reply(const uint8_t *m, size_t n)
{
    struct brig_reply r, again;
    struct brig_buf b = {0};
    if (brig_reply_decode(&r, m, n, NULL) < 0)
        return;
    check(brig_reply_encode(&r, &b) == 0 && b.len <= n);
    check(brig_reply_decode(&again, b.data, b.len, NULL) == 0 && memcmp(&r, &again, sizeof r) == 0);
    brig_buf_release(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    if (n == 0)
        return 0;
    uint8_t *m = brig_alloc(n > 1 ? n - 1 : 1, 1); /* exact; the frame is changed in place */
    check(m != NULL);
    memcpy(m, bytes + 1, n - 1);
    if (bytes[0] % 3 == 0)
        try_frame(m, n - 1);
    else if (bytes[0] % 3 == 1)
        try_request(m, n - 1);
    else
        try_reply(m, n - 1);
    brig_free(m);
    return 0;
}
