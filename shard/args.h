/* The arguments of brigade-shard, in the form that people type and the one that a launcher hands over. */
#ifndef BRIG_SHARD_ARGS_H
#define BRIG_SHARD_ARGS_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/base/err.h"
#include "proto/link/link.h"
#include "proto/model/kv_type.h"
#include "proto/model/model.h"
#include "proto/model/slice.h"

struct brig_shard_args {
    bool help, version;
    bool launched; /* --slice was given: files, cache and slice come as descriptors */
    /* typed by people */
    const char *model;
    bool all_layers, some_layers; /* neither: the head alone */
    uint32_t first_layer, last_layer;
    bool head;
    const char *listen; /* NULL: chosen */
    bool insecure;
    enum brig_hold hold;  /* how weights are held: MAP unless told */
    uint64_t ring_bytes;  /* to stream through; 0: chosen */
    uint32_t pin_percent; /* of the streamed matrices' bytes, held as by LOCK */
    bool ring_given, pin_given;
    /* handed over */
    int slice_fd, cache_fd, ready_fd, watch_fd; /* -1: not given */
    unsigned n_files;
    int file_fds[BRIG_MAX_FILES];
    long parent; /* 0: not given */
    bool once;
    /* both */
    const char *control;
    const struct brig_link *link; /* for frames, where --listen does not say */
    uint32_t ctx;                 /* 0: the trained length, at most 4096 */
    uint32_t slots;
    uint32_t threads; /* 0: as many as this process may use */
    enum brig_kv_id kv;
    bool kv_given, exact;
};

/* Strings are borrowed from argv. Failures are -BRIG_EUSAGE and name the flag; ready_fd and launched are set
 * as far as they were read, so that the failure can be told to a launcher. */
int brig_shard_args_parse(struct brig_shard_args *a, int argc, char **argv, struct brig_fail *fail);

extern const char brig_shard_help[];

#endif
