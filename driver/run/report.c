/* Figures of a run. */
#include "driver/run/report.h"

#include <inttypes.h>
#include <string.h>

#include <jansson.h>

#include "driver/run/enclosure_json.h"
#include "driver/run/json.h"
#include "driver/run/plan_json.h"
#include "proto/base/clock.h"
#include "proto/stat/stat.h"

uint64_t brig_report_bytes_per_token(const struct brig_model *m, const struct brig_embed *e)
{
    uint64_t cells = brig_slice_token_bytes(m, (struct brig_cells){0, m->desc.n_layers + 1});
    return cells + brig_embed_row_bytes(e);
}

static double seconds(uint64_t ns)
{
    return (double)ns / (double)BRIG_NS_PER_S;
}

/* From program start; 0 when it never happened. */
static double since_start(uint64_t at_ns)
{
    uint64_t start = brig_clock_process_start_ns();
    return at_ns > start ? seconds(at_ns - start) : 0;
}

/* Of all kinds of drafts together. */
static struct brig_spec_stats drafts_of(const struct brig_report *r)
{
    struct brig_spec_stats sum = {0}, one;
    for (unsigned i = 0; r->spec != NULL && brig_spec_stats(r->spec, i, &one); i++) {
        sum.drafted += one.drafted;
        sum.accepted += one.accepted;
    }
    return sum;
}

static double tokens_per_pass(const struct brig_generated *g)
{
    return g->n_passes == 0 ? 0 : (double)g->ids.n / (double)g->n_passes;
}

int brig_report_line(const struct brig_report *r, struct brig_buf *out)
{
    const struct brig_generated *g = r->generated;
    int err =
        brig_buf_printf(out,
                        "%zu prompt tokens at %.1f tok/s, %zu generated at %.1f tok/s, first token after "
                        "%.2f s, %u shard%s, %s, seed %" PRIu64 ", ended by %s",
                        r->n_prompt, brig_generated_prefill_tok_s(g), g->ids.n,
                        brig_generated_decode_tok_s(g), since_start(g->first_ns), r->line.n_stages,
                        r->line.n_stages == 1 ? "" : "s", r->mode, r->seed, brig_stop_reason_name(g->reason));
    if (err < 0 || r->spec == NULL)
        return err;
    struct brig_spec_stats d = drafts_of(r);
    return brig_buf_printf(out, ", %.2f tokens a pass (%" PRIu64 " of %" PRIu64 " drafted held)",
                           tokens_per_pass(g), d.accepted, d.drafted);
}

static json_t *ids_json(const struct brig_ids *ids)
{
    json_t *a = json_array();
    for (size_t i = 0; i < ids->n; i++)
        json_array_append_new(a, json_integer(ids->v[i]));
    return a;
}

/* Of streamed experts; null: none were used. */
static json_t *experts_json(uint64_t used, uint64_t hits, uint64_t read_bytes)
{
    if (used == 0)
        return json_null();
    return json_pack("{s:I,s:f,s:I}", "used", (json_int_t)used, "hit_rate", (double)hits / (double)used,
                     "read_bytes", (json_int_t)read_bytes);
}

static json_t *all_experts_json(const struct brig_line_stats *line)
{
    uint64_t used = 0, hits = 0, read_bytes = 0;
    for (unsigned i = 0; i < line->n_stages; i++) {
        used += line->stages[i].experts_used;
        hits += line->stages[i].expert_hits;
        read_bytes += line->stages[i].expert_read_bytes;
    }
    return experts_json(used, hits, read_bytes);
}

static json_t *bytes_or_null(uint64_t v)
{
    return v == 0 ? json_null() : json_integer((json_int_t)v);
}

