/*
 * One stage of a line, inside the launcher: its slice and cache (which outlive its processes) and the process
 * of its present generation.
 */
#ifndef BRIG_LAUNCHER_STAGE_H
#define BRIG_LAUNCHER_STAGE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "launcher/launcher.h"

struct brig_stage {
    unsigned number;
    struct brig_cells cells;
    uint32_t n_layers; /* of the model, to tell the head */
    int slice_fd;      /* sealed memfd: the slice description */
    int cache_fd;      /* memfd: the KV cache */
    uint32_t generation;
    pid_t pid;    /* 0: none alive, or it has been waited for */
    int pid_fd;   /* readable when it has ended */
    int ready_fd; /* read end of its pipe: "ready", later perhaps last words; -1 when it has ended */
    bool is_ready;
    int wait_status; /* of the last one that was waited for */
    uint64_t spawned_ns, start_ns;
    char control_url[BRIG_URL_MAX];
    char words[400];                        /* what it said before it failed */
    const struct brig_enclosure *enclosure; /* NULL: none */
};

/* "shard 3 (layers 9:12, head)" */
void brig_stage_name(const struct brig_stage *s, char *out, size_t cap);

/* Take note if the process has ended; true while it lives. */
bool brig_stage_poll(struct brig_stage *s);

/* Wait at most timeout_ms for its end, then kill it and wait. */
void brig_stage_end(struct brig_stage *s, uint32_t timeout_ms);

/* Read the ready line; deadline_ns on the clock. */
int brig_stage_wait_ready(struct brig_stage *s, uint64_t deadline_ns, struct brig_fail *fail);

/* Fill fail with how the process ended. */
int brig_stage_fail(const struct brig_stage *s, struct brig_fail *fail);

#endif
