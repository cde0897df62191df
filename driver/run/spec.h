/*
 * Speculation: which draft goes with a frame, and how long it is.
 *
 * With a fixed length every frame takes as long a draft as there is. Without one, the length is chosen by
 * what was measured in this run: the time of a frame of n rows (spec_cost.h), the time that a draft takes to
 * make, and how often drafts of each class have held (spec_odds.h). Of all lengths the one with the most
 * tokens a second wins, none among them.
 *
 * What that may lose is bounded by an account: each frame pays in 1/50 of what one of a single row takes; a
 * draft takes out what its frame took longer than that, and puts in what the tokens that held would have
 * taken one by one, up to 16 frames in all; and no draft is sent that would take out more than there is. So a
 * text in which nothing holds costs about 2 % more, and one that repeats itself soon has long drafts.
 */
#ifndef BRIG_DRIVER_RUN_SPEC_H
#define BRIG_DRIVER_RUN_SPEC_H

#include <stdbool.h>

#include "driver/run/draft.h"

struct brig_spec;

struct brig_spec_opts {
    bool lookup;                         /* prompt lookup */
    const struct brig_draft_opts *draft; /* a draft model; NULL: none. Read once */
    uint32_t length;                     /* of every draft; 0: chosen */
    uint32_t vocab;                      /* of the model: ids from there on are not proposed */
    bool disk_bound;                     /* what is read decides how long a frame takes, and not its rows */
};

/* A spec without any draft is allowed, and proposes nothing. */
int brig_spec_new(struct brig_spec **ret, const struct brig_spec_opts *o, struct brig_fail *fail);
void brig_spec_free(struct brig_spec *s); /* NULL allowed */

/* A piece of a prompt came back. */
void brig_spec_prompt(struct brig_spec *s, uint32_t rows, uint64_t ns);

/* What goes with the newest token: at most `most` tokens into ids, *n of them. The frame is sent after this
 * returns. */
int brig_spec_propose(struct brig_spec *s, const struct brig_draft_seq *seq, uint32_t most, uint32_t *ids,
                      uint32_t *n, struct brig_fail *fail);
/* A token that was drawn after that, in order. The first one of a frame says that it has come back. */
void brig_spec_drawn(struct brig_spec *s, uint32_t id);

/* What drafts of one kind came to, all sequences together. */
struct brig_spec_stats {
    const struct brig_draft *kind;
    uint64_t drafted, accepted; /* tokens */
    uint64_t frames;            /* with a draft of it */
    uint64_t ns;                /* making drafts */
};
/* Kind i of those in use; false after the last. */
bool brig_spec_stats(struct brig_spec *s, unsigned i, struct brig_spec_stats *ret);

#endif
