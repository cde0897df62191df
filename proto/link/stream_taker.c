/*
 * The receiving end of the link `stream`. A receiver with one sender waits in the read itself, which wakes
 * one thread fewer than a callback; with several, NNG's threads read for it, as much as the buffer of each
 * takes.
 */
#include "proto/link/stream.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <nng/transport/ipc/ipc.h>

#include "proto/base/clock.h"
#include "proto/base/mem.h"
#include "proto/link/ring.h"

#define CHUNK_BYTES ((size_t)32 << 10) /* read at once, where no longer frame is under way */
#define GREET_MS    5000               /* how long a connection may say nothing */
#define REST_MS     50                 /* after a connection could not be taken */

enum state { GREETED, ANSWERED, LIVE, DEAD };

/* A sender's connection. */
struct conn {
    struct conn *next;
    struct brig_rx *rx;
    nng_stream *stream;
    nng_aio *direct; /* waited for in recv */
    nng_aio *called; /* calls back: greeting and answer, and reading when there are several senders */
    enum state state;
    bool under_way; /* `called` is at work */
    size_t begin, end;
    struct brig_msg *m; /* a frame that has come in part */
    size_t have;
    uint8_t in[CHUNK_BYTES];
};

struct brig_rx {
    nng_stream_listener *listener;
    nng_aio *accept;
    pthread_mutex_t lock;
    pthread_cond_t left;
    bool closing, inside, resting;
    struct brig_bell bell;
    struct conn *conns; /* who has just given a frame stands last */
    struct conn *waits; /* whose read recv waits for */
    uint64_t max_bytes;
    bool local;
    char url[BRIG_URL_MAX];
};

/* ---- connections ---- */

static void conn_free(struct conn *c)
{
    if (c == NULL)
        return;
    nng_stream_close(c->stream);
    if (c->direct != NULL)
        nng_aio_free(c->direct);
    if (c->called != NULL)
        nng_aio_free(c->called);
    nng_stream_free(c->stream);
    brig_msg_free(c->m);
    brig_free(c);
}

/* Under the lock: those that have ended, out of the list. */
static struct conn *unlink_dead(struct brig_rx *rx)
{
    struct conn *dead = NULL;
    for (struct conn **at = &rx->conns; *at != NULL;) {
        struct conn *c = *at;
        if (c->state == DEAD && !c->under_way) {
            *at = c->next;
            c->next = dead;
            dead = c;
        } else {
            at = &c->next;
        }
    }
    return dead;
}

/* Under the lock. */
static void put_last(struct brig_rx *rx, struct conn *c)
{
    struct conn **at = &rx->conns;
    for (; *at != NULL; at = &(*at)->next) {
        if (*at == c)
            *at = c->next;
        if (*at == NULL)
            break;
    }
    c->next = NULL;
    *at = c;
}

/* Without the lock, which their callbacks take. */
static void free_all(struct conn *c)
{
    while (c != NULL) {
        struct conn *next = c->next;
        conn_free(c);
        c = next;
    }
}

/* Where the next bytes go: into a long frame itself, else into the buffer, whose bytes have been taken. */
static void start_read(struct conn *c, nng_aio *aio, nng_duration timeout)
{
    nng_iov iov = {.iov_buf = c->in + c->end, .iov_len = CHUNK_BYTES - c->end};
    if (c->m != NULL && brig_msg_len(c->m) - c->have > CHUNK_BYTES) {
        iov.iov_buf = (uint8_t *)brig_msg_data(c->m) + c->have;
        iov.iov_len = brig_msg_len(c->m) - c->have;
    }
    nng_aio_set_iov(aio, 1, &iov);
    nng_aio_set_timeout(aio, timeout);
    nng_stream_recv(c->stream, aio);
}

static void count_read(struct conn *c, size_t n)
{
    if (c->m != NULL && brig_msg_len(c->m) - c->have > CHUNK_BYTES)
        c->have += n;
    else
        c->end += n;
}

/* Under the lock. */
static void end_conn(struct conn *c)
{
    c->state = DEAD;
    nng_stream_close(c->stream);
}

/* Under the lock. A live connection may read for ever: a time-out is of an operation before, with which NNG
 * can be late. */
