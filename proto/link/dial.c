/*
 * A socket with one dialer. NNG connects in the background and tries again every few milliseconds; its pipe
 * events tell when there is a connection and when it has ended, so that nobody waits for a peer that is gone.
 */
#include "proto/link/parts.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "proto/base/clock.h"

#define RETRY_MIN_MS 2 /* NNG's own first retry comes after a second */
#define RETRY_MAX_MS 50
#define FLUSH_MS     500  /* how long a closing sender lets its last frame leave */
#define PROBE_MS     300u /* for the reason why nobody answers */
#define NAME_MS      250u /* a host name that cannot be resolved is noticed after this time */

static void pipe_starts(struct brig_dialled *d, nng_pipe p)
{
    uint32_t id = (uint32_t)nng_pipe_id(p);
    bool welcome = brig_pipe_user_ok(p);
    pthread_mutex_lock(&d->lock);
    d->foreign = d->foreign || !welcome;
    welcome = welcome && !(d->once && d->ended);
    if (welcome)
        d->starting = id;
    pthread_mutex_unlock(&d->lock);
    if (!welcome)
        nng_pipe_close(p);
}

static void pipe_stands(struct brig_dialled *d, nng_pipe p)
{
    uint32_t id = (uint32_t)nng_pipe_id(p);
    char host[BRIG_HOST_MAX];
    brig_pipe_local_host(p, host);
    pthread_mutex_lock(&d->lock);
    if (d->starting == id) { /* it may have ended already */
        d->starting = 0;
        d->pipe = id;
        if (d->local_host[0] == '\0' && host[0] != '\0') /* once, for it is read without the lock */
            memcpy(d->local_host, host, sizeof host);
        pthread_cond_broadcast(&d->changed);
    }
    pthread_mutex_unlock(&d->lock);
}

static void pipe_ended(struct brig_dialled *d, nng_pipe p)
{
    uint32_t id = (uint32_t)nng_pipe_id(p);
    pthread_mutex_lock(&d->lock);
    if (d->starting == id)
        d->starting = 0;
    if (d->pipe == id) {
        d->pipe = 0;
        d->ended = true;
        nng_aio_abort(d->aio, NNG_ECONNRESET);
        pthread_cond_broadcast(&d->changed);
    }
    bool last = d->once && d->ended;
    pthread_mutex_unlock(&d->lock);
    if (last) /* no tries in place of a connection that would be turned away */
        nng_dialer_close(d->dialer);
}

static void on_pipe(nng_pipe p, nng_pipe_ev ev, void *ctx)
{
    if (ev == NNG_PIPE_EV_ADD_PRE)
        pipe_starts(ctx, p);
    else if (ev == NNG_PIPE_EV_ADD_POST)
        pipe_stands(ctx, p);
    else if (ev == NNG_PIPE_EV_REM_POST)
        pipe_ended(ctx, p);
}

/* ---- connecting ---- */

static bool wait_connected(struct brig_dialled *d, uint64_t deadline_ns)
{
    struct timespec until = brig_link_deadline(deadline_ns);
    pthread_mutex_lock(&d->lock);
    while (d->pipe == 0 && pthread_cond_timedwait(&d->changed, &d->lock, &until) == 0)
        ;
    bool connected = d->pipe != 0;
    pthread_mutex_unlock(&d->lock);
    return connected;
}

int brig_stream_connect(nng_stream **ret, const char *url, uint32_t timeout_ms)
{
    nng_stream_dialer *sd;
    nng_aio *aio;
    int rv = nng_stream_dialer_alloc(&sd, url);
    if (rv != 0)
        return rv;
    rv = nng_aio_alloc(&aio, NULL, NULL);
    if (rv == 0) {
        nng_aio_set_timeout(aio, brig_nng_ms(timeout_ms));
        nng_stream_dialer_dial(sd, aio);
        nng_aio_wait(aio);
        rv = nng_aio_result(aio);
        if (rv == 0)
            *ret = nng_aio_get_output(aio, 0);
        nng_aio_free(aio); /* before the dialer, which a time-out that is just being served still needs */
    }
    nng_stream_dialer_free(sd);
    return rv;
}

