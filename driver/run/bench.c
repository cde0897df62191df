/* One measured run. */
#include "driver/run/bench.h"

#include <unistd.h>

#include "driver/run/sched.h"
#include "driver/run/session.h"
#include "proto/base/clock.h"
#include "proto/base/mem.h"
#include "proto/stat/stat.h"

static uint32_t ctx_of(const struct brig_bench_opts *o)
{
    return o->n_prompt + o->n_generate;
}

static uint32_t rows_of(const struct brig_bench_opts *o, struct brig_bench_config c)
{
    uint64_t rows = (uint64_t)ctx_of(o) * c.n_streams;
    uint32_t most = o->plan != NULL && o->plan->max_rows < BRIG_SESSION_MAX_ROWS ? o->plan->max_rows
                                                                                 : BRIG_SESSION_MAX_ROWS;
    return rows < most ? (uint32_t)rows : most;
}

static unsigned keep_of(const struct brig_bench_opts *o, struct brig_bench_config c)
{
    if (!c.mode->picks)
        return 0;
    return o->keep < c.n_shards ? o->keep : c.n_shards;
}

static int open_line(const struct brig_bench_opts *o, struct brig_bench_config c, bool pss,
                     struct brig_line **ret, struct brig_fail *fail)
{
    const struct brig_line_opts line = {.model = o->model,
                                        .mode = c.mode,
                                        .keep = keep_of(o, c),
                                        .n_shards = c.n_shards,
                                        .threads = o->threads,
                                        .residency = o->residency,
                                        .link = o->link,
                                        .hold = o->hold,
                                        .exact = o->exact,
                                        .kv = o->kv,
                                        .ctx = ctx_of(o),
                                        .slots = c.n_streams,
                                        .max_rows = rows_of(o, c),
                                        .timeout_ms = o->timeout_ms,
                                        .pss = pss,
                                        .routes = pss ? NULL : o->routes,
                                        .plan = o->plan,
                                        .enclosure = o->enclosure,
                                        .cancel = o->cancel};
    return brig_line_open(ret, &line, fail);
}

/* One sequence: a made-up prompt, then the likeliest token or another made-up one again and again. */
struct stream {
    uint32_t *prompt; /* [n_prompt + 1] with room for the first token that follows */
    uint32_t *ids;    /* [n_generate] the likeliest */
    uint32_t n_prompt;
    uint32_t made_up; /* where the sequence of made-up tokens is */
    bool random;
    uint32_t vocab;
    uint32_t n, end;        /* drawn; how many are wanted now */
    struct brig_spec *spec; /* NULL: no drafts */
};

struct streams {
    const struct brig_bench_opts *o;
    struct brig_sched *sched;
    unsigned n;
    struct stream *v;  /* [n] */
    uint32_t *prompts; /* [n, n_prompt + 1] */
};

static uint32_t top_one(void *ctx, uint32_t ahead)
{
    (void)ctx;
    (void)ahead;
    return 1;
}

/* Ids that differ from one another and from stream to stream and are the same in every run. */
static uint32_t make_up(struct stream *t)
{
    t->made_up = t->made_up * 1664525u + 1013904223u;
    return (t->made_up >> 8) % t->vocab;
}

static int take_token(void *ctx, const struct brig_row *row, uint32_t *next, bool *goes_on,
                      struct brig_fail *fail)
{
    struct stream *t = ctx;
    (void)fail;
    t->ids[t->n++] = row->ids[0];
    *next = t->random ? make_up(t) : row->ids[0];
    if (t->n == 1)
        t->prompt[t->n_prompt] = *next;
    if (t->spec != NULL)
        brig_spec_drawn(t->spec, *next);
    *goes_on = t->n < t->end;
    return 0;
}

static int draft(void *ctx, uint32_t *ids, uint32_t n, uint32_t most, uint32_t *n_draft,
                 struct brig_fail *fail)
{
    struct stream *t = ctx;
    const struct brig_draft_seq seq = {ids, n, t->n};
    uint32_t left = t->end - t->n - 1; /* one token comes in any case */
    return brig_spec_propose(t->spec, &seq, most < left ? most : left, ids + n, n_draft, fail);
}

static void close_streams(struct streams *s)
{
    brig_sched_free(s->sched);
    if (s->v != NULL)
        brig_spec_free(s->v[0].spec);
    brig_free(s->v);
    brig_free(s->prompts);
}

