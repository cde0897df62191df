/* Opening and closing what verbs work with. */
#include "driver/front/lineup.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver/front/interrupt.h"
#include "proto/base/parse.h"

#define DEFAULT_CTX 4096u

int brig_lineup_count(const struct brig_model *m, uint64_t shards, unsigned *ret, struct brig_fail *fail)
{
    unsigned cells = m->desc.n_layers + 1;
    if (shards == BRIG_SHARDS_ALL)
        shards = cells;
    if (shards > cells)
        return brig_fail_set(fail, BRIG_EUSAGE,
                             "--shards %llu: %s has %u layers and the head, so %u shards at most",
                             (unsigned long long)shards, m->path, m->desc.n_layers, cells);
    *ret = (unsigned)shards;
    return 0;
}

/* A number that a test sets; *v is left alone when it sets none. */
static int from_test(const char *name, uint64_t *v, struct brig_fail *fail)
{
    const char *text = getenv(name);
    if (text != NULL && (!brig_parse_u64(text, v) || *v < 1))
        return brig_fail_set(fail, BRIG_EUSAGE, "%s=%s: a whole number from 1 is needed", name, text);
    return 0;
}

int brig_lineup_batch(uint32_t max_rows, uint32_t *ret, struct brig_fail *fail)
{
    uint64_t v = max_rows;
    int r = from_test("BRIGADE_TEST_BATCH", &v, fail);
    if (r == 0)
        *ret = v < max_rows ? (uint32_t)v : max_rows;
    return r;
}

static int check_chain(const struct brig_settings *s, struct brig_fail *fail)
{
    const char *flag = s->shards_given                ? "--shards"
                       : s->threads_given             ? "--threads"
                       : s->residency_given           ? "--residency"
                       : s->ram.kind != BRIG_RAM_NONE ? "--ram"
                                                      : NULL;
    if (s->chain == NULL)
        return 0;
    if (flag != NULL)
        return brig_fail_set(fail, BRIG_EUSAGE,
                             "%s: --chain uses shards that run already, each started with its own", flag);
    if (!s->mode->keeps)
        return brig_fail_set(fail, BRIG_EUSAGE, "--mode %s: --chain uses shards that run already",
                             s->mode->name);
    return 0;
}

int brig_lineup_vocab(struct brig_lineup *l, struct brig_fail *fail)
{
    return l->model->vocab.n_tokens > 0 ? 0 : brig_folder_attach(&l->folder, l->model, fail);
}

/* The vocabulary is compared with that of the draft model, and kept only if there is use for it. */
static int open_drafts(struct brig_lineup *l, bool keep, struct brig_fail *fail)
{
    bool compare = l->settings->draft != NULL && brig_enclosed_bytes() == 0;
    int r = compare ? brig_lineup_vocab(l, fail) : 0;
    if (r == 0)
        r = brig_drafts_open(&l->drafts, l->settings, l->model, fail);
    if (!keep && l->folder != NULL) {
        l->model->vocab = (struct brig_vocab){0};
        brig_folder_close(l->folder);
        l->folder = NULL;
    }
    return r;
}

static int open_tokenizer(struct brig_lineup *l, struct brig_fail *fail)
{
    int r = brig_lineup_vocab(l, fail);
    if (r < 0)
        return r;
    if (l->model->vocab.n_tokens == 0)
        return brig_fail_set(
            fail, BRIG_EUNSUPPORTED,
            "%s: the model has no tokenizer; `brigade logits` and `brigade bench` do without",
            l->model->path);
    r = brig_tokenizer_new(&l->tokenizer, &l->model->vocab, l->settings->pre, fail);
    return r < 0 ? brig_fail_prefix(fail, "%s", l->model->path) : 0;
}

/* A budget that cannot work is refused before anything is read or started. */
static int make_plan(struct brig_lineup *l, const struct brig_budget_need *need, struct brig_fail *fail)
{
    if (l->settings->ram.kind == BRIG_RAM_NONE)
        return 0;
    struct brig_budget_need whole = *need;
    whole.draft = l->drafts.model;
    int r = need->tokenizer ? brig_lineup_vocab(l, fail) : 0;
    if (r == 0)
        r = brig_budget_plan(&l->plan, l->settings, l->model, &whole, fail);
    l->planned = r == 0;
    return r == 0 ? brig_budget_enclose(l->settings, l->plan.budget_bytes, fail) : r;
}

