/*
 * The seeds of fuzz_frame, in the present version of the protocol: seeds_frame FOLDER. `make fuzz-seeds` runs
 * it; a unit test fails when what lies in corpus_frame/ is of another version.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base/mem.h"
#include "proto/wire/control.h"
#include "proto/wire/frame.h"

enum kind { FRAME, REQUEST, REPLY }; /* the first byte, as fuzz_frame reads it */

static const char *folder;

static void give_up(const char *name, const char *why)
{
    fprintf(stderr, "seeds_frame: %s: %s\n", name, why);
    exit(1);
}

static void write_seed(const char *name, enum kind kind, const void *bytes, size_t n)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "wb");
    if (f == NULL || fputc((int)kind, f) == EOF || fwrite(bytes, 1, n, f) != n || fclose(f) != 0)
        give_up(path, "cannot be written");
}

/* ---- frames ---- */

static void write_frame(const char *name, enum brig_dtype dtype, bool choices)
{
    static struct brig_frame f;
    struct brig_fail fail = {0};
    bool answer = dtype == BRIG_DTYPE_CANDIDATES || dtype == BRIG_DTYPE_LOGITS || dtype == BRIG_DTYPE_NORMED;
    f = (struct brig_frame){.run_id = 1,
                            .frame_id = 2,
                            .n_stages = 2,
                            .stage = answer ? 2 : 0,
                            .flags = dtype == BRIG_DTYPE_NORMED ? BRIG_FRAME_NORMED : BRIG_FRAME_PSS,
                            .dtype = dtype,
                            .cols = 2,
                            .top = dtype == BRIG_DTYPE_HIDDEN || dtype == BRIG_DTYPE_CANDIDATES ? 2 : 0,
                            .n_parts = 1,
                            .part_wants = 2,
                            .n_choices = choices ? 4 : 0,
                            .n_ops = 2,
                            .ops = {{BRIG_CACHE_TRUNCATE, 0, 3}, {BRIG_CACHE_COPY, 1, 0}},
                            .payload_bytes = dtype == BRIG_DTYPE_ERROR ? 5 : 0};
    if (dtype != BRIG_DTYPE_NONE) {
        f.n_runs = 2;
        f.runs[0] = (struct brig_run){0, 5, 2};
        f.runs[1] = (struct brig_run){1, 0, 1};
        f.n_wants = 1;
        f.wants[0] = (struct brig_want){1, 2};
    }
    if (brig_frame_layout(&f, &fail) < 0)
        give_up(name, fail.text);
    uint8_t *m = brig_alloc(f.message_bytes, 1);
    if (m == NULL || brig_frame_encode(&f, m, f.message_bytes, &fail) < 0)
        give_up(name, m == NULL ? "out of memory" : fail.text);
    memset(m + f.payload_offset, 'x', f.payload_bytes);
    write_seed(name, FRAME, m, f.message_bytes);
    brig_free(m);
}

static void write_frames(void)
{
    static const char *const names[BRIG_DTYPE_COUNT] = {"frame_none",   "frame_hidden", "frame_candidates",
                                                        "frame_logits", "frame_error",  "frame_normed"};
    for (unsigned d = 0; d < BRIG_DTYPE_COUNT; d++)
        write_frame(names[d], (enum brig_dtype)d, false);
    write_frame("frame_hidden_choices", BRIG_DTYPE_HIDDEN, true);
    write_frame("frame_candidates_choices", BRIG_DTYPE_CANDIDATES, true);
}

/* ---- control messages ---- */

static const char *const control_names[BRIG_CONTROL_COUNT] = {"hello", "attach", "status", "drain", "stop"};

static void write_request(enum brig_control_kind kind, struct brig_buf *b)
{
    char name[64];
    struct brig_request q = {.kind = kind,
                             .run_id = 77,
                             .stage = 0,
                             .n_stages = 3,
                             .max_rows = 4,
                             .ctx = 64,
                             .slots = 1,
                             .next_url = "abstract://b"};
    brig_numeric_class(q.numeric_class, false, "f16");
    snprintf(name, sizeof name, "request_%s", control_names[kind]);
    if (brig_request_encode(&q, b) < 0)
        give_up(name, "cannot be encoded");
    write_seed(name, REQUEST, b->data, b->len);
}

static void write_reply(const char *what, const struct brig_reply *r, struct brig_buf *b)
{
    char name[64];
    snprintf(name, sizeof name, "reply_%s", what);
    if (brig_reply_encode(r, b) < 0)
        give_up(name, "cannot be encoded");
    write_seed(name, REPLY, b->data, b->len);
}

static void write_control(void)
{
    struct brig_buf b = {0};
    struct brig_reply r = {.n_layers = 30,
                           .cells_last = 31,
                           .hidden = 576,
                           .vocab = 49152,
                           .ctx = 64,
                           .slots = 1,
                           .kernel = "scalar",
                           .host = "h",
                           .pid = 9,
                           .threads = 1,
                           .mapped_bytes = 4096,
                           .unlocked_bytes = 4096,
                           .data_url = "abstract://a-d1",
                           .frame_id = 3,
                           .progress = 300,
                           .layer = 4,
                           .working = true};
    brig_numeric_class(r.numeric_class, true, "f32");
    for (unsigned k = 0; k < BRIG_CONTROL_COUNT; k++) {
        write_request((enum brig_control_kind)k, &b);
        r.kind = (enum brig_control_kind)k;
        write_reply(control_names[k], &r, &b);
    }
    r.kind = BRIG_CONTROL_STATUS;
    r.state = BRIG_SHARD_FAILED;
    snprintf(r.text, sizeof r.text, "no more");
    write_reply("failed", &r, &b);
    r = (struct brig_reply){.kind = BRIG_CONTROL_ATTACH, .err = BRIG_EBUSY, .text = "busy"};
    write_reply("busy", &r, &b);
    brig_buf_release(&b);
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: seeds_frame FOLDER\n");
        return 2;
    }
    folder = argv[1];
    write_frames();
    write_control();
    return 0;
}
