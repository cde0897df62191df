/* brigade bench: what modes and numbers of shards cost on this machine, taking turns in one run. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "driver/front/bench_report.h"
#include "driver/front/bench_table.h"
#include "driver/front/interrupt.h"
#include "driver/front/lineup.h"
#include "driver/front/option.h"
#include "driver/front/progress.h"
#include "driver/front/verb.h"
#include "driver/run/bench_tokenizer.h"
#include "driver/run/report.h"
#include "proto/base/mem.h"
#include "proto/base/parse.h"

/* What --skip can leave out. */
enum extra { EXTRA_MEMORY, EXTRA_PROBE, EXTRA_STARTS, EXTRA_TOKENIZER, EXTRA_COUNT };
static const char *const extras[EXTRA_COUNT] = {"memory", "probe", "starts", "tokenizer"};

#define N_STARTS    100u
#define MAX_STREAMS 256u

static int add_row(struct brig_bench_table *t, struct brig_bench_config c, struct brig_fail *fail)
{
    for (unsigned i = 0; i < t->n_rows; i++) {
        const struct brig_bench_config *k = &t->rows[i].config;
        if (k->mode == c.mode && k->n_shards == c.n_shards && k->n_streams == c.n_streams)
            return 0;
    }
    if (t->n_rows == BRIG_BENCH_MAX_ROWS)
        return brig_fail_set(fail, BRIG_EUSAGE, "--modes, --shards and --streams: more than %u combinations",
                             BRIG_BENCH_MAX_ROWS);
    t->rows[t->n_rows++].config = c;
    return 0;
}

static int add_streams(struct brig_bench_table *t, const struct brig_lineup *l, struct brig_bench_config c,
                       struct brig_fail *fail)
{
    const char *list = l->settings->bench_streams;
    for (const char *p = list;; p++) {
        size_t n = strcspn(p, ",");
        char number[16];
        uint64_t streams;
        snprintf(number, sizeof number, "%.*s", (int)(n < sizeof number ? n : sizeof number), p);
        if (n >= sizeof number || !brig_parse_u64(number, &streams) || streams < 1 || streams > MAX_STREAMS)
            return brig_fail_set(fail, BRIG_EUSAGE, "--streams %s: numbers from 1 to %u are needed", list,
                                 MAX_STREAMS);
        c.n_streams = (unsigned)streams;
        int r = add_row(t, c, fail);
        if (r < 0)
            return r;
        p += n;
        if (*p == '\0')
            return 0;
    }
}

static int add_mode(struct brig_bench_table *t, const struct brig_lineup *l, const struct brig_mode *mode,
                    struct brig_fail *fail)
{
    const char *list = l->settings->bench_shards != NULL ? l->settings->bench_shards : "1,all";
    for (const char *p = list;; p++) {
        size_t n = strcspn(p, ",");
        struct brig_bench_config c = {.mode = mode};
        uint64_t shards;
        if (brig_option_shards(p, n, &shards, fail) < 0)
            return brig_fail_prefix(fail, "--shards %s", list);
        int r = brig_lineup_count(l->model, shards, &c.n_shards, fail);
        if (r == 0)
            r = add_streams(t, l, c, fail);
        if (r < 0)
            return r;
        p += n;
        if (*p == '\0')
            return 0;
    }
}

static int fill_rows(struct brig_bench_table *t, const struct brig_lineup *l, struct brig_fail *fail)
{
    const char *list = l->settings->bench_modes != NULL ? l->settings->bench_modes : "warm,cold";
    for (const char *p = list;; p++) {
        char name[32];
        size_t n = strcspn(p, ",");
        snprintf(name, sizeof name, "%.*s", (int)(n < sizeof name ? n : sizeof name), p);
        const struct brig_mode *mode = n < sizeof name ? brig_mode_by_name(name) : NULL;
        if (mode == NULL)
            return brig_fail_set(fail, BRIG_EUSAGE, "--modes %s: no mode %.*s; `brigade list modes` has them",
                                 list, (int)(n < 64 ? n : 64), p);
        int r = add_mode(t, l, mode, fail);
        if (r < 0)
            return r;
        p += n;
        if (*p == '\0')
            return 0;
    }
}

static int parse_skip(const char *list, bool skip[EXTRA_COUNT], struct brig_fail *fail)
{
    for (const char *p = list; p != NULL; p += *p == ',') {
        size_t n = strcspn(p, ",");
        unsigned i = 0;
        while (i < EXTRA_COUNT && (strlen(extras[i]) != n || memcmp(extras[i], p, n) != 0))
            i++;
        if (i == EXTRA_COUNT)
            return brig_fail_set(fail, BRIG_EUSAGE,
                                 "--skip %s: memory, probe, starts and tokenizer can be left out", list);
        skip[i] = true;
        p += n;
        if (*p == '\0')
            break;
    }
    return 0;
}