/* To learn why there is no connection: NNG_ECONNREFUSED, NNG_EADDRINVAL (no such host), NNG_ETIMEDOUT ...; 0
 * when something accepts one. */
static int probe(const char *url)
{
    nng_stream *s;
    int rv = brig_stream_connect(&s, url, PROBE_MS);
    if (rv == 0)
        nng_stream_free(s);
    return rv;
}

static bool host_is_name(const struct brig_url *u)
{
    return u->scheme == BRIG_SCHEME_TCP && !u->v6 && strspn(u->host, "0123456789.") != strlen(u->host);
}

int brig_no_connection(const char *url, const struct brig_url *u, int rv, bool foreign, uint32_t timeout_ms,
                       struct brig_fail *fail)
{
    const char *why = nng_strerror(rv);
    if (foreign)
        why = "a process of another user listens there";
    else if (rv == 0)
        why = "something listens there and does not speak this protocol, or is busy closing";
    else if (rv == NNG_ECONNREFUSED || rv == NNG_ENOENT)
        why = "nobody listens there";
    else if (rv == NNG_EADDRINVAL)
        why = "no such host";
    else if (rv == NNG_ETIMEDOUT)
        why = host_is_name(u) ? "neither its machine nor the name service answers"
                              : "its machine does not answer";
    return brig_fail_set(fail, BRIG_ETIMEOUT, "%s: no connection in %.3g s: %s", url, timeout_ms / 1000.0,
                         why);
}

static int no_connection(const struct brig_dialled *d, const struct brig_url *u, uint32_t timeout_ms,
                         struct brig_fail *fail)
{
    int rv = u->scheme == BRIG_SCHEME_INPROC ? NNG_ECONNREFUSED : probe(brig_url_bare(d->url));
    return brig_no_connection(d->url, u, rv, d->foreign, timeout_ms, fail);
}

static int connect_within(struct brig_dialled *d, const struct brig_url *u, uint32_t timeout_ms,
                          struct brig_fail *fail)
{
    uint64_t begin = brig_clock_ns();
    uint64_t deadline = begin + timeout_ms * BRIG_NS_PER_MS;
    bool connected = false;
    if (host_is_name(u) && timeout_ms > NAME_MS) {
        connected = wait_connected(d, begin + NAME_MS * BRIG_NS_PER_MS);
        if (!connected && probe(brig_url_bare(d->url)) == NNG_EADDRINVAL)
            return brig_fail_set(fail, BRIG_EIO, "%s: no such host: %s", d->url, u->host);
    }
    if (!connected)
        connected = wait_connected(d, deadline);
    return connected ? 0 : no_connection(d, u, timeout_ms, fail);
}

static int start_dialer(struct brig_dialled *d, const struct brig_url *u)
{
    int rv = 0;
    for (int ev = NNG_PIPE_EV_ADD_PRE; rv == 0 && ev <= NNG_PIPE_EV_REM_POST; ev++)
        rv = nng_pipe_notify(d->sock, (nng_pipe_ev)ev, on_pipe, d);
    if (rv == 0)
        rv = nng_dialer_create(&d->dialer, d->sock, brig_url_bare(d->url));
    if (rv == 0)
        rv = nng_dialer_set_ms(d->dialer, NNG_OPT_RECONNMINT, RETRY_MIN_MS);
    if (rv == 0)
        rv = nng_dialer_set_ms(d->dialer, NNG_OPT_RECONNMAXT, RETRY_MAX_MS);
    if (rv == 0 && u->scheme == BRIG_SCHEME_TCP)
        rv = nng_dialer_set_bool(d->dialer, NNG_OPT_TCP_NODELAY, true);
    if (rv == 0)
        rv = nng_dialer_start(d->dialer, NNG_FLAG_NONBLOCK);
    return rv;
}