static void read_failed(struct conn *c, int rv)
{
    if (c->state != LIVE || rv != NNG_ETIMEDOUT)
        end_conn(c);
}

static void start_called(struct conn *c)
{
    c->under_way = true;
    start_read(c, c->called, NNG_DURATION_INFINITE);
}

/* Under the lock. */
static void greet(struct conn *c)
{
    if (c->end < BRIG_STREAM_GREET_BYTES) {
        c->under_way = true;
        start_read(c, c->called, GREET_MS);
    } else if (memcmp(c->in, BRIG_STREAM_GREETING, BRIG_STREAM_GREET_BYTES) != 0) {
        end_conn(c);
    } else {
        nng_iov iov = {.iov_buf = (void *)(uintptr_t)BRIG_STREAM_ANSWER, .iov_len = BRIG_STREAM_GREET_BYTES};
        c->begin = BRIG_STREAM_GREET_BYTES;
        c->state = ANSWERED;
        c->under_way = true;
        nng_aio_set_iov(c->called, 1, &iov);
        nng_aio_set_timeout(c->called, GREET_MS);
        nng_stream_send(c->stream, c->called);
    }
}

/* Under the lock: who receives looks again at which connections there are. */
static void stir(struct brig_rx *rx)
{
    brig_bell_ring(&rx->bell);
    if (rx->waits != NULL)
        nng_aio_cancel(rx->waits->direct);
}

static void on_called(void *ctx)
{
    struct conn *c = ctx;
    struct brig_rx *rx = c->rx;
    int rv = nng_aio_result(c->called);
    pthread_mutex_lock(&rx->lock);
    c->under_way = false;
    if (rx->closing) {
        end_conn(c);
    } else if (rv != 0) {
        read_failed(c, rv);
    } else if (c->state == ANSWERED) { /* so few bytes go at once, or something is amiss */
        c->state = LIVE;
        if (nng_aio_count(c->called) != BRIG_STREAM_GREET_BYTES)
            end_conn(c);
    } else {
        count_read(c, nng_aio_count(c->called));
        if (c->state == GREETED)
            greet(c);
    }
    if (c->state == LIVE || c->state == DEAD)
        stir(rx);
    pthread_mutex_unlock(&rx->lock);
}

static void take_conn(struct brig_rx *rx, nng_stream *s)
{
    struct conn *c = brig_stream_user_ok(s, rx->local) ? brig_alloc(1, sizeof *c) : NULL;
    if (c == NULL) {
        nng_stream_free(s);
        return;
    }
    c->rx = rx;
    c->stream = s;
    if (nng_aio_alloc(&c->direct, NULL, NULL) != 0 || nng_aio_alloc(&c->called, on_called, c) != 0) {
        conn_free(c);
        return;
    }
    pthread_mutex_lock(&rx->lock);
    struct conn *dead = unlink_dead(rx);
    put_last(rx, c);
    if (!rx->closing)
        greet(c);
    pthread_mutex_unlock(&rx->lock);
    free_all(dead);
}

static void on_accept(void *ctx)
{
    struct brig_rx *rx = ctx;
    int rv = nng_aio_result(rx->accept);
    if (rv == NNG_ECLOSED || rv == NNG_ECANCELED)
        return;
    if (rv == 0 && !rx->resting)
        take_conn(rx, nng_aio_get_output(rx->accept, 0));
    rx->resting = rv != 0;
    if (rx->resting)
        nng_sleep_aio(REST_MS, rx->accept);
    else
        nng_stream_listener_accept(rx->listener, rx->accept);
}

/* ---- listening and closing ---- */

static void rx_free(void *closed)
{
    struct brig_rx *rx = closed;
    pthread_cond_destroy(&rx->left);
    pthread_mutex_destroy(&rx->lock);
    brig_free(rx);
}

static void rx_stop(struct brig_rx *rx)
{
    if (rx->listener != NULL)
        nng_stream_listener_close(rx->listener);
    if (rx->accept != NULL) {
        nng_aio_stop(rx->accept);
        nng_aio_free(rx->accept);
    }
    free_all(rx->conns);
    rx->conns = NULL;
    if (rx->listener != NULL)
        nng_stream_listener_free(rx->listener);
}

