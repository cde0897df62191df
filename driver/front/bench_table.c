/* Medians and how they are shown. */
#include "driver/front/bench_table.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "driver/run/enclosure_json.h"
#include "driver/run/json.h"
#include "driver/run/plan_json.h"
#include "proto/stat/stat.h"

/* Median of a field of the samples; an even count takes the mean of the middle two. */
static double median(const double *v, size_t stride, unsigned n)
{
    double low = 0, high = 0;
    const char *base = (const char *)v;
    for (unsigned i = 0; i < n; i++) {
        unsigned below = 0, same = 0;
        double x, y;
        memcpy(&x, base + i * stride, sizeof x);
        for (unsigned k = 0; k < n; k++) {
            memcpy(&y, base + k * stride, sizeof y);
            below += y < x;
            same += y == x;
        }
        if (below <= (n - 1) / 2 && (n - 1) / 2 < below + same)
            low = x;
        if (below <= n / 2 && n / 2 < below + same)
            high = x;
    }
    return (low + high) / 2;
}

#define MEDIAN(row, field, n) median(&(row)->samples[0].field, sizeof *(row)->samples, n)

/* Of the probe; 0 when it was left out. */
static double bandwidth(const struct brig_bench_table *t)
{
    return t->probes == NULL ? 0 : median(t->probes, sizeof *t->probes, t->repeat);
}

/* Weights read for one token: a frame reads them once for all its rows (of experts at least those of one). */
static double bytes_per_token(const struct brig_bench_table *t, const struct brig_bench_row *row)
{
    return (double)t->bytes_per_token / MEDIAN(row, rows_per_frame, t->repeat);
}

/* Share of the probed bandwidth that decoding reaches. */
static double share(const struct brig_bench_table *t, const struct brig_bench_row *row)
{
    double b = bandwidth(t);
    return b == 0 ? 0 : MEDIAN(row, decode_tok_s, t->repeat) * bytes_per_token(t, row) / b;
}

/* Microseconds that each further hop costs: the fewest against the most shards of a mode that keeps them. */
static bool hop_cost(const struct brig_bench_table *t, const struct brig_bench_row **few,
                     const struct brig_bench_row **many, double *us)
{
    *few = *many = NULL;
    for (unsigned i = 0; i < t->n_rows; i++) {
        const struct brig_bench_row *row = &t->rows[i];
        if (!row->config.mode->keeps || row->config.n_streams != 1 ||
            (*few != NULL && row->config.mode != (*few)->config.mode))
            continue;
        if (*few == NULL || row->config.n_shards < (*few)->config.n_shards)
            *few = row;
        if (*many == NULL || row->config.n_shards > (*many)->config.n_shards)
            *many = row;
    }
    if (*few == NULL || *few == *many)
        return false;
    double a = MEDIAN(*few, decode_tok_s, t->repeat), b = MEDIAN(*many, decode_tok_s, t->repeat);
    uint64_t hops = (*many)->samples[0].hops_per_token - (*few)->samples[0].hops_per_token;
    if (a == 0 || b == 0 || hops == 0)
        return false;
    *us = (1 / b - 1 / a) * 1e6 / (double)hops;
    return true;
}

static void print_row(const struct brig_bench_table *t, const struct brig_bench_row *row)
{
    char start[32] = "-", p50[32] = "-", p99[32] = "-", pss[32] = "-", probed[32] = "-";
    if (row->config.mode->keeps || row->config.mode->picks) /* else nothing starts before the first pass */
        snprintf(start, sizeof start, "%.3f", MEDIAN(row, start_s, t->repeat));
    if (row->samples[0].has_hops) {
        snprintf(p50, sizeof p50, "%.1f", MEDIAN(row, hop_us_p50, t->repeat));
        snprintf(p99, sizeof p99, "%.1f", MEDIAN(row, hop_us_p99, t->repeat));
    }
    if (row->pss_peak_bytes > 0)
        snprintf(pss, sizeof pss, "%.1f", (double)row->pss_peak_bytes / 1048576);
    if (t->probes != NULL)
        snprintf(probed, sizeof probed, "%.1f %%", 100 * share(t, row));
    printf("%-6s %6u %7u %8s %13.1f %12.2f %10s %10s %12s %12.0f %8s\n", row->config.mode->name,
           row->config.n_shards, row->config.n_streams, start, MEDIAN(row, prefill_tok_s, t->repeat),
           MEDIAN(row, decode_tok_s, t->repeat), p50, p99, pss, bytes_per_token(t, row), probed);
}

static void print_drafts(const struct brig_bench_table *t, const struct brig_bench_row *row)
{
    const struct brig_bench_sample *s = &row->samples[0];
    if (s->drafted > 0)
        printf("drafts: %s, %u shards: %.2f tokens a pass, %" PRIu64 " of %" PRIu64 " drafted held\n",
               row->config.mode->name, row->config.n_shards, MEDIAN(row, rows_per_frame, t->repeat),
               s->accepted, s->drafted);
}

