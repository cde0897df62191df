/*
 * Chrome trace events (the JSON that chrome://tracing and Perfetto open): one track a process.
 */
#ifndef BRIG_PROTO_STAT_TRACE_H
#define BRIG_PROTO_STAT_TRACE_H

#include <stdint.h>

#include "proto/base/err.h"

struct brig_trace;

int brig_trace_open(struct brig_trace **ret, const char *path, struct brig_fail *fail);
/* Name a track once: "driver", "shard 3 (layers 9:12)". */
void brig_trace_track(struct brig_trace *t, uint32_t track, const char *name);
/* A complete event: begin and length in clock nanoseconds. */
void brig_trace_event(struct brig_trace *t, uint32_t track, const char *name, uint64_t begin_ns,
                      uint64_t length_ns, uint64_t frame_id, uint32_t rows);
/* Writes the file whole (or fails and leaves none) and frees; NULL allowed. */
int brig_trace_close(struct brig_trace *t, struct brig_fail *fail);

#endif
