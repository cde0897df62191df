/*
 * Serving a driver. Two threads share struct brig_serve: the control thread answers requests at once, also
 * while a frame is computed, and makes a run on attach; the compute thread (main's) takes the frames of the
 * run and closes it. A run exists while state is not FREE, and then belongs to the compute thread.
 */
#ifndef BRIG_SHARD_SERVE_H
#define BRIG_SHARD_SERVE_H

#include <pthread.h>
#include <stdatomic.h>

#include "proto/link/link.h"
#include "proto/wire/frame.h"
#include "shard/block/block.h"
#include "shard/holding.h"

/* One driver's run: made by attach, closed when it ends; nothing of it is used again. */
struct brig_serve_run {
    uint64_t run_id;
    uint32_t peer; /* the control connection that attached */
    uint32_t stage, n_stages, max_rows;
    uint32_t ctx, slots;
    uint64_t max_bytes;
    char data_url[BRIG_URL_MAX], next_url[BRIG_URL_MAX];
    const struct brig_link *rx_link, *tx_link;
    struct brig_rx *rx; /* under the serve's lock: NULL once it was taken to be closed */
    struct brig_tx *tx;
    struct brig_block *block;
    uint32_t *want_rows; /* [max_rows] */
    struct brig_frame frame, answer;
    uint64_t idle_since_ns;           /* end of the frame before, or the attach */
    struct brig_weights_stats before; /* after the frame with rows before; first: nothing was read */
};

struct brig_serve {
    struct brig_holding *hold; /* borrowed */
    struct brig_ctl_server *ctl;
    char control_url[BRIG_URL_MAX]; /* as peers can dial it */
    pthread_t control_thread;

    pthread_mutex_t lock; /* held for moments only, for what follows down to the next comment */
    pthread_cond_t changed;
    enum brig_shard_state state;
    char why[256];         /* state FAILED */
    bool ending;           /* the run is to end: the compute thread closes it and sets FREE */
    bool quit;             /* the process is to end */
    uint32_t asking_peer;  /* whose attach is being answered, 0: none */
    bool asking_peer_gone; /* and that it has gone meanwhile */
    struct brig_serve_run *run;

    /* Figures for status, written by the compute thread. */
    atomic_uint_fast64_t frame_id, frames;
    atomic_uint layer;
    atomic_bool working;
    atomic_uint_fast64_t last_sign_ns; /* of life of the driver: a request or a frame */
};

/* Listen for drivers and start the control thread. */
int brig_serve_open(struct brig_serve *s, struct brig_holding *hold, struct brig_fail *fail);
/* Take frames until the process is to end, or with --once until one with rows was sent on. */
void brig_serve_work(struct brig_serve *s);
void brig_serve_close(struct brig_serve *s);
/* From any thread: end soon. */
void brig_serve_quit(struct brig_serve *s);

/* ---- between the files of serving ---- */

/* End the run, if there is one, and the process when `quit`: the compute thread is woken and closes it. Not
 * from a thread of the link. */
void brig_serve_end_run(struct brig_serve *s, bool quit);

/* serve_run.c: a run for an attach that was found good; and its end. Close accepts a half-built one. */
int brig_serve_run_open(struct brig_serve *s, const struct brig_request *req, struct brig_serve_run **ret,
                        struct brig_fail *fail);
void brig_serve_run_close(struct brig_serve_run *run);

/* serve_control.c: the control thread. */
void *brig_serve_control_main(void *serve);

/* serve_work.c: one message of the run, taken. Returns 1 when a frame with rows was sent on, else 0;
 * -BRIG_E... when the run has failed. */
int brig_serve_message(struct brig_serve *s, struct brig_msg *m, struct brig_fail *fail);
/* Write timing and stage into a frame that was laid out as *f, and send it on; takes m, also on failure. */
int brig_serve_send(struct brig_serve *s, const struct brig_frame *f, struct brig_msg *m,
                    const struct brig_stage_timing *timing, struct brig_fail *fail);

/* What this stage says of its work on the present frame, up to now. */
void brig_serve_timing(const struct brig_serve *s, uint64_t arrived_ns, uint64_t pss_bytes,
                       struct brig_stage_timing *ret);

/* serve_answer.c: the head's answer to a frame whose rows have been computed, sent in one or more parts.
 * arrived_ns and pss_bytes go into the timing. 1: it could not be computed, *why says why; nothing was sent
 * that would end the frame. */
int brig_serve_answer(struct brig_serve *s, struct brig_msg *m, uint64_t arrived_ns, uint64_t pss_bytes,
                      struct brig_fail *why, struct brig_fail *fail);
/* How often it will go over the head's table. */
unsigned brig_serve_head_rounds(const struct brig_serve *s, const struct brig_frame *f);

#endif
