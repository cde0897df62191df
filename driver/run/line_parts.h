/* The inside of a line, shared by driver/run/line*.c only. */
#ifndef BRIG_DRIVER_RUN_LINE_PARTS_H
#define BRIG_DRIVER_RUN_LINE_PARTS_H

#include <pthread.h>

#include "driver/run/line.h"
#include "proto/link/link.h"
#include "proto/stat/stat.h"

/* One place in the line. */
struct brig_peer {
    char url[BRIG_URL_MAX]; /* its control address */
    struct brig_ctl_client *ctl;
    struct brig_tx *tx; /* frames to it, when the driver itself sends to it */
    const struct brig_link *tx_link;
    bool attached;            /* hello and attach are done, the run is on */
    bool done;                /* a process that works once has done its work: its end is no fault */
    uint64_t silent_since_ns; /* first status call in a row without an answer, 0: it answers */
    char data_url[BRIG_URL_MAX];
};

/* A frame under way: sent and not yet answered in full. */
struct brig_flight {
    struct brig_frame frame; /* as it was sent */
    struct brig_pass pass;   /* what was asked; only top, normed and the sinks are looked at again */
    struct brig_msg *m;      /* on a star: waits for its turn here */
    uint64_t begin_ns;
    bool alone; /* no other was under way meanwhile: its round trip is no other's waiting */
};

struct brig_line {
    struct brig_line_opts opts;
    struct brig_launcher *launcher; /* NULL on a chain of shards that others started */
    bool star;                      /* every stage gives its frame back to the driver */
    unsigned n_stages;
    struct brig_peer *peers;
    struct brig_stage_stats *stages;
    struct brig_rx *rx; /* where frames come back */
    const struct brig_link *rx_link;
    char rx_url[BRIG_URL_MAX];
    uint64_t run_id, frame_id;
    uint64_t max_bytes;
    char numeric_class[BRIG_CLASS_MAX];
    uint64_t proven_ns, pss_peak_bytes;
    uint64_t *pss_now; /* [n_stages] of the newest frame */
    uint64_t n_passes; /* with rows, counted while memory is asked for */
    struct brig_samples hops;
    struct brig_frame got; /* just received. Large: kept off the stack */
    /* Frames under way, oldest at `oldest`: answers come in the order of the frames. */
    struct brig_flight *flights; /* [room] */
    unsigned room, oldest, n_flights;
    struct brig_flight *now; /* the one that is waited for */
    int hold;                /* what keeps the CPUs awake meanwhile, -1: nothing */
    /* answers */
    struct brig_answer answer;
    float *lse, *logits;
    uint32_t *n, *ids;
    size_t cap_rows, cap_cells;
    /* keeps attached shards from ending the run while a person thinks */
    pthread_mutex_t lock; /* around every use of peers' ctl while the heart beats */
    pthread_cond_t wake;
    pthread_t heart;
    bool beating, stopping;
};

/* ---- line_peer.c: one stage ---- */

/* "shard 3 (layers 9:12)", with the address when it was given by address */
void brig_peer_name(const struct brig_line *l, unsigned stage, char *out, size_t cap);
/* Connect the control path and ask who is there; check that it is what the run needs. */
int brig_peer_hello(struct brig_line *l, unsigned stage, struct brig_fail *fail);
/* Begin the run at this stage: frames go on to next_url. */
int brig_peer_attach(struct brig_line *l, unsigned stage, const char *next_url, struct brig_fail *fail);
/* Open the way for frames from here to it. */
int brig_peer_dial(struct brig_line *l, unsigned stage, struct brig_fail *fail);
/* Started (if it is launched here), attached with the driver as its next, and dialled: no-op when it is so.
 */
int brig_peer_up(struct brig_line *l, unsigned stage, struct brig_fail *fail);
/* Say farewell (drain, or stop when it was launched here) and close the connections. True when it leaves by
 * itself. */
bool brig_peer_part(struct brig_line *l, unsigned stage);
/* Part, if that was not done, and reap what was launched here. */
void brig_peer_down(struct brig_line *l, unsigned stage);
/* One status call; tells in *progress how far it is. */
int brig_peer_status(struct brig_line *l, unsigned stage, struct brig_reply *reply, uint32_t timeout_ms,
                     struct brig_fail *fail);
/* The words for a stage that failed: how its process ended if it did, else what fail already says. */
int brig_peer_blame(struct brig_line *l, unsigned stage, struct brig_fail *fail);

/* ---- line_wait.c ---- */

/* Wait for the frame l->now: its message, decoded into l->got. Gives up
 * when nothing moves for the time-out, when a process has died, or when cancelled. */
int brig_line_await(struct brig_line *l, struct brig_msg **ret, struct brig_fail *fail);

/* Does the process of a stage live until the end of the run? */
static inline bool brig_line_lives(const struct brig_line *l, unsigned stage)
{
    return l->opts.mode->lives(stage, l->n_stages, l->opts.keep);
}

/* ---- line_early.c: what may be started before its turn ---- */

/* Stages counted that may be started early together, after the one at work. */
struct brig_early {
    unsigned n;
    uint64_t bytes; /* of their weights, and of those of the one at work if it does not live */
};

/* Nothing is started early beside `stage` yet, which is at work. */
struct brig_early brig_line_early_none(const struct brig_line *l, unsigned stage);
/* May stage i, which does not live, be started early beside those counted? Then it is counted. */
bool brig_line_early(const struct brig_line *l, unsigned i, struct brig_early *e);
/* Must a process have ended before another is started? Where memory is counted. */
bool brig_line_frugal(const struct brig_line *l);

/* What a failure r is called: after a cancel always a cancel. A Ctrl-C reaches every process of the
 * terminal's group, and so a shard that has just been started and has no group of its own yet. */
int brig_line_verdict(const struct brig_line *l, int r, struct brig_fail *fail);

/* ---- line_answer.c ---- */

/* Take in one answer message (l->got decoded from it); *complete when it was the last part. */
int brig_line_take_answer(struct brig_line *l, struct brig_msg *m, bool *complete, struct brig_fail *fail);
/* Sums, peaks, hop sample and trace events from the timings in a message that went all the way. */
void brig_line_account(struct brig_line *l, struct brig_msg *m, uint64_t end_ns);

#endif
