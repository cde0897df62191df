/* The figures of a run: every field that programs may count on, and the line for people. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include <cmocka.h>
#include <jansson.h>

#include "driver/run/report.h"
#include "proto/base/clock.h"

#define MODEL "tests/fixtures/llama/q8_0.gguf"

static const uint64_t hops[] = {1000, 2000, 3000};

struct run {
    struct brig_model *model;
    struct brig_embed *embed;
    struct brig_generated generated;
    struct brig_stage_stats stages[2], draft_stage;
    struct brig_report report;
};

static void make_run(struct run *r)
{
    struct brig_fail fail;
    memset(r, 0, sizeof *r);
    assert_int_equal(brig_model_open(&r->model, MODEL, &fail), 0);
    assert_int_equal(brig_embed_open(&r->embed, r->model, &fail), 0);
    uint32_t n = r->model->desc.n_layers;
    uint64_t now = brig_clock_ns();
    for (uint32_t i = 0; i < 5; i++)
        assert_int_equal(brig_ids_add(&r->generated.ids, i), 0);
    r->generated.n_sent = 10;
    r->generated.n_passes = 2;
    r->generated.begin_ns = now;
    r->generated.first_ns = now + BRIG_NS_PER_S;
    r->generated.last_ns = now + 3 * BRIG_NS_PER_S;
    r->stages[0] = (struct brig_stage_stats){
        .cells = {0, n}, .pid = 7, .host = "one", .kernel = "scalar", .threads = 3, .start_ns = 2000000};
    r->stages[1] = (struct brig_stage_stats){.cells = {n, n + 1},
                                             .head = true,
                                             .host = "two",
                                             .kernel = "avx512",
                                             .compute_ns = BRIG_NS_PER_S / 2};
    r->draft_stage = (struct brig_stage_stats){.pss_peak_bytes = 1000};
    r->report = (struct brig_report){.model = r->model,
                                     .embed = r->embed,
                                     .mode = "warm",
                                     .kv = BRIG_KV_F32,
                                     .seed = 42,
                                     .n_prompt = 12,
                                     .generated = &r->generated,
                                     .draft_line = {.n_stages = 1, .stages = &r->draft_stage},
                                     .line = {.n_stages = 2,
                                              .stages = r->stages,
                                              .proven_ns = now,
                                              .pss_peak_bytes = 123,
                                              .hops_per_pass = 3,
                                              .hop_ns = hops,
                                              .n_hop_ns = 3}};
}

static void end_run(struct run *r)
{
    brig_generated_release(&r->generated);
    brig_embed_close(r->embed);
    brig_model_close(r->model);
}

static void every_field_is_written(void **state)
{
    (void)state;
    static const char *const fields[] = {
        "schema",         "model",           "mode",          "shards",
        "threads",        "kernel",          "exact",         "kv",
        "seed",           "prompt_tokens",   "ids",           "generated_tokens",
        "stop_reason",    "start_s",         "ttft_s",        "prefill_tok_s",
        "decode_tok_s",   "pss_peak_bytes",  "weights_bytes", "cgroup_peak_bytes",
        "hops_per_token", "bytes_per_token", "hop_us_p50",    "hop_us_p99",
        "per_shard",      "passes",          "drafts",        "tokens_per_pass",
        "drafted_tokens", "accepted_tokens", "draft_model",   "kv_bytes",
        "experts",
    };
    static const char *const shard_fields[] = {
        "stage",   "pid",       "host",       "layers",       "head",
        "start_s", "compute_s", "wait_s",     "mapped_bytes", "pss_peak_bytes",
        "lives",   "kv_bytes",  "read_bytes", "stall_s",      "experts"};
    char path[] = "/tmp/brigade-report-XXXXXX";
    struct run r;
    struct brig_fail fail;
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    make_run(&r);
    assert_int_equal(brig_report_write_json(&r.report, path, &fail), 0);
    json_t *o = json_load_file(path, 0, NULL);
    unlink(path);
    assert_non_null(o);
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        if (json_object_get(o, fields[i]) == NULL)
            fail_msg("no field %s", fields[i]);
    json_t *shards = json_object_get(o, "per_shard");
    assert_int_equal(json_array_size(shards), 2);
    for (size_t i = 0; i < sizeof shard_fields / sizeof *shard_fields; i++)
        if (json_object_get(json_array_get(shards, 1), shard_fields[i]) == NULL)
            fail_msg("no field %s of a shard", shard_fields[i]);
    json_decref(o);
    end_run(&r);
}

static double number(json_t *o, const char *name)
{
    return json_number_value(json_object_get(o, name));
}

static void values_are_what_they_say(void **state)
{
    (void)state;
    char path[] = "/tmp/brigade-report-XXXXXX";
    struct run r;
    struct brig_fail fail;
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    make_run(&r);
    uint32_t n = r.model->desc.n_layers;
    assert_int_equal(brig_report_write_json(&r.report, path, &fail), 0);
    json_t *o = json_load_file(path, 0, NULL);
    unlink(path);
    assert_non_null(o);
    assert_float_equal(number(o, "prefill_tok_s"), 10, 1e-6); /* those sent, in the second before the first */
    assert_float_equal(number(o, "decode_tok_s"), 2, 1e-6);   /* (5 - 1) / 2 s */
    assert_float_equal(number(o, "hop_us_p50"), 2, 1e-6);
    assert_float_equal(number(o, "hop_us_p99"), 3, 1e-6);
    assert_int_equal(number(o, "generated_tokens"), 5);
    assert_int_equal(number(o, "threads"), 3);
    assert_int_equal(number(o, "passes"), 2);
    assert_float_equal(number(o, "tokens_per_pass"), 2.5, 1e-6);
    assert_int_equal(number(o, "pss_peak_bytes"), 123 + 1000); /* and the draft model's shard */
    assert_true(json_is_null(json_object_get(o, "draft_model")));
    assert_string_equal(json_string_value(json_object_get(o, "kernel")), "scalar,avx512");
    assert_string_equal(json_string_value(json_object_get(o, "kv")), "f32");
    assert_string_equal(json_string_value(json_object_get(o, "stop_reason")), "eos");
    json_t *head = json_array_get(json_object_get(o, "per_shard"), 1);
    json_t *layers = json_object_get(head, "layers");
    assert_int_equal(json_integer_value(json_array_get(layers, 0)), n); /* the head alone has no layers */
    assert_int_equal(json_integer_value(json_array_get(layers, 1)), n);
    assert_true(json_is_true(json_object_get(head, "head")));
    assert_float_equal(number(head, "compute_s"), 0.5, 1e-6);
    json_decref(o);
    end_run(&r);
}

