/*
 * Reading for the residencies: the files of a slice, opened anew for direct reads, and one reader for all
 * that a shard brings in. Memory that is being read into is the reader's until its fetch has ended.
 *
 * Called from the compute thread alone, but for brig_feed_progress.
 */
#ifndef BRIG_SHARD_WEIGHTS_FEED_H
#define BRIG_SHARD_WEIGHTS_FEED_H

#include "proto/model/slice.h"

struct brig_feed;

/* One run of bytes on its way. {0}: idle. It stays where it is while it is READING. */
enum brig_fetch_state { BRIG_FETCH_IDLE, BRIG_FETCH_READING, BRIG_FETCH_READY, BRIG_FETCH_FAILED };
struct brig_fetch {
    enum brig_fetch_state state;
};

/* n files of the slice at fds (borrowed until return); at most max_fetches READING at once. */
int brig_feed_open(struct brig_feed **ret, const struct brig_slice *slice, const int *fds,
                   uint32_t max_fetches, struct brig_fail *fail);
/* False: the disk does not answer, and what is read into must never be freed nor used again. NULL allowed. */
bool brig_feed_close(struct brig_feed *f);

/* What offsets, lengths and addresses are to be multiples of, a power of two of at most 64 KiB. */
uint64_t brig_feed_align(const struct brig_feed *f);

/* Read bytes of a file into buf. urgent: before all that is not. */
int brig_feed_fetch(struct brig_feed *f, uint32_t file, uint64_t offset, uint64_t bytes, void *buf,
                    bool urgent, struct brig_fetch *fetch, struct brig_fail *fail);

/* Take note of what has ended; never waits. */
void brig_feed_poll(struct brig_feed *f);
/* Wait until the fetch is not READING. 0; or it has FAILED: the error names file, offset and reason; or the
 * disk stands still: the error names what is awaited, which is READING still. */
int brig_feed_wait(struct brig_feed *f, const struct brig_fetch *fetch, struct brig_fail *fail);

struct brig_feed_stats {
    uint64_t read_bytes, stall_ns;
};
struct brig_feed_stats brig_feed_stats(const struct brig_feed *f);
/* Goes up while anything is read and somebody waits for it. From any thread. */
uint64_t brig_feed_progress(const struct brig_feed *f);

#endif
