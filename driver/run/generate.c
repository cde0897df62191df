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

static int feed(struct flow *f, const uint32_t *ids, size_t n, brig_session_progress_fn *progress,
                struct brig_answer *ret, struct brig_fail *fail)
{
    uint64_t begin = brig_clock_ns();
    int r = brig_session_feed(f->g->session, ids, n, brig_sampler_top(f->g->sampler), progress, f->g->ctx,
                              ret, fail);
    trace(f, f->out->ids.n == 0 ? "prompt" : "token", begin, n);
    return r;
}

static int draw(struct flow *f, const struct brig_answer *a, uint32_t *id, struct brig_fail *fail)
{
    uint64_t begin = brig_clock_ns();
    int r = brig_sampler_pick(f->g->sampler, a->whole ? NULL : a->ids, a->logits,
                              a->whole ? a->cols : a->n[0], f->g->first_index + f->out->ids.n, id, fail);
    if (f->out->first_ns == 0)
        f->out->first_ns = brig_clock_ns();
    trace(f, "sample", begin, 1);
    return r;
}

/* Takes one drawn token; true when the answer goes on. */
static int take(struct flow *f, uint32_t id, bool *goes_on, struct brig_fail *fail)
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
    else if (brig_session_length(g->session) >= brig_session_ctx(g->session))
        f->out->reason = BRIG_STOP_REASON_CONTEXT;
    else if (cancelled(g))
        f->out->reason = BRIG_STOP_REASON_CANCELLED;
    else
        *goes_on = true;
    return 0;
}

static int tokens(struct flow *f, struct brig_fail *fail)
{
    const struct brig_generate *g = f->g;
    size_t kept = brig_session_rewind(g->session, g->prompt, g->n_prompt);
    uint64_t most = brig_session_ctx(g->session) - g->n_prompt + 1;
    if (brig_ids_reserve(&f->out->ids, g->max_new != 0 && g->max_new < most ? g->max_new : most) < 0)
        return brig_fail_set(fail, BRIG_ENOMEM, "out of memory for the generated tokens");
    for (size_t i = 0; i < g->n_prompt; i++)
        brig_sampler_accept(g->sampler, g->prompt[i]);
    f->out->n_sent = g->n_prompt - kept;
    f->out->begin_ns = brig_clock_ns();
    struct brig_answer answer;
    int r = feed(f, g->prompt + kept, g->n_prompt - kept, g->progress, &answer, fail);
    for (bool goes_on = true; r == 0 && goes_on;) {
        uint32_t id;
        if ((r = draw(f, &answer, &id, fail)) == 0 && (r = take(f, id, &goes_on, fail)) == 0 && goes_on)
            r = feed(f, &id, 1, NULL, &answer, fail);
    }
    return r;
}

int brig_generate_run(const struct brig_generate *g, struct brig_generated *ret, struct brig_fail *fail)
{
    memset(ret, 0, sizeof *ret);
    if (g->n_prompt == 0)
        return brig_fail_set(fail, BRIG_EUSAGE, "the prompt is empty");
    if (g->n_prompt > brig_session_ctx(g->session))
        return brig_fail_set(fail, BRIG_ELIMIT, "the prompt has %zu tokens, the context %u", g->n_prompt,
                             brig_session_ctx(g->session));
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