static json_t *stage_json(unsigned i, const struct brig_stage_stats *s, uint32_t n_layers)
{
    /* The head is a cell of its own and no layer. */
    uint32_t last = s->cells.last < n_layers ? s->cells.last : n_layers;
    uint32_t first = s->cells.first < n_layers ? s->cells.first : n_layers;
    json_t *o = json_object();
    json_object_set_new(o, "stage", json_integer(i));
    json_object_set_new(o, "pid", json_integer(s->pid));
    json_object_set_new(o, "host", brig_json_text(s->host, strlen(s->host)));
    json_object_set_new(o, "layers", json_pack("[i,i]", (int)first, (int)last));
    json_object_set_new(o, "head", json_boolean(s->head));
    json_object_set_new(o, "start_s", json_real(seconds(s->start_ns)));
    json_object_set_new(o, "compute_s", json_real(seconds(s->compute_ns)));
    json_object_set_new(o, "wait_s", json_real(seconds(s->wait_ns)));
    json_object_set_new(o, "mapped_bytes", json_integer((json_int_t)s->mapped_bytes));
    json_object_set_new(o, "pss_peak_bytes", json_integer((json_int_t)s->pss_peak_bytes));
    json_object_set_new(o, "read_bytes", json_integer((json_int_t)s->read_bytes));
    json_object_set_new(o, "stall_s", json_real(seconds(s->stall_ns)));
    json_object_set_new(o, "experts", experts_json(s->experts_used, s->expert_hits, s->expert_read_bytes));
    json_object_set_new(o, "lives", json_boolean(s->lives));
    json_object_set_new(o, "kv_bytes", bytes_or_null(s->kv_bytes));
    return o;
}

/* The kernels of all stages by name, each once: machines of one chain may differ. */
static json_t *kernels_json(const struct brig_line_stats *line)
{
    struct brig_buf b = {0};
    for (unsigned i = 0; i < line->n_stages; i++) {
        bool seen = false;
        for (unsigned k = 0; k < i && !seen; k++)
            seen = strcmp(line->stages[k].kernel, line->stages[i].kernel) == 0;
        if (!seen)
            brig_buf_printf(&b, "%s%s", b.len > 0 ? "," : "", line->stages[i].kernel);
    }
    json_t *j = brig_json_text(b.data == NULL ? "" : b.data, b.len);
    brig_buf_release(&b);
    return j;
}

static void set_choices(json_t *o, const struct brig_report *r)
{
    const struct brig_line_stats *line = &r->line;
    json_object_set_new(o, "schema", json_integer(1));
    json_object_set_new(o, "model", brig_json_text(r->model->path, strlen(r->model->path)));
    json_object_set_new(o, "mode", json_string(r->mode));
    json_object_set_new(o, "shards", json_integer(line->n_stages));
    json_object_set_new(o, "threads", json_integer(line->n_stages > 0 ? line->stages[0].threads : 0));
    json_object_set_new(o, "kernel", kernels_json(line));
    json_object_set_new(o, "exact", json_boolean(r->exact));
    json_object_set_new(o, "kv", json_string(brig_kv_type_name(r->kv)));
    json_object_set_new(o, "seed", json_integer((json_int_t)r->seed));
}

static void set_result(json_t *o, const struct brig_report *r)
{
    const struct brig_generated *g = r->generated;
    json_object_set_new(o, "prompt_tokens", json_integer((json_int_t)r->n_prompt));
    json_object_set_new(o, "generated_tokens", json_integer((json_int_t)g->ids.n));
    json_object_set_new(o, "ids", ids_json(&g->ids));
    json_object_set_new(o, "stop_reason", json_string(brig_stop_reason_name(g->reason)));
    json_object_set_new(o, "start_s", json_real(since_start(r->line.proven_ns)));
    json_object_set_new(o, "ttft_s", json_real(since_start(g->first_ns)));
    json_object_set_new(o, "prefill_tok_s", json_real(brig_generated_prefill_tok_s(g)));
    json_object_set_new(o, "decode_tok_s", json_real(brig_generated_decode_tok_s(g)));
}