int brig_lineup_open(struct brig_lineup *l, const struct brig_settings *s, bool with_tokenizer,
                     const struct brig_budget_need *budget, struct brig_fail *fail)
{
    unsigned unused;
    *l = (struct brig_lineup){.settings = s};
    int r = check_chain(s, fail);
    if (r == 0)
        r = brig_model_open(&l->model, s->operand, fail);
    if (r == 0)
        r = brig_lineup_count(l->model, s->shards, &unused, fail);
    if (r == 0)
        r = open_drafts(l, budget->tokenizer, fail);
    if (r == 0)
        r = make_plan(l, budget, fail);
    if (r == 0)
        r = brig_embed_open(&l->embed, l->model, fail);
    return r < 0 || !with_tokenizer ? r : open_tokenizer(l, fail);
}

void brig_lineup_choose_ctx(struct brig_lineup *l)
{
    const struct brig_settings *s = l->settings;
    uint32_t trained = l->model->desc.ctx_trained;
    l->ctx = trained != 0 && trained < DEFAULT_CTX ? trained : DEFAULT_CTX;
    if (s->ctx != 0)
        l->ctx = (uint32_t)s->ctx;
    else if (l->planned)
        l->ctx = l->plan.ctx;
    if (s->ctx == 0 && !s->quiet)
        fprintf(stderr, "brigade: context of %u tokens (trained with %u; --ctx sets it)\n", l->ctx, trained);
    if (trained != 0 && l->ctx > trained && !s->quiet)
        fprintf(stderr, "brigade: a context of %u is more than the %u that the model was trained with\n",
                l->ctx, trained);
}

/* Shards that others started are as they are: hidden rows are seen where one ends and the next begins. */
static int check_single_layers(struct brig_lineup *l, struct brig_fail *fail)
{
    struct brig_line_stats stats;
    brig_line_stats(l->line, &stats);
    for (unsigned i = 0; i < stats.n_stages; i++)
        if (stats.stages[i].cells.last - stats.stages[i].cells.first != 1)
            return brig_fail_set(
                fail, BRIG_EMISMATCH,
                "--hidden: shard %u of the chain holds more than one layer; start one for each layer "
                "and one for the head",
                i);
    return 0;
}

/* Who makes the frames of what the verb wants. */
static int open_frames(struct brig_lineup *l, bool rows, uint32_t batch_rows, struct brig_fail *fail)
{
    const struct brig_session_opts session = {
        .model = l->model, .embed = l->embed, .line = l->line, .ctx = l->ctx, .batch_rows = batch_rows};
    const struct brig_sched_opts sched = {.model = l->model,
                                          .embed = l->embed,
                                          .line = l->line,
                                          .ctx = l->ctx,
                                          .slots = 1,
                                          .frame_rows = batch_rows};
    return rows ? brig_session_new(&l->session, &session, fail) : brig_sched_new(&l->sched, &sched, fail);
}

/* Once for all shards: they go on, and their memory may be swapped. */
static void say_unlocked(const struct brig_lineup *l)
{
    struct brig_line_stats stats;
    uint64_t bytes = 0;
    brig_line_stats(l->line, &stats);
    for (unsigned i = 0; i < stats.n_stages; i++)
        bytes += stats.stages[i].unlocked_bytes;
    if (bytes > 0 && !l->settings->quiet)
        fprintf(stderr, "brigade: %.1f MB of weights are in memory, not locked there (see ulimit -l)\n",
                (double)bytes / 1e6);
}

