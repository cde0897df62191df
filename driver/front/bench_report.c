/* A study from settings: what is varied, what all runs share. */
#include "driver/front/bench_report.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "driver/front/interrupt.h"
#include "driver/front/option.h"
#include "driver/front/progress.h"
#include "driver/front/verb.h"
#include "driver/study/study.h"
#include "proto/base/proc.h"

#define MAX_WORDS (2 * BRIG_SETTINGS_MAX_GIVEN)

/* What a report varies, or sets for each run itself; every other option is handed on as it was given. */
static const char *const own[] = {"report", "run-limit", "ram",    "modes",         "residency", "shards",
                                  "skip",   "json",      "repeat", "prompt-tokens", "n-predict", "quiet"};

struct words {
    char *plan[MAX_WORDS + 1], *bench[MAX_WORDS + 1];
    unsigned n_plan, n_bench;
    char names[BRIG_SETTINGS_MAX_GIVEN][32]; /* with dashes */
};

static bool is_own(const char *name)
{
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        if (strcmp(own[i], name) == 0)
            return true;
    return false;
}

/* Plans know some of the options of bench. */
static bool plan_takes(const char *name)
{
    unsigned plan;
    if (brig_verb_by_name("plan", &plan) == NULL)
        return false;
    for (unsigned i = 0; brig_option_at(i) != NULL; i++)
        if (strcmp(brig_option_at(i)->name, name) == 0 && (brig_option_at(i)->verbs & (1u << plan)) != 0)
            return true;
    return false;
}

static void add(char **v, unsigned *n, const char *word)
{
    if (word != NULL && *n < MAX_WORDS)
        v[(*n)++] = (char *)word; /* a program's arguments are typed so; nobody writes to them */
}

static void fill_words(struct words *w, const struct brig_settings *s)
{
    memset(w, 0, sizeof *w);
    for (unsigned i = 0; i < s->n_given; i++) {
        const struct brig_given *g = &s->given[i];
        bool plan = plan_takes(g->option->name);
        if (is_own(g->option->name))
            continue;
        snprintf(w->names[i], sizeof w->names[i], "--%s", g->option->name);
        add(plan ? w->plan : w->bench, plan ? &w->n_plan : &w->n_bench, w->names[i]);
        add(plan ? w->plan : w->bench, plan ? &w->n_plan : &w->n_bench, g->value);
    }
}

/* How this program was called, for the page. */
static void command_line(char *out, size_t n)
{
    ssize_t got = brig_proc_read(out, n, "/proc/self/cmdline");
    size_t len = got > 0 ? (size_t)got : 0;
    while (len > 0 && out[len - 1] == '\0')
        len--;
    for (size_t i = 0; i < len; i++)
        if (out[i] == '\0')
            out[i] = ' ';
    out[len] = '\0';
}

static void show(void *ctx, size_t done, size_t total)
{
    brig_progress_update(ctx, done, total);
}

static unsigned probe_threads(const struct brig_settings *s)
{
    long cpus = sysconf(_SC_NPROCESSORS_ONLN);
    return s->threads_given ? (unsigned)s->threads : cpus > 0 ? (unsigned)cpus : 1;
}

static int measure(struct brig_study *study, const struct brig_settings *s, struct brig_fail *fail)
{
    struct brig_progress bar;
    const struct brig_study_axes axes = {.ram = s->bench_ram,
                                         .modes = s->bench_modes == NULL ? "warm,cold" : s->bench_modes,
                                         .residency =
                                             s->bench_residency == NULL ? "auto" : s->bench_residency,
                                         .shards = s->bench_shards == NULL ? "1" : s->bench_shards};
    int r = brig_study_rows(study, &axes, fail);
    if (r == 0)
        r = brig_study_folder(s->bench_report, fail);
    if (r < 0)
        return r;
    brig_progress_init(&bar, "bench", s->quiet);
    study->progress = show;
    study->progress_ctx = &bar;
    r = brig_study_run(study, fail);
    brig_progress_wipe(&bar);
    if (r == 0)
        r = brig_study_print(study, fail);
    if (r == 0)
        r = brig_study_write(study, s->bench_report, fail);
    if (r == 0 && study->no_gnuplot && !s->quiet)
        fputs("brigade: no charts: gnuplot is not installed\n", stderr);
    return r;
}

int brig_bench_report(const struct brig_settings *s, struct brig_fail *fail)
{
    struct brig_model *model = NULL;
    struct words words;
    char command[4096];
    if (s->bench_json != NULL || s->bench_skip != NULL || strcmp(s->bench_streams, "1") != 0)
        return brig_fail_set(
            fail, BRIG_EUSAGE,
            "--report has JSON of its own and one stream: without --json, --skip, --streams");
    int r = brig_model_open(&model, s->operand, fail);
    if (r < 0)
        return r;
    fill_words(&words, s);
    command_line(command, sizeof command);
    struct brig_study study = {.model = model,
                               .command = command,
                               .plan_options = words.plan,
                               .bench_options = words.bench,
                               .n_prompt = (uint32_t)s->bench_prompt,
                               .n_generate = (uint32_t)s->bench_generate,
                               .limit_s = (uint32_t)s->bench_limit,
                               .rounds = (unsigned)s->bench_repeat,
                               .threads = probe_threads(s),
                               .cancel = brig_interrupt_flag()};
    r = measure(&study, s, fail);
    brig_study_release(&study);
    brig_model_close(model);
    return r;
}
