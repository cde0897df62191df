/* One answer, token by token. */
#include "driver/run/generate.h"

#include <string.h>

#include "driver/run/stop.h"
#include "proto/base/clock.h"

const char *brig_stop_reason_name(enum brig_stop_reason reason)
{
    static const char *const names[BRIG_STOP_REASON_COUNT] = {
        [BRIG_STOP_REASON_EOS] = "eos",
        [BRIG_STOP_REASON_STOP] = "stop",
        [BRIG_STOP_REASON_LENGTH] = "length",
        [BRIG_STOP_REASON_CONTEXT] = "context",
        [BRIG_STOP_REASON_CANCELLED] = "cancelled",
    };
    return names[reason];
}

/* What one answer carries from token to token. */
struct flow {
    const struct brig_generate *g;
    struct brig_generated *out;
    struct brig_stream stream;
    struct brig_stop stop;
    struct brig_buf whole; /* characters of the last token */
    struct brig_buf sure;  /* those that begin no stop string */
    uint64_t idle_ns;      /* when the newest token had been dealt with */
    uint32_t n_draft;      /* of the frame under way */
};

static bool cancelled(const struct brig_generate *g)
{
    return g->cancel != NULL && *g->cancel != 0;
}

static int emit(struct flow *f, struct brig_fail *fail)
{
    int r = f->sure.len == 0 ? 0 : f->g->text(f->g->ctx, f->sure.data, f->sure.len, fail);
    brig_buf_clear(&f->sure);
    brig_buf_clear(&f->whole);
    return r;
}

static int add_text(struct flow *f, uint32_t id, struct brig_fail *fail)
{
    const char *bytes;
    size_t n;
    /* A table larger than the vocabulary has rows that stand for no text. */
    if (!brig_tokenizer_piece(f->g->tokenizer, id, false, &bytes, &n))
        return 0;
    if (brig_stream_add(&f->stream, bytes, n, &f->whole) < 0 ||
        brig_stop_add(&f->stop, f->whole.data, f->whole.len, &f->sure) < 0)
        return brig_fail_set(fail, BRIG_ENOMEM, "out of memory for the text");
    return emit(f, fail);
}

static int end_text(struct flow *f, struct brig_fail *fail)
{
    if (brig_stream_finish(&f->stream, &f->whole) < 0 ||
        brig_stop_add(&f->stop, f->whole.data, f->whole.len, &f->sure) < 0 ||
        brig_stop_finish(&f->stop, &f->sure) < 0)
        return brig_fail_set(fail, BRIG_ENOMEM, "out of memory for the text");
    return emit(f, fail);
}

/* On the driver's own track "frame" counts the tokens of the answer. */
static void trace(const struct flow *f, const char *name, uint64_t begin_ns, size_t rows)
{
    if (f->g->trace != NULL)
        brig_trace_event(f->g->trace, 0, name, begin_ns, brig_clock_ns() - begin_ns, f->out->ids.n,
                         (uint32_t)rows);
}

/* A frame has come back: the first of its answers is there. */
static void note_pass(struct flow *f)
{
    bool first = f->out->ids.n == 0;
    trace(f, first ? "prompt" : "token", f->idle_ns, first ? f->out->n_sent : 1 + f->n_draft);
    f->out->n_passes++;
    f->n_draft = 0;
}

static int draw(struct flow *f, const struct brig_row *row, uint32_t *id, struct brig_fail *fail)
{
    uint64_t begin = brig_clock_ns();
    int r = brig_sampler_pick(f->g->sampler, row->ids, row->logits, row->n, f->g->first_index + f->out->ids.n,
                              id, fail);
    if (f->out->first_ns == 0)
        f->out->first_ns = brig_clock_ns();
    trace(f, "sample", begin, 1);
    return r;
}

/* Takes one drawn token; true when the answer goes on. room: as in struct brig_row. */
static int take(struct flow *f, uint32_t id, uint32_t room, bool *goes_on, struct brig_fail *fail)
{
    const struct brig_generate *g = f->g;
    *goes_on = false;
    if (!g->ignore_eos && brig_tokenizer_is_end(g->tokenizer, id)) {
        f->out->reason = BRIG_STOP_REASON_EOS;
        return 0;
    }
    if (brig_ids_add(&f->out->ids, id) < 0)
        return brig_fail_set(fail, BRIG_ENOMEM, "out of memory for the generated tokens");
    f->out->last_ns = brig_clock_ns();
    brig_sampler_accept(g->sampler, id);
    int r = add_text(f, id, fail);
    if (r < 0)
        return r;
    if (f->stop.hit)
        f->out->reason = BRIG_STOP_REASON_STOP;
    else if (g->max_new != 0 && f->out->ids.n >= g->max_new)
        f->out->reason = BRIG_STOP_REASON_LENGTH;
    else if (room == 0)
        f->out->reason = BRIG_STOP_REASON_CONTEXT;
    else if (cancelled(g))
        f->out->reason = BRIG_STOP_REASON_CANCELLED;
    else
        *goes_on = true;
    return 0;
}

/* ---- the sequence, as the scheduler asks for it ---- */