static int listen_there(struct brig_rx *rx, const struct brig_url *u, int *port)
{
    nng_sockaddr a;
    int rv = nng_stream_listener_alloc(&rx->listener, brig_url_bare(rx->url));
    if (rv == 0 && u->scheme == BRIG_SCHEME_TCP)
        rv = nng_stream_listener_set_bool(rx->listener, NNG_OPT_TCP_NODELAY, true);
    else if (rv == 0 && u->scheme == BRIG_SCHEME_IPC)
        rv = nng_stream_listener_set_int(rx->listener, NNG_OPT_IPC_PERMISSIONS, S_IRUSR | S_IWUSR);
    if (rv == 0)
        rv = nng_stream_listener_listen(rx->listener);
    if (rv == 0 && u->scheme == BRIG_SCHEME_TCP) {
        rv = nng_stream_listener_get_addr(rx->listener, NNG_OPT_LOCADDR, &a);
        *port = ntohs(a.s_family == NNG_AF_INET6 ? a.s_in6.sa_port : a.s_in.sa_port);
    }
    if (rv == 0)
        rv = nng_aio_alloc(&rx->accept, on_accept, rx);
    return rv;
}

int brig_stream_listen(struct brig_rx **ret, const char *url, uint64_t max_bytes, char real_url[BRIG_URL_MAX],
                       struct brig_fail *fail)
{
    struct brig_url u;
    int port = 0, r = brig_url_parse(&u, url, fail);
    if (r == 0)
        r = brig_nng_start(fail);
    if (r == 0)
        r = brig_socket_check_path(&u, url, fail);
    if (r < 0)
        return r;
    struct brig_rx *rx = brig_alloc(1, sizeof *rx);
    if (rx == NULL)
        return brig_fail_set(fail, BRIG_ENOMEM, "%s: out of memory for a receiver", url);
    brig_link_locks_init(&rx->lock, &rx->left);
    rx->max_bytes = max_bytes;
    rx->local = brig_url_is_local(&u);
    snprintf(rx->url, sizeof rx->url, "%s", url);
    int rv = listen_there(rx, &u, &port);
    if (rv != 0) {
        rx_stop(rx);
        rx_free(rx);
        return brig_socket_listen_failed(url, rv, fail);
    }
    if (u.scheme == BRIG_SCHEME_TCP)
        snprintf(rx->url, sizeof rx->url, BRIG_URL_STREAM "tcp://%s%.200s%s:%d", u.v6 ? "[" : "", u.host,
                 u.v6 ? "]" : "", port);
    memcpy(real_url, rx->url, sizeof rx->url);
    nng_stream_listener_accept(rx->listener, rx->accept);
    *ret = rx;
    return 0;
}

void brig_stream_rx_close(struct brig_rx *rx)
{
    if (rx == NULL)
        return;
    pthread_mutex_lock(&rx->lock);
    rx->closing = true;
    stir(rx);
    while (rx->inside)
        pthread_cond_wait(&rx->left, &rx->lock);
    pthread_mutex_unlock(&rx->lock);
    rx_stop(rx);
    brig_link_keep(rx, rx_free);
}

/* ---- frames ---- */

static uint64_t le64(const uint8_t *p)
{
    uint64_t v = 0;
    for (unsigned i = BRIG_STREAM_HEAD_BYTES; i-- > 0;)
        v = v << 8 | p[i];
    return v;
}

/* Under the lock: the head of the next frame, if it is there. A length over the limit ends the connection. */
static int begin_frame(struct conn *c, struct brig_fail *fail)
{
    if (c->end - c->begin < BRIG_STREAM_HEAD_BYTES)
        return 0;
    uint64_t n = le64(c->in + c->begin);
    if (n > c->rx->max_bytes) {
        end_conn(c);
        return 0;
    }
    c->m = brig_msg_new(n);
    if (c->m == NULL)
        return brig_fail_set(fail, BRIG_ENOMEM, "%s: out of memory for a frame of %llu bytes", c->rx->url,
                             (unsigned long long)n);
    c->begin += BRIG_STREAM_HEAD_BYTES;
    c->have = 0;
    return 0;
}