static void print_experts(const struct brig_bench_table *t, const struct brig_bench_row *row)
{
    if (row->samples[0].experts_per_token > 0)
        printf(
            "experts: %s, %u shards, %u streams: %.1f used a token, %.1f %% of them in memory, %.1f MB read "
            "a token\n",
            row->config.mode->name, row->config.n_shards, row->config.n_streams,
            MEDIAN(row, experts_per_token, t->repeat), 100 * MEDIAN(row, expert_hit_rate, t->repeat),
            MEDIAN(row, expert_bytes_per_token, t->repeat) / 1e6);
}

int brig_bench_table_print(const struct brig_bench_table *t, struct brig_fail *fail)
{
    const struct brig_bench_row *few, *many;
    double us;
    printf("%u prompt tokens, %u generated, median of %u, %u threads a shard\n", t->n_prompt, t->n_generate,
           t->repeat, t->rows[0].samples[0].threads);
    printf("%-6s %6s %7s %8s %13s %12s %10s %10s %12s %12s %8s\n", "mode", "shards", "streams", "start s",
           "prefill tok/s", "decode tok/s", "hop us p50", "hop us p99", "PSS peak MiB", "bytes/token",
           "of probe");
    for (unsigned i = 0; i < t->n_rows; i++)
        print_row(t, &t->rows[i]);
    if (t->probes != NULL)
        printf("probe: memory read once at %.1f GB/s by as many threads as a shard has\n",
               bandwidth(t) / 1e9);
    for (unsigned i = 0; i < t->n_rows; i++)
        print_drafts(t, &t->rows[i]);
    for (unsigned i = 0; i < t->n_rows; i++)
        print_experts(t, &t->rows[i]);
    if (hop_cost(t, &few, &many, &us))
        printf("hop: %.1f us each, from %u to %u shards (%s)\n", us, few->config.n_shards,
               many->config.n_shards, few->config.mode->name);
    if (t->n_starts > 0)
        printf(
            "start: %.2f ms median, %.2f ms p95 of %u starts, from spawn to first frame back (%u shards)\n",
            (double)brig_percentile(t->starts_ns, t->n_starts, 50) / 1e6,
            (double)brig_percentile(t->starts_ns, t->n_starts, 95) / 1e6, t->n_starts, t->starts_shards);
    if (t->tokenize_mb_s > 0)
        printf("tokenize: %.1f MB/s of made-up text, one thread\n", t->tokenize_mb_s);
    return fflush(stdout) != 0 ? brig_fail_errno(fail, BRIG_EIO, "standard output") : 0;
}

/* null where nothing was measured */
static json_t *bytes_json(uint64_t bytes)
{
    return bytes > 0 ? json_integer((json_int_t)bytes) : json_null();
}

/* null where no hop was measured */
static json_t *hop_json(const struct brig_bench_row *row, double us)
{
    return row->samples[0].has_hops ? json_real(us) : json_null();
}

static json_t *sample_json(const struct brig_bench_sample *s)
{
    json_t *o = json_object();
    json_object_set_new(o, "start_s", json_real(s->start_s));
    json_object_set_new(o, "ttft_s", json_real(s->ttft_s));
    json_object_set_new(o, "disk_start_bytes", json_integer((json_int_t)s->disk_start_bytes));
    json_object_set_new(o, "disk_prompt_bytes", json_integer((json_int_t)s->disk_prompt_bytes));
    json_object_set_new(o, "disk_decode_bytes", json_integer((json_int_t)s->disk_decode_bytes));
    json_object_set_new(o, "prefill_tok_s", json_real(s->prefill_tok_s));
    json_object_set_new(o, "decode_tok_s", json_real(s->decode_tok_s));
    json_object_set_new(o, "rows_per_frame", json_real(s->rows_per_frame));
    json_object_set_new(o, "drafted_tokens", json_integer((json_int_t)s->drafted));
    json_object_set_new(o, "accepted_tokens", json_integer((json_int_t)s->accepted));
    json_object_set_new(o, "hop_us_p50", s->has_hops ? json_real(s->hop_us_p50) : json_null());
    json_object_set_new(o, "hop_us_p99", s->has_hops ? json_real(s->hop_us_p99) : json_null());
    return o;
}

/* What each stream generated. */
static json_t *ids_json(const struct brig_bench_table *t, const struct brig_bench_row *row)
{
    json_t *all = json_array();
    for (unsigned i = 0; i < row->config.n_streams; i++) {
        json_t *one = json_array();
        for (uint32_t k = 0; k < t->n_generate; k++)
            json_array_append_new(one, json_integer(row->ids[(size_t)i * t->n_generate + k]));
        json_array_append_new(all, one);
    }
    return all;
}

