/*
 * Frames through the line: along a chain, several at once, or stage by stage with processes started on the
 * way.
 */
#include "driver/run/line_parts.h"

#include <string.h>

#include "proto/base/clock.h"

/* A process that lives grows slowly, by its cache, and reading its memory's size means a walk over all of its
 * pages: milliseconds. So it is asked in the first frame and then now and then. */
static bool asks_memory(struct brig_line *l, const struct brig_pass *pass)
{
    if (!l->opts.pss || !(l->opts.mode->keeps || l->opts.mode->picks))
        return l->opts.pss;
    return pass->n_runs > 0 && l->n_passes++ % BRIG_LINE_PSS_EVERY == 0;
}

static int make_message(struct brig_line *l, const struct brig_pass *pass, struct brig_flight *to,
                        struct brig_msg **ret, struct brig_fail *fail)
{
    struct brig_frame *f = &to->frame;
    if (pass->n_runs > BRIG_FRAME_MAX_RUNS || pass->n_wants > BRIG_FRAME_MAX_WANTS ||
        pass->n_ops > BRIG_FRAME_MAX_OPS)
        return brig_fail_set(fail, BRIG_EINTERNAL, "a pass of %u runs, %u wants, %u cache operations",
                             pass->n_runs, pass->n_wants, pass->n_ops);
    f->run_id = l->run_id;
    f->frame_id = ++l->frame_id;
    f->stage = 0;
    f->n_stages = l->n_stages;
    f->flags = (asks_memory(l, pass) ? BRIG_FRAME_PSS : 0) | (pass->normed ? BRIG_FRAME_NORMED : 0);
    f->dtype = pass->n_runs > 0 ? BRIG_DTYPE_HIDDEN : BRIG_DTYPE_NONE;
    f->cols = pass->n_runs > 0 ? l->opts.model->desc.hidden : 0;
    f->top = pass->top;
    f->part = 0;
    f->n_parts = 1;
    f->part_first_want = f->part_wants = 0;
    f->n_choices =
        l->opts.routes != NULL && pass->n_runs > 0 ? (uint32_t)brig_desc_choices(&l->opts.model->desc) : 0;
    f->n_runs = pass->n_runs;
    f->n_wants = pass->n_wants;
    f->n_ops = pass->n_ops;
    if (pass->n_runs > 0)
        memcpy(f->runs, pass->runs, pass->n_runs * sizeof *f->runs);
    if (pass->n_wants > 0)
        memcpy(f->wants, pass->wants, pass->n_wants * sizeof *f->wants);
    if (pass->n_ops > 0)
        memcpy(f->ops, pass->ops, pass->n_ops * sizeof *f->ops);
    int r = brig_frame_layout(f, fail);
    if (r < 0)
        return r;
    struct brig_msg *m = brig_msg_new(f->message_bytes);
    if (m == NULL)
        return brig_fail_set(fail, BRIG_ENOMEM, "out of memory for a frame of %u rows", f->n_rows);
    r = brig_frame_encode(f, brig_msg_data(m), brig_msg_len(m), fail);
    if (r < 0) {
        brig_msg_free(m);
        return r;
    }
    if (f->payload_bytes > 0)
        memcpy((uint8_t *)brig_msg_data(m) + f->payload_offset, pass->h, f->payload_bytes);
    *ret = m;
    return 0;
}

static int send_to(struct brig_line *l, unsigned stage, struct brig_msg *m, struct brig_fail *fail)
{
    struct brig_peer *p = &l->peers[stage];
    int r = p->tx_link->send(p->tx, m, l->opts.timeout_ms, fail);
    if (r < 0) {
        brig_msg_free(m);
        return brig_peer_blame(l, stage, fail);
    }
    return 0;
}

/* While `stage` computes. In this order: the connections to the one before are closed first, because as long
 * as they stand to a process that has ended NNG tries to renew them, which costs a core; the next one is
 * connected before another is started, for a starting process takes the core that the connecting needs; the
 * process that has ended is waited for last. Measured: 5.8 instead of 3.4 tokens/s with 31 shards
 * (docs/benchmarks.md). Under a budget it is waited for before one is started: no memory is counted for both.
 */
static int prepare_next(struct brig_line *l, unsigned stage, struct brig_fail *fail)
{
    bool leaves = stage > 0 && !brig_line_lives(l, stage - 1);
    struct brig_early early = brig_line_early_none(l, stage);
    int r = 0;
    if (leaves)
        brig_peer_part(l, stage - 1);
    for (unsigned i = stage + 1; r == 0 && i < l->n_stages; i++) {
        if (brig_line_lives(l, i))
            continue;
        if (!brig_line_early(l, i, &early))
            break;
        if (leaves && brig_line_frugal(l) && !brig_launcher_alive(l->launcher, i)) {
            brig_peer_down(l, stage - 1);
            leaves = false;
        }
        if (early.n == 1)
            r = brig_peer_up(l, i, fail);
        else if (!brig_launcher_alive(l->launcher, i))
            r = brig_launcher_start(l->launcher, i, fail);
    }
    if (leaves)
        brig_peer_down(l, stage - 1);
    return r;
}

