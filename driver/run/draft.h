/*
 * Drafts: guesses at the tokens that follow, which one frame then checks all at once. A guess costs time when
 * it is wrong and never a token: what is drawn is drawn from the model's own row. Whether and how far to
 * guess is decided elsewhere (spec.h); a kind of draft only says what it would guess and how sure it is.
 *
 * One row in draft.def, one file each.
 */
#ifndef BRIG_DRIVER_RUN_DRAFT_H
#define BRIG_DRIVER_RUN_DRAFT_H

#include <stddef.h>
#include <stdint.h>

#include "driver/run/session.h"
#include "driver/sample/sampler.h"
#include "proto/base/err.h"

/* Classes of sureness: guesses of one class hold about as often as each other. */
#define BRIG_DRAFT_CLASSES 17u

/* All tokens of a sequence, prompt and answer. */
struct brig_draft_seq {
    const uint32_t *ids;
    size_t n;       /* 1 or more */
    uint64_t index; /* of the token that comes next, as the sampler counts them */
};

/* What a draft may be made of. All is borrowed; kinds take what they need and leave the rest. */
struct brig_draft_opts {
    struct brig_session *session;          /* of a draft model, with a context of its own; or NULL */
    uint32_t vocab;                        /* of that model */
    const struct brig_sample_opts *sample; /* how the real tokens are drawn */
};

struct brig_draft {
    const char *name;
    const char *help; /* one line for `brigade list drafts` */
    int (*open)(void **ret_state, const struct brig_draft_opts *o, struct brig_fail *fail);
    void (*close)(void *state); /* NULL allowed */
    /* Cheap: the class, below BRIG_DRAFT_CLASSES, of what it would guess now, and at most how many tokens it
     * could; *most 0: none. */
    unsigned (*look)(void *state, const struct brig_draft_seq *seq, uint32_t *most);
    /* Guess up to most tokens, at most as many as look said, into ids; *n of them, which may be fewer. Called
     * after look for the same sequence. Which of them held shows in the next sequence. */
    int (*propose)(void *state, const struct brig_draft_seq *seq, uint32_t most, uint32_t *ids, uint32_t *n,
                   struct brig_fail *fail);
};

extern const struct brig_draft brig_draft_lookup, brig_draft_model;
const struct brig_draft *brig_draft_at(unsigned i); /* NULL after the last row */

#endif
