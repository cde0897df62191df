/* One message of a run: checked, computed, sent on. The compute thread's. */
#include "shard/serve.h"

#include <string.h>

#include "proto/base/clock.h"
#include "proto/base/size.h"
#include "proto/stat/stat.h"

#define SEND_SLICE_MS                                                                                        \
    250u /* how soon the end of the run is noticed while the next of the line takes nothing */
#define SEND_TIMEOUT_S 60u
#define ERROR_MAX      400u

static bool is_over(struct brig_serve *s)
{
    pthread_mutex_lock(&s->lock);
    bool over = s->ending || s->quit;
    pthread_mutex_unlock(&s->lock);
    return over;
}

int brig_serve_send(struct brig_serve *s, const struct brig_frame *f, struct brig_msg *m,
                    const struct brig_stage_timing *timing, struct brig_fail *fail)
{
    struct brig_serve_run *run = s->run;
    uint64_t until = brig_clock_ns() + SEND_TIMEOUT_S * BRIG_NS_PER_S;
    brig_frame_put_timing(f, brig_msg_data(m), run->stage, timing);
    brig_frame_patch_stage(f, brig_msg_data(m), run->stage + 1);
    brig_team_rest(s->hold->team);
    int r;
    do {
        r = run->tx_link->send(run->tx, m, SEND_SLICE_MS, fail);
    } while (r == -BRIG_ETIMEOUT && brig_clock_ns() < until && !is_over(s));
    if (r < 0) {
        brig_msg_free(m);
        return brig_fail_prefix(fail, "a frame could not be passed on to %s", run->next_url);
    }
    return 0;
}

static int check_runs(const struct brig_serve_run *run, const struct brig_frame *f, struct brig_fail *fail)
{
    for (unsigned i = 0; i < f->n_runs; i++) {
        const struct brig_run *a = &f->runs[i];
        if (a->slot >= run->slots || !brig_range_ok(a->pos, a->count, run->ctx))
            return brig_fail_set(
                fail, BRIG_EPROTO,
                "rows at positions %u to %llu of slot %u: the run has %u slots of %u positions", a->pos,
                (unsigned long long)a->pos + a->count, a->slot, run->slots, run->ctx);
        for (unsigned k = 0; k < i; k++) {
            const struct brig_run *b = &f->runs[k];
            if (a->slot == b->slot && a->pos < b->pos + b->count && b->pos < a->pos + a->count)
                return brig_fail_set(fail, BRIG_EPROTO,
                                     "two runs of a frame hold the same positions of slot %u", a->slot);
        }
    }
    return 0;
}

static int check(const struct brig_serve *s, const struct brig_frame *f, struct brig_fail *fail)
{
    const struct brig_serve_run *run = s->run;
    uint32_t hidden = s->hold->slice.desc.hidden;
    if (f->stage != run->stage || f->n_stages != run->n_stages)
        return brig_fail_set(fail, BRIG_EPROTO, "a frame for stage %u of %u came to stage %u of %u", f->stage,
                             f->n_stages, run->stage, run->n_stages);
    if (f->n_rows == 0)
        return 0;
    if (f->dtype != BRIG_DTYPE_HIDDEN || f->cols != hidden)
        return brig_fail_set(fail, BRIG_EPROTO,
                             "a frame of kind %d with %u columns: %u hidden columns are due", (int)f->dtype,
                             f->cols, hidden);
    if (f->n_choices != 0 && f->n_choices != brig_desc_choices(&s->hold->slice.desc))
        return brig_fail_set(fail, BRIG_EPROTO,
                             "a frame with room for %u choices of experts a row: %llu are made", f->n_choices,
                             (unsigned long long)brig_desc_choices(&s->hold->slice.desc));
    if (f->n_rows > run->max_rows)
        return brig_fail_set(fail, BRIG_ELIMIT, "a frame of %u rows: the run stated at most %u", f->n_rows,
                             run->max_rows);
    return check_runs(run, f, fail);
}

/* Cache operations, pages, layers. */
static int compute(struct brig_serve *s, const struct brig_frame *f, struct brig_msg *m,
                   struct brig_fail *fail)
{
    struct brig_holding *h = s->hold;
    int r = check(s, f, fail);
    if (r == 0)
        r = brig_kv_apply(h->kv, f->ops, f->n_ops, fail);
    for (unsigned i = 0; r == 0 && i < f->n_runs; i++)
        r = brig_kv_reserve(h->kv, f->runs[i].slot, f->runs[i].pos, f->runs[i].count, fail);
    if (r < 0 || f->n_rows == 0)
        return r;
    uint8_t *bytes = brig_msg_data(m);
    float *rows = (float *)(bytes + f->payload_offset);
    brig_block_record(s->run->block, f->n_choices > 0 ? bytes + f->choices_offset : NULL);
    brig_weights_expect(h->weights, brig_serve_head_rounds(s, f));
    return brig_block_run(s->run->block, h->kv, rows, f->runs, f->n_runs, &s->layer, fail);
}

