/* The figures of a study as a table and as JSON. */
#include <stdio.h>
#include <string.h>

#include "driver/run/json.h"
#include "driver/study/parts.h"
#include "proto/base/version.h"

#define MIB 1048576.0

/* "-" for what was not measured. */
static const char *figure(char out[24], double v, const char *format, double unit)
{
    if (v <= 0)
        return "-";
    snprintf(out, 24, strcmp(format, "2") == 0 ? "%.2f" : "%.1f", v / unit);
    return out;
}

static void print_row(const struct brig_study *s, const struct brig_study_row *row)
{
    struct brig_study_sample m = brig_study_median(row);
    char label[64], f[8][24];
    brig_study_label(row, label, sizeof label);
    printf("%-9s %-20s %-8s ", row->ram, label, brig_study_cache_name(row->cache));
    if (row->n_samples == 0) {
        printf("%s: %s\n", brig_study_state_name(row->state), row->why);
        return;
    }
    /* Bytes from the disk are a figure also when there were none. */
    snprintf(f[6], sizeof f[6], "%.1f", m.disk_token_bytes / MIB);
    printf("%8s %8s %8s %8s %9s %9s %9s", figure(f[0], m.decode_tok_s, "2", 1),
           figure(f[1], brig_study_bound(s, row), "2", 1), figure(f[2], m.ttft_s, "2", 1),
           figure(f[3], m.start_s, "2", 1), figure(f[4], (double)row->pss_peak_bytes, "1", MIB),
           figure(f[5], (double)row->cgroup_peak_bytes, "1", MIB), f[6]);
    printf("%s%s%s%s\n", row->state == BRIG_STUDY_MEASURED ? "" : " ",
           row->state == BRIG_STUDY_MEASURED ? "" : brig_study_state_name(row->state),
           row->why[0] != '\0' ? ": " : "", row->why);
}

int brig_study_print(const struct brig_study *s, struct brig_fail *fail)
{
    printf("%u prompt tokens, %u generated, median of %u; the model's files: %.1f MiB\n", s->n_prompt,
           s->n_generate, s->rounds, (double)s->model_bytes / MIB);
    printf("%-9s %-20s %-8s %8s %8s %8s %8s %9s %9s %9s\n", "ram", "mode, residency", "cache", "tok/s",
           "bound", "ttft s", "start s", "PSS MiB", "cgrp MiB", "read MiB");
    for (unsigned i = 0; i < s->n_rows; i++)
        print_row(s, &s->rows[i]);
    printf("cache: what the page cache holds when a run begins. bound: what memory and disk allow. read: "
           "from the "
           "disk, for a token\n");
    if (s->blind)
        printf("the kernel does not say what it caches of these files to who may not write to them: "
               "\"cache\" is "
               "what was asked for\n");
    return fflush(stdout) != 0 ? brig_fail_errno(fail, BRIG_EIO, "standard output") : 0;
}

static void set_number(json_t *o, const char *key, double v)
{
    json_object_set_new(o, key, json_real(v));
}

static void set_whole(json_t *o, const char *key, double v, bool known)
{
    json_object_set_new(o, key, known ? json_integer((json_int_t)v) : json_null());
}

static void set_known(json_t *o, const char *key, double v)
{
    json_object_set_new(o, key, v > 0 ? json_real(v) : json_null());
}

static json_t *sample_json(const struct brig_study_sample *v)
{
    json_t *o = json_object();
    set_number(o, "decode_tok_s", v->decode_tok_s);
    set_number(o, "pass_tokens", v->pass_tokens);
    set_number(o, "prefill_tok_s", v->prefill_tok_s);
    set_number(o, "ttft_s", v->ttft_s);
    set_known(o, "start_s", v->start_s);
    set_whole(o, "disk_start_bytes", v->disk_start_bytes, true);
    set_whole(o, "disk_prompt_bytes", v->disk_prompt_bytes, true);
    set_whole(o, "disk_token_bytes", v->disk_token_bytes, true);
    return o;
}

