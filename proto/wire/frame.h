/*
 * Frames: the one kind of message that carries work. docs/wire.md is the page for other implementers.
 *
 * Message layout:   msgpack array (header) | zero padding | stage timings | zero padding | choices of experts
 * | zero padding | payload The payload starts at a multiple of 64 bytes from the start of the message. The
 * header's mutable fields have a fixed width, so that a shard updates them in place and sends the same
 * message on. The wire carries data only: never pointers, paths or code. Integers of the timings and the
 * payload are little-endian.
 */
#ifndef BRIG_PROTO_WIRE_FRAME_H
#define BRIG_PROTO_WIRE_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/base/err.h"

#define BRIG_PROTO_VERSION 3u

#define BRIG_FRAME_MAX_RUNS    256u
#define BRIG_FRAME_MAX_WANTS   256u
#define BRIG_FRAME_MAX_OPS     256u
#define BRIG_FRAME_MAX_ROWS    4096u
#define BRIG_FRAME_MAX_STAGES  8192u
#define BRIG_FRAME_MAX_TOP     1024u
#define BRIG_FRAME_MAX_CHOICES (1u << 15) /* of a row */
#define BRIG_FRAME_MAX_COLS    (1u << 24)
#define BRIG_FRAME_MAX_ERROR   1024u /* bytes of an error's text */
/* Positions of a slot are below this. */
#define BRIG_FRAME_MAX_POS (1u << 31)
/* No header is longer, and none needs more than this before its timings. */
#define BRIG_FRAME_MAX_HEAD 16384u
/* Whole-row answers are sent in parts of at most this many payload bytes (at least one row each). */
#define BRIG_FRAME_MAX_PART (16u << 20)

enum brig_dtype {
    BRIG_DTYPE_NONE,       /* no payload: a frame without rows, or the head's answer when no row wants one.
                              Workers check for HIDDEN before they touch rows */
    BRIG_DTYPE_HIDDEN,     /* f32 [n_rows, cols] row-major: cols = hidden size */
    BRIG_DTYPE_CANDIDATES, /* per wanted row: f32 log-sum-exp, u32 n, then n x (u32 id, f32 logit), padded
                              with zeros to n = cols; (logit descending, id ascending) */
    BRIG_DTYPE_LOGITS,     /* f32 [wanted rows of this part, cols]: cols = vocabulary */
    BRIG_DTYPE_ERROR,      /* payload: UTF-8 text, one line: the stage `stage` failed and the line is down */
    BRIG_DTYPE_NORMED,     /* f32 [n_want_rows, cols]: wanted rows after the final norm; cols = hidden size */
    BRIG_DTYPE_COUNT
};

enum brig_frame_flag {
    BRIG_FRAME_PSS = 1u,    /* each stage also reads its own PSS and states it in its timing */
    BRIG_FRAME_NORMED = 2u, /* the head answers with wanted rows after the final norm instead of logits */
};
#define BRIG_FRAME_FLAGS 3u /* all of them */

/* Rows in order: `count` rows of one slot at consecutive positions. A run never crosses slots. */
struct brig_run {
    uint32_t slot, pos, count;
};

/* Row indices [first, first + count) of the frame want an answer from the head. Sorted, not overlapping. */
struct brig_want {
    uint32_t first, count;
};

enum brig_cache_op_kind {
    BRIG_CACHE_DROP,     /* forget slot */
    BRIG_CACHE_TRUNCATE, /* keep the first arg positions of slot */
    BRIG_CACHE_COPY,     /* slot becomes a copy of slot number arg */
    BRIG_CACHE_OP_COUNT
};

struct brig_cache_op {
    enum brig_cache_op_kind kind;
    uint32_t slot, arg;
};

/* What a stage says of itself, 72 bytes on the wire, little-endian u64 each. */
struct brig_stage_timing {
    uint64_t wait_ns;      /* from the end of its previous frame (or its attach) to the arrival of this one */
    uint64_t compute_ns;   /* from arrival to just before sending on */
    uint64_t pss_bytes;    /* with BRIG_FRAME_PSS, else 0 */
    uint64_t mapped_bytes; /* memory for weights: mapped, locked, buffers that they are streamed through */
    uint64_t read_bytes;   /* of weights, read from the disk since its previous frame with rows; not what is
                              mapped */
    uint64_t stall_ns;     /* of compute_ns: waiting for those */
    /* Of streamed experts, likewise: taken from their cache, of them those that needed no reading; bytes
     * read. */
    uint64_t experts_used, expert_hits, expert_read_bytes;
};
#define BRIG_STAGE_TIMING_BYTES 72u

