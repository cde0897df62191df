/*
 * What the head sends in place of hidden rows: the best candidates of each wanted row with the log-sum-exp of
 * all, or whole rows of logits in parts, or the rows after the final norm, or a frame without payload when no
 * row was wanted.
 */
#include "shard/serve.h"

#include <string.h>

#include "proto/base/clock.h"

/* One answer on its way; the frame is run->answer. */
struct reply {
    struct brig_serve *s;
    const struct brig_frame *asked;
    const float *h; /* hidden rows */
    uint64_t arrived_ns, pss_bytes;
    const uint8_t *timings; /* of the stages before */
    const uint8_t *choices; /* of experts, of all rows */
    struct brig_fail *why;  /* it could not be computed */
};

static void list_wanted_rows(const struct brig_frame *f, uint32_t *rows)
{
    uint32_t n = 0;
    for (unsigned i = 0; i < f->n_wants; i++)
        for (uint32_t k = 0; k < f->wants[i].count; k++)
            rows[n++] = f->wants[i].first + k;
}

/* A message for run->answer as it stands, with the timings of the stages before and the choices of experts.
 */
static int make_message(struct reply *a, struct brig_msg **ret, struct brig_fail *fail)
{
    struct brig_frame *f = &a->s->run->answer;
    int r = brig_frame_layout(f, fail);
    if (r < 0)
        return r;
    struct brig_msg *m = brig_msg_new(f->message_bytes);
    if (m == NULL)
        return brig_fail_set(fail, BRIG_ENOMEM, "out of memory for an answer of %llu bytes",
                             (unsigned long long)f->message_bytes);
    r = brig_frame_encode(f, brig_msg_data(m), f->message_bytes, fail);
    if (r < 0) {
        brig_msg_free(m);
        return r;
    }
    memcpy((uint8_t *)brig_msg_data(m) + f->timing_offset, a->timings,
           (size_t)f->n_stages * BRIG_STAGE_TIMING_BYTES);
    memcpy((uint8_t *)brig_msg_data(m) + f->choices_offset, a->choices, (size_t)brig_frame_choices_bytes(f));
    *ret = m;
    return 0;
}

static int send_part(struct reply *a, struct brig_msg *m, struct brig_fail *fail)
{
    struct brig_stage_timing t;
    if (brig_weights_check(a->s->hold->weights, a->why) < 0) {
        brig_msg_free(m);
        return 1;
    }
    brig_serve_timing(a->s, a->arrived_ns, a->pss_bytes, &t);
    return brig_serve_send(a->s, &a->s->run->answer, m, &t, fail);
}

static void *payload(struct reply *a, struct brig_msg *m)
{
    return (uint8_t *)brig_msg_data(m) + a->s->run->answer.payload_offset;
}

/* One row: f32 log-sum-exp, u32 n, n candidates (id, logit), zeros up to cols. */
static void write_row(const struct brig_head_answer *a, uint32_t cols, uint8_t *out)
{
    _Static_assert(sizeof *a->best == 8, "a candidate is 8 bytes on the wire");
    memcpy(out, &a->lse, 4);
    memcpy(out + 4, &a->n, 4);
    memcpy(out + 8, a->best, (size_t)a->n * sizeof *a->best);
    memset(out + 8 + (size_t)a->n * sizeof *a->best, 0, (size_t)(cols - a->n) * sizeof *a->best);
}

static int send_candidates(struct reply *a, struct brig_fail *fail)
{
    struct brig_serve_run *run = a->s->run;
    struct brig_head_answer rows[BRIG_HEAD_ROWS];
    uint32_t cols = a->asked->top, n_want = a->asked->n_want_rows;
    struct brig_msg *m;
    run->answer.dtype = BRIG_DTYPE_CANDIDATES;
    run->answer.cols = cols;
    int r = make_message(a, &m, fail);
    if (r < 0)
        return r;
    uint8_t *out = payload(a, m);
    for (uint32_t i = 0; i < n_want; i += BRIG_HEAD_ROWS) {
        uint32_t n = n_want - i < BRIG_HEAD_ROWS ? n_want - i : BRIG_HEAD_ROWS;
        if (brig_head_best(run->block, a->h, run->want_rows + i, n, cols, rows, a->why) < 0) {
            brig_msg_free(m);
            return 1;
        }
        for (uint32_t k = 0; k < n; k++, out += 8 + 8 * (size_t)cols)
            write_row(&rows[k], cols, out);
    }
    return send_part(a, m, fail);
}

