/* What can end a shard from outside: its launcher's death, signals, a file that became shorter. */
#ifndef BRIG_SHARD_WATCH_H
#define BRIG_SHARD_WATCH_H

#include "proto/base/err.h"
#include "shard/args.h"

/* Before anything is mapped and before other threads exist: signal dispositions, and, for a launched shard,
 * the bond with its launcher. Fails when the launcher is already gone. */
int brig_watch_start(const struct brig_shard_args *args, struct brig_fail *fail);

/* For a shard started by hand: call quit(ctx) from a thread of its own when SIGINT or SIGTERM comes. */
int brig_watch_signals(void (*quit)(void *ctx), void *ctx, struct brig_fail *fail);

#endif
