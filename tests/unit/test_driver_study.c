/* Studies: what is varied, how programs end, what contradicts a plan, the page. */
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "driver/study/parts.h"
#include "proto/base/clock.h"

#define MIB ((uint64_t)1 << 20)

static struct brig_study study; /* large: not on the stack */

static int forget(void **state)
{
    (void)state;
    memset(&study, 0, sizeof study);
    return 0;
}

static void every_combination_is_a_row(void **state)
{
    (void)state;
    struct brig_fail fail;
    const struct brig_study_axes axes = {
        .ram = "50%,2G,50%", .modes = "warm,cold", .residency = "auto,map", .shards = "1,all"};
    assert_int_equal(brig_study_rows(&study, &axes, &fail), 0);
    unsigned none = 0, cached = 0, half = 0;
    for (unsigned i = 0; i < study.n_rows; i++) {
        none += strcmp(study.rows[i].ram, "none") == 0;
        half += strcmp(study.rows[i].ram, "50%") == 0;
        cached += study.rows[i].cache == BRIG_STUDY_CACHED;
        /* A budget is never measured on what others have read. */
        assert_false(study.rows[i].cache == BRIG_STUDY_CACHED && strcmp(study.rows[i].ram, "none") != 0);
    }
    assert_int_equal(half, 8); /* doubled, and once a row */
    assert_int_equal(none, 16);
    assert_int_equal(cached, 8);
    assert_int_equal(study.n_rows, 32);
}

