/*
 * Reading runs of bytes of files ahead of the work that needs them: large requests, several in flight, with
 * the page cache bypassed when that is asked for. The caller gives buffers and takes finished extents; what
 * asks the kernel is one of the rows of reader.def.
 *
 * An extent is split into requests of at most request_bytes, at most `depth` of which are in flight; the rest
 * waits its turn, in the order of submission. The reader keeps the disk busy by itself: nobody has to call it
 * between submission and completion. Extents finish in any order.
 *
 * All calls on one reader come from one thread at a time.
 */
#ifndef BRIG_PROTO_DISK_READER_H
#define BRIG_PROTO_DISK_READER_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/base/err.h"
#include "proto/disk/file.h"

struct brig_reader;
struct brig_reader_ops; /* proto/disk/parts.h */

#define BRIG_READER_MAX_DEPTH         64u
#define BRIG_READER_MAX_REQUEST_BYTES (64u << 20)

struct brig_reader_opts {
    const struct brig_reader_ops *how; /* NULL: the first row of the table that works here */
    uint32_t request_bytes; /* 0: 1 MiB; else 4096 to BRIG_READER_MAX_REQUEST_BYTES, rounded down to
                               4096; and to a multiple of a file's alignment, but at least that */
    uint32_t depth;         /* requests in flight; 0: 4; at most BRIG_READER_MAX_DEPTH */
    uint32_t max_extents;   /* submitted and not yet waited for; 0: 256. The memory for them is allocated
                               by open, nothing after it */
    bool drop;              /* tell the kernel to forget the pages of what was read through the page cache */
};

struct brig_extent {
    const struct brig_disk_file *file; /* borrowed until wait has returned the extent */
    uint64_t offset, bytes; /* what to read. offset < file->bytes; the end may lie behind the file's, then
                               what follows in the buffer is undefined. Multiples of file->align */
    void *buf;              /* [bytes], at a multiple of file->buf_align; the reader's until wait has
                               returned the extent */
    uint64_t tag;           /* the caller's, comes back from wait */
    bool urgent;            /* its requests come before those of all that are not */
};

/* -BRIG_EUNSUPPORTED when `how` was asked for by name and the kernel refuses it here. */
int brig_reader_open(struct brig_reader **ret, const struct brig_reader_opts *opts, struct brig_fail *fail);

/* Drops what has not begun, and waits for the requests in flight, which write into the callers' buffers, at
 * most timeout_ms. 0, or -BRIG_ETIMEOUT: the disk does not answer, so the buffers must never be freed nor
 * reused (the reader's own memory is kept for the same reason). NULL allowed. */
int brig_reader_close(struct brig_reader *r, uint32_t timeout_ms);

/* 0; -BRIG_ELIMIT when max_extents are under way; -BRIG_EUSAGE for what breaks the alignment or lies behind
 * the file's end. After a failure the extent is not the reader's. */
int brig_reader_submit(struct brig_reader *r, const struct brig_extent *e, struct brig_fail *fail);

/* The next finished extent; *ret_tag is written whenever one was returned, read or failed. 0: its bytes are
 * in its buffer. -BRIG_EIO: it failed, and fail names the file, the offset and the reason (a file that has
 * become shorter than it was when it was opened is a failure). -BRIG_ETIMEOUT: none finished in time, no tag;
 * fail names the oldest one that is awaited. -BRIG_EUSAGE: none is under way. timeout_ms 0 only looks. */
int brig_reader_wait(struct brig_reader *r, uint32_t timeout_ms, uint64_t *ret_tag, struct brig_fail *fail);

/* Submitted and not yet returned by wait. */
uint32_t brig_reader_pending(const struct brig_reader *r);

struct brig_reader_stats {
    uint64_t bytes;    /* read, whole requests */
    uint64_t requests; /* finished */
    uint64_t busy_ns;  /* during which at least one request was in flight */
};
void brig_reader_stats(struct brig_reader *r, struct brig_reader_stats *ret);

/* The name of its row; and why an earlier row of the table did not work here, or NULL. Valid until close. */
const char *brig_reader_name(const struct brig_reader *r);
const char *brig_reader_note(const struct brig_reader *r);

const struct brig_reader_ops *brig_reader_ops_by_name(const char *name); /* NULL: no such row */
/* For `brigade list readers`: name and help of row i; NULL after the last. */
const char *brig_reader_at(unsigned i, const char **ret_help);

#endif
