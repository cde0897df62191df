/* Reading by threads, one request each at a time: works wherever pread does. */
#include "proto/disk/parts.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "proto/base/mem.h"

struct crew {
    struct brig_reader *reader;
    uint32_t n;
    pthread_t threads[BRIG_READER_MAX_DEPTH];
};

static void *work(void *arg)
{
    struct crew *c = arg;
    struct brig_request q;
    while (brig_reader_take(c->reader, &q, true)) {
        int64_t got;
        do {
            got = pread(q.file->fd, q.buf, q.bytes, (off_t)q.offset);
            if (got < 0)
                got = -errno;
        } while (brig_reader_done(c->reader, &q, got));
    }
    return NULL;
}

static void join(void *own)
{
    struct crew *c = own;
    for (uint32_t i = 0; i < c->n; i++)
        pthread_join(c->threads[i], NULL);
    brig_free(c);
}

static int open_threads(void **ret_own, struct brig_reader *r, uint32_t depth, struct brig_fail *fail)
{
    struct crew *c = brig_alloc(1, sizeof *c);
    if (c == NULL)
        return brig_fail_set(fail, BRIG_ENOMEM, "out of memory for %u threads that read", depth);
    c->reader = r;
    int rc = 0;
    while (c->n < depth && (rc = brig_reader_thread(&c->threads[c->n], work, c)) == 0)
        c->n++;
    if (c->n == 0) {
        brig_free(c);
        return brig_fail_set(fail, BRIG_ELIMIT, "no thread that reads can be started: %s", strerror(rc));
    }
    *ret_own = c; /* fewer threads than asked for: less in flight, the same bytes */
    return 0;
}

const struct brig_reader_ops brig_reader_threads = {
    .name = "threads",
    .help = "a thread for each request in flight: works everywhere",
    .open = open_threads,
    .close = join,
};
