/*
 * Reading by io_uring: one thread keeps the ring full and takes what has finished. It sleeps in the kernel
 * until a read is done or until it is told, by an eventfd that the ring watches, that there is more to ask
 * for.
 */
#include "proto/disk/parts.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include <liburing.h>

#include "proto/base/mem.h"

#define BELL                                                                                                 \
    BRIG_READER_MAX_DEPTH /* user data of the watch on the eventfd; below: the index of a request            \
                           */

struct pump {
    struct brig_reader *reader;
    struct io_uring ring;
    int bell;
    bool watched; /* the ring has a watch on the bell */
    uint32_t depth, n_free;
    uint32_t free[BRIG_READER_MAX_DEPTH]; /* indices of requests */
    struct brig_request requests[BRIG_READER_MAX_DEPTH];
    pthread_t thread;
};

/* The ring has room for every request and the bell. */
static void ask(struct pump *p, uint32_t i)
{
    const struct brig_request *q = &p->requests[i];
    struct io_uring_sqe *e = io_uring_get_sqe(&p->ring);
    io_uring_prep_read(e, q->file->fd, q->buf, q->bytes, q->offset);
    io_uring_sqe_set_data64(e, i);
}

static void watch_bell(struct pump *p)
{
    struct io_uring_sqe *e = io_uring_get_sqe(&p->ring);
    io_uring_prep_poll_add(e, p->bell, POLLIN);
    io_uring_sqe_set_data64(e, BELL);
    p->watched = true;
}

static void fill(struct pump *p)
{
    if (!p->watched)
        watch_bell(p);
    while (p->n_free > 0 && brig_reader_take(p->reader, &p->requests[p->free[p->n_free - 1]], false))
        ask(p, p->free[--p->n_free]);
}

static void take_finished(struct pump *p)
{
    struct io_uring_cqe *e;
    while (io_uring_peek_cqe(&p->ring, &e) == 0) {
        uint64_t i = io_uring_cqe_get_data64(e);
        int result = e->res;
        io_uring_cqe_seen(&p->ring, e);
        if (i == BELL) {
            uint64_t rings;
            p->watched = false;
            (void)!read(p->bell, &rings, sizeof rings); /* not blocking: emptied, or empty already */
        } else if (brig_reader_done(p->reader, &p->requests[i], result)) {
            ask(p, (uint32_t)i);
        } else {
            p->free[p->n_free++] = (uint32_t)i;
        }
    }
}

static void *run(void *arg)
{
    struct pump *p = arg;
    while (!brig_reader_stops(p->reader) || p->n_free < p->depth) {
        fill(p);
        int r = io_uring_submit_and_wait(&p->ring, 1);
        if (r < 0 && r != -EINTR) {
            /* The kernel is short of memory for requests: they stay in the ring, and whoever waits has a
             * deadline. */
            const struct timespec ms = {.tv_nsec = 1000000};
            nanosleep(&ms, NULL);
        }
        take_finished(p);
    }
    return NULL;
}

static void wake(void *own)
{
    struct pump *p = own;
    const uint64_t one = 1;
    (void)!write(p->bell, &one, sizeof one); /* fails only when it rings already */
}

static void release(struct pump *p)
{
    io_uring_queue_exit(&p->ring);
    close(p->bell);
    brig_free(p);
}

static void close_uring(void *own)
{
    struct pump *p = own;
    pthread_join(p->thread, NULL);
    release(p);
}

/* Kernels before 5.6 have rings that cannot read. */
static bool can_read(struct io_uring *ring)
{
    struct io_uring_probe *probe = io_uring_get_probe_ring(ring);
    bool can = probe != NULL && io_uring_opcode_supported(probe, IORING_OP_READ) &&
               io_uring_opcode_supported(probe, IORING_OP_POLL_ADD);
    io_uring_free_probe(probe);
    return can;
}

/* ENOSYS, EPERM (forbidden by a filter or by kernel.io_uring_disabled), ENOMEM (RLIMIT_MEMLOCK of older
 * kernels), no descriptor left: whatever it is, another row may do. */
static int make_ring(struct pump *p, uint32_t depth, struct brig_fail *fail)
{
    int r = io_uring_queue_init(depth + 1, &p->ring, 0);
    if (r < 0)
        return brig_fail_set(fail, BRIG_EUNSUPPORTED, "io_uring is refused here: %s", strerror(-r));
    p->bell = can_read(&p->ring) ? eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK) : -1;
    if (p->bell >= 0)
        return 0;
    io_uring_queue_exit(&p->ring);
    return brig_fail_set(fail, BRIG_EUNSUPPORTED, "io_uring of this kernel cannot read files");
}

static int open_uring(void **ret_own, struct brig_reader *r, uint32_t depth, struct brig_fail *fail)
{
    struct pump *p = brig_alloc(1, sizeof *p);
    if (p == NULL)
        return brig_fail_set(fail, BRIG_ENOMEM, "out of memory for a ring of %u reads", depth);
    p->reader = r;
    p->depth = depth;
    for (uint32_t i = 0; i < depth; i++)
        p->free[p->n_free++] = i;
    int status = make_ring(p, depth, fail);
    if (status < 0) {
        brig_free(p);
        return status;
    }
    int rc = brig_reader_thread(&p->thread, run, p);
    if (rc != 0) {
        release(p);
        return brig_fail_set(fail, BRIG_ELIMIT, "the thread that reads cannot be started: %s", strerror(rc));
    }
    *ret_own = p;
    return 0;
}

const struct brig_reader_ops brig_reader_uring = {
    .name = "uring",
    .help = "io_uring: one thread for all requests in flight",
    .open = open_uring,
    .wake = wake,
    .close = close_uring,
};
