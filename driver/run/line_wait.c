/*
 * Waiting for a frame to come back. A deadline measures progress, not duration: each second the shards are
 * asked how far they are, and the wait ends only when nothing moves, when one is silent, or when one has
 * died.
 */
#include "driver/run/line_parts.h"

#include "proto/base/clock.h"

#define SLICE_MS 100u /* how soon a Ctrl-C or a dead process is noticed */

struct watch {
    uint64_t asked_ns; /* last round of questions */
    uint64_t moved_ns; /* last time that something had moved */
    uint64_t progress; /* sum over the stages */
    unsigned working;  /* a stage that says that it computes, or n_stages */
};

static bool is_cancelled(const struct brig_line *l)
{
    return l->opts.cancel != NULL && *l->opts.cancel != 0;
}

int brig_line_verdict(const struct brig_line *l, int r, struct brig_fail *fail)
{
    return r < 0 && is_cancelled(l) ? brig_fail_set(fail, BRIG_ECANCELLED, "cancelled") : r;
}

static int check_alive(struct brig_line *l, struct brig_fail *fail)
{
    if (is_cancelled(l))
        return brig_fail_set(fail, BRIG_ECANCELLED, "cancelled");
    for (unsigned i = 0; l->launcher != NULL && i < l->n_stages; i++)
        if (l->peers[i].attached && !l->peers[i].done && !brig_launcher_alive(l->launcher, i)) {
            brig_launcher_post_mortem(l->launcher, i, fail);
            return -(int)fail->code;
        }
    return 0;
}

static int no_answer(struct brig_line *l, unsigned stage, struct brig_fail *fail)
{
    char name[BRIG_URL_MAX + 96];
    brig_peer_name(l, stage, name, sizeof name);
    return brig_fail_set(fail, BRIG_ETIMEOUT, "%s: no answer in %.3g s (stopped, or its machine is gone)",
                         name, l->opts.timeout_ms / 1000.0);
}

/* A stage that did not answer: a fault when it has been silent for the whole time-out. */
static int silent(struct brig_line *l, unsigned stage, uint64_t asked_ns, struct brig_fail *fail)
{
    struct brig_peer *p = &l->peers[stage];
    if (p->silent_since_ns == 0)
        p->silent_since_ns = asked_ns;
    if (brig_clock_ns() - p->silent_since_ns < l->opts.timeout_ms * BRIG_NS_PER_MS)
        return 0;
    return no_answer(l, stage, fail);
}

static int ask(struct brig_line *l, unsigned stage, struct watch *w, uint64_t *sum, struct brig_fail *fail);

/* A stage whose next one has died fails too, and is the first to be asked: the cause is looked for behind it.
 */
static int failed(struct brig_line *l, unsigned stage, const struct brig_reply *reply, struct watch *w,
                  struct brig_fail *fail)
{
    unsigned next = stage + 1;
    uint64_t unused = 0;
    int r = next < l->n_stages && l->peers[next].attached ? ask(l, next, w, &unused, fail) : 0;
    if (r < 0)
        return r;
    brig_fail_set(fail, BRIG_EDEAD, "%s", reply->text);
    return brig_peer_blame(l, stage, fail);
}

static int ask(struct brig_line *l, unsigned stage, struct watch *w, uint64_t *sum, struct brig_fail *fail)
{
    struct brig_reply reply;
    uint32_t patience_ms = l->opts.timeout_ms < 1000 ? l->opts.timeout_ms : 1000;
    uint64_t now = brig_clock_ns();
    int r = brig_peer_status(l, stage, &reply, patience_ms, fail);
    if (r == -BRIG_ETIMEOUT)
        return silent(l, stage, now, fail);
    if (r < 0)
        return brig_peer_blame(l, stage, fail);
    l->peers[stage].silent_since_ns = 0;
    if (reply.state == BRIG_SHARD_FAILED)
        return failed(l, stage, &reply, w, fail);
    *sum += reply.progress;
    if (reply.working)
        w->working = stage;
    return 0;
}