int brig_dialled_open(struct brig_dialled *d, int (*open)(nng_socket *), const char *url, uint64_t max_bytes,
                      bool once, uint32_t timeout_ms, struct brig_fail *fail)
{
    struct brig_url u;
    int r = brig_url_parse(&u, url, fail);
    if (r < 0)
        return r;
    if (u.scheme == BRIG_SCHEME_TCP && (u.port == 0 || u.wildcard))
        return brig_fail_set(fail, BRIG_EUSAGE, "%s: to connect takes a host and a port above 0", url);
    *d = (struct brig_dialled){.once = once};
    snprintf(d->url, sizeof d->url, "%s", url);
    r = brig_socket_open(&d->sock, open, max_bytes, fail);
    if (r < 0)
        return r;
    brig_link_locks_init(&d->lock, &d->changed);
    int rv = nng_aio_alloc(&d->aio, NULL, NULL);
    if (rv == 0)
        rv = start_dialer(d, &u);
    if (rv != 0)
        r = brig_fail_set(fail, brig_nng_err(rv), "%s: cannot connect: %s", url, nng_strerror(rv));
    else
        r = connect_within(d, &u, timeout_ms, fail);
    if (r < 0)
        brig_dialled_close(d);
    return r;
}

void brig_dialled_close(struct brig_dialled *d)
{
    nng_close(d->sock); /* no pipe event comes after this */
    if (d->aio != NULL)
        nng_aio_free(d->aio);
    pthread_cond_destroy(&d->changed);
    pthread_mutex_destroy(&d->lock);
}

uint32_t brig_dialled_pipe(struct brig_dialled *d)
{
    pthread_mutex_lock(&d->lock);
    uint32_t id = d->pipe;
    pthread_mutex_unlock(&d->lock);
    return id;
}

int brig_dialled_run(struct brig_dialled *d, void (*start)(nng_socket, nng_aio *), uint32_t pipe,
                     uint32_t timeout_ms)
{
    pthread_mutex_lock(&d->lock); /* pipe_ended comes before this, or finds the operation under way */
    if (pipe == 0 || d->pipe != pipe) {
        pthread_mutex_unlock(&d->lock);
        return NNG_ECONNRESET;
    }
    nng_aio_set_timeout(d->aio, brig_nng_ms(timeout_ms));
    start(d->sock, d->aio);
    pthread_mutex_unlock(&d->lock);
    nng_aio_wait(d->aio);
    return nng_aio_result(d->aio);
}

/* ---- frames ---- */

int brig_dialled_send(struct brig_dialled *d, uint32_t pipe, struct brig_msg *m, uint32_t timeout_ms,
                      struct brig_fail *fail)
{
    nng_aio_set_msg(d->aio, (nng_msg *)m);
    int rv = brig_dialled_run(d, nng_send_aio, pipe, timeout_ms);
    nng_aio_set_msg(d->aio, NULL);
    if (rv == 0)
        return 0;
    if (rv == NNG_ETIMEDOUT)
        return brig_fail_set(fail, BRIG_ETIMEOUT, "%s: no room for a frame in %.3g s", d->url,
                             timeout_ms / 1000.0);
    if (rv == NNG_ECONNRESET)
        return brig_fail_set(fail, BRIG_EDEAD, "%s: the connection has ended", d->url);
    return brig_fail_set(fail, brig_nng_err(rv), "%s: cannot send: %s", d->url, nng_strerror(rv));
}

/* The socket is writable again when its connection has taken all of the last frame. */
void brig_dialled_flush(struct brig_dialled *d, uint32_t pipe)
{
    struct pollfd writable = {.events = POLLIN};
    if (pipe != 0 && brig_dialled_pipe(d) == pipe &&
        nng_socket_get_int(d->sock, NNG_OPT_SENDFD, &writable.fd) == 0)
        poll(&writable, 1, FLUSH_MS);
}