static void set_drafts(json_t *o, const struct brig_report *r)
{
    const struct brig_generated *g = r->generated;
    struct brig_spec_stats sum = drafts_of(r), one;
    json_t *kinds = json_array();
    for (unsigned i = 0; r->spec != NULL && brig_spec_stats(r->spec, i, &one); i++) {
        json_t *k = json_object();
        json_object_set_new(k, "kind", json_string(one.kind->name));
        json_object_set_new(k, "drafted_tokens", json_integer((json_int_t)one.drafted));
        json_object_set_new(k, "accepted_tokens", json_integer((json_int_t)one.accepted));
        json_object_set_new(k, "passes", json_integer((json_int_t)one.frames));
        json_object_set_new(k, "draft_s", json_real(seconds(one.ns)));
        json_array_append_new(kinds, k);
    }
    json_object_set_new(o, "passes", json_integer((json_int_t)g->n_passes));
    json_object_set_new(o, "tokens_per_pass", json_real(tokens_per_pass(g)));
    json_object_set_new(o, "drafted_tokens", json_integer((json_int_t)sum.drafted));
    json_object_set_new(o, "accepted_tokens", json_integer((json_int_t)sum.accepted));
    json_object_set_new(o, "drafts", kinds);
    json_object_set_new(o, "draft_model",
                        r->draft_model == NULL
                            ? json_null()
                            : brig_json_text(r->draft_model->path, strlen(r->draft_model->path)));
}

/* null where none was measured: a mode that starts processes on the way has no hop to tell from a start. */
static json_t *hop_json(const struct brig_line_stats *line, double p)
{
    if (line->n_hop_ns == 0)
        return json_null();
    return json_real((double)brig_percentile(line->hop_ns, line->n_hop_ns, p) / 1000);
}

/* The peak of the draft model's shards: the driver's own is counted with the model's line. */
static uint64_t draft_pss(const struct brig_report *r)
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < r->draft_line.n_stages; i++)
        sum += r->draft_line.stages[i].pss_peak_bytes;
    return sum;
}

static uint64_t kv_bytes(const struct brig_line_stats *line)
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < line->n_stages; i++)
        sum += line->stages[i].kv_bytes;
    return sum;
}

static void set_costs(json_t *o, const struct brig_report *r)
{
    const struct brig_line_stats *line = &r->line;
    json_object_set_new(o, "pss_peak_bytes", json_integer((json_int_t)(line->pss_peak_bytes + draft_pss(r))));
    json_object_set_new(o, "cgroup_peak_bytes", bytes_or_null(brig_cgroup_peak_bytes()));
    json_object_set_new(o, "kv_bytes", bytes_or_null(kv_bytes(line)));
    json_object_set_new(o, "weights_bytes", json_integer((json_int_t)r->model->weights_bytes));
    json_object_set_new(o, "bytes_per_token",
                        json_integer((json_int_t)brig_report_bytes_per_token(r->model, r->embed)));
    json_object_set_new(o, "hops_per_token", json_integer((json_int_t)line->hops_per_pass));
    json_object_set_new(o, "hop_us_p50", hop_json(line, 50));
    json_object_set_new(o, "hop_us_p99", hop_json(line, 99));
    json_object_set_new(o, "experts", all_experts_json(line));
    json_t *shards = json_array();
    for (unsigned i = 0; i < line->n_stages; i++)
        json_array_append_new(shards, stage_json(i, &line->stages[i], r->model->desc.n_layers));
    json_object_set_new(o, "per_shard", shards);
}

/* What was planned, and beside it what came of it. */
static json_t *plan_json(const struct brig_report *r)
{
    if (r->plan == NULL)
        return json_null();
    json_t *o = brig_plan_json(r->plan), *real = json_object();
    double tok_s = brig_generated_decode_tok_s(r->generated);
    json_object_set_new(real, "token_s", tok_s > 0 ? json_real(1 / tok_s) : json_null());
    json_object_set_new(real, "pss_peak_bytes",
                        json_integer((json_int_t)(r->line.pss_peak_bytes + draft_pss(r))));
    json_object_set_new(real, "cgroup_peak_bytes", bytes_or_null(brig_cgroup_peak_bytes()));
    json_object_set_new(o, "measured", real);
    return o;
}

int brig_report_write_json(const struct brig_report *r, const char *path, struct brig_fail *fail)
{
    json_t *o = json_object();
    set_choices(o, r);
    set_result(o, r);
    set_drafts(o, r);
    set_costs(o, r);
    json_object_set_new(o, "plan", plan_json(r));
    json_object_set_new(o, "enclosure", brig_enclosure_json(r->enclosure));
    int err = brig_json_write(o, path, fail);
    json_decref(o);
    return err;
}