/* The table of a tied model is read by the head already: its row is not counted twice. */
static void bytes_of_a_token(void **state)
{
    (void)state;
    struct run r;
    make_run(&r);
    uint32_t n = r.model->desc.n_layers;
    uint64_t cells = brig_slice_cells_bytes(r.model, (struct brig_cells){0, n + 1});
    assert_true(r.model->desc.tied);
    assert_int_equal(brig_report_bytes_per_token(r.model, r.embed), cells);
    r.model->desc.tied = false; /* now without a table for the head: only the rule is looked at */
    cells = brig_slice_cells_bytes(r.model, (struct brig_cells){0, n + 1});
    assert_int_equal(brig_report_bytes_per_token(r.model, r.embed), cells + brig_embed_row_bytes(r.embed));
    end_run(&r);
}

static void the_line_for_people_has_the_seed_and_the_end(void **state)
{
    (void)state;
    struct run r;
    struct brig_buf b = {0};
    make_run(&r);
    assert_int_equal(brig_report_line(&r.report, &b), 0);
    assert_null(strchr(b.data, '\n'));
    assert_non_null(strstr(b.data, "12 prompt tokens"));
    assert_non_null(strstr(b.data, "5 generated at 2.0 tok/s"));
    assert_non_null(strstr(b.data, "2 shards, warm, seed 42, ended by eos"));
    assert_null(strstr(b.data, "drafted"));
    brig_buf_release(&b);
    end_run(&r);
}

static void drafts_are_counted(void **state)
{
    (void)state;
    struct run r;
    struct brig_fail fail;
    struct brig_buf b = {0};
    const struct brig_spec_opts o = {.lookup = true, .length = 3, .vocab = 99};
    const uint32_t ids[] = {1, 2, 3, 4, 1};
    uint32_t draft[3], n;
    char path[] = "/tmp/brigade-report-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    make_run(&r);
    assert_int_equal(brig_spec_new(&r.report.spec, &o, &fail), 0);
    assert_int_equal(
        brig_spec_propose(r.report.spec, &(struct brig_draft_seq){ids, 5, 0}, 3, draft, &n, &fail), 0);
    assert_int_equal(n, 3); /* 2 3 4 */
    brig_spec_drawn(r.report.spec, 2);
    brig_spec_drawn(r.report.spec, 3);
    brig_spec_drawn(r.report.spec, 9);
    assert_int_equal(brig_report_line(&r.report, &b), 0);
    assert_non_null(strstr(b.data, ", 2.50 tokens a pass (2 of 3 drafted held)"));
    brig_buf_release(&b);
    assert_int_equal(brig_report_write_json(&r.report, path, &fail), 0);
    json_t *j = json_load_file(path, 0, NULL);
    unlink(path);
    assert_int_equal(number(j, "drafted_tokens"), 3);
    assert_int_equal(number(j, "accepted_tokens"), 2);
    json_t *kind = json_array_get(json_object_get(j, "drafts"), 0);
    assert_string_equal(json_string_value(json_object_get(kind, "kind")), "lookup");
    assert_int_equal(number(kind, "drafted_tokens"), 3);
    assert_int_equal(number(kind, "accepted_tokens"), 2);
    assert_int_equal(number(kind, "passes"), 1);
    json_decref(j);
    brig_spec_free(r.report.spec);
    end_run(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_field_is_written),
        cmocka_unit_test(values_are_what_they_say),
        cmocka_unit_test(bytes_of_a_token),
        cmocka_unit_test(the_line_for_people_has_the_seed_and_the_end),
        cmocka_unit_test(drafts_are_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
