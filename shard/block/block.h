/*
 * The transformer block and the head, driven by the description: they never ask for a family by name.
 *
 * norm -> qkv -> rope -> attention over the cache -> output projection -> residual -> norm -> MLP ->
 * residual, rows batched throughout. Mathematics: docs/arithmetic.md and the papers it names.
 */
#ifndef BRIG_SHARD_BLOCK_BLOCK_H
#define BRIG_SHARD_BLOCK_BLOCK_H

#include "proto/wire/frame.h"
#include "shard/cache/kv.h"
#include "shard/kernels/kernel.h"
#include "shard/kernels/team.h"
#include "shard/weights/weights.h"

struct brig_block;

struct brig_block_setup {
    const struct brig_slice *slice; /* all borrowed, living longer than the block */
    struct brig_weights *weights;
    const struct brig_kernel *kernel;
    struct brig_team *team;
    bool exact;        /* activations stay f32 */
    uint32_t max_rows; /* buffers for so many rows are allocated now, none later */
    uint32_t ctx;      /* of the run, whatever room the cache has: it chooses rotary factors too */
};

int brig_block_new(struct brig_block **ret, const struct brig_block_setup *setup, struct brig_fail *fail);
void brig_block_free(struct brig_block *b); /* NULL allowed */

/* Run the slice's layers over h [n_rows, hidden] f32 in place; runs state each row's slot and position. The
 * cache has been reserved. *layer_now is set to the layer being computed, for the control thread. Fails when
 * weights cannot be had; h is then half done. */
int brig_block_run(struct brig_block *b, struct brig_kv *kv, float *h, const struct brig_run *runs,
                   unsigned n_runs, atomic_uint *layer_now, struct brig_fail *fail);

/* From the next run on, write down which experts each row chooses, as a frame carries it: u16 little-endian
 * [n_rows, n_layers of the model, used], those of the slice's own layers. NULL: no longer. */
void brig_block_record(struct brig_block *b, void *choices);

/* ---- head ---- */

struct brig_candidate {
    uint32_t id;
    float logit;
};

/* Final norm and output product of n_want rows of h (row numbers in want_rows) into logits [n_want, vocab].
 * At most BRIG_HEAD_ROWS rows at a time. Fails when weights cannot be had, as brig_head_best does. */
#define BRIG_HEAD_ROWS 16u
int brig_head_logits(struct brig_block *b, const float *h, const uint32_t *want_rows, uint32_t n_want,
                     float *logits, struct brig_fail *fail);
/* Only the norm, into out [n_want, hidden]; otherwise the same. */
void brig_head_normed(struct brig_block *b, const float *h, const uint32_t *want_rows, uint32_t n_want,
                      float *out);
/* What an answer needs of a row of logits: log-sum-exp and the top best, min(top, vocab) of them, in (logit
 * descending, id ascending) order, NaN logits last. best is the block's, valid until the head's next work. */
struct brig_head_answer {
    float lse;
    uint32_t n;
    const struct brig_candidate *best; /* [n] */
};
/* Of n_want rows as above, picked while the product is made; 1 <= top <= BRIG_FRAME_MAX_TOP. out [n_want]. */
int brig_head_best(struct brig_block *b, const float *h, const uint32_t *want_rows, uint32_t n_want,
                   uint32_t top, struct brig_head_answer *out, struct brig_fail *fail);

#endif