/* Before a frame goes to `stage`: its process is there. When it was not started early, because there was no
 * room for it, the one before ends first. */
static int make_ready(struct brig_line *l, unsigned stage, struct brig_fail *fail)
{
    if (brig_line_frugal(l) && stage > 0 && !brig_line_lives(l, stage - 1) &&
        !brig_launcher_alive(l->launcher, stage))
        brig_peer_down(l, stage - 1);
    return brig_peer_up(l, stage, fail);
}

/* Wait until the frame comes back from `stage`; *m is then the message that came. */
static int come_back(struct brig_line *l, unsigned stage, struct brig_msg **m, struct brig_fail *fail)
{
    int r = brig_line_await(l, m, fail);
    if (r < 0 || l->got.stage == stage + 1)
        return r;
    brig_msg_free(*m);
    return brig_fail_set(fail, BRIG_EPROTO, "a frame came back from stage %u where %u was due", l->got.stage,
                         stage + 1);
}

/* On a star: send m to `stage` and wait until it gives it back; *m is then the message that came back, else
 * it is gone. */
static int one_leg(struct brig_line *l, unsigned stage, struct brig_msg **m, struct brig_fail *fail)
{
    bool keeps = l->opts.mode->keeps;
    int r = keeps ? 0 : make_ready(l, stage, fail);
    if (r < 0) {
        brig_msg_free(*m);
        return r;
    }
    r = send_to(l, stage, *m, fail);
    if (r == 0 && !keeps)
        r = prepare_next(l, stage, fail);
    if (r == 0)
        r = come_back(l, stage, m, fail);
    if (r == 0)
        l->peers[stage].done = !brig_line_lives(l, stage) && l->now->frame.n_rows > 0;
    return r;
}

/* Rows that a stage in the middle gave back, for those who want to see them. */
static int show_rows(struct brig_line *l, const struct brig_pass *pass, struct brig_msg *m, unsigned stage,
                     struct brig_fail *fail)
{
    const struct brig_frame *f = &l->got;
    if (f->dtype != BRIG_DTYPE_HIDDEN || f->n_rows != l->now->frame.n_rows || f->cols != l->now->frame.cols)
        return brig_fail_set(fail, BRIG_EPROTO,
                             "stage %u gave back %u rows of %u columns, %u of %u were sent", stage, f->n_rows,
                             f->cols, l->now->frame.n_rows, l->now->frame.cols);
    int r =
        pass->stage_sink(pass->sink_ctx, stage,
                         (const float *)((const uint8_t *)brig_msg_data(m) + f->payload_offset), f->n_rows);
    return r < 0 ? brig_fail_set(fail, (enum brig_err) - r, "the rows of stage %u could not be stored", stage)
                 : 0;
}

static int walk(struct brig_line *l, const struct brig_pass *pass, struct brig_msg **m,
                struct brig_fail *fail)
{
    for (unsigned stage = 0; stage < l->n_stages; stage++) {
        int r = one_leg(l, stage, m, fail);
        if (r < 0)
            return r;
        if (pass->stage_sink != NULL && stage + 1 < l->n_stages)
            r = show_rows(l, pass, *m, stage, fail);
        if (r < 0) {
            brig_msg_free(*m);
            return r;
        }
    }
    return 0;
}

/* After a failure or a cancel no process may stay that works once: the next pass starts them anew. */
static void drop_started(struct brig_line *l)
{
    for (unsigned i = 0; i < l->n_stages; i++) {
        if (brig_line_lives(l, i))
            continue;
        l->peers[i].done = false;
        l->peers[i].attached = false; /* no farewell: it may be in the middle of its work */
        brig_peer_down(l, i);
    }
}

/* --wait hold: while a frame is under way the CPUs stay awake. */
static void wake(struct brig_line *l)
{
    if (l->opts.hold && l->n_flights == 0)
        l->hold = brig_hold_begin();
}

static void rest(struct brig_line *l)
{
    if (l->n_flights == 0)
        brig_hold_end(l->hold);
    if (l->n_flights == 0)
        l->hold = -1;
}

/* The failure r of a frame: all that are under way are given up, for what they left in the caches is not
 * known. Their late answers are told by their numbers. */
static int give_up(struct brig_line *l, int r, struct brig_fail *fail)
{
    for (; l->n_flights > 0; l->n_flights--, l->oldest = (l->oldest + 1) % l->room) {
        brig_msg_free(l->flights[l->oldest].m);
        l->flights[l->oldest].m = NULL;
    }
    rest(l);
    drop_started(l);
    return brig_line_verdict(l, r, fail);
}

