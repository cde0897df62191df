/*
 * A study: what a budget of memory, a launch mode and a residency cost and buy. Each combination runs as a
 * `brigade bench` of its own, a process that can be enclosed in a memory cgroup of its own, in several rounds
 * that take turns; the page cache is brought into a known state before each run, and that state is looked at,
 * not believed. What comes out is a table, JSON, charts and one page.
 */
#ifndef BRIG_DRIVER_STUDY_STUDY_H
#define BRIG_DRIVER_STUDY_STUDY_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "launcher/launcher.h"
#include "proto/base/err.h"
#include "proto/model/model.h"

#define BRIG_STUDY_MAX_ROWS  128u
#define BRIG_STUDY_WORD      24u /* longest value of an axis, with its NUL */
#define BRIG_STUDY_NO_BUDGET "none"

/* What the page cache holds of the model's files when a run begins. */
enum brig_study_cache {
    BRIG_STUDY_DROPPED, /* under 1 %: every byte comes from the disk. A disk-cold start */
    BRIG_STUDY_CACHED   /* over 99 %: processes start, the disk rests. A process-cold start */
};

enum brig_study_state {
    BRIG_STUDY_WAITING,
    BRIG_STUDY_MEASURED,
    BRIG_STUDY_REFUSED, /* by the plan: the budget cannot work */
    BRIG_STUDY_FAILED,
    BRIG_STUDY_KILLED, /* by a signal that nobody here sent: the kernel, for memory */
    BRIG_STUDY_VOID    /* measured, and the figures contradict what was to be measured */
};
const char *brig_study_state_name(enum brig_study_state s); /* "measured" */
const char *brig_study_cache_name(enum brig_study_cache c); /* "dropped" */

/* What a plan promises; all 0 when there is none. */
struct brig_study_plan {
    bool known;
    uint64_t budget_bytes, total_bytes, least_bytes;
    uint64_t token_bytes;                /* M */
    uint64_t held_bytes;                 /* P */
    uint64_t read_bytes;                 /* for a token, from the disk */
    double hit_rate;                     /* of experts; 0 without a cache */
    double token_s;                      /* 0: not known */
    double disk_bytes_s, memory_bytes_s; /* 0: not known */
    char regime[BRIG_STUDY_WORD];
};

/* One run. */
struct brig_study_sample {
    double start_s; /* 0: the mode starts nothing before the first pass */
    double ttft_s, prefill_tok_s, decode_tok_s;
    double pass_tokens; /* that one pass over the weights gave: more than 1 with drafts */
    double disk_start_bytes, disk_prompt_bytes;
    double disk_token_bytes; /* read for each token that was decoded */
    double token_bytes;      /* weights that a token needs */
};

struct brig_study_row {
    /* what */
    char ram[BRIG_STUDY_WORD]; /* as given: "50%", "2G"; "none" */
    const struct brig_mode *mode;
    char residency[BRIG_STUDY_WORD]; /* "auto", "map", ... */
    char shards[BRIG_STUDY_WORD];
    enum brig_study_cache cache;
    /* what came out */
    enum brig_study_state state;
    char why[480]; /* of every state but measured */
    struct brig_study_plan plan;
    struct brig_study_sample *samples; /* [rounds] */
    unsigned n_samples;
    uint64_t pss_peak_bytes, cgroup_peak_bytes; /* largest of all rounds; 0: not known */
};

/* Speeds of this machine, taken before the first round and after each. */
struct brig_study_probe {
    double memory_bytes_s;
};

struct brig_study {
    const struct brig_model *model; /* borrowed, as all pointers of this group */
    const char *command;            /* how this was asked for, for the page; "" is allowed */
    char *const *plan_options;      /* for each plan and each run, NULL at the end */
    char *const *bench_options;     /* for each run */
    uint32_t n_prompt, n_generate;
    uint32_t limit_s; /* for one run */
    unsigned rounds;
    unsigned threads;                                       /* of the probe */
    void (*progress)(void *ctx, size_t done, size_t total); /* or NULL */
    void *progress_ctx;
    const volatile sig_atomic_t *cancel;

    uint64_t model_bytes; /* of its files */
    struct brig_study_row rows[BRIG_STUDY_MAX_ROWS];
    unsigned n_rows;
    struct brig_study_probe *probes; /* [rounds + 1] */
    unsigned n_probes;
    uint32_t *ids; /* [n_generate] of the first run that ended; all others must give the same */
    const struct brig_study_row *ids_of; /* NULL: none has ended yet */
    bool blind;                          /* the kernel does not say what it caches of these files */
    bool no_gnuplot; /* charts were wanted, and the program that draws them is not installed */
};

/* Lists are comma-separated. ram NULL: no budget. Every combination is a row; without a budget also with the
 * page cache full. That reference is added when ram does not name "none". */
struct brig_study_axes {
    const char *ram, *modes, *residency, *shards;
};
int brig_study_rows(struct brig_study *s, const struct brig_study_axes *axes, struct brig_fail *fail);

/* Runs everything. A row that fails is a row; a failure here is of the study itself. */
int brig_study_run(struct brig_study *s, struct brig_fail *fail);
void brig_study_release(struct brig_study *s);

/* The table, to standard output. */
int brig_study_print(const struct brig_study *s, struct brig_fail *fail);

/* Make the folder if it is not there: before anything takes its time. */
int brig_study_folder(const char *dir, struct brig_fail *fail);
/* report.json, the charts as NAME.svg, and report.html in that folder. Without gnuplot there are no charts,
 * and the page says so. */
int brig_study_write(struct brig_study *s, const char *dir, struct brig_fail *fail);

/* Medians over a row's runs; all 0 when there are none. */
struct brig_study_sample brig_study_median(const struct brig_study_row *row);
/* What it is but for the budget, as people read it: "warm stream", with the number of shards when it is
 * not 1. */
void brig_study_label(const struct brig_study_row *row, char *out, size_t n);
/* Tokens a second that memory and disk allow: 1 / max(M / memory, (M - P) / disk); 0: not known. */
double brig_study_bound(const struct brig_study *s, const struct brig_study_row *row);

#endif
