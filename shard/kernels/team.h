/*
 * The thread team of one shard: short spin, then futex; work handed out in small pieces taken dynamically, so
 * that a busy neighbour costs the token its fair share and no more. The caller works too.
 */
#ifndef BRIG_SHARD_KERNELS_TEAM_H
#define BRIG_SHARD_KERNELS_TEAM_H

#include <stdatomic.h>
#include <stdint.h>

#include "proto/base/err.h"

struct brig_team;

/* A piece of work; thread is 0..n_threads-1 (for per-thread scratch), piece 0..n_pieces-1. */
typedef void (*brig_team_fn)(void *ctx, unsigned thread, uint32_t piece);

/* n_threads >= 1 including the caller. Threads block all signals. */
int brig_team_new(struct brig_team **ret, unsigned n_threads, struct brig_fail *fail);
void brig_team_free(struct brig_team *t); /* NULL allowed; joins */
unsigned brig_team_threads(const struct brig_team *t);

/* Run fn for all pieces; returns when all are done. Allocates nothing. Every piece done adds 1 to
 * *brig_team_progress, which other threads may read at any time. */
void brig_team_run(struct brig_team *t, uint32_t n_pieces, brig_team_fn fn, void *ctx);
atomic_uint_fast64_t *brig_team_progress(struct brig_team *t);

/* So many threads work from here on, the caller among them; the others sleep. The team itself calls it as
 * neighbours come and go (crowd.h). Between runs only. */
void brig_team_limit(struct brig_team *t, unsigned limit);

/* No work is expected soon (the frame has been sent on): threads that still spin go to sleep at once and
 * leave their CPUs to the next shard. The next run wakes them. */
void brig_team_rest(struct brig_team *t);

/* From affinity and the cgroup's CPU quota (v1 and v2), at least 1. */
unsigned brig_team_default_threads(void);

#endif
