/* One measured run. */
#include "driver/run/bench.h"

#include "driver/run/session.h"
#include "proto/base/clock.h"
#include "proto/base/mem.h"
#include "proto/stat/stat.h"

static uint32_t ctx_of(const struct brig_bench_opts *o)
{
    return o->n_prompt + o->n_generate;
}

static uint32_t rows_of(const struct brig_bench_opts *o)
{
    return ctx_of(o) < BRIG_SESSION_MAX_ROWS ? ctx_of(o) : BRIG_SESSION_MAX_ROWS;
}

static int open_line(const struct brig_bench_opts *o, struct brig_bench_config c, bool pss,
                     struct brig_line **ret, struct brig_fail *fail)
{
    const struct brig_line_opts line = {.model = o->model,
                                        .mode = c.mode,
                                        .n_shards = c.n_shards,
                                        .threads = o->threads,
                                        .link = o->link,
                                        .hold = o->hold,
                                        .exact = o->exact,
                                        .kv_f32 = o->kv_f32,
                                        .ctx = ctx_of(o),
                                        .slots = 1,
                                        .max_rows = rows_of(o),
                                        .timeout_ms = o->timeout_ms,
                                        .pss = pss,
                                        .cancel = o->cancel};
    return brig_line_open(ret, &line, fail);
}

static int open_session(const struct brig_bench_opts *o, struct brig_line *line, struct brig_session **ret,
                        struct brig_fail *fail)
{
    const struct brig_session_opts session = {.model = o->model,
                                              .embed = o->embed,
                                              .line = line,
                                              .ctx = ctx_of(o),
                                              .batch_rows =
                                                  o->batch_rows < rows_of(o) ? o->batch_rows : rows_of(o)};
    return brig_session_new(ret, &session, fail);
}

/* Ids that differ from one another and are the same in every run. */
static uint32_t *make_prompt(const struct brig_bench_opts *o, struct brig_fail *fail)
{
    uint32_t *ids = brig_alloc(o->n_prompt, sizeof *ids);
    uint32_t x = 12345;
    if (ids == NULL) {
        brig_fail_set(fail, BRIG_ENOMEM, "out of memory for a prompt of %u tokens", o->n_prompt);
        return NULL;
    }
    for (uint32_t i = 0; i < o->n_prompt; i++) {
        x = x * 1664525u + 1013904223u;
        ids[i] = (x >> 8) % o->model->desc.vocab;
    }
    return ids;
}

struct times {
    uint64_t begin_ns, first_ns, last_ns;
    unsigned n_hops_before; /* samples that are the prompt's */
};

static int generate(const struct brig_bench_opts *o, struct brig_line *line, struct brig_session *s,
                    uint32_t n_generate, struct times *t, struct brig_fail *fail)
{
    struct brig_answer a;
    struct brig_line_stats stats;
    uint32_t *prompt = make_prompt(o, fail);
    if (prompt == NULL)
        return -BRIG_ENOMEM;
    t->begin_ns = brig_clock_ns();
    int r = brig_session_feed(s, prompt, o->n_prompt, 1, NULL, NULL, &a, fail);
    t->first_ns = brig_clock_ns();
    brig_free(prompt);
    if (r < 0)
        return r;
    brig_line_stats(line, &stats);
    t->n_hops_before = stats.n_hop_ns;
    for (uint32_t i = 1; r == 0 && i < n_generate; i++) {
        uint32_t id = a.ids[0];
        r = brig_session_feed(s, &id, 1, 1, NULL, NULL, &a, fail);
    }
    t->last_ns = brig_clock_ns();
    return r;
}

static double rate(uint32_t n, uint64_t ns)
{
    return ns == 0 ? 0 : (double)n * (double)BRIG_NS_PER_S / (double)ns;
}

static void read_figures(const struct brig_bench_opts *o, struct brig_line *line, const struct times *t,
                         struct brig_bench_sample *ret)
{
    struct brig_line_stats stats;
    brig_line_stats(line, &stats);
    unsigned from = t->n_hops_before < stats.n_hop_ns ? t->n_hops_before : 0;
    ret->prefill_tok_s = rate(o->n_prompt, t->first_ns - t->begin_ns);
    ret->decode_tok_s = rate(o->n_generate - 1, t->last_ns - t->first_ns);
    ret->has_hops = stats.n_hop_ns > from;
    ret->hop_us_p50 = (double)brig_percentile(stats.hop_ns + from, stats.n_hop_ns - from, 50) / 1000;
    ret->hop_us_p99 = (double)brig_percentile(stats.hop_ns + from, stats.n_hop_ns - from, 99) / 1000;
    ret->hops_per_token = stats.hops_per_pass;
    ret->threads = stats.n_stages > 0 ? stats.stages[0].threads : 0;
}

int brig_bench_once(const struct brig_bench_opts *o, struct brig_bench_config c,
                    struct brig_bench_sample *ret, struct brig_fail *fail)
{
    struct brig_line *line = NULL;
    struct brig_session *session = NULL;
    struct brig_line_stats stats;
    struct times t = {0};
    uint64_t begin = brig_clock_ns();
    int r = open_line(o, c, false, &line, fail);
    if (r < 0)
        return r;
    brig_line_stats(line, &stats);
    ret->start_s = (double)(stats.proven_ns - begin) / (double)BRIG_NS_PER_S;
    r = open_session(o, line, &session, fail);
    if (r == 0)
        r = generate(o, line, session, o->n_generate, &t, fail);
    if (r == 0)
        read_figures(o, line, &t, ret);
    brig_session_free(session);
    brig_line_close(line);
    return r;
}

int brig_bench_pss(const struct brig_bench_opts *o, struct brig_bench_config c, uint64_t *ret_bytes,
                   struct brig_fail *fail)
{
    enum { TOKENS = 4 }; /* the peak comes with the prompt; a few more show what decoding adds */
    struct brig_line *line = NULL;
    struct brig_session *session = NULL;
    struct brig_line_stats stats;
    struct times t;
    int r = open_line(o, c, true, &line, fail);
    if (r < 0)
        return r;
    r = open_session(o, line, &session, fail);
    if (r == 0)
        r = generate(o, line, session, o->n_generate < TOKENS ? o->n_generate : TOKENS, &t, fail);
    if (r == 0) {
        brig_line_stats(line, &stats);
        *ret_bytes = stats.pss_peak_bytes;
    }
    brig_session_free(session);
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