static int open_streams(struct streams *s, const struct brig_bench_opts *o, struct brig_bench_config c,
                        struct brig_line *line, uint32_t *ids, struct brig_fail *fail)
{
    uint32_t max_rows = rows_of(o, c);
    const struct brig_sched_opts opts = {.model = o->model,
                                         .embed = o->embed,
                                         .line = line,
                                         .ctx = ctx_of(o),
                                         .slots = c.n_streams,
                                         .frame_rows = o->batch_rows < max_rows ? o->batch_rows : max_rows,
                                         .flights = o->flights};
    size_t prompt = (size_t)o->n_prompt + 1;
    *s = (struct streams){.o = o, .n = c.n_streams};
    s->v = brig_alloc(s->n, sizeof *s->v);
    s->prompts = brig_alloc(s->n, prompt * sizeof *s->prompts);
    int r = s->v != NULL && s->prompts != NULL
                ? brig_sched_new(&s->sched, &opts, fail)
                : brig_fail_set(fail, BRIG_ENOMEM, "out of memory for %u prompts of %u tokens", s->n,
                                o->n_prompt);
    for (unsigned i = 0; r == 0 && i < s->n; i++) {
        s->v[i] = (struct stream){.prompt = s->prompts + i * prompt,
                                  .n_prompt = o->n_prompt,
                                  .ids = ids + (size_t)i * o->n_generate,
                                  .made_up = 12345 + i * 7919,
                                  .random = o->random_tokens,
                                  .vocab = o->model->desc.vocab};
        for (uint32_t k = 0; k < o->n_prompt; k++)
            s->v[i].prompt[k] = make_up(&s->v[i]);
    }
    return r < 0 || o->spec == NULL ? r : brig_spec_new(&s->v[0].spec, o->spec, fail);
}

/* All streams from where they are, until each has drawn `end` tokens. */
static int run_streams(struct streams *s, uint32_t end, struct brig_fail *fail)
{
    int r = 0;
    for (unsigned i = 0; r == 0 && i < s->n; i++) {
        struct stream *t = &s->v[i];
        struct brig_seq seq = {.prompt = t->prompt,
                               .n_prompt =
                                   s->o->n_prompt + t->n, /* 1 more then: the slot has kept the prompt */
                               .top = top_one,
                               .draft = t->spec != NULL ? draft : NULL,
                               .answer = take_token,
                               .ctx = t};
        uint32_t slot;
        size_t kept;
        t->end = end;
        r = brig_sched_add(s->sched, &seq, &slot, &kept, fail);
    }
    while (r == 0 && brig_sched_busy(s->sched))
        r = brig_sched_step(s->sched, fail);
    return r;
}

/* Of this process, of the shards that it has waited for, and of those that it has not. */
static uint64_t disk_bytes(struct brig_line *line)
{
    struct brig_line_stats stats;
    uint64_t sum = brig_disk_read_bytes(getpid());
    brig_line_stats(line, &stats);
    for (unsigned i = 0; i < stats.n_stages; i++)
        if (stats.stages[i].pid != 0)
            sum += brig_disk_read_bytes((pid_t)stats.stages[i].pid);
    return sum;
}

/* Streamed experts of all shards so far. */
struct experts {
    uint64_t used, hits, read_bytes;
};

static struct experts experts_of(const struct brig_line_stats *l)
{
    struct experts e = {0};
    for (unsigned i = 0; i < l->n_stages; i++) {
        e.used += l->stages[i].experts_used;
        e.hits += l->stages[i].expert_hits;
        e.read_bytes += l->stages[i].expert_read_bytes;
    }
    return e;
}

struct times {
    uint64_t begin_ns, first_ns, decode_ns;
    uint64_t begin_disk, first_disk, last_disk;
    unsigned n_hops_before; /* samples that are the prompt's */
    uint64_t decode_frames;
    struct experts before; /* the first token */
};

/* The prompts of all streams, then a token of each until all have n_generate >= 2. */
static int generate(struct streams *s, struct brig_line *line, uint32_t n_generate, struct times *t,
                    struct brig_fail *fail)
{
    struct brig_line_stats stats;
    t->begin_disk = disk_bytes(line);
    t->begin_ns = brig_clock_ns();
    int r = run_streams(s, 1, fail);
    t->first_ns = brig_clock_ns();
    t->first_disk = disk_bytes(line);
    if (r < 0)
        return r;
    if (s->v[0].spec != NULL && brig_sched_frames(s->sched) == 1)
        brig_spec_prompt(s->v[0].spec, s->o->n_prompt, t->first_ns - t->begin_ns);
    brig_line_stats(line, &stats);
    t->n_hops_before = stats.n_hop_ns;
    t->before = experts_of(&stats);
    uint64_t frames_before = brig_sched_frames(s->sched);
    uint64_t begin_ns = brig_clock_ns();
    r = run_streams(s, n_generate, fail);
    t->decode_ns = brig_clock_ns() - begin_ns;
    t->last_disk = disk_bytes(line);
    t->decode_frames = brig_sched_frames(s->sched) - frames_before;
    return r;
}

/* A shard that vanished before it was waited for takes its count along. */
static uint64_t grown(uint64_t from, uint64_t to)
{
    return to > from ? to - from : 0;
}

static double rate(double n, uint64_t ns)
{
    return ns == 0 ? 0 : n * (double)BRIG_NS_PER_S / (double)ns;
}