/* Logits of the wanted rows of one part; false when they cannot be computed. */
static bool write_logits(struct reply *a, float *logits)
{
    struct brig_serve_run *run = a->s->run;
    const struct brig_frame *f = &run->answer;
    for (uint32_t i = 0; i < f->part_wants; i += BRIG_HEAD_ROWS) {
        uint32_t n = f->part_wants - i < BRIG_HEAD_ROWS ? f->part_wants - i : BRIG_HEAD_ROWS;
        if (brig_head_logits(run->block, a->h, run->want_rows + f->part_first_want + i, n,
                             logits + (size_t)i * f->cols, a->why) < 0)
            return false;
    }
    return true;
}

/* Wanted rows of a part of whole rows. */
static uint32_t rows_of_part(uint32_t vocab)
{
    uint32_t n = BRIG_FRAME_MAX_PART / 4 / vocab;
    return n > 0 ? n : 1;
}

static int send_rows(struct reply *a, struct brig_fail *fail)
{
    struct brig_serve_run *run = a->s->run;
    struct brig_frame *f = &run->answer;
    uint32_t vocab = a->s->hold->slice.desc.vocab, n_want = a->asked->n_want_rows;
    uint32_t part_rows = rows_of_part(vocab);
    f->dtype = BRIG_DTYPE_LOGITS;
    f->cols = vocab;
    f->n_parts = (n_want + part_rows - 1) / part_rows;
    for (f->part = 0; f->part < f->n_parts; f->part++) {
        struct brig_msg *m;
        f->part_first_want = f->part * part_rows;
        f->part_wants = n_want - f->part_first_want < part_rows ? n_want - f->part_first_want : part_rows;
        int r = make_message(a, &m, fail);
        if (r < 0)
            return r;
        if (!write_logits(a, payload(a, m))) {
            brig_msg_free(m);
            return 1;
        }
        r = send_part(a, m, fail);
        if (r != 0)
            return r;
    }
    return 0;
}

static int send_normed(struct reply *a, struct brig_fail *fail)
{
    struct brig_serve_run *run = a->s->run;
    uint32_t hidden = a->s->hold->slice.desc.hidden, n_want = a->asked->n_want_rows;
    struct brig_msg *m;
    run->answer.dtype = BRIG_DTYPE_NORMED;
    run->answer.cols = hidden;
    int r = make_message(a, &m, fail);
    if (r < 0)
        return r;
    float *out = payload(a, m);
    for (uint32_t i = 0; i < n_want; i += BRIG_HEAD_ROWS) {
        uint32_t n = n_want - i < BRIG_HEAD_ROWS ? n_want - i : BRIG_HEAD_ROWS;
        brig_head_normed(run->block, a->h, run->want_rows + i, n, out + (size_t)i * hidden);
    }
    return send_part(a, m, fail);
}

static int send_nothing(struct reply *a, struct brig_fail *fail)
{
    struct brig_msg *m;
    a->s->run->answer.dtype = BRIG_DTYPE_NONE;
    int r = make_message(a, &m, fail);
    return r < 0 ? r : send_part(a, m, fail);
}

unsigned brig_serve_head_rounds(const struct brig_serve *s, const struct brig_frame *f)
{
    uint32_t part_rows = f->top == 0 ? rows_of_part(s->hold->slice.desc.vocab) : UINT32_MAX;
    uint32_t rounds = 0;
    for (uint32_t left = f->n_want_rows, n; left > 0; left -= n) {
        n = left < part_rows ? left : part_rows;
        rounds += (n + BRIG_HEAD_ROWS - 1) / BRIG_HEAD_ROWS;
    }
    return (f->flags & BRIG_FRAME_NORMED) != 0 ? 0 : rounds;
}

int brig_serve_answer(struct brig_serve *s, struct brig_msg *m, uint64_t arrived_ns, uint64_t pss_bytes,
                      struct brig_fail *why, struct brig_fail *fail)
{
    struct brig_serve_run *run = s->run;
    const uint8_t *bytes = brig_msg_data(m);
    struct reply a = {.s = s,
                      .asked = &run->frame,
                      .h = (const float *)(bytes + run->frame.payload_offset),
                      .arrived_ns = arrived_ns,
                      .pss_bytes = pss_bytes,
                      .timings = bytes + run->frame.timing_offset,
                      .choices = bytes + run->frame.choices_offset,
                      .why = why};
    run->answer = run->frame;
    run->answer.n_ops = 0;
    list_wanted_rows(&run->frame, run->want_rows);
    if (run->frame.n_want_rows == 0)
        return send_nothing(&a, fail);
    if ((run->frame.flags & BRIG_FRAME_NORMED) != 0)
        return send_normed(&a, fail);
    return run->frame.top == 0 ? send_rows(&a, fail) : send_candidates(&a, fail);
}
