/*
 * The plan: from a budget of memory to what is held, what is streamed, how many rows go into a frame and how
 * fast that can be. Makes no promise that it does not count: a budget stands for all processes of a run
 * together, and every byte that they allocate, map, or make the kernel allocate for them has its kind here.
 *
 * Part of the launcher's public header (launcher/launcher.h), which the driver includes.
 *
 * The arithmetic: of M bytes of weights that a token needs, P are held. The order of layers is cyclic, so
 * whatever is not held is read anew for each token, ahead of the compute, and
 *     seconds a token = max(M / memory bandwidth, M / what the cores can turn over, (M - P) / disk bandwidth)
 *                       + what hops and starts of processes cost.
 */
#ifndef BRIG_LAUNCHER_PLAN_H
#define BRIG_LAUNCHER_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/base/err.h"
#include "proto/model/kv_type.h"
#include "proto/model/model.h"
#include "proto/model/slice.h"

struct brig_mode;

/* What memory is counted for. */
enum brig_plan_kind {
    BRIG_PLAN_WEIGHTS,   /* pinned, locked or mapped, whole pages */
    BRIG_PLAN_RING,      /* buffers that streamed weights pass through */
    BRIG_PLAN_EXPERTS,   /* cache of experts */
    BRIG_PLAN_KV,        /* of the whole context */
    BRIG_PLAN_SCRATCH,   /* activations, scores, logits: what shards compute in */
    BRIG_PLAN_FRAMES,    /* messages and rings between processes */
    BRIG_PLAN_PROCESSES, /* program, libraries, stacks, kernel memory, page tables */
    BRIG_PLAN_DRIVER,    /* tokenizer, the model's metadata, token rows */
    BRIG_PLAN_DRAFT,     /* all of a draft model: weights, cache, process and what the driver has of it */
    BRIG_PLAN_KINDS
};
const char *brig_plan_kind_name(enum brig_plan_kind kind); /* "weights" */
const char *brig_plan_kind_help(enum brig_plan_kind kind);

enum brig_plan_regime { BRIG_PLAN_MEMORY_BOUND, BRIG_PLAN_COMPUTE_BOUND, BRIG_PLAN_DISK_BOUND };
const char *brig_plan_regime_name(enum brig_plan_regime regime); /* "disk-bound" */

/* What is known of the machine; 0: not known, and then not part of a prediction. */
struct brig_plan_speed {
    double memory_bytes_s; /* read once, by all threads */
    double disk_bytes_s;   /* the best reader setting on the disk that holds the model */
    /* Both at the same time; 0: not known, and then each is as fast as alone. */
    double beside_memory_bytes_s, beside_disk_bytes_s;
    unsigned threads; /* that compute; at least 1 */
    /* How the disk was read when it was that fast; zeros: a shard's own choice. Memory is not looked at. */
    struct brig_stream_set reading;
};

struct brig_plan_wish {
    const struct brig_model *model; /* borrowed */
    /* One that guesses tokens: beside the line, in a process of its own that lives, all of it in private
     * memory. Borrowed; NULL: none. */
    const struct brig_model *draft;
    uint64_t budget_bytes; /* 0: no budget, everything is mapped */
    const struct brig_mode *mode;
    unsigned n_shards; /* 0: chosen */
    unsigned keep;     /* how many live, where the mode picks; 0: half of them, rounded up */
    uint32_t ctx;      /* 0: chosen, as large as is sensible in the budget, BRIG_PLAN_CTX_MOST at most */
    uint32_t slots;    /* at least 1 */
    uint32_t max_rows; /* most rows in a frame that make sense here; at least 1 */
    bool whole_rows;   /* whole rows of logits are asked for each row of a frame */
    bool exact;
    enum brig_kv_id kv;
    bool tokenizer;                         /* the driver has one */
    const struct brig_residency *residency; /* NULL: the plan chooses how weights are held */
    struct brig_plan_speed speed;
};

#define BRIG_PLAN_CTX_MOST  4096u
#define BRIG_PLAN_CTX_LEAST 256u
#define BRIG_PLAN_ROWS      16u /* the least rows of a frame under a budget, if so many are asked for */

/* hold: MAP: everything is mapped, all fits or there is no budget; LOCK: all fits, with little to spare, and
 * is in private memory that nothing can evict; STREAM: what is not held is read for each pass. */
struct brig_plan {
    uint64_t budget_bytes;      /* as wished, whole pages; 0: none */
    uint64_t least_bytes;       /* the smallest budget that would do, whole pages */
    unsigned n_shards, n_alive; /* processes of the line, and how many of them live at once */
    /* Where processes work once: how many may be started before their turn, at most as many as the mode says;
     * and, where that many do not fit beside each other everywhere, the weights that they and the one at work
     * may have together, in bytes (0: all fit). */
    unsigned n_ahead;
    uint64_t turn_bytes;
    uint32_t ctx, slots, max_rows;
    uint32_t draft_ctx, draft_rows; /* of the draft model; 0: there is none */
    enum brig_kv_id kv;
    enum brig_hold hold;
    uint64_t bytes[BRIG_PLAN_KINDS]; /* of all processes together, at the worst moment */
    uint64_t total_bytes;            /* their sum, at most the budget */
    uint64_t ring_bytes;             /* of one shard */
    uint64_t expert_cache_bytes;     /* of all shards together */
    uint64_t token_bytes;            /* M: weights that a token needs */
    uint64_t held_bytes;             /* P: of these, what is in memory already; experts by expectation */
    double hit_rate;                 /* of experts, expected when routing is even; 0 without a cache */
    double seconds_a_token;          /* 0: not known */
    enum brig_plan_regime regime;
    struct brig_plan_speed speed;
    /* [n_layers of the model * places + whole-model roles]: is the tensor held? Own memory. */
    uint8_t *held;
    const struct brig_desc *desc; /* the model's, borrowed */
};

/* Choose. A budget that cannot work fails with BRIG_ELIMIT and says the smallest that would and what speed
 * that would have; ret->least_bytes is then set, and nothing else. Starts and reads nothing. */
int brig_plan_make(struct brig_plan *ret, const struct brig_plan_wish *wish, struct brig_fail *fail);
void brig_plan_release(struct brig_plan *p);

/* Is this tensor held in memory from pass to pass? role is one of a cell; layer and expert as roles have
 * them. */
bool brig_plan_holds(const struct brig_plan *p, enum brig_role role, uint32_t layer, uint32_t expert);

/* Say in the description of a slice of the model how each tensor is held and how the rest is read. */
void brig_plan_apply(const struct brig_plan *p, struct brig_slice *s);

/* The context of a draft model beside a context of so many tokens, and the most rows of its frames under a
 * budget. */
uint32_t brig_plan_draft_ctx(const struct brig_model *draft, uint32_t ctx);
uint32_t brig_plan_draft_rows(const struct brig_model *draft, uint32_t ctx);

/* Bytes that are read from the disk for one token: token_bytes - held_bytes, 0 when all is held. */
uint64_t brig_plan_read_bytes(const struct brig_plan *p);

#endif
