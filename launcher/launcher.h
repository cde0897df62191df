/*
 * The launcher's one public header: which slices, in which processes, alive when. The driver uses it and
 * nothing else of launcher/.
 *
 * All functions are called from one thread, the program's main thread: a child's parent-death signal is tied
 * to the thread that spawned it.
 */
#ifndef BRIG_LAUNCHER_LAUNCHER_H
#define BRIG_LAUNCHER_LAUNCHER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "launcher/enclose.h"
#include "launcher/plan.h"
#include "launcher/probe.h"
#include "launcher/ram.h"
#include "proto/base/err.h"
#include "proto/link/link.h"
#include "proto/model/kv_type.h"
#include "proto/model/model.h"
#include "proto/model/slice.h"
#include "proto/wire/control.h"

/* Launch modes: which processes live between tokens. One row each in mode.def. */
struct brig_mode {
    const char *name; /* "warm", "pool", "cold" */
    const char *help;
    /* Does the process of this stage live until the end of the run? Else it works once and exits. keep: how
     * many are to live, 1 to n_stages, where the mode leaves that to the user. */
    bool (*lives)(unsigned stage, unsigned n_stages, unsigned keep);
    bool keeps; /* all live, and stages are chained; else each frame returns to the driver between stages */
    bool picks; /* how many live is the user's choice (--keep) */
    unsigned ahead; /* how many of those that work once are started early, at most */
};

const struct brig_mode *brig_mode_at(unsigned i); /* NULL after the last row */
const struct brig_mode *brig_mode_by_name(const char *name);

/* Places: where a process is started. One row each in place.def; "local" is posix_spawn + pidfd. */
struct brig_place {
    const char *name;
    const char *help;
};
const struct brig_place *brig_place_at(unsigned i);

struct brig_launch_opts {
    const struct brig_model *model;
    unsigned n_shards;
    unsigned threads; /* per shard; 0: the shard's own default */
    enum brig_kv_id kv;
    bool exact;
    const struct brig_link *link; /* for frames */
    const struct brig_mode *mode; /* a process that does not live exits after one frame with rows */
    unsigned keep;                /* how many live, where the mode leaves it to the user: 1 to n_shards */
    uint32_t ctx, slots;
    const struct brig_plan *plan; /* how weights are held; borrowed; NULL: mapped */
    uint32_t timeout_ms;          /* for a started process to be ready */
    const char *program;          /* path of brigade-shard, NULL: beside this program, then in PATH */
    const struct brig_enclosure *enclosure; /* that this process is in; borrowed, NULL: none */
};

struct brig_launcher;

/* Cut the model, describe each slice, make the caches. Starts nothing. */
int brig_launcher_open(struct brig_launcher **ret, const struct brig_launch_opts *opts,
                       struct brig_fail *fail);
/* Kills and reaps what still lives (bounded), frees. NULL allowed. */
void brig_launcher_close(struct brig_launcher *l);

unsigned brig_launcher_stages(const struct brig_launcher *l);
struct brig_cells brig_launcher_cells(const struct brig_launcher *l, unsigned stage);

/* Does its process live until the end of the run? */
bool brig_launcher_lives(const struct brig_launcher *l, unsigned stage);
/* Weights of its slice. */
uint64_t brig_launcher_slice_bytes(const struct brig_launcher *l, unsigned stage);
/* What its cache takes of memory now, pages that were never used not counted. */
uint64_t brig_launcher_cache_bytes(const struct brig_launcher *l, unsigned stage);

/* Start the process of a stage and return at once; a new generation each time. The stage has none alive. */
int brig_launcher_start(struct brig_launcher *l, unsigned stage, struct brig_fail *fail);
bool brig_launcher_alive(struct brig_launcher *l, unsigned stage);
/* Wait until it says that it listens; its control URL is written. Fails with the process's own last words. */
int brig_launcher_ready(struct brig_launcher *l, unsigned stage, char control_url[BRIG_URL_MAX],
                        struct brig_fail *fail);
/* After the process was told to stop, or is expected to: wait, then kill, reap. Returns its wait status. */
int brig_launcher_reap(struct brig_launcher *l, unsigned stage, uint32_t timeout_ms);
/* Why a stage no longer answers: fills fail with the signal, exit code and last words if it has ended
 * (returns true), else returns false and leaves fail alone. */
bool brig_launcher_post_mortem(struct brig_launcher *l, unsigned stage, struct brig_fail *fail);
pid_t brig_launcher_pid(const struct brig_launcher *l, unsigned stage);
/* Nanoseconds from spawn to ready of the stage's last start. */
uint64_t brig_launcher_start_ns(const struct brig_launcher *l, unsigned stage);

#endif