/* The driver learns of a failure by a frame that takes the place of the one that failed. */
static int send_error(struct brig_serve *s, const struct brig_frame *f, const struct brig_fail *why,
                      const struct brig_stage_timing *timing, struct brig_fail *fail)
{
    struct brig_serve_run *run = s->run;
    struct brig_frame *e = &run->answer;
    char text[ERROR_MAX + 1];
    int n = snprintf(text, sizeof text, "shard %u (%s): %s", run->stage, s->hold->what, why->text);
    memset(e, 0, sizeof *e);
    e->run_id = f->run_id;
    e->frame_id = f->frame_id;
    e->epoch = f->epoch;
    e->stage = run->stage;
    e->n_stages = run->n_stages;
    e->dtype = BRIG_DTYPE_ERROR;
    e->payload_bytes = n < (int)sizeof text ? (uint64_t)n : ERROR_MAX;
    int r = brig_frame_layout(e, fail);
    if (r < 0)
        return r;
    struct brig_msg *m = brig_msg_new(e->message_bytes);
    if (m == NULL)
        return brig_fail_set(fail, BRIG_ENOMEM, "out of memory to report: %s", why->text);
    r = brig_frame_encode(e, brig_msg_data(m), e->message_bytes, fail);
    if (r < 0) {
        brig_msg_free(m);
        return r;
    }
    memcpy((uint8_t *)brig_msg_data(m) + e->payload_offset, text, e->payload_bytes);
    return brig_serve_send(s, e, m, timing, fail);
}

void brig_serve_timing(const struct brig_serve *s, uint64_t arrived_ns, uint64_t pss_bytes,
                       struct brig_stage_timing *ret)
{
    const struct brig_weights_stats w = brig_weights_stats(s->hold->weights);
    *ret = (struct brig_stage_timing){.wait_ns = arrived_ns - s->run->idle_since_ns,
                                      .compute_ns = brig_clock_ns() - arrived_ns,
                                      .pss_bytes = pss_bytes,
                                      .mapped_bytes = w.held_bytes,
                                      .read_bytes = w.read_bytes - s->run->before.read_bytes,
                                      .stall_ns = w.stall_ns - s->run->before.stall_ns,
                                      .experts_used = w.experts_used - s->run->before.experts_used,
                                      .expert_hits = w.expert_hits - s->run->before.expert_hits,
                                      .expert_read_bytes =
                                          w.expert_read_bytes - s->run->before.expert_read_bytes};
}

/* Work on a frame of this run; takes m. */
static int work(struct brig_serve *s, struct brig_msg *m, uint64_t arrived_ns, struct brig_fail *fail)
{
    struct brig_serve_run *run = s->run;
    struct brig_frame *f = &run->frame;
    struct brig_fail why;
    struct brig_stage_timing timing;
    int r = compute(s, f, m, &why);
    uint64_t pss = (f->flags & BRIG_FRAME_PSS) != 0 && f->n_rows > 0 ? brig_pss_bytes() : 0;
    if (r == 0 && f->n_rows > 0 && brig_holding_has_head(s->hold)) {
        r = brig_serve_answer(s, m, arrived_ns, pss, &why, fail);
        if (r <= 0) {
            brig_msg_free(m);
            return r;
        }
    } else if (r == 0 && f->n_rows > 0) {
        r = brig_weights_check(s->hold->weights, &why);
    }
    brig_serve_timing(s, arrived_ns, pss, &timing);
    if (r == 0)
        return brig_serve_send(s, f, m, &timing, fail);
    brig_msg_free(m);
    return send_error(s, f, &why, &timing, fail);
}

int brig_serve_message(struct brig_serve *s, struct brig_msg *m, struct brig_fail *fail)
{
    struct brig_serve_run *run = s->run;
    struct brig_frame *f = &run->frame;
    uint64_t arrived_ns = brig_clock_ns();
    int r = brig_frame_decode(f, brig_msg_data(m), brig_msg_len(m), fail);
    if (r < 0) {
        brig_msg_free(m);
        return brig_fail_prefix(fail, "a message that came in");
    }
    if (f->run_id != run->run_id) { /* a late one, of a run before */
        brig_msg_free(m);
        return 0;
    }
    atomic_store(&s->last_sign_ns, arrived_ns);
    if (f->dtype == BRIG_DTYPE_ERROR) { /* of a stage before: it travels on to the driver */
        struct brig_stage_timing none = {0};
        return brig_serve_send(s, f, m, &none, fail);
    }
    bool rows = f->n_rows > 0;
    atomic_store(&s->frame_id, f->frame_id);
    atomic_store(&s->working, true);
    r = work(s, m, arrived_ns, fail);
    atomic_store(&s->working, false);
    atomic_fetch_add(&s->frames, 1);
    run->idle_since_ns = brig_clock_ns();
    if (rows)
        run->before = brig_weights_stats(s->hold->weights);
    return r < 0 ? r : rows;
}
