/*
 * The sampler: options and their ranges, the window of penalties, how many candidates a draw needs, and the
 * stages run over a list. Everything is allocated when it is made; a pick allocates nothing.
 */
#include "driver/sample/sampler.h"

#include <math.h>
#include <string.h>

#include "driver/sample/stage.h"
#include "proto/base/mem.h"
#include "proto/wire/frame.h"

#define MIN_TOP        64u  /* candidates that are always asked for */
#define MAX_TOP_K      256u /* larger k: the whole row */
#define MAX_WINDOW_TOK (1u << 20)

#define BRIG_SAMPLE_STAGE(object) extern const struct brig_sample_stage object;
#include "driver/sample/stage.def"
#undef BRIG_SAMPLE_STAGE

static const struct brig_sample_stage *const stages[] = {
#define BRIG_SAMPLE_STAGE(object) &object,
#include "driver/sample/stage.def"
#undef BRIG_SAMPLE_STAGE
};
#define N_STAGES (sizeof stages / sizeof stages[0])

struct brig_sampler {
    struct brig_sample_opts o;
    uint32_t vocab;
    struct brig_sample_entry *entries[2]; /* [vocab] each */
    double *weights;                      /* [vocab] */
    /* The window; all NULL and 0 when no penalty is on. */
    uint32_t *window; /* ring of the newest o.repeat_last_n tokens */
    uint32_t *counts; /* [vocab] */
    uint32_t n_window, oldest, n_distinct;
};

const char *brig_sampler_stage_at(unsigned i, const char **help)
{
    if (i >= N_STAGES)
        return NULL;
    if (help != NULL)
        *help = stages[i]->help;
    return stages[i]->name;
}

struct brig_sample_opts brig_sample_defaults(void)
{
    return (struct brig_sample_opts){
        .temp = 0.8,
        .top_k = 40,
        .top_p = 0.95,
        .min_p = 0.05,
        .repeat_penalty = 1,
        .repeat_last_n = 64,
    };
}

int brig_sample_check(const struct brig_sample_opts *o, struct brig_fail *fail)
{
    /* Written so that a NaN fails too. */
    const struct {
        bool ok;
        const char *flag, *range;
        double value;
    } checks[] = {
        {o->temp >= 0 && isfinite(o->temp), "--temp", "0 or more", o->temp},
        {o->top_p > 0 && o->top_p <= 1, "--top-p", "above 0 and at most 1", o->top_p},
        {o->min_p >= 0 && o->min_p < 1, "--min-p", "at least 0 and below 1", o->min_p},
        {o->repeat_penalty > 0 && isfinite(o->repeat_penalty), "--repeat-penalty", "above 0",
         o->repeat_penalty},
        {o->repeat_last_n <= MAX_WINDOW_TOK, "--repeat-last-n", "from 0 to 1048576", o->repeat_last_n},
        {fabs(o->presence_penalty) <= 2, "--presence-penalty", "from -2 to 2", o->presence_penalty},
        {fabs(o->frequency_penalty) <= 2, "--frequency-penalty", "from -2 to 2", o->frequency_penalty},
    };
    for (size_t i = 0; i < sizeof checks / sizeof checks[0]; i++)
        if (!checks[i].ok)
            return brig_fail_set(fail, BRIG_EUSAGE, "%s %g: must be %s", checks[i].flag, checks[i].value,
                                 checks[i].range);
    return 0;
}

static bool has_penalties(const struct brig_sample_opts *o)
{
    return o->repeat_last_n > 0 &&
           (o->repeat_penalty != 1 || o->presence_penalty != 0 || o->frequency_penalty != 0);
}