static int still(struct brig_line *l, const struct watch *w, struct brig_fail *fail)
{
    char name[BRIG_URL_MAX + 96];
    double seconds = l->opts.timeout_ms / 1000.0;
    for (unsigned i = 0; i < l->n_stages; i++) /* where it is the only one, there is none that moved */
        if (l->peers[i].attached && !l->peers[i].done && l->peers[i].silent_since_ns != 0)
            return no_answer(l, i, fail);
    if (w->working == l->n_stages)
        return brig_fail_set(fail, BRIG_ETIMEOUT,
                             "no shard works and no frame came back in %.3g s: it was lost on the "
                             "way",
                             seconds);
    brig_peer_name(l, w->working, name, sizeof name);
    return brig_fail_set(fail, BRIG_ETIMEOUT, "%s: no progress in %.3g s", name, seconds);
}

static int check_progress(struct brig_line *l, struct watch *w, struct brig_fail *fail)
{
    uint64_t sum = 0, now = brig_clock_ns();
    if (now - w->asked_ns < BRIG_NS_PER_S)
        return 0;
    w->working = l->n_stages;
    for (unsigned i = 0; i < l->n_stages; i++) {
        if (!l->peers[i].attached || l->peers[i].done)
            continue;
        int r = ask(l, i, w, &sum, fail);
        if (r < 0)
            return r;
    }
    w->asked_ns = brig_clock_ns();
    if (sum != w->progress) {
        w->progress = sum;
        w->moved_ns = w->asked_ns;
    }
    if (w->asked_ns - w->moved_ns >= l->opts.timeout_ms * BRIG_NS_PER_MS)
        return still(l, w, fail);
    return 0;
}

/* The one that is waited for, and not one that was given up; fills l->got. */
static int accept_message(struct brig_line *l, struct brig_msg *m, bool *ours, struct brig_fail *fail)
{
    const struct brig_frame *want = &l->now->frame;
    int r = brig_frame_decode(&l->got, brig_msg_data(m), brig_msg_len(m), fail);
    if (r < 0)
        return brig_fail_prefix(fail, "a frame that came back");
    *ours = l->got.run_id == l->run_id && l->got.frame_id == want->frame_id && l->got.epoch == want->epoch;
    if (!*ours)
        return 0;
    if (l->got.n_stages != l->n_stages || l->got.stage == 0 || l->got.stage > l->n_stages)
        return brig_fail_set(fail, BRIG_EPROTO, "a frame came back from stage %u of %u", l->got.stage,
                             l->got.n_stages);
    if (l->got.dtype == BRIG_DTYPE_ERROR) {
        const char *text = (const char *)brig_msg_data(m) + l->got.payload_offset;
        int n = l->got.payload_bytes < 400 ? (int)l->got.payload_bytes : 400;
        return brig_fail_set(fail, BRIG_EDEAD, "%.*s", n, text);
    }
    return 0;
}

/* One try to receive; *found when it is the frame. -BRIG_ETIMEOUT when nothing came. */
static int try_receive(struct brig_line *l, uint32_t timeout_ms, struct brig_msg **ret, bool *found,
                       struct brig_fail *fail)
{
    struct brig_msg *m;
    int r = l->rx_link->recv(l->rx, &m, timeout_ms, fail);
    if (r < 0)
        return r;
    r = accept_message(l, m, found, fail);
    if (r == 0 && *found)
        *ret = m;
    else
        brig_msg_free(m);
    return r;
}

int brig_line_await(struct brig_line *l, struct brig_msg **ret, struct brig_fail *fail)
{
    uint64_t now = brig_clock_ns();
    struct watch w = {.asked_ns = now, .moved_ns = now, .working = l->n_stages};
    bool found = false;
    for (;;) {
        int r = try_receive(l, SLICE_MS, ret, &found, fail);
        if (r == -BRIG_ETIMEOUT)
            r = check_progress(l, &w, fail);
        if (r == 0 && !found)
            r = check_alive(l, fail);
        /* A process that works once may have sent its frame and ended between the two looks: the frame is
         * then here. */
        struct brig_fail late;
        if (r == -BRIG_EDEAD && try_receive(l, SLICE_MS, ret, &found, &late) == 0 && found)
            r = 0;
        if (r < 0 || found)
            return r;
    }
}