static int allocate(struct brig_bench_table *t, const struct brig_settings *s, bool probe,
                    struct brig_fail *fail)
{
    t->repeat = (unsigned)s->bench_repeat;
    t->probes = probe ? brig_alloc(t->repeat, sizeof *t->probes) : NULL;
    bool ok = t->probes != NULL || !probe;
    unsigned most = 0;
    for (unsigned i = 0; i < t->n_rows; i++) {
        struct brig_bench_row *row = &t->rows[i];
        row->samples = brig_alloc(t->repeat, sizeof *row->samples);
        row->ids = brig_alloc(s->bench_generate * row->config.n_streams, sizeof *row->ids);
        ok &= row->samples != NULL && row->ids != NULL;
        most = row->config.n_streams > most ? row->config.n_streams : most;
    }
    t->scratch = brig_alloc(s->bench_generate * most, sizeof *t->scratch);
    ok &= t->scratch != NULL;
    return ok ? 0 : brig_fail_set(fail, BRIG_ENOMEM, "out of memory for %u repetitions", t->repeat);
}

/* Modes, shards, streams and frames under way change no token; if they did, their speeds would not be speeds
 * of the same thing. */
static int check_ids(const struct brig_bench_table *t, const struct brig_bench_row *row, const uint32_t *ids,
                     struct brig_fail *fail)
{
    for (unsigned i = 0; i < t->n_rows && t->rows[i].done; i++) {
        unsigned a = t->rows[i].config.n_streams, b = row->config.n_streams;
        if (memcmp(t->rows[i].ids, ids, (size_t)(a < b ? a : b) * t->n_generate * sizeof *ids) != 0)
            return brig_fail_set(fail, BRIG_EINTERNAL, "it gave other tokens than %s, %u shards, %u streams",
                                 t->rows[i].config.mode->name, t->rows[i].config.n_shards, a);
    }
    return 0;
}

static int measure_once(struct brig_bench_table *t, const struct brig_bench_opts *o,
                        struct brig_bench_row *row, unsigned k, struct brig_fail *fail)
{
    uint32_t *ids = k == 0 ? row->ids : t->scratch;
    struct brig_bench_opts opts = *o;
    if (k > 0 || row != t->rows)
        opts.routes = NULL; /* all runs choose alike */
    int r = brig_bench_once(&opts, row->config, &row->samples[k], ids, fail);
    if (r == 0)
        r = check_ids(t, row, ids, fail);
    row->done = true;
    return r < 0 ? brig_fail_prefix(fail, "%s, %u shards, %u streams", row->config.mode->name,
                                    row->config.n_shards, row->config.n_streams)
                 : 0;
}

/* A B A B, not A A B B: what changes with time on the machine meets all alike. */
static int measure(struct brig_bench_table *t, const struct brig_bench_opts *o, bool memory,
                   struct brig_progress *bar, struct brig_fail *fail)
{
    size_t total = (size_t)t->n_rows * (t->repeat + memory), done = 0;
    for (unsigned k = 0; k < t->repeat; k++) {
        for (unsigned i = 0; i < t->n_rows; i++) {
            int r = measure_once(t, o, &t->rows[i], k, fail);
            if (r < 0)
                return r;
            brig_progress_update(bar, ++done, total);
        }
        int r =
            t->probes == NULL ? 0 : brig_probe_read_once(t->rows[0].samples[k].threads, &t->probes[k], fail);
        if (r < 0)
            return r;
    }
    for (unsigned i = 0; i < t->n_rows && memory; i++) {
        int r = brig_bench_pss(o, t->rows[i].config, t->scratch, &t->rows[i].pss_peak_bytes, fail);
        if (r < 0)
            return r;
        brig_progress_update(bar, ++done, total);
    }
    return 0;
}

/* Of the largest number of shards in a mode that starts them for each pass. */
static int measure_starts(struct brig_bench_table *t, const struct brig_bench_opts *o, struct brig_fail *fail)
{
    const struct brig_bench_row *most = NULL;
    for (unsigned i = 0; i < t->n_rows; i++)
        if (!t->rows[i].config.mode->keeps && !t->rows[i].config.mode->picks &&
            (most == NULL || t->rows[i].config.n_shards > most->config.n_shards))
            most = &t->rows[i];
    if (most == NULL)
        return 0;
    t->starts_ns = brig_alloc(N_STARTS, sizeof *t->starts_ns);
    if (t->starts_ns == NULL)
        return brig_fail_set(fail, BRIG_ENOMEM, "out of memory for the times of starts");
    t->n_starts = N_STARTS;
    t->starts_shards = most->config.n_shards;
    return brig_bench_starts(o, most->config, N_STARTS, t->starts_ns, fail);
}