struct brig_frame {
    uint64_t run_id;   /* the driver's session: frames of another are dropped */
    uint64_t frame_id; /* counts up within a run */
    uint32_t epoch;    /* goes up when a frame is sent again */
    uint32_t stage;    /* stages passed so far: the index of the shard that is to work next */
    uint32_t n_stages; /* length of the line = number of timing slots */
    uint32_t flags;    /* enum brig_frame_flag */
    enum brig_dtype dtype;
    uint32_t cols;
    uint32_t top; /* candidates per wanted row; 0: whole rows of logits */
    uint32_t part,
        n_parts; /* of an answer; 0 of 1 otherwise. part p of LOGITS holds rows from part_first_want */
    uint32_t part_first_want; /* index among the wanted rows of this part's first row */
    uint32_t part_wants;      /* wanted rows in this part (CANDIDATES, LOGITS) */
    /* Experts that each row chooses in all layers of the model together (layers x used), when each stage is
     * to write down those of its own layers; 0: it is not. */
    uint32_t n_choices;
    unsigned n_runs, n_wants, n_ops;
    struct brig_run runs[BRIG_FRAME_MAX_RUNS];
    struct brig_want wants[BRIG_FRAME_MAX_WANTS];
    struct brig_cache_op ops[BRIG_FRAME_MAX_OPS];
    /* Set by layout or decode: */
    uint32_t n_rows, n_want_rows; /* sums over runs and wants */
    uint64_t timing_offset, choices_offset, payload_offset, payload_bytes, message_bytes;
};

/* Compute the last six fields (and n_rows, n_want_rows) from the others and check them against the caps.
 * payload_bytes follows from dtype, rows, cols, top and part_wants; for BRIG_DTYPE_ERROR set it before.
 * Fields that follow from dtype are set: cols 0 for NONE and ERROR; part 0 of 1 for all but LOGITS, with
 * every wanted row in it for CANDIDATES and none for the others. */
int brig_frame_layout(struct brig_frame *f, struct brig_fail *fail);

/* Write header and padding of a laid-out frame into msg [message_bytes]; timings and choices are zeroed, the
 * payload is left alone. */
int brig_frame_encode(const struct brig_frame *f, void *msg, size_t n, struct brig_fail *fail);

/* Read and check a message: version, types, caps, every length against n, runs and wants against the rows,
 * offsets in order and inside, and that the sizes are the ones that layout would give. Allocates nothing. */
int brig_frame_decode(struct brig_frame *f, const void *msg, size_t n, struct brig_fail *fail);

/* In a message that decode has accepted as *f: set the stage, in place. */
void brig_frame_patch_stage(const struct brig_frame *f, void *msg, uint32_t stage);

/* Timing slot `stage` (< n_stages) of a message that decode or encode has accepted as *f. */
void brig_frame_put_timing(const struct brig_frame *f, void *msg, uint32_t stage,
                           const struct brig_stage_timing *t);
void brig_frame_get_timing(const struct brig_frame *f, const void *msg, uint32_t stage,
                           struct brig_stage_timing *t);

/* The choices of experts, u16 little-endian [n_rows, n_choices]: of each row, layer after layer, the experts
 * in ascending order. Bytes of all rows. */
uint64_t brig_frame_choices_bytes(const struct brig_frame *f);

/* Largest legal message for a line: header cap + timings + the largest of rows x 4 x hidden, an answer part
 * with at least one whole row of `vocab`, and the most candidates for every row; n_choices of each row beside
 * it. For RECVMAXSZ and for the sender's check. */
uint64_t brig_frame_max_message(uint32_t n_stages, uint32_t max_rows, uint32_t hidden, uint32_t vocab,
                                uint64_t n_choices);

#endif