static json_t *row_json(const struct brig_bench_table *t, const struct brig_bench_row *row)
{
    json_t *o = json_object(), *runs = json_array();
    for (unsigned k = 0; k < t->repeat; k++)
        json_array_append_new(runs, sample_json(&row->samples[k]));
    json_object_set_new(o, "mode", json_string(row->config.mode->name));
    json_object_set_new(o, "shards", json_integer(row->config.n_shards));
    json_object_set_new(o, "streams", json_integer(row->config.n_streams));
    json_object_set_new(o, "flights", json_integer(row->samples[0].flights));
    json_object_set_new(o, "rows_per_frame", json_real(MEDIAN(row, rows_per_frame, t->repeat)));
    json_object_set_new(o, "threads", json_integer(row->samples[0].threads));
    json_object_set_new(o, "start_s",
                        row->config.mode->keeps || row->config.mode->picks
                            ? json_real(MEDIAN(row, start_s, t->repeat))
                            : json_null());
    json_object_set_new(o, "ttft_s", json_real(MEDIAN(row, ttft_s, t->repeat)));
    json_object_set_new(o, "prefill_tok_s", json_real(MEDIAN(row, prefill_tok_s, t->repeat)));
    json_object_set_new(o, "decode_tok_s", json_real(MEDIAN(row, decode_tok_s, t->repeat)));
    json_object_set_new(o, "hop_us_p50", hop_json(row, MEDIAN(row, hop_us_p50, t->repeat)));
    json_object_set_new(o, "hop_us_p99", hop_json(row, MEDIAN(row, hop_us_p99, t->repeat)));
    json_object_set_new(o, "hops_per_token", json_integer((json_int_t)row->samples[0].hops_per_token));
    json_object_set_new(o, "pss_peak_bytes", bytes_json(row->pss_peak_bytes));
    json_object_set_new(o, "bytes_per_token", json_integer((json_int_t)bytes_per_token(t, row)));
    json_object_set_new(o, "experts_per_token", json_real(MEDIAN(row, experts_per_token, t->repeat)));
    json_object_set_new(o, "expert_hit_rate", json_real(MEDIAN(row, expert_hit_rate, t->repeat)));
    json_object_set_new(o, "expert_bytes_per_token",
                        json_real(MEDIAN(row, expert_bytes_per_token, t->repeat)));
    json_object_set_new(o, "ids", ids_json(t, row));
    json_object_set_new(o, "probe_share", t->probes != NULL ? json_real(share(t, row)) : json_null());
    json_object_set_new(o, "runs", runs);
    return o;
}

static json_t *starts_json(const struct brig_bench_table *t)
{
    json_t *o = json_object();
    json_object_set_new(o, "n", json_integer(t->n_starts));
    json_object_set_new(o, "shards", json_integer(t->starts_shards));
    json_object_set_new(o, "ms_p50", json_real((double)brig_percentile(t->starts_ns, t->n_starts, 50) / 1e6));
    json_object_set_new(o, "ms_p95", json_real((double)brig_percentile(t->starts_ns, t->n_starts, 95) / 1e6));
    return o;
}

int brig_bench_table_json(const struct brig_bench_table *t, const char *path, struct brig_fail *fail)
{
    const struct brig_bench_row *few, *many;
    json_t *o = json_object(), *rows = json_array();
    double us;
    for (unsigned i = 0; i < t->n_rows; i++)
        json_array_append_new(rows, row_json(t, &t->rows[i]));
    json_object_set_new(o, "schema", json_integer(1));
    json_object_set_new(o, "model", brig_json_text(t->model->path, strlen(t->model->path)));
    json_object_set_new(o, "prompt_tokens", json_integer(t->n_prompt));
    json_object_set_new(o, "generated_tokens", json_integer(t->n_generate));
    json_object_set_new(o, "repeat", json_integer(t->repeat));
    json_object_set_new(o, "rows", rows);
    json_object_set_new(o, "probe_bytes_s", t->probes != NULL ? json_real(bandwidth(t)) : json_null());
    json_object_set_new(o, "cgroup_peak_bytes", bytes_json(brig_cgroup_peak_bytes()));
    json_object_set_new(o, "enclosure", brig_enclosure_json(t->enclosure));
    json_object_set_new(o, "plan", t->plan != NULL ? brig_plan_json(t->plan) : json_null());
    json_object_set_new(o, "hop_cost_us", hop_cost(t, &few, &many, &us) ? json_real(us) : json_null());
    json_object_set_new(o, "starts", t->n_starts > 0 ? starts_json(t) : json_null());
    json_object_set_new(o, "tokenize_mb_s", t->tokenize_mb_s > 0 ? json_real(t->tokenize_mb_s) : json_null());
    int r = strcmp(path, "-") == 0 ? brig_json_print(o, fail) : brig_json_write(o, path, fail);
    json_decref(o);
    return r;
}