static int start_line(struct brig_lineup *l, const struct brig_lineup_need *need, struct brig_fail *fail)
{
    const struct brig_settings *s = l->settings;
    uint32_t ctx = need->ctx;
    l->ctx = ctx;
    uint32_t max_rows = ctx < BRIG_SESSION_MAX_ROWS ? ctx : BRIG_SESSION_MAX_ROWS;
    if (l->planned && l->plan.max_rows < max_rows)
        max_rows = l->plan.max_rows;
    struct brig_line_opts line = {.model = l->model,
                                  .mode = s->mode,
                                  .keep = (unsigned)s->keep,
                                  .threads = (unsigned)s->threads,
                                  .residency = s->residency,
                                  .link = s->link,
                                  .hold = s->hold,
                                  .exact = s->exact,
                                  .kv = s->kv,
                                  .ctx = ctx,
                                  .slots = 1,
                                  .max_rows = max_rows,
                                  .timeout_ms = s->timeout_ms,
                                  .chain = s->chain,
                                  .insecure = s->insecure,
                                  .star = need->star,
                                  .pss = need->pss,
                                  .cancel = brig_interrupt_flag()};
    uint32_t batch_rows;
    int r = brig_lineup_batch(max_rows, &batch_rows, fail);
    if (r == 0)
        r = from_test("BRIGADE_TEST_AHEAD", &line.turn_bytes, fail);
    if (r == 0)
        r = brig_lineup_count(l->model, need->star ? BRIG_SHARDS_ALL : s->shards, &line.n_shards, fail);
    if (l->planned) {
        line.n_shards = l->plan.n_shards;
        line.plan = &l->plan;
        line.enclosure = s->enclosure;
    }
    if (r == 0 && s->trace != NULL) {
        r = brig_trace_open(&l->trace, s->trace, fail);
        if (r == 0)
            brig_trace_track(l->trace, 0, "driver");
    }
    line.trace = l->trace;
    if (r == 0 && s->trace_routing != NULL)
        r = brig_routes_open(&l->routes, s->trace_routing, l->model, fail);
    line.routes = l->routes;
    if (r == 0)
        r = brig_line_open(&l->line, &line, fail);
    if (r == 0)
        say_unlocked(l);
    if (r == 0 && need->star)
        r = check_single_layers(l, fail);
    if (r == 0)
        r = open_frames(l, need->rows, batch_rows, fail);
    if (r < 0 || need->rows)
        return r;
    bool disk_bound = l->planned && l->plan.regime == BRIG_PLAN_DISK_BOUND;
    r = brig_drafts_start(&l->drafts, s, &line, need->sample, disk_bound, fail);
    return r < 0 || !l->drafts.any ? r : brig_spec_new(&l->spec, &l->drafts.opts, fail);
}

/* The tokenizer on a thread of its own: a large one takes longer than the start of the shards, which is
 * mostly waiting. The line stays with the caller's thread: shards end when the thread that started them does.
 */
struct aside {
    struct brig_lineup *l;
    struct brig_fail fail;
    int r;
};

static void *aside_main(void *arg)
{
    struct aside *a = arg;
    a->r = open_tokenizer(a->l, &a->fail);
    return NULL;
}

int brig_lineup_start(struct brig_lineup *l, const struct brig_lineup_need *need, struct brig_fail *fail)
{
    struct aside a = {.l = l};
    pthread_t thread;
    sigset_t all, old;
    if (!need->tokenizer)
        return start_line(l, need, fail);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old); /* signals are the main thread's */
    int failed = pthread_create(&thread, NULL, aside_main, &a);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (failed != 0)
        return brig_fail_set(fail, BRIG_ENOMEM, "no thread for the tokenizer");
    int r = start_line(l, need, fail);
    pthread_join(thread, NULL);
    if (a.r < 0)
        *fail = a.fail;
    return a.r < 0 ? a.r : r;
}

int brig_lineup_release(struct brig_lineup *l, int r, struct brig_fail *fail)
{
    struct brig_fail trace_fail;
    brig_spec_free(l->spec);
    brig_drafts_release(&l->drafts);
    brig_sched_free(l->sched);
    brig_session_free(l->session);
    brig_line_close(l->line);
    int t = brig_trace_close(l->trace, &trace_fail);
    int routes = brig_routes_close(l->routes, t < 0 ? NULL : &trace_fail);
    t = t < 0 ? t : routes;
    brig_tokenizer_free(l->tokenizer);
    brig_embed_close(l->embed);
    brig_model_close(l->model);
    brig_folder_close(l->folder);
    brig_plan_release(&l->plan);
    *l = (struct brig_lineup){0};
    if (r == 0 && t < 0) {
        *fail = trace_fail;
        return t;
    }
    return r;
}