int brig_sampler_new(struct brig_sampler **ret, const struct brig_sample_opts *o, uint32_t vocab,
                     struct brig_fail *fail)
{
    int r = brig_sample_check(o, fail);
    if (r < 0)
        return r;
    if (vocab == 0)
        return brig_fail_set(fail, BRIG_EINTERNAL, "a sampler over an empty vocabulary");
    struct brig_sampler *s = brig_alloc(1, sizeof *s);
    if (s == NULL)
        return brig_fail_set(fail, BRIG_ENOMEM, "out of memory for a sampler");
    s->o = *o;
    s->vocab = vocab;
    s->entries[0] = brig_alloc(vocab, sizeof *s->entries[0]);
    s->entries[1] = brig_alloc(vocab, sizeof *s->entries[1]);
    s->weights = brig_alloc(vocab, sizeof *s->weights);
    bool ok = s->entries[0] != NULL && s->entries[1] != NULL && s->weights != NULL;
    if (ok && has_penalties(o)) {
        s->window = brig_alloc(o->repeat_last_n, sizeof *s->window);
        s->counts = brig_alloc(vocab, sizeof *s->counts);
        ok = s->window != NULL && s->counts != NULL;
    }
    if (!ok) {
        brig_sampler_free(s);
        return brig_fail_set(fail, BRIG_ENOMEM, "out of memory for a sampler over %u tokens", vocab);
    }
    *ret = s;
    return 0;
}

void brig_sampler_free(struct brig_sampler *s)
{
    if (s == NULL)
        return;
    brig_free(s->entries[0]);
    brig_free(s->entries[1]);
    brig_free(s->weights);
    brig_free(s->window);
    brig_free(s->counts);
    brig_free(s);
}

void brig_sampler_accept(struct brig_sampler *s, uint32_t id)
{
    if (s->window == NULL || id >= s->vocab)
        return;
    if (s->n_window == s->o.repeat_last_n) {
        if (--s->counts[s->window[s->oldest]] == 0)
            s->n_distinct--;
        s->window[s->oldest] = id;
        s->oldest = (s->oldest + 1) % s->o.repeat_last_n;
    } else {
        s->window[s->n_window++] = id;
    }
    if (s->counts[id]++ == 0)
        s->n_distinct++;
}

/* A logit that a stage raises may come from below every candidate. */
static bool can_raise(const struct brig_sampler *s)
{
    const struct brig_sample_opts *o = &s->o;
    return s->window != NULL &&
           (o->repeat_penalty < 1 || o->presence_penalty < 0 || o->frequency_penalty < 0);
}

uint32_t brig_sampler_top(const struct brig_sampler *s, uint32_t ahead)
{
    uint32_t k = s->o.temp == 0 ? 1 : s->o.top_k;
    if (k == 0 || k > MAX_TOP_K || can_raise(s))
        return 0;
    /* The k best that are not penalised are among so many. */
    uint32_t top = k + s->n_distinct + (s->window != NULL ? ahead : 0);
    if (top < MIN_TOP)
        top = MIN_TOP;
    if (top > s->vocab)
        top = s->vocab;
    return top <= BRIG_FRAME_MAX_TOP ? top : 0;
}

static int fill(struct brig_sampler *s, const uint32_t *ids, const float *logits, uint32_t n,
                struct brig_fail *fail)
{
    if (n == 0 || n > s->vocab || (ids == NULL && n != s->vocab))
        return brig_fail_set(fail, BRIG_EPROTO, "%u logits for a vocabulary of %u", n, s->vocab);
    bool any = false;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t id = ids != NULL ? ids[i] : i;
        if (id >= s->vocab)
            return brig_fail_set(fail, BRIG_EPROTO, "candidate id %u is outside the vocabulary of %u", id,
                                 s->vocab);
        if (!(logits[i] < INFINITY)) /* -infinity is a token that cannot come */
            return brig_fail_set(fail, BRIG_EPROTO, "the model's logit of token %u is not finite (%g)", id,
                                 (double)logits[i]);
        any = any || logits[i] > -INFINITY;
        s->entries[0][i] =
            (struct brig_sample_entry){logits[i] + 0.0f, id}; /* -0 becomes 0: they are a tie */
    }
    if (!any)
        return brig_fail_set(fail, BRIG_EPROTO, "the model rules out every token");
    return 0;
}

int brig_sampler_pick(struct brig_sampler *s, const uint32_t *ids, const float *logits, uint32_t n,
                      uint64_t index, uint32_t *ret, struct brig_fail *fail)
{
    int r = fill(s, ids, logits, n, fail);
    if (r < 0)
        return r;
    struct brig_sample_list list = {
        .entries = s->entries[0],
        .spare = s->entries[1],
        .weights = s->weights,
        .n = n,
        .counts = s->counts,
        .index = index,
    };
    for (size_t i = 0; i < N_STAGES; i++)
        stages[i]->apply(&s->o, &list);
    *ret = list.entries[0].id;
    return 0;
}
