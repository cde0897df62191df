/*
 * A draft model: a smaller one with the same tokens, in a line of its own, says what it would draw. It draws
 * with the numbers that the real draws take (same seed, same index), which land on the same token more often
 * than its likeliest one does. Penalties are left out: what was drafted wrongly would have to be taken back.
 *
 * Its session keeps what the sequence and the last draft have in common; a frame that was not drafted for is
 * made up for by the next propose, many rows at once.
 */
#include "driver/run/draft.h"
#include "proto/base/mem.h"

struct drafter {
    struct brig_session *session;
    struct brig_sampler *sampler;
    uint32_t vocab;
};

static void close_model(void *state)
{
    struct drafter *d = state;
    if (d == NULL)
        return;
    brig_sampler_free(d->sampler);
    brig_free(d);
}

static int open_model(void **ret_state, const struct brig_draft_opts *o, struct brig_fail *fail)
{
    struct drafter *d = brig_alloc(1, sizeof *d);
    struct brig_sample_opts sample = *o->sample;
    if (d == NULL)
        return brig_fail_set(fail, BRIG_ENOMEM, "out of memory for a draft model");
    sample.repeat_last_n = 0;
    d->session = o->session;
    d->vocab = o->vocab;
    int r = brig_sampler_new(&d->sampler, &sample, o->vocab, fail);
    if (r < 0) {
        close_model(d);
        return r;
    }
    *ret_state = d;
    return 0;
}

static unsigned look(void *state, const struct brig_draft_seq *seq, uint32_t *most)
{
    const struct drafter *d = state;
    uint32_t ctx = brig_session_ctx(d->session);
    *most = seq->n <= ctx ? ctx - (uint32_t)seq->n + 1 : 0; /* the last one guessed is not sent */
    return 0;
}

/* Tables of two models may be of different lengths though the tokens with text are the same. */
static bool knows_all(const struct drafter *d, const uint32_t *ids, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (ids[i] >= d->vocab)
            return false;
    return true;
}

static int draw(struct drafter *d, const struct brig_answer *a, uint64_t index, uint32_t *id,
                struct brig_fail *fail)
{
    return brig_sampler_pick(d->sampler, a->whole ? NULL : a->ids, a->logits, a->whole ? a->cols : a->n[0],
                             index, id, fail);
}

static int propose(void *state, const struct brig_draft_seq *seq, uint32_t most, uint32_t *ids, uint32_t *n,
                   struct brig_fail *fail)
{
    struct drafter *d = state;
    struct brig_answer answer = {0};
    uint32_t top = brig_sampler_top(d->sampler, 0);
    size_t kept = brig_session_rewind(d->session, seq->ids, seq->n);
    *n = 0;
    if (most == 0 || !knows_all(d, seq->ids + kept, seq->n - kept))
        return 0;
    int r = brig_session_feed(d->session, seq->ids + kept, seq->n - kept, top, NULL, NULL, &answer, fail);
    while (r == 0) {
        r = draw(d, &answer, seq->index + *n, &ids[*n], fail);
        if (r < 0 || ++*n == most)
            break;
        r = brig_session_feed(d->session, &ids[*n - 1], 1, top, NULL, NULL, &answer, fail);
    }
    return r < 0 ? brig_fail_prefix(fail, "--draft") : 0;
}

const struct brig_draft brig_draft_model = {
    .name = "model",
    .help = "what a smaller model with the same tokens would say (--draft MODEL)",
    .open = open_model,
    .close = close_model,
    .look = look,
    .propose = propose,
};