/* A tokenizer that is not there or not known is no reason to measure nothing else. */
static int measure_tokenizer(struct brig_lineup *l, struct brig_bench_table *t, struct brig_fail *fail)
{
    struct brig_tokenizer *tokenizer = NULL;
    struct brig_fail why = {0};
    if (brig_lineup_vocab(l, &why) < 0 ||
        brig_tokenizer_new(&tokenizer, &l->model->vocab, l->settings->pre, &why) < 0)
        return 0;
    int r = brig_bench_tokenizer(tokenizer, &t->tokenize_mb_s, fail);
    brig_tokenizer_free(tokenizer);
    return r;
}

/* One draft model for all rows: what it kept of one is cut when the next begins. */
static int start_drafts(struct brig_lineup *l, const struct brig_bench_table *t, struct brig_bench_opts *o,
                        struct brig_fail *fail)
{
    const struct brig_settings *s = l->settings;
    struct brig_sample_opts greedy = brig_sample_defaults();
    const struct brig_line_opts line = {.model = l->model,
                                        .threads = o->threads,
                                        .link = o->link,
                                        .hold = o->hold,
                                        .exact = o->exact,
                                        .kv = o->kv,
                                        .ctx = o->n_prompt + o->n_generate,
                                        .timeout_ms = o->timeout_ms,
                                        .plan = o->plan,
                                        .enclosure = o->enclosure,
                                        .pss = true,
                                        .cancel = o->cancel};
    greedy.temp = 0;
    for (unsigned i = 0; i < t->n_rows; i++)
        if (t->rows[i].config.n_streams > 1 && (s->draft != NULL || s->lookup == BRIG_LOOKUP_ON))
            return brig_fail_set(fail, BRIG_EUSAGE, "--streams %s: drafts are measured with one stream",
                                 s->bench_streams);
    if (s->bench_random && (s->draft != NULL || s->lookup == BRIG_LOOKUP_ON))
        return brig_fail_set(
            fail, BRIG_EUSAGE,
            "--random-tokens: drafts guess what the model says; leave out --draft and --lookup on");
    int r = brig_drafts_start(&l->drafts, s, &line, &greedy, false, fail);
    if (r < 0 || !l->drafts.any)
        return r;
    o->spec = &l->drafts.opts;
    o->draft_line = l->drafts.line;
    return 0;
}

/* Runs in turn; with --trace-routing the first of them is written down. */
static int measure_all(struct brig_lineup *l, struct brig_bench_table *t, struct brig_bench_opts *o,
                       bool memory, struct brig_fail *fail)
{
    struct brig_progress bar;
    const char *path = l->settings->trace_routing;
    int r = path == NULL ? 0 : brig_routes_open(&l->routes, path, l->model, fail);
    if (r < 0)
        return r;
    o->routes = l->routes;
    brig_progress_init(&bar, "bench", l->settings->quiet);
    r = measure(t, o, memory, &bar, fail);
    brig_progress_wipe(&bar);
    o->routes = NULL;
    return r;
}

/* A plan is for one line: under a budget there is one combination. */
static int one_combination(struct brig_settings *s, struct brig_fail *fail)
{
    if (s->ram.kind == BRIG_RAM_NONE)
        return 0;
    s->bench_modes = s->bench_modes != NULL ? s->bench_modes : "warm";
    s->bench_shards = s->bench_shards != NULL ? s->bench_shards : "1";
    s->mode = brig_mode_by_name(s->bench_modes);
    if (s->mode == NULL || strcmp(s->bench_streams, "1") != 0)
        return brig_fail_set(fail, BRIG_EUSAGE,
                             "--ram without --report: one of `brigade list modes` for --modes, one number of "
                             "--shards and one stream are measured");
    s->shards_given = true;
    return brig_option_shards(s->bench_shards, strlen(s->bench_shards), &s->shards, fail) < 0
               ? brig_fail_prefix(fail, "--ram without --report: --shards %s", s->bench_shards)
               : 0;
}

/* The probe reads memory that the plan does not count, the tokenizer is such memory, and starts are no more
 * than they are without a budget. */
static void skip_under_budget(const struct brig_settings *s, bool skip[EXTRA_COUNT])
{
    if (s->ram.kind != BRIG_RAM_NONE)
        skip[EXTRA_PROBE] = skip[EXTRA_STARTS] = skip[EXTRA_TOKENIZER] = true;
}

