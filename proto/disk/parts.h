/* What a row of reader.def is, and what it may call. Only the rows, reader.c and tests include this. */
#ifndef BRIG_PROTO_DISK_PARTS_H
#define BRIG_PROTO_DISK_PARTS_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "proto/disk/reader.h"

struct brig_reader_slot; /* an extent under way */

/* One read. Offset, length and address have the alignment that the file needs. */
struct brig_request {
    struct brig_reader_slot *slot;
    const struct brig_disk_file *file;
    uint64_t offset;
    uint32_t bytes;
    uint8_t *buf;
    unsigned tries; /* after which nothing had been read */
};

struct brig_reader_ops {
    const char *name;
    const char *help;
    /* Start what works off the requests, for at most `depth` at once. -BRIG_EUNSUPPORTED, with the reason:
     * the kernel refuses it here, and the next row is tried. */
    int (*open)(void **ret_own, struct brig_reader *r, uint32_t depth, struct brig_fail *fail);
    /* There are new requests to take, or the reader stops. NULL: the row waits in brig_reader_take. */
    void (*wake)(void *own);
    /* End the threads and free. The reader stops and nothing is in flight any more. */
    void (*close)(void *own);
};

/* The next request. False: there is none now, or, when `block` is true, the reader stops. */
bool brig_reader_take(struct brig_reader *r, struct brig_request *ret, bool block);

/* What came of a request: bytes read, or -errno. True: *q is now what is left of it, to be asked for again.
 */
bool brig_reader_done(struct brig_reader *r, struct brig_request *q, int64_t result);

bool brig_reader_stops(struct brig_reader *r);

/* pthread_create with all signals blocked (SIGBUS stays: it is about this thread's own reading). 0 or errno.
 */
int brig_reader_thread(pthread_t *ret, void *(*fn)(void *), void *arg);

#endif