static void wrong_lists_are_refused(void **state)
{
    (void)state;
    static const struct brig_study_axes wrong[] = {
        {.modes = "warm,tepid", .residency = "auto", .shards = "1"},
        {.modes = "warm,", .residency = "auto", .shards = "1"},
        {.modes = "warm", .residency = "auto", .shards = ",1"},
        {.ram = "50%,,2G", .modes = "warm", .residency = "auto", .shards = "1"},
        {.ram = "1,2,3,4,5,6,7,8,9,10", .modes = "warm,cold", .residency = "a,b,c,d,e", .shards = "1,2"},
        {.ram = "a-word-that-is-longer-than-any", .modes = "warm", .residency = "auto", .shards = "1"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct brig_fail fail = {0};
        memset(&study, 0, sizeof study);
        assert_int_equal(brig_study_rows(&study, &wrong[i], &fail), -BRIG_EUSAGE);
        assert_non_null(strstr(fail.text, "--"));
    }
}

static struct brig_child_end ran(const char *script, uint32_t timeout_ms, int want)
{
    char *argv[] = {(char *)"sh", (char *)"-c", (char *)script, NULL};
    struct brig_child_end e;
    struct brig_fail fail;
    const struct brig_child_opts o = {.argv = argv, .timeout_ms = timeout_ms, .input = "from here\n"};
    assert_int_equal(brig_child_run(&o, &e, &fail), want);
    return e;
}

static void a_child_is_heard_to_its_end(void **state)
{
    (void)state;
    char words[80];
    struct brig_child_end e =
        ran("cat; echo said; echo one >&2; echo 'brigade bench: the reason' >&2; exit 3", 20000, 0);
    assert_string_equal(e.out.data, "from here\nsaid\n");
    assert_true(WIFEXITED(e.wait_status) && WEXITSTATUS(e.wait_status) == 3 && !e.late);
    brig_child_last_words(&e, words, sizeof words);
    assert_string_equal(words, "the reason");
    brig_child_release(&e);
    e = ran("true", 20000, 0);
    brig_child_last_words(&e, words, sizeof words);
    assert_string_equal(words, "");
    brig_child_release(&e);
}

static void a_child_that_is_late_is_ended(void **state)
{
    (void)state;
    uint64_t began = brig_clock_ns();
    /* What it leaves behind holds the pipes: its own end counts. */
    struct brig_child_end e = ran("sleep 9 & exec sleep 30", 300, 0);
    assert_true(e.late && WIFSIGNALED(e.wait_status));
    assert_true(brig_clock_ns() - began < 8 * BRIG_NS_PER_S);
    brig_child_release(&e);
}

static void a_child_that_says_too_much_is_a_failure(void **state)
{
    (void)state;
    struct brig_child_end e = ran("exec yes", 60000, -BRIG_ELIMIT);
    assert_true(e.out.len <= BRIG_CHILD_OUT_MAX);
    brig_child_release(&e);
    e = ran("yes | head -n 200000 >&2; echo done", 60000, 0);
    assert_string_equal(e.out.data, "done\n");
    assert_int_equal(e.err.len, BRIG_CHILD_ERR_MAX);
    brig_child_release(&e);
}

static void a_missing_program_is_named(void **state)
{
    (void)state;
    char *argv[] = {(char *)"no-such-program-anywhere", NULL};
    struct brig_child_end e;
    struct brig_fail fail;
    const struct brig_child_opts o = {.argv = argv, .timeout_ms = 1000};
    assert_int_equal(brig_child_run(&o, &e, &fail), -BRIG_EIO);
    assert_non_null(strstr(fail.text, "no-such-program-anywhere"));
    brig_child_release(&e);
}

/* A row of 1000 MiB of which 400 are held. */
static struct brig_study_row row_that_read(double mib, double hit_rate, struct brig_study_sample *sample)
{
    *sample = (struct brig_study_sample){.decode_tok_s = 1, .disk_token_bytes = mib * (double)MIB};
    struct brig_study_row row = {.state = BRIG_STUDY_MEASURED,
                                 .mode = brig_mode_by_name("warm"),
                                 .samples = sample,
                                 .n_samples = 1,
                                 .plan = {.known = true,
                                          .budget_bytes = 500 * MIB,
                                          .token_bytes = 1000 * MIB,
                                          .held_bytes = 400 * MIB,
                                          .read_bytes = 600 * MIB,
                                          .hit_rate = hit_rate,
                                          .disk_bytes_s = 1e9,
                                          .memory_bytes_s = 1e10}};
    return row;
}

static void reading_something_else_than_planned_is_void(void **state)
{
    (void)state;
    static const struct {
        double mib, hit_rate;
        bool good;
    } cases[] = {{600, 0, true},  {500, 0, true},   {700, 0, true},   {400, 0, false},   {0, 0, false},
                 {800, 0, false}, {1000, 0, false}, {400, 0.3, true}, {1000, 0.3, false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct brig_study_sample sample;
        struct brig_study_row row = row_that_read(cases[i].mib, cases[i].hit_rate, &sample);
        brig_study_judge(&row);
        assert_int_equal(row.state, cases[i].good ? BRIG_STUDY_MEASURED : BRIG_STUDY_VOID);
        assert_int_equal(row.why[0] == '\0', cases[i].good);
    }
}

static void with_drafts_a_pass_counts(void **state)
{
    (void)state;
    struct brig_study_sample sample;
    struct brig_study_row row = row_that_read(200, 0, &sample);
    sample.pass_tokens = 3;
    brig_study_judge(&row);
    assert_int_equal(row.state, BRIG_STUDY_MEASURED);
    sample.pass_tokens = 1;
    brig_study_judge(&row);
    assert_int_equal(row.state, BRIG_STUDY_VOID);
}

static void the_bound_is_the_slower_of_memory_and_disk(void **state)
{
    (void)state;
    struct brig_study_sample sample;
    struct brig_study_row row = row_that_read(600, 0, &sample);
    double disk = 1e9 / (600.0 * (double)MIB), memory = 1e10 / (1000.0 * (double)MIB);
    assert_true(fabs(brig_study_bound(&study, &row) - disk) < 1e-9);
    row.plan.read_bytes = 0;
    assert_true(fabs(brig_study_bound(&study, &row) - memory) < 1e-9);
    row.plan.read_bytes = 600 * MIB;
    row.plan.disk_bytes_s = 0; /* not known */
    assert_true(brig_study_bound(&study, &row) == 0);
}

static void medians_are_figures_that_were_measured(void **state)
{
    (void)state;
    struct brig_study_sample v[4] = {{.ttft_s = 4, .decode_tok_s = 1},
                                     {.ttft_s = 1, .decode_tok_s = 1},
                                     {.ttft_s = 3, .decode_tok_s = 7},
                                     {.ttft_s = 2, .decode_tok_s = 9}};
    struct brig_study_row row = {.samples = v, .n_samples = 3};
    assert_true(brig_study_median(&row).ttft_s == 3 && brig_study_median(&row).decode_tok_s == 1);
    row.n_samples = 4;
    assert_true(brig_study_median(&row).ttft_s == 2 && brig_study_median(&row).decode_tok_s == 1);
    row.n_samples = 0;
    assert_true(brig_study_median(&row).ttft_s == 0);
}

/* A study as it could have come out, of four budgets. */
static void make_study(struct brig_model *model, struct brig_study_sample *samples,
                       struct brig_study_probe *probes)
{
    static const uint64_t budgets[] = {0, 0, 250, 500, 750, 1100};
    static const char *const names[] = {"none", "none", "25%", "50%", "75%", "110%"};
    static const char *const modes[] = {"warm", "cold"};
    study.model = model;
    study.command = "brigade bench <m> & more";
    study.n_prompt = 16;
    study.n_generate = 8;
    study.rounds = 1;
    study.model_bytes = 1000 * MIB;
    study.probes = probes;
    study.n_probes = 1;
    for (unsigned i = 0; i < 12; i++) {
        struct brig_study_row row = row_that_read(0, 0, &samples[i]);
        uint64_t budget = budgets[i % 6] * MIB, held = budget > 900 * MIB ? 1000 * MIB : budget * 9 / 10;
        row.mode = brig_mode_by_name(modes[i / 6]);
        row.cache = i % 6 == 1 ? BRIG_STUDY_CACHED : BRIG_STUDY_DROPPED;
        snprintf(row.ram, sizeof row.ram, "%s", names[i % 6]);
        snprintf(row.residency, sizeof row.residency, "%s", i % 6 < 2 ? "map" : "stream");
        snprintf(row.shards, sizeof row.shards, "1");
        row.plan = (struct brig_study_plan){.known = budget > 0,
                                            .budget_bytes = budget,
                                            .token_bytes = 1000 * MIB,
                                            .held_bytes = held,
                                            .read_bytes = 1000 * MIB - held,
                                            .disk_bytes_s = 1.2e9};
        samples[i] = (struct brig_study_sample){
            .decode_tok_s = budget == 0 || held == 1000 * MIB ? 12 : 1.1e9 / (double)row.plan.read_bytes,
            .ttft_s = 1 + i % 6,
            .start_s = 0.5 + i % 6 * 0.1,
            .disk_token_bytes = budget == 0 ? 0 : (double)row.plan.read_bytes * 1.02};
        row.pss_peak_bytes = (budget == 0 ? 1100 * MIB : budget) * 9 / 10;
        row.cgroup_peak_bytes = budget;
        study.rows[study.n_rows++] = row;
    }
    study.rows[8].state = BRIG_STUDY_REFUSED;
    study.rows[8].n_samples = 0;
    snprintf(study.rows[8].why, sizeof study.rows[8].why, "--ram 25%%: <too> little");
}

/* With STUDY_PAGE=FILE the page is written there, to be looked at. */
static void the_page_shows_every_row(void **state)
{
    (void)state;
    static struct brig_study_sample samples[12];
    static struct brig_study_probe probes[1] = {{.memory_bytes_s = 2e10}};
    struct brig_model model = {.path = "model <1>.gguf"};
    struct brig_buf svgs[16] = {0}, page = {0};
    struct brig_fail fail = {0};
    unsigned drawn = 0, n = 0;
    make_study(&model, samples, probes);
    for (; brig_study_chart_at(n) != NULL; n++) {
        int r = brig_study_chart_draw(&study, n, &svgs[n], &fail);
        if (r == -BRIG_EUNSUPPORTED) {
            print_message("no charts here: %s\n", fail.text);
            study.no_gnuplot = true;
            break;
        }
        if (r < 0)
            fail_msg("%s: %s", brig_study_chart_at(n)->name, fail.text);
        assert_true(svgs[n].len > 1000 && memcmp(svgs[n].data, "<svg", 4) == 0);
        drawn++;
    }
    assert_true(drawn == 7 || study.no_gnuplot);
    assert_int_equal(brig_study_page(&study, svgs, &page, &fail), 0);
    assert_non_null(strstr(page.data, "model &#60;1&#62;.gguf"));
    assert_non_null(strstr(page.data, "&#60;too&#62; little"));
    assert_null(strstr(page.data, "<too>"));
    unsigned rows = 0, charts = 0;
    for (const char *p = page.data; (p = strstr(p, "<tr class=")) != NULL; p++)
        rows++;
    for (const char *p = page.data; (p = strstr(p, "<svg")) != NULL; p++)
        charts++;
    assert_int_equal(rows, 12);
    assert_int_equal(charts, drawn);
    json_t *o = brig_study_json(&study);
    const json_t *refused = json_array_get(json_object_get(o, "rows"), 8);
    assert_string_equal(json_string_value(json_object_get(refused, "state")), "refused");
    assert_true(json_is_null(json_object_get(refused, "median")));
    json_decref(o);
    const char *path = getenv("STUDY_PAGE");
    FILE *f = path != NULL ? fopen(path, "w") : NULL;
    if (f != NULL) {
        fwrite(page.data, page.len, 1, f);
        fclose(f);
    }
    for (unsigned i = 0; i < n; i++)
        brig_buf_release(&svgs[i]);
    brig_buf_release(&page);
}

/* This program in place of brigade: a study asks what it is itself. What it does follows from --ram. */
static const char *word_after(int argc, char **argv, const char *option)
{
    for (int i = 1; i + 1 < argc; i++)
        if (strcmp(argv[i], option) == 0)
            return argv[i + 1];
    return "";
}

static int fake_plan(const char *ram)
{
    if (strcmp(ram, "10%") == 0) {
        fputs("brigade plan: --ram 10%: 300M would do\n", stderr);
        return 1;
    }
    printf(
        "{\"budget_bytes\": 524288000, \"least_bytes\": 1, \"total_bytes\": 2, \"token_bytes\": 1048576000,"
        "\"held_bytes\": 419430400, \"read_bytes\": 629145600, \"expert_hit_rate\": null, \"token_s\": 0.5,"
        "\"disk_bytes_s\": 1e9, \"memory_bytes_s\": 1e10, \"regime\": \"disk-bound\"}\n");
    return 0;
}

static int fake_bench(const char *ram)
{
    if (strcmp(ram, "70%") == 0)
        raise(SIGKILL);
    if (strcmp(ram, "90%") == 0) {
        fputs("brigade bench: warm, 1 shards: shard 0 was killed by signal 9 (Killed)\n", stderr);
        return 1;
    }
    if (strcmp(ram, "55%") == 0) { /* it has planned for itself */
        printf("{\"cgroup_peak_bytes\": 524288001, \"plan\": {\"budget_bytes\": 524288000, \"token_bytes\": "
               "1048576000,"
               "\"held_bytes\": 1048576000, \"read_bytes\": 0, \"disk_bytes_s\": null}, \"rows\": [{\"ids\": "
               "[[5, 6, 7]],"
               "\"runs\": [{\"decode_tok_s\": 4, \"disk_decode_bytes\": 0}]}]}\n");
        return 0;
    }
    bool streams = strcmp(ram, "50%") == 0, foreign = strcmp(ram, "80%") == 0;
    printf("{\"cgroup_peak_bytes\": 500, \"rows\": [{\"bytes_per_token\": 1000, \"start_s\": 0.25, "
           "\"pss_peak_bytes\": 400,"
           "\"rows_per_frame\": 1.0, \"ids\": [[5, 6, %d]], \"runs\": [{\"ttft_s\": 0.5, \"prefill_tok_s\": "
           "8, \"decode_tok_s\": 4,"
           "\"disk_start_bytes\": 1, \"disk_prompt_bytes\": 2, \"disk_decode_bytes\": %u}]}]}\n",
           foreign ? 8 : 7, streams || foreign ? 2 * 629145600u : 0);
    return 0;
}

static void rows_end_as_their_programs_do(void **state)
{
    (void)state;
    static const struct {
        const char *ram;
        enum brig_study_state state;
        const char *why;
    } wants[] = {{"none", BRIG_STUDY_MEASURED, ""},
                 {"10%", BRIG_STUDY_REFUSED, "300M would do"},
                 {"50%", BRIG_STUDY_MEASURED, ""},
                 {"55%", BRIG_STUDY_MEASURED, ""},
                 {"60%", BRIG_STUDY_VOID, "0.0 MiB were read"},
                 {"70%", BRIG_STUDY_KILLED, "signal 9"},
                 {"80%", BRIG_STUDY_FAILED, "other tokens than warm with --ram none"},
                 {"90%", BRIG_STUDY_KILLED, "shard 0 was killed"}};
    const struct brig_study_axes axes = {
        .ram = "10%,50%,55%,60%,70%,80%,90%", .modes = "warm", .residency = "auto", .shards = "1"};
    struct brig_model model = {.path = "no files"};
    struct brig_fail fail = {0};
    study.model = &model;
    study.command = "";
    study.n_prompt = 1;
    study.n_generate = 3;
    study.rounds = 2;
    study.threads = 1;
    study.limit_s = 60;
    assert_int_equal(brig_study_rows(&study, &axes, &fail), 0);
    if (brig_study_run(&study, &fail) < 0)
        fail_msg("%s", fail.text);
    for (size_t i = 0, k = 0; i < study.n_rows; i++) {
        const struct brig_study_row *row = &study.rows[i];
        if (row->cache == BRIG_STUDY_CACHED) /* of no files nothing can be cached */
            continue;
        assert_string_equal(row->ram, wants[k].ram);
        if (row->state != wants[k].state || strstr(row->why, wants[k].why) == NULL)
            fail_msg("%s: %s: %s", row->ram, brig_study_state_name(row->state), row->why);
        assert_int_equal(row->n_samples,
                         row->state == BRIG_STUDY_MEASURED || row->state == BRIG_STUDY_VOID ? 2 : 0);
        k++;
    }
    struct brig_study_sample m = brig_study_median(&study.rows[3]);
    assert_true(m.disk_token_bytes == 629145600.0 && m.ttft_s == 0.5 && m.start_s == 0.25 &&
                m.decode_tok_s == 4);
    assert_int_equal(study.rows[3].cgroup_peak_bytes, 500);
    /* Its own plan, the machine's speeds of the other; a peak above the budget is of another group. */
    assert_true(study.rows[4].plan.read_bytes == 0 && study.rows[4].plan.disk_bytes_s == 1e9);
    assert_int_equal(study.rows[4].cgroup_peak_bytes, 0);
    assert_int_equal(study.n_probes, 3);
    brig_study_release(&study);
}

static void nothing_to_draw_is_no_chart(void **state)
{
    (void)state;
    struct brig_buf svg = {0};
    struct brig_fail fail;
    for (unsigned i = 0; brig_study_chart_at(i) != NULL; i++)
        assert_int_equal(brig_study_chart_draw(&study, i, &svg, &fail), 0);
    assert_int_equal(svg.len, 0);
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "plan") == 0)
        return fake_plan(word_after(argc, argv, "--ram"));
    if (argc > 1 && strcmp(argv[1], "bench") == 0)
        return fake_bench(word_after(argc, argv, "--ram"));
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(every_combination_is_a_row, forget),
        cmocka_unit_test_setup(wrong_lists_are_refused, forget),
        cmocka_unit_test(a_child_is_heard_to_its_end),
        cmocka_unit_test(a_child_that_is_late_is_ended),
        cmocka_unit_test(a_child_that_says_too_much_is_a_failure),
        cmocka_unit_test(a_missing_program_is_named),
        cmocka_unit_test_setup(reading_something_else_than_planned_is_void, forget),
        cmocka_unit_test(with_drafts_a_pass_counts),
        cmocka_unit_test_setup(the_bound_is_the_slower_of_memory_and_disk, forget),
        cmocka_unit_test(medians_are_figures_that_were_measured),
        cmocka_unit_test_setup(the_page_shows_every_row, forget),
        cmocka_unit_test_setup(rows_end_as_their_programs_do, forget),
        cmocka_unit_test_setup(nothing_to_draw_is_no_chart, forget),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