static uint32_t top(void *ctx, uint32_t ahead)
{
    const struct flow *f = ctx;
    return brig_sampler_top(f->g->sampler, ahead);
}

static int draft(void *ctx, uint32_t *ids, uint32_t n, uint32_t most, uint32_t *n_draft,
                 struct brig_fail *fail)
{
    struct flow *f = ctx;
    const struct brig_generate *g = f->g;
    const struct brig_draft_seq seq = {ids, n, g->first_index + f->out->ids.n};
    if (g->max_new != 0 && g->max_new - f->out->ids.n <= most) /* one token comes in any case */
        most = (uint32_t)(g->max_new - f->out->ids.n - 1);
    int r = brig_spec_propose(g->spec, &seq, most, ids + n, &f->n_draft, fail);
    *n_draft = f->n_draft;
    return r;
}

static int answer(void *ctx, const struct brig_row *row, uint32_t *next, bool *goes_on,
                  struct brig_fail *fail)
{
    struct flow *f = ctx;
    if (row->nth == 0)
        note_pass(f);
    int r = draw(f, row, next, fail);
    if (r == 0 && f->g->spec != NULL)
        brig_spec_drawn(f->g->spec, *next);
    if (r == 0)
        r = take(f, *next, row->room, goes_on, fail);
    f->idle_ns = brig_clock_ns();
    return r;
}

/* A piece of the prompt has come back: from token `from` on, up to `held`. */
static void note_prompt(const struct flow *f, uint32_t from, uint32_t held, uint64_t begin_ns)
{
    const struct brig_generate *g = f->g;
    uint32_t first = (uint32_t)(g->n_prompt - f->out->n_sent);
    if (held > g->n_prompt)
        held = (uint32_t)g->n_prompt;
    if (g->spec != NULL && brig_sched_flights(g->sched) == 1)
        brig_spec_prompt(g->spec, held - from, brig_clock_ns() - begin_ns);
    if (g->progress != NULL)
        g->progress(g->ctx, held - first, f->out->n_sent);
}

static int steps(struct flow *f, const struct brig_seq *seq, struct brig_fail *fail)
{
    const struct brig_generate *g = f->g;
    uint32_t slot;
    size_t kept;
    int r = brig_sched_add(g->sched, seq, &slot, &kept, fail);
    if (r < 0)
        return r;
    f->out->n_sent = g->n_prompt - kept;
    f->out->begin_ns = f->idle_ns = brig_clock_ns();
    while (r == 0 && brig_sched_busy(g->sched)) {
        uint32_t from = brig_sched_held(g->sched, slot);
        uint64_t begin = brig_clock_ns();
        r = brig_sched_step(g->sched, fail);
        if (r == 0 && from < g->n_prompt && brig_sched_held(g->sched, slot) > from)
            note_prompt(f, from, brig_sched_held(g->sched, slot), begin);
    }
    brig_sched_end(g->sched, slot); /* after a failure; else it has ended by itself */
    return r;
}

static int tokens(struct flow *f, struct brig_fail *fail)
{
    const struct brig_generate *g = f->g;
    const struct brig_seq seq = {.prompt = g->prompt,
                                 .n_prompt = g->n_prompt,
                                 .top = top,
                                 .draft = g->spec != NULL ? draft : NULL,
                                 .answer = answer,
                                 .ctx = f};
    uint32_t ctx = brig_sched_ctx(g->sched);
    uint64_t most = g->n_prompt <= ctx ? ctx - g->n_prompt + 1 : 0;
    if (brig_ids_reserve(&f->out->ids, g->max_new != 0 && g->max_new < most ? g->max_new : most) < 0)
        return brig_fail_set(fail, BRIG_ENOMEM, "out of memory for the generated tokens");
    for (size_t i = 0; i < g->n_prompt; i++)
        brig_sampler_accept(g->sampler, g->prompt[i]);
    return steps(f, &seq, fail);
}

int brig_generate_run(const struct brig_generate *g, struct brig_generated *ret, struct brig_fail *fail)
{
    memset(ret, 0, sizeof *ret);
    struct flow f = {.g = g, .out = ret};
    brig_stop_init(&f.stop, g->stops, g->n_stops);
    int r = tokens(&f, fail);
    if (r == -BRIG_ECANCELLED && cancelled(g)) {
        ret->reason = BRIG_STOP_REASON_CANCELLED;
        r = 0;
    }
    if (r == 0)
        r = end_text(&f, fail);
    brig_stop_release(&f.stop);
    brig_buf_release(&f.whole);
    brig_buf_release(&f.sure);
    return r;
}

void brig_generated_release(struct brig_generated *g)
{
    brig_ids_release(&g->ids);
}

static double rate(double n, uint64_t ns)
{
    return ns == 0 ? 0 : n * (double)BRIG_NS_PER_S / (double)ns;
}

double brig_generated_prefill_tok_s(const struct brig_generated *g)
{
    return g->first_ns == 0 ? 0 : rate((double)g->n_sent, g->first_ns - g->begin_ns);
}

double brig_generated_decode_tok_s(const struct brig_generated *g)
{
    return g->ids.n < 2 ? 0 : rate((double)(g->ids.n - 1), g->last_ns - g->first_ns);
}
