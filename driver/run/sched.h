/*
 * Many sequences over one line. Each has a slot of the shards' caches; the rows of those that can go on are
 * put together into frames, and several frames are under way at once. No row's arithmetic depends on another
 * row, so a sequence gets the bits that it would get alone, whatever goes with it.
 *
 * A sequence is added with its prompt and gets the answer to its newest token again and again; it says which
 * token follows, until it ends. What its slot holds stays there until another sequence takes the slot, which
 * then sends only what differs. One thread calls everything here.
 */
#ifndef BRIG_DRIVER_RUN_SCHED_H
#define BRIG_DRIVER_RUN_SCHED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "driver/run/embed.h"
#include "driver/run/line.h"

struct brig_sched;

struct brig_sched_opts {
    const struct brig_model *model; /* borrowed, as the next two */
    struct brig_embed *embed;
    struct brig_line *line; /* used by nobody else meanwhile */
    uint32_t ctx, slots;    /* at most the line's */
    uint32_t frame_rows;    /* most rows in a frame, 1 to the line's max_rows */
    unsigned flights;       /* frames under way at once; 0: chosen. The line may allow fewer */
};

/* The answer for the newest token of a sequence, as brig_sampler_pick takes it; valid during the call. */
struct brig_row {
    const uint32_t *ids; /* [n] candidates; NULL: logits is the whole row */
    const float *logits; /* [n] */
    uint32_t n;
    float lse;     /* with candidates */
    uint32_t room; /* tokens that the context still takes: at 0 the next one is the last */
    uint32_t nth; /* tokens drawn from the same frame before it: each but 0 is the end of a draft that held */
};

struct brig_seq {
    const uint32_t *prompt; /* copied */
    size_t n_prompt;        /* 1 to the context */
    /* Candidates that the next draw needs, and those after `ahead` more tokens; 0: the whole row. Asked when
     * the newest token is sent. */
    uint32_t (*top)(void *ctx, uint32_t ahead);
    /* Or NULL. Tokens that may follow ids [n], which is all of the sequence: at most `most` (1 or more) into
     * ids[n] and on, *n_draft of them. They go with the newest token, and answer is asked for each as long as
     * the tokens that it names are those of the draft. A failure is returned by brig_sched_step; the sequence
     * has not moved. */
    int (*draft)(void *ctx, uint32_t *ids, uint32_t n, uint32_t most, uint32_t *n_draft,
                 struct brig_fail *fail);
    /* *goes_on: with *next as the token that follows; else the sequence has ended. A failure ends it too. */
    int (*answer)(void *ctx, const struct brig_row *row, uint32_t *next, bool *goes_on,
                  struct brig_fail *fail);
    void *ctx; /* of all three */
};

/* Most tokens of a draft. */
#define BRIG_SCHED_MAX_DRAFT 64u

int brig_sched_new(struct brig_sched **ret, const struct brig_sched_opts *opts, struct brig_fail *fail);
void brig_sched_free(struct brig_sched *s); /* NULL allowed */

/* Admit a sequence, to the free slot that holds the longest beginning of its prompt. *slot is its number
 * until it ends; *kept tokens need not be sent again. -BRIG_ELIMIT when no slot is free. */
int brig_sched_add(struct brig_sched *s, const struct brig_seq *seq, uint32_t *slot, size_t *kept,
                   struct brig_fail *fail);
/* The sequence of a slot ends now: its owner is not asked again. The slot is free when its rows are back. */
void brig_sched_end(struct brig_sched *s, uint32_t slot);

/* Tokens of a slot that its cache holds. */
uint32_t brig_sched_held(const struct brig_sched *s, uint32_t slot);

/* Slots that a sequence can have now. */
uint32_t brig_sched_free_slots(const struct brig_sched *s);
/* Something is left to do: brig_sched_step. */
bool brig_sched_busy(const struct brig_sched *s);

/* Send what can go, then wait for one frame and give its answers out. When the line fails, nothing is under
 * way and no sequence has moved: the next step sends again what was lost. The failure of an answer is
 * returned when all answers of the frame have been given out. */
int brig_sched_step(struct brig_sched *s, struct brig_fail *fail);

uint64_t brig_sched_frames(const struct brig_sched *s);  /* answered so far */
unsigned brig_sched_flights(const struct brig_sched *s); /* under way at once, at most */
uint32_t
brig_sched_ctx(const struct brig_sched *s); /* of one sequence: the model may allow less than asked */

#endif