static void read_figures(const struct streams *s, struct brig_line *line, const struct times *t,
                         struct brig_bench_sample *ret)
{
    struct brig_line_stats stats;
    brig_line_stats(line, &stats);
    unsigned from = t->n_hops_before < stats.n_hop_ns ? t->n_hops_before : 0;
    double decoded = (double)s->n * (s->o->n_generate - 1);
    ret->prefill_tok_s = rate((double)s->n * s->o->n_prompt, t->first_ns - t->begin_ns);
    ret->decode_tok_s = rate(decoded, t->decode_ns);
    ret->rows_per_frame = t->decode_frames == 0 ? 1 : decoded / (double)t->decode_frames;
    struct brig_spec_stats drafts;
    for (unsigned i = 0; s->v[0].spec != NULL && brig_spec_stats(s->v[0].spec, i, &drafts); i++) {
        ret->drafted += drafts.drafted;
        ret->accepted += drafts.accepted;
    }
    ret->has_hops = stats.n_hop_ns > from;
    ret->hop_us_p50 = (double)brig_percentile(stats.hop_ns + from, stats.n_hop_ns - from, 50) / 1000;
    ret->hop_us_p99 = (double)brig_percentile(stats.hop_ns + from, stats.n_hop_ns - from, 99) / 1000;
    ret->hops_per_token = stats.hops_per_pass;
    ret->threads = stats.n_stages > 0 ? stats.stages[0].threads : 0;
    ret->flights = brig_sched_flights(s->sched);
    ret->disk_prompt_bytes = grown(t->begin_disk, t->first_disk);
    ret->disk_decode_bytes = grown(t->first_disk, t->last_disk);
    struct experts now = experts_of(&stats);
    double used = (double)(now.used - t->before.used);
    ret->experts_per_token = used / decoded;
    ret->expert_hit_rate = used == 0 ? 0 : (double)(now.hits - t->before.hits) / used;
    ret->expert_bytes_per_token = (double)(now.read_bytes - t->before.read_bytes) / decoded;
}

int brig_bench_once(const struct brig_bench_opts *o, struct brig_bench_config c,
                    struct brig_bench_sample *ret, uint32_t *ids, struct brig_fail *fail)
{
    struct brig_line *line = NULL;
    struct streams s = {0};
    struct brig_line_stats stats;
    struct times t = {0};
    uint64_t disk = brig_disk_read_bytes(getpid()), begin = brig_clock_ns();
    int r = open_line(o, c, false, &line, fail);
    if (r < 0)
        return r;
    brig_line_stats(line, &stats);
    ret->start_s = (double)(stats.proven_ns - begin) / (double)BRIG_NS_PER_S;
    r = open_streams(&s, o, c, line, ids, fail);
    if (r == 0)
        r = generate(&s, line, o->n_generate, &t, fail);
    if (r == 0) {
        read_figures(&s, line, &t, ret);
        ret->ttft_s = (double)(t.first_ns - begin) / (double)BRIG_NS_PER_S;
        ret->disk_start_bytes = grown(disk, t.begin_disk);
    }
    close_streams(&s);
    brig_line_close(line);
    return r;
}

/* The driver's own memory is counted with the model's line. */
static uint64_t draft_pss(const struct brig_bench_opts *o)
{
    struct brig_line_stats stats = {0};
    uint64_t sum = 0;
    if (o->draft_line != NULL)
        brig_line_stats(o->draft_line, &stats);
    for (unsigned i = 0; i < stats.n_stages; i++)
        sum += stats.stages[i].pss_peak_bytes;
    return sum;
}

int brig_bench_pss(const struct brig_bench_opts *o, struct brig_bench_config c, uint32_t *ids,
                   uint64_t *ret_bytes, struct brig_fail *fail)
{
    enum { TOKENS = 4 }; /* the peak comes with the prompt; a few more show what decoding adds */
    struct brig_line *line = NULL;
    struct streams s = {0};
    struct brig_line_stats stats;
    struct times t;
    int r = open_line(o, c, true, &line, fail);
    if (r < 0)
        return r;
    r = open_streams(&s, o, c, line, ids, fail);
    if (r == 0)
        r = generate(&s, line, o->n_generate < TOKENS ? o->n_generate : TOKENS, &t, fail);
    if (r == 0) {
        brig_line_stats(line, &stats);
        *ret_bytes = stats.pss_peak_bytes + draft_pss(o);
    }
    close_streams(&s);
    brig_line_close(line);
    return r;
}

int brig_bench_starts(const struct brig_bench_opts *o, struct brig_bench_config c, unsigned n,
                      uint64_t *ret_ns, struct brig_fail *fail)
{
    struct brig_line *line = NULL;
    int r = open_line(o, c, false, &line, fail);
    if (r == 0)
        r = brig_line_time_starts(line, n, ret_ns, fail);
    brig_line_close(line);
    return r;
}
