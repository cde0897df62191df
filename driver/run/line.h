/*
 * The line: a row of shards, launched here or attached to by address, through which frames go. The driver
 * looks only at `stage` to see where a frame has been, so chains, stars and mixes are one code path.
 */
#ifndef BRIG_DRIVER_RUN_LINE_H
#define BRIG_DRIVER_RUN_LINE_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "driver/run/routes.h"
#include "launcher/launcher.h"
#include "proto/base/err.h"
#include "proto/model/model.h"
#include "proto/stat/trace.h"
#include "proto/wire/frame.h"

struct brig_line;

#define BRIG_LINE_PSS_EVERY 64u

struct brig_line_opts {
    const struct brig_model *model;
    const struct brig_mode *mode; /* with chain: must keep */
    unsigned keep; /* how many shards live, where the mode picks; 0: half of them, rounded up */
    /* In modes that start processes for their turn: weights of the one at work and of those started early,
     * together at most; 0: as the plan says, or as many as the mode does. Where not even the next one fits it
     * is started when the one before it has ended. */
    uint64_t turn_bytes;
    unsigned n_shards;
    unsigned threads;
    enum brig_kv_id kv;
    bool exact;
    const struct brig_residency *residency; /* how weights are held; NULL: mapped */
    const struct brig_link *link; /* how frames travel on this machine; NULL: as is best for the mode */
    bool hold;                    /* keep the CPUs awake during a pass, where this user may */
    uint32_t ctx, slots;
    uint32_t max_rows;   /* most rows in a frame: longer prompts are sent in pieces */
    uint32_t timeout_ms; /* without progress */
    const char *chain;   /* comma-separated control URLs, or NULL to launch */
    bool insecure;
    bool star; /* each stage gives its rows back to the driver, also when all are kept */
    /* Ask each stage for its PSS: in each frame where processes do not live longer, else in the first and
     * each BRIG_LINE_PSS_EVERY-th. */
    bool pss;
    const struct brig_plan *plan;           /* how the launched shards hold their weights; NULL: mapped */
    const struct brig_enclosure *enclosure; /* that all processes are in; or NULL */
    struct brig_trace *trace;               /* or NULL */
    struct brig_routes *routes;             /* the experts that rows choose are written there, or NULL */
    const volatile sig_atomic_t *cancel;    /* nonzero: give up soon with -BRIG_ECANCELLED; or NULL */
};

struct brig_stage_stats {
    struct brig_cells cells;
    bool head;
    uint32_t pid;
    char host[BRIG_HOST_MAX];
    char kernel[BRIG_CLASS_MAX];
    uint32_t threads;
    uint64_t start_ns;            /* spawn to ready, last start; 0 when attached to */
    uint64_t compute_ns, wait_ns; /* sums over frames with rows */
    uint64_t mapped_bytes, pss_peak_bytes;
    uint64_t unlocked_bytes;       /* weights that should be locked in memory and may not be */
    uint64_t read_bytes, stall_ns; /* sums: weights read from the disk, waiting for them */
    /* Sums over streamed experts: used, of them those that were in memory; bytes read */
    uint64_t experts_used, expert_hits, expert_read_bytes;
    bool lives;        /* its process, until the end of the run */
    uint64_t kv_bytes; /* memory that its cache takes now; 0 when attached to: not known */
};

struct brig_line_stats {
    unsigned n_stages;
    const struct brig_stage_stats *stages; /* borrowed */
    uint64_t proven_ns;                    /* clock time when the empty frame first came back */
    uint64_t pss_peak_bytes; /* largest sum over processes alive together, the driver's own included; 0: not
                                asked for */
    uint64_t hops_per_pass;  /* messages for one frame through the line */
    /* (round trip - sum of stage times) / hops, per frame with rows, newest 65,536 kept */
    const uint64_t *hop_ns;
    unsigned n_hop_ns;
};

/* What comes back for one frame. Rows in the order of the wants. Memory is the line's, valid until the next
 * answer. */
struct brig_answer {
    uint32_t n_wants;
    uint32_t cols; /* candidates per row, or vocabulary when whole */
    bool whole;
    const float *lse;    /* [n_wants], candidates only */
    const uint32_t *n;   /* [n_wants] valid candidates */
    const uint32_t *ids; /* [n_wants, cols] */
    const float *logits; /* [n_wants, cols] */
};

/* Start or attach to all that the mode keeps, and prove the line with a frame without rows. */
int brig_line_open(struct brig_line **ret, const struct brig_line_opts *opts, struct brig_fail *fail);
/* Drain, stop what was launched (leave what was attached to running), reap. NULL allowed. Bounded in time. */
void brig_line_close(struct brig_line *l);

/* One pass: frame fields runs, wants, ops, top are the caller's; h [n_rows, hidden] f32 is copied into the
 * message. whole rows (top 0): sink is called for each wanted row in order instead of being kept
 * (row: index among wants; logits [vocab], valid during the call), unless sink is NULL (then the answer holds
 * them; few rows only). normed: in place of logits, with top 0 and a sink: the wanted rows after the final
 * norm, [hidden]. stage_sink, or NULL: called on a star after each stage but the last with the rows that it
 * gave back (h [n_rows, hidden], valid during the call). A sink that returns an error ends the pass. */
struct brig_pass {
    const struct brig_run *runs;
    unsigned n_runs;
    const struct brig_want *wants;
    unsigned n_wants;
    const struct brig_cache_op *ops;
    unsigned n_ops;
    uint32_t top;
    const float *h;
    bool normed;
    int (*sink)(void *ctx, uint32_t row, const float *logits);
    int (*stage_sink)(void *ctx, unsigned stage, const float *h, uint32_t n_rows);
    void *sink_ctx; /* of both */
};
int brig_line_pass(struct brig_line *l, const struct brig_pass *pass, struct brig_answer *ret,
                   struct brig_fail *fail);

/* The two halves of a pass, for several frames under way at once: answers come in the order of the frames. At
 * most brig_line_room are sent before the next is received; 1 where the driver itself takes a frame from
 * stage to stage. What pass points to is not needed after send, but for the sinks. After a failure of either
 * no frame is under way: what the lost ones left in the caches is not known. */
unsigned brig_line_room(const struct brig_line *l);
int brig_line_send(struct brig_line *l, const struct brig_pass *pass, struct brig_fail *fail);
int brig_line_receive(struct brig_line *l, struct brig_answer *ret, struct brig_fail *fail);

/* On a line whose mode does not keep its processes: start stages one after the other, n times in all, each
 * until a frame without rows has gone through it and come back, then stop it. ret_ns[n]: spawn to frame
 * returned. */
int brig_line_time_starts(struct brig_line *l, unsigned n, uint64_t *ret_ns, struct brig_fail *fail);

void brig_line_stats(struct brig_line *l, struct brig_line_stats *ret);

#endif