static int run_all(struct brig_lineup *l, struct brig_bench_table *t, struct brig_fail *fail)
{
    const struct brig_settings *s = l->settings;
    struct brig_bench_opts o = {.model = l->model,
                                .embed = l->embed,
                                .keep = (unsigned)s->keep,
                                .threads = (unsigned)s->threads,
                                .residency = s->residency,
                                .link = s->link,
                                .hold = s->hold,
                                .exact = s->exact,
                                .kv = s->kv,
                                .timeout_ms = s->timeout_ms,
                                .n_prompt = (uint32_t)s->bench_prompt,
                                .n_generate = (uint32_t)s->bench_generate,
                                .flights = (unsigned)s->bench_flights,
                                .random_tokens = s->bench_random,
                                .plan = l->planned ? &l->plan : NULL,
                                .enclosure = l->planned ? s->enclosure : NULL,
                                .cancel = brig_interrupt_flag()};
    bool skip[EXTRA_COUNT] = {0};
    int r = parse_skip(s->bench_skip, skip, fail);
    skip_under_budget(s, skip);
    if (r == 0)
        r = brig_lineup_batch(BRIG_SESSION_MAX_ROWS, &o.batch_rows, fail);
    if (r == 0)
        r = fill_rows(t, l, fail);
    if (r == 0)
        r = allocate(t, s, !skip[EXTRA_PROBE], fail);
    if (r == 0)
        r = start_drafts(l, t, &o, fail);
    if (r < 0)
        return r;
    t->plan = o.plan;
    t->n_prompt = o.n_prompt;
    t->n_generate = o.n_generate;
    t->bytes_per_token = brig_report_bytes_per_token(l->model, l->embed);
    r = measure_all(l, t, &o, !skip[EXTRA_MEMORY], fail);
    if (r == 0 && !skip[EXTRA_STARTS])
        r = measure_starts(t, &o, fail);
    return r < 0 || skip[EXTRA_TOKENIZER] ? r : measure_tokenizer(l, t, fail);
}

static int run(const struct brig_settings *s, struct brig_fail *fail)
{
    struct brig_lineup l;
    struct brig_bench_table t = {0};
    if (s->bench_report != NULL)
        return brig_bench_report(s, fail);
    struct brig_settings one = *s;
    const struct brig_budget_need need = {.ctx = (uint32_t)(s->bench_prompt + s->bench_generate)};
    int r = one_combination(&one, fail);
    if (r < 0)
        return r;
    r = brig_lineup_open(&l, &one, false, &need, fail);
    if (r == 0)
        r = run_all(&l, &t, fail);
    if (r == 0) {
        t.model = l.model;
        t.enclosure = s->enclosure;
        if (s->bench_json == NULL || strcmp(s->bench_json, "-") != 0)
            r = brig_bench_table_print(&t, fail);
    }
    if (r == 0 && s->bench_json != NULL)
        r = brig_bench_table_json(&t, s->bench_json, fail);
    for (unsigned i = 0; i < t.n_rows; i++) {
        brig_free(t.rows[i].samples);
        brig_free(t.rows[i].ids);
    }
    brig_free(t.scratch);
    brig_free(t.probes);
    brig_free(t.starts_ns);
    return brig_lineup_release(&l, r, fail);
}

const struct brig_verb brig_verb_bench = {
    .name = "bench",
    .help = "measure modes and numbers of shards",
    .usage = "MODEL [--modes LIST] [--shards LIST] [--streams LIST] [OPTION]...",
    .about =
        "Every combination of mode, number of shards and number of streams generates tokens after the same\n"
        "made-up prompts, and the same tokens, or it is a failure; they take turns, and medians are printed, "
        "beside a read-once probe of the memory's bandwidth\n"
        "taken in the same run. Starts of processes are timed when a mode is among them that needs them,\n"
        "and the tokenizer when the model has one.\n"
        "The model needs no tokenizer.\n"
        "\n"
        "With --report each combination runs as a program of its own, with the page cache dropped and, "
        "where\n"
        "there is no budget, also full; what came out is printed and written to a folder, with charts and a\n"
        "page that explains them.\n"
        "\n"
        "examples:\n"
        "  brigade bench MODEL\n"
        "  brigade bench MODEL --modes warm --shards 1,2,all -p 128 -n 64 --repeat 5 --json bench.json\n"
        "  brigade bench MODEL --modes warm --shards 1 --streams 1,2,4,8,16\n"
        "  brigade bench MODEL --modes warm,cold --report report -n 8\n"
        "  brigade bench MODEL --ram 50%,100% --modes warm,pool,cold --report report -n 8\n",
    .operand = "MODEL",
    .operand_needed = true,
    .run = run,
};