/* Under the lock: a whole frame from what was read, or NULL, and then there is room to read more. */
static int take_frame(struct conn *c, struct brig_msg **ret, struct brig_fail *fail)
{
    int r = c->m == NULL ? begin_frame(c, fail) : 0;
    if (r < 0)
        return r;
    if (c->m != NULL) {
        size_t n = brig_msg_len(c->m) - c->have, there = c->end - c->begin;
        n = n < there ? n : there;
        memcpy((uint8_t *)brig_msg_data(c->m) + c->have, c->in + c->begin, n);
        c->begin += n;
        c->have += n;
        if (c->have == brig_msg_len(c->m)) {
            *ret = c->m;
            c->m = NULL;
            return 0;
        }
    }
    memmove(c->in, c->in + c->begin, c->end - c->begin);
    c->end -= c->begin;
    c->begin = 0;
    return 0;
}

/* Under the lock: a frame of any sender. *only: the one connection there is, if it is to be read. */
static int look(struct brig_rx *rx, struct brig_msg **ret, struct conn **only, struct brig_fail *fail)
{
    unsigned n = 0;
    *only = NULL;
    if (rx->closing)
        return brig_fail_set(fail, BRIG_ECANCELLED, "%s: closed", rx->url);
    for (struct conn *c = rx->conns; c != NULL; c = c->next) {
        if (c->state == LIVE && !c->under_way) {
            int r = take_frame(c, ret, fail);
            if (*ret != NULL)
                put_last(rx, c);
            if (r < 0 || *ret != NULL)
                return r;
        }
        n += c->state == LIVE;
    }
    for (struct conn *c = rx->conns; c != NULL; c = c->next)
        if (c->state == LIVE && !c->under_way) {
            if (n == 1)
                *only = c;
            else
                start_called(c);
        }
    return 0;
}

/* Under the lock, which it leaves while it waits. Without time it takes what is there. */
static void read_only(struct brig_rx *rx, struct conn *c, uint64_t until_ns)
{
    bool now = brig_clock_ns() >= until_ns;
    rx->waits = c;
    start_read(c, c->direct, brig_stream_ms(until_ns));
    if (now)
        nng_aio_cancel(c->direct);
    pthread_mutex_unlock(&rx->lock);
    nng_aio_wait(c->direct);
    pthread_mutex_lock(&rx->lock);
    rx->waits = NULL;
    int rv = nng_aio_result(c->direct);
    if (rv == 0)
        count_read(c, nng_aio_count(c->direct));
    else if (rv != NNG_ECANCELED)
        read_failed(c, rv);
}

/* Under the lock, which it leaves while it waits. */
static int receive(struct brig_rx *rx, struct brig_msg **ret, uint64_t until_ns, struct brig_fail *fail)
{
    for (bool last = false;;) {
        struct conn *only, *dead;
        uint32_t seen = brig_bell_look(&rx->bell);
        int r = look(rx, ret, &only, fail);
        if (r < 0 || *ret != NULL)
            return r;
        dead = unlink_dead(rx);
        if (dead == NULL && last)
            return -BRIG_ETIMEOUT;
        last = brig_clock_ns() >= until_ns;
        if (dead == NULL && only != NULL) {
            read_only(rx, only, until_ns);
            continue;
        }
        pthread_mutex_unlock(&rx->lock);
        free_all(dead);
        if (dead == NULL && !last)
            brig_bell_wait(&rx->bell, seen, until_ns);
        pthread_mutex_lock(&rx->lock);
    }
}

int brig_stream_recv(struct brig_rx *rx, struct brig_msg **ret, uint32_t timeout_ms, struct brig_fail *fail)
{
    uint64_t until_ns = brig_clock_ns() + timeout_ms * BRIG_NS_PER_MS;
    struct brig_msg *m = NULL;
    int r;
    pthread_mutex_lock(&rx->lock);
    if (rx->closing) {
        r = brig_fail_set(fail, BRIG_ECANCELLED, "%s: closed", rx->url);
    } else if (rx->inside) {
        r = brig_fail_set(fail, BRIG_EINTERNAL, "%s: two threads receive at once", rx->url);
    } else {
        rx->inside = true;
        r = receive(rx, &m, until_ns, fail);
        rx->inside = false;
        pthread_cond_signal(&rx->left);
    }
    pthread_mutex_unlock(&rx->lock);
    if (r == 0)
        *ret = m;
    return r;
}