unsigned brig_line_room(const struct brig_line *l)
{
    return l->room;
}

int brig_line_send(struct brig_line *l, const struct brig_pass *pass, struct brig_fail *fail)
{
    if (l->n_flights == l->room)
        return brig_fail_set(fail, BRIG_EINTERNAL, "more than %u frames under way", l->room);
    struct brig_flight *to = &l->flights[(l->oldest + l->n_flights) % l->room];
    struct brig_msg *m;
    wake(l);
    to->begin_ns = brig_clock_ns();
    to->pass = *pass;
    to->alone = l->n_flights == 0;
    for (unsigned i = 0; i < l->n_flights; i++)
        l->flights[(l->oldest + i) % l->room].alone = false;
    int r = make_message(l, pass, to, &m, fail);
    if (r == 0 && l->star)
        to->m = m;
    else if (r == 0)
        r = send_to(l, 0, m, fail);
    if (r < 0)
        return give_up(l, r, fail);
    l->n_flights++;
    return 0;
}

static int receive(struct brig_line *l, struct brig_fail *fail)
{
    struct brig_msg *m = l->now->m;
    bool complete = false;
    l->now->m = NULL;
    int r = l->star ? walk(l, &l->now->pass, &m, fail) : come_back(l, l->n_stages - 1, &m, fail);
    if (r < 0)
        return r;
    if (l->now->frame.n_rows > 0)
        brig_line_account(l, m, brig_clock_ns());
    if (l->now->frame.n_choices > 0)
        r = brig_routes_add(l->opts.routes, &l->now->frame, &l->got, brig_msg_data(m), fail);
    if (r == 0)
        r = brig_line_take_answer(l, m, &complete, fail);
    brig_msg_free(m);
    for (uint32_t part = 1; r == 0 && !complete; part++) {
        r = brig_line_await(l, &m, fail);
        if (r < 0)
            break;
        if (l->got.part != part)
            r = brig_fail_set(fail, BRIG_EPROTO, "part %u of an answer came where %u was due", l->got.part,
                              part);
        if (r == 0)
            r = brig_line_take_answer(l, m, &complete, fail);
        brig_msg_free(m);
    }
    return r;
}

int brig_line_receive(struct brig_line *l, struct brig_answer *ret, struct brig_fail *fail)
{
    if (l->n_flights == 0)
        return brig_fail_set(fail, BRIG_EINTERNAL, "no frame is under way");
    l->now = &l->flights[l->oldest];
    int r = receive(l, fail);
    if (r < 0)
        return give_up(l, r, fail);
    l->oldest = (l->oldest + 1) % l->room;
    l->n_flights--;
    rest(l);
    if (!brig_line_lives(l, l->n_stages - 1))
        brig_peer_down(l, l->n_stages - 1);
    *ret = l->answer;
    return 0;
}

int brig_line_pass(struct brig_line *l, const struct brig_pass *pass, struct brig_answer *ret,
                   struct brig_fail *fail)
{
    if (l->n_flights > 0)
        return brig_fail_set(fail, BRIG_EINTERNAL, "a pass while other frames are under way");
    int r = brig_line_send(l, pass, fail);
    return r < 0 ? r : brig_line_receive(l, ret, fail);
}

static int time_one_start(struct brig_line *l, unsigned stage, uint64_t *ret_ns, struct brig_fail *fail)
{
    const struct brig_pass empty = {0};
    struct brig_msg *m;
    uint64_t begin = brig_clock_ns();
    l->now = &l->flights[0];
    int r = brig_peer_up(l, stage, fail);
    if (r == 0)
        r = make_message(l, &empty, l->now, &m, fail);
    if (r == 0) {
        brig_frame_patch_stage(&l->now->frame, brig_msg_data(m), stage);
        r = send_to(l, stage, m, fail);
    }
    if (r == 0)
        r = brig_line_await(l, &m, fail);
    if (r < 0)
        return r;
    *ret_ns = brig_clock_ns() - begin;
    brig_msg_free(m);
    brig_peer_down(l, stage);
    return 0;
}

int brig_line_time_starts(struct brig_line *l, unsigned n, uint64_t *ret_ns, struct brig_fail *fail)
{
    if (l->opts.mode->keeps || l->opts.mode->picks)
        return brig_fail_set(fail, BRIG_EINTERNAL, "starts are timed on a line that keeps nothing");
    for (unsigned i = 0; i < n; i++) {
        int r = time_one_start(l, i % l->n_stages, &ret_ns[i], fail);
        if (r < 0) {
            drop_started(l);
            return brig_line_verdict(l, r, fail);
        }
    }
    return 0;
}