static json_t *plan_json(const struct brig_study_plan *p)
{
    json_t *o;
    if (!p->known)
        return json_null();
    o = json_object();
    set_whole(o, "budget_bytes", (double)p->budget_bytes, p->budget_bytes > 0);
    set_whole(o, "total_bytes", (double)p->total_bytes, true);
    set_whole(o, "least_bytes", (double)p->least_bytes, true);
    set_whole(o, "token_bytes", (double)p->token_bytes, true);
    set_whole(o, "held_bytes", (double)p->held_bytes, true);
    set_whole(o, "read_bytes", (double)p->read_bytes, true);
    set_known(o, "expert_hit_rate", p->hit_rate);
    set_known(o, "token_s", p->token_s);
    set_known(o, "disk_bytes_s", p->disk_bytes_s);
    json_object_set_new(o, "regime", p->regime[0] != '\0' ? json_string(p->regime) : json_null());
    return o;
}

static json_t *row_json(const struct brig_study *s, const struct brig_study_row *row)
{
    struct brig_study_sample m = brig_study_median(row);
    json_t *o = json_object(), *runs = json_array();
    json_object_set_new(o, "ram", json_string(row->ram));
    json_object_set_new(o, "mode", json_string(row->mode->name));
    json_object_set_new(o, "residency", json_string(row->residency));
    json_object_set_new(o, "shards", json_string(row->shards));
    json_object_set_new(o, "page_cache", json_string(brig_study_cache_name(row->cache)));
    json_object_set_new(o, "state", json_string(brig_study_state_name(row->state)));
    json_object_set_new(o, "why",
                        row->why[0] == '\0' ? json_null() : brig_json_text(row->why, strlen(row->why)));
    json_object_set_new(o, "plan", plan_json(&row->plan));
    set_known(o, "bound_tok_s", brig_study_bound(s, row));
    set_whole(o, "pss_peak_bytes", (double)row->pss_peak_bytes, row->pss_peak_bytes > 0);
    set_whole(o, "cgroup_peak_bytes", (double)row->cgroup_peak_bytes, row->cgroup_peak_bytes > 0);
    json_object_set_new(o, "median", row->n_samples > 0 ? sample_json(&m) : json_null());
    for (unsigned i = 0; i < row->n_samples; i++)
        json_array_append_new(runs, sample_json(&row->samples[i]));
    json_object_set_new(o, "runs", runs);
    return o;
}

/* What every run was given. */
static json_t *options_json(const struct brig_study *s)
{
    json_t *all = json_array();
    for (char *const *p = s->plan_options; p != NULL && *p != NULL; p++)
        json_array_append_new(all, brig_json_text(*p, strlen(*p)));
    for (char *const *p = s->bench_options; p != NULL && *p != NULL; p++)
        json_array_append_new(all, brig_json_text(*p, strlen(*p)));
    return all;
}

json_t *brig_study_json(const struct brig_study *s)
{
    json_t *o = json_object(), *rows = json_array(), *probes = json_array(), *ids = json_array();
    for (unsigned i = 0; i < s->n_rows; i++)
        json_array_append_new(rows, row_json(s, &s->rows[i]));
    for (unsigned i = 0; i < s->n_probes; i++)
        json_array_append_new(probes, json_real(s->probes[i].memory_bytes_s));
    json_object_set_new(o, "schema", json_integer(1));
    json_object_set_new(o, "version", json_string(BRIG_VERSION));
    json_object_set_new(o, "model", brig_json_text(s->model->path, strlen(s->model->path)));
    set_whole(o, "model_bytes", (double)s->model_bytes, true);
    json_object_set_new(o, "command", brig_json_text(s->command, strlen(s->command)));
    json_object_set_new(o, "prompt_tokens", json_integer(s->n_prompt));
    json_object_set_new(o, "generated_tokens", json_integer(s->n_generate));
    json_object_set_new(o, "rounds", json_integer(s->rounds));
    json_object_set_new(o, "page_cache_seen", json_boolean(!s->blind));
    json_object_set_new(o, "memory_bytes_s", probes);
    for (uint32_t i = 0; s->ids_of != NULL && i < s->n_generate; i++)
        json_array_append_new(ids, json_integer(s->ids[i]));
    json_object_set_new(o, "options", options_json(s));
    json_object_set_new(o, "ids", ids);
    json_object_set_new(o, "rows", rows);
    return o;
}
