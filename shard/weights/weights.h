/*
 * The weights of one slice in memory, each tensor as its `hold` says (residency.def): mapped, read in at the
 * start, or streamed.
 *
 * Work asks before it uses and gives back. A pass is: brig_weights_begin, then for each matrix in the order
 * of the block (qkv, attention output, router, up, gate, down, layer by layer) brig_weights_take until all
 * its rows have come, brig_weights_give after each product made of what was taken; then the same for the
 * head. The order is what the reader goes by, running ahead of the work; another order is right too, and
 * slow.
 *
 * All but brig_weights_progress are called from the compute thread alone.
 */
#ifndef BRIG_SHARD_WEIGHTS_WEIGHTS_H
#define BRIG_SHARD_WEIGHTS_WEIGHTS_H

#include "proto/model/slice.h"
#include "shard/kernels/kernel.h"

struct brig_weights;

/* The slice must live longer than the weights. fds[n] are its files (borrowed until return). Sizes are
 * checked against the description. What is to be read in at the start is on its way when this returns. */
int brig_weights_open(struct brig_weights **ret, const struct brig_slice *slice, const int *fds, unsigned n,
                      struct brig_fail *fail);
void brig_weights_close(struct brig_weights *w); /* NULL allowed */

/* The matrix of a role; unit_cols as docs/arithmetic.md says (attention output: brig_weights knows). A vector
 * has rows 1. false when the slice has none. data is NULL where `loan` is not 0: take it. */
bool brig_weights_matrix(const struct brig_weights *w, enum brig_role role, uint32_t layer,
                         struct brig_matrix *ret);
/* The same for one expert of an expert's role, expert < n_experts. data is NULL unless the expert is taken or
 * lies in memory for good; loan is 0. */
bool brig_weights_expert(const struct brig_weights *w, enum brig_role role, uint32_t layer, uint32_t expert,
                         struct brig_matrix *ret);
/* A vector as f32, converted once at the start (norm weights, biases). Where the description has norms of
 * 1 + w, the weight of a norm is that sum, one f32 addition. NULL when the slice has none. */
const float *brig_weights_vector(const struct brig_weights *w, enum brig_role role, uint32_t layer);

/* ---- a pass ---- */

enum brig_part { BRIG_PART_LAYERS, BRIG_PART_HEAD };

/* The present pass goes over the head so often (0: not at all), which the reader can know early. Unsaid: once
 * each pass. */
void brig_weights_expect(struct brig_weights *w, unsigned n_heads);
/* The layers, or the head, are used from their beginning. NULL allowed, here and in give: all is there. */
void brig_weights_begin(struct brig_weights *w, enum brig_part part);

/* Rows of m (as brig_weights_matrix gave it) from `row` on, as many as came together: *ret is a matrix of its
 * own, of these rows alone, valid until brig_weights_give. A multiple of BRIG_PANEL_ROWS of them unless the
 * last row is reached. 1: taken. 0: not read yet, when `wait` is false. Else an error that names file and
 * tensor: reading failed, or stood still for so long that it will not go on. */
int brig_weights_take(struct brig_weights *w, const struct brig_matrix *m, uint64_t row, bool wait,
                      struct brig_matrix *ret, struct brig_fail *fail);
/* All that was taken is no longer used. */
void brig_weights_give(struct brig_weights *w);

/* After the last product of a pass, before anything that came of it leaves: was it made of what the files
 * held? A file that became shorter may have read as zeros, so a length that is not the one that was described
 * is a failure, however the weights are held; the error names the file. */
int brig_weights_check(const struct brig_weights *w, struct brig_fail *fail);

/* ---- experts ---- */

/* Bring experts of the list (n >= 1, each once) into memory: *ret_n of them, at least one, those that are
 * there first, which are then at the beginning of the list. They are had from brig_weights_expert until they
 * are given back. The others are read meanwhile, side by side, as many as there is room for: ask again for
 * what is left of the list. */
int brig_weights_experts_take(struct brig_weights *w, uint32_t layer, uint32_t *experts, uint32_t n,
                              uint32_t *ret_n, struct brig_fail *fail);
/* Those that the last call took are no longer used. */
void brig_weights_experts_give(struct brig_weights *w, uint32_t layer);
/* Experts that will perhaps be taken in the next turn of a layer: they are read when nothing else is to be,
 * and only while more of such guesses come true than time is spent waiting for the disk. */
bool brig_weights_experts_guessed(const struct brig_weights *w); /* is a guess of any use? */
void brig_weights_experts_guess(struct brig_weights *w, uint32_t layer, const uint32_t *experts, uint32_t n);

/* ---- figures ---- */

struct brig_weights_stats {
    uint64_t held_bytes;     /* memory for weights: mapped (whole pages), locked, buffers */
    uint64_t unlocked_bytes; /* of it, what should be locked and the system did not allow to */
    uint64_t read_bytes;     /* read from the disk since the start, whole requests; not what is mapped */
    uint64_t stall_ns;       /* that work has waited for reading */
    /* Of streamed experts: taken, of them those that needed no reading; bytes read of them. */
    uint64_t experts_used, expert_hits, expert_read_bytes;
};
struct brig_weights_stats brig_weights_stats(const struct brig_weights *w);

/* Goes up with every read that has ended. From any thread. */
uint64_t brig_weights_progress(const struct brig_weights *w);

/* Bring the next MiB of what is mapped into memory and into the page tables; for the time before the first
 * frame. False when all was asked for. Never fails: what it cannot bring comes when it is used. */
bool brig_weights_prefetch(struct brig_weights *w);

#endif
