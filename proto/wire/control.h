/*
 * Control messages: request and reply between a driver (REQ) and a shard (REP). Each is one msgpack array
 * whose first elements are [protocol version, kind]; a reply then has an error code (0 good) and an error
 * text. All strings and counts are capped. docs/wire.md has the fields.
 */
#ifndef BRIG_PROTO_WIRE_CONTROL_H
#define BRIG_PROTO_WIRE_CONTROL_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/base/buf.h"
#include "proto/base/err.h"

#define BRIG_CONTROL_MAX_BYTES 65536u
#define BRIG_URL_MAX           256u /* with NUL */
#define BRIG_CLASS_MAX         64u  /* with NUL */
#define BRIG_HOST_MAX          128u /* with NUL */

enum brig_control_kind {
    BRIG_CONTROL_HELLO,  /* who are you, what do you hold */
    BRIG_CONTROL_ATTACH, /* begin a run: this is your place, this is who comes next */
    BRIG_CONTROL_STATUS, /* how far are you; also keeps the run alive */
    BRIG_CONTROL_DRAIN,  /* end the run: finish, close the data sockets, be free again */
    BRIG_CONTROL_STOP,   /* exit */
    BRIG_CONTROL_COUNT
};

/* One struct for all requests: only the fields of its kind are sent. */
struct brig_request {
    enum brig_control_kind kind;
    /* every kind but HELLO: */
    uint64_t run_id;
    /* ATTACH: */
    uint32_t stage, n_stages;
    uint32_t max_rows;    /* most rows in a frame of this run */
    uint32_t ctx, slots;  /* what the run needs of the cache */
    uint8_t identity[32]; /* the model that the driver means */
    char numeric_class[BRIG_CLASS_MAX];
    char next_url[BRIG_URL_MAX]; /* where frames go after this shard */
};

enum brig_shard_state { BRIG_SHARD_FREE, BRIG_SHARD_ATTACHED, BRIG_SHARD_FAILED, BRIG_SHARD_STATE_COUNT };

struct brig_reply {
    enum brig_control_kind kind;
    enum brig_err err; /* of the whole request; text says why */
    char text[256];
    /* HELLO: */
    uint8_t identity[32];
    uint32_t n_layers, cells_first, cells_last;
    uint32_t hidden, vocab;
    uint32_t ctx, slots;                /* what the shard's cache has room for */
    char numeric_class[BRIG_CLASS_MAX]; /* "a2 act=q8 kv=f16": arithmetic version, activations, KV type */
    char kernel[BRIG_CLASS_MAX];        /* "scalar", "avx512": for people, no part of the class */
    char host[BRIG_HOST_MAX];
    uint32_t pid, threads;
    uint64_t mapped_bytes;   /* memory for weights */
    uint64_t unlocked_bytes; /* of it, what should be locked there and may not be */
    /* ATTACH: */
    char data_url[BRIG_URL_MAX]; /* where this shard listens for frames of this run */
    /* HELLO and STATUS: */
    enum brig_shard_state state; /* FAILED: text says why */
    /* STATUS: progress goes up with every piece of work done; it stands still only when nothing is done. */
    uint64_t frame_id, progress;
    uint32_t layer;
    bool working; /* a frame is being computed */
};

int brig_request_encode(const struct brig_request *r, struct brig_buf *out);
/* A request of another protocol version fails with -BRIG_EVERSION and *ret holds kind only. */
int brig_request_decode(struct brig_request *ret, const void *msg, size_t n, struct brig_fail *fail);
int brig_reply_encode(const struct brig_reply *r, struct brig_buf *out);
int brig_reply_decode(struct brig_reply *ret, const void *msg, size_t n, struct brig_fail *fail);

/* Fill out (BRIG_CLASS_MAX bytes) with the numeric class of these choices. */
void brig_numeric_class(char *out, bool exact, const char *kv_name);

#endif
