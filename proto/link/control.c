/*
 * The control path: a REP socket in the shard, a REQ socket in the driver. The server knows each connection
 * by a number and tells when one that asked something has ended; the client fails at once when its own ends.
 */
#include "proto/link/parts.h"

#include <stdio.h>
#include <string.h>

#include <nng/protocol/reqrep0/rep.h>
#include <nng/protocol/reqrep0/req.h>

#include "proto/base/clock.h"
#include "proto/base/mem.h"

#define REPLY_MS    1000u /* a client that takes no answer for so long gets none */
#define FAREWELL_MS 200u  /* how long a closing server lets the client that it answered last go first */

/* ---- server ---- */

struct conn {
    struct conn *next;
    uint32_t id;
    bool asked;
};

struct brig_ctl_server {
    nng_socket sock;
    nng_aio *aio;
    void (*gone)(void *ctx, uint32_t peer);
    void *ctx;
    pthread_mutex_t lock;
    pthread_cond_t left;
    uint32_t answered;      /* the connection that got the newest answer, 0 when a request came after it */
    struct conn *conns;     /* every connection that lives */
    uint32_t asking;        /* the one whose request is being answered, 0: none */
    char url[BRIG_URL_MAX]; /* as listened */
    char asked_at[BRIG_HOST_MAX]; /* this machine's address as the client of the newest request sees it */
};

static void conn_add(struct brig_ctl_server *s, nng_pipe p)
{
    struct conn *c = brig_pipe_user_ok(p) ? brig_alloc(1, sizeof *c) : NULL;
    if (c == NULL) {
        nng_pipe_close(p);
        return;
    }
    c->id = (uint32_t)nng_pipe_id(p);
    pthread_mutex_lock(&s->lock);
    c->next = s->conns;
    s->conns = c;
    pthread_mutex_unlock(&s->lock);
}

static void conn_remove(struct brig_ctl_server *s, nng_pipe p)
{
    struct conn *c = NULL;
    pthread_mutex_lock(&s->lock);
    for (struct conn **at = &s->conns; *at != NULL; at = &(*at)->next)
        if ((*at)->id == (uint32_t)nng_pipe_id(p)) {
            c = *at;
            *at = c->next;
            pthread_cond_broadcast(&s->left);
            break;
        }
    pthread_mutex_unlock(&s->lock);
    if (c != NULL && c->asked && s->gone != NULL)
        s->gone(s->ctx, c->id);
    brig_free(c);
}

static void on_pipe(nng_pipe p, nng_pipe_ev ev, void *ctx)
{
    if (ev == NNG_PIPE_EV_ADD_PRE)
        conn_add(ctx, p);
    else if (ev == NNG_PIPE_EV_REM_POST)
        conn_remove(ctx, p);
}

/* Under the lock; NULL when the connection has ended. */
static struct conn *conn_find(struct brig_ctl_server *s, uint32_t id)
{
    struct conn *c = s->conns;
    while (c != NULL && c->id != id)
        c = c->next;
    return c;
}

/* Does the connection live? Then it has asked something. */
static bool conn_asks(struct brig_ctl_server *s, uint32_t id)
{
    pthread_mutex_lock(&s->lock);
    struct conn *c = conn_find(s, id);
    if (c != NULL)
        c->asked = true;
    pthread_mutex_unlock(&s->lock);
    return c != NULL;
}

static int start_server(struct brig_ctl_server *s, const char *url, char real_url[BRIG_URL_MAX],
                        struct brig_fail *fail)
{
    int rv = nng_aio_alloc(&s->aio, NULL, NULL);
    if (rv == 0)
        rv = nng_pipe_notify(s->sock, NNG_PIPE_EV_ADD_PRE, on_pipe, s);
    if (rv == 0)
        rv = nng_pipe_notify(s->sock, NNG_PIPE_EV_REM_POST, on_pipe, s);
    if (rv != 0)
        return brig_fail_set(fail, brig_nng_err(rv), "%s: cannot listen: %s", url, nng_strerror(rv));
    int r = brig_socket_listen(s->sock, url, real_url, fail);
    if (r == 0)
        memcpy(s->url, real_url, sizeof s->url);
    return r;
}

static int check_plain(const char *url, struct brig_fail *fail)
{
    if (brig_url_bare(url) == url)
        return 0;
    return brig_fail_set(fail, BRIG_EUSAGE,
                         "%s: shm+ and stream+ say how frames travel; a control address is without", url);
}

int brig_ctl_listen(struct brig_ctl_server **ret, const char *url, char real_url[BRIG_URL_MAX],
                    void (*gone)(void *ctx, uint32_t peer), void *ctx, struct brig_fail *fail)
{
    int r = check_plain(url, fail);
    if (r < 0)
        return r;
    struct brig_ctl_server *s = brig_alloc(1, sizeof *s);
    if (s == NULL)
        return brig_fail_set(fail, BRIG_ENOMEM, "%s: out of memory for a listener", url);
    s->gone = gone;
    s->ctx = ctx;
    r = brig_socket_open(&s->sock, nng_rep0_open, BRIG_CONTROL_MAX_BYTES, fail);
    if (r < 0) {
        brig_free(s);
        return r;
    }
    brig_link_locks_init(&s->lock, &s->left);
    r = start_server(s, url, real_url, fail);
    if (r < 0)
        brig_ctl_server_close(s);
    else
        *ret = s;
    return r;
}

/* The bytes of one request, and who asked. A client that is gone again wants no answer: *peer is 0 then. */
static int take_request(struct brig_ctl_server *s, nng_msg *m, struct brig_buf *req, uint32_t *peer)
{
    nng_pipe p = nng_msg_get_pipe(m);
    brig_buf_clear(req);
    int r = brig_buf_add(req, nng_msg_body(m), nng_msg_len(m));
    uint32_t id = (uint32_t)nng_pipe_id(p);
    s->answered = 0;
    s->asking = conn_asks(s, id) ? id : 0;
    brig_pipe_local_host(p, s->asked_at);
    nng_msg_free(m);
    *peer = s->asking;
    return r;
}

int brig_ctl_recv(struct brig_ctl_server *s, struct brig_buf *req, uint32_t *peer, uint32_t timeout_ms,
                  struct brig_fail *fail)
{
    uint64_t now = brig_clock_ns(), deadline = now + timeout_ms * BRIG_NS_PER_MS;
    uint32_t from = 0;
    do {
        uint32_t left_ms =
            now < deadline ? (uint32_t)((deadline - now + BRIG_NS_PER_MS - 1) / BRIG_NS_PER_MS) : 0;
        nng_aio_set_timeout(s->aio, brig_nng_ms(left_ms));
        nng_recv_aio(s->sock, s->aio);
        nng_aio_wait(s->aio);
        int rv = nng_aio_result(s->aio);
        if (rv == NNG_ETIMEDOUT)
            return -BRIG_ETIMEOUT;
        if (rv != 0)
            return brig_fail_set(fail, brig_nng_err(rv), "%s: cannot receive: %s", s->url, nng_strerror(rv));
        if (take_request(s, nng_aio_get_msg(s->aio), req, &from) < 0)
            return brig_fail_set(fail, BRIG_ENOMEM, "%s: out of memory for a request", s->url);
        now = brig_clock_ns();
    } while (from == 0);
    *peer = from;
    return 0;
}

int brig_ctl_reply(struct brig_ctl_server *s, const struct brig_buf *reply, struct brig_fail *fail)
{
    nng_msg *m;
    uint32_t to = s->asking;
    s->asking = 0;
    if (to == 0)
        return brig_fail_set(fail, BRIG_EINTERNAL, "%s: an answer without a request", s->url);
    if (!conn_asks(s, to))
        return brig_fail_set(fail, BRIG_EDEAD, "%s: the client has gone without waiting for its answer",
                             s->url);
    if (reply->len > BRIG_CONTROL_MAX_BYTES)
        return brig_fail_set(fail, BRIG_ELIMIT, "%s: an answer of %zu bytes", s->url, reply->len);
    if (nng_msg_alloc(&m, reply->len) != 0)
        return brig_fail_set(fail, BRIG_ENOMEM, "%s: out of memory for an answer", s->url);
    if (reply->len > 0)
        memcpy(nng_msg_body(m), reply->data, reply->len);
    nng_aio_set_msg(s->aio, m);
    nng_aio_set_timeout(s->aio, REPLY_MS);
    nng_send_aio(s->sock, s->aio);
    nng_aio_wait(s->aio);
    int rv = nng_aio_result(s->aio);
    if (rv == 0) {
        s->answered = to;
        return 0;
    }
    nng_msg_free(m);
    return brig_fail_set(fail, brig_nng_err(rv), "%s: cannot answer: %s", s->url, nng_strerror(rv));
}

int brig_ctl_data_url(const struct brig_ctl_server *s, char out[BRIG_URL_MAX], struct brig_fail *fail)
{
    struct brig_url u;
    int r = brig_url_parse(&u, s->url, fail);
    if (r < 0)
        return r;
    if (!u.wildcard)
        return brig_link_data_url(s->url, out, fail);
    if (s->asked_at[0] == '\0')
        return brig_fail_set(fail, BRIG_EINTERNAL, "%s: nobody has asked yet by an address of this machine",
                             s->url);
    snprintf(out, BRIG_URL_MAX, "tcp://%s:0", s->asked_at);
    return 0;
}

/* An answer and the end of its connection, when they come together, are taken for the end alone: the client
 * that has its answer goes first. */
static void await_farewell(struct brig_ctl_server *s)
{
    struct timespec until = brig_link_deadline(brig_clock_ns() + FAREWELL_MS * BRIG_NS_PER_MS);
    pthread_mutex_lock(&s->lock);
    while (s->answered != 0 && conn_find(s, s->answered) != NULL)
        if (pthread_cond_timedwait(&s->left, &s->lock, &until) != 0)
            break;
    pthread_mutex_unlock(&s->lock);
}

void brig_ctl_server_close(struct brig_ctl_server *s)
{
    if (s == NULL)
        return;
    await_farewell(s);
    nng_close(s->sock); /* ends all connections: conn_remove empties the list */
    if (s->aio != NULL)
        nng_aio_free(s->aio);
    pthread_cond_destroy(&s->left);
    pthread_mutex_destroy(&s->lock);
    brig_free(s);
}

/* ---- client ---- */

struct brig_ctl_client {
    struct brig_dialled d;
    struct brig_buf bytes; /* of the newest request */
};

int brig_ctl_dial(struct brig_ctl_client **ret, const char *url, uint32_t timeout_ms, struct brig_fail *fail)
{
    int r = check_plain(url, fail);
    if (r < 0)
        return r;
    struct brig_ctl_client *c = brig_alloc(1, sizeof *c);
    if (c == NULL)
        return brig_fail_set(fail, BRIG_ENOMEM, "%s: out of memory for a connection", url);
    r = brig_dialled_open(&c->d, nng_req0_open, url, BRIG_CONTROL_MAX_BYTES, false, timeout_ms, fail);
    if (r < 0) {
        brig_free(c);
        return r;
    }
    int rv = nng_socket_set_ms(c->d.sock, NNG_OPT_REQ_RESENDTIME, NNG_DURATION_INFINITE);
    if (rv != 0) {
        brig_ctl_client_close(c);
        return brig_fail_set(fail, brig_nng_err(rv), "%s: cannot ask: %s", url, nng_strerror(rv));
    }
    *ret = c;
    return 0;
}

static int send_request(struct brig_ctl_client *c, uint32_t pipe, uint32_t timeout_ms)
{
    nng_msg *m;
    int rv = nng_msg_alloc(&m, c->bytes.len);
    if (rv != 0)
        return rv;
    memcpy(nng_msg_body(m), c->bytes.data, c->bytes.len);
    nng_aio_set_msg(c->d.aio, m);
    rv = brig_dialled_run(&c->d, nng_send_aio, pipe, timeout_ms);
    nng_aio_set_msg(c->d.aio, NULL);
    if (rv != 0)
        nng_msg_free(m);
    return rv;
}

/* An answer that is there already; no wait. */
static int take_waiting(struct brig_ctl_client *c)
{
    nng_aio_set_timeout(c->d.aio, NNG_DURATION_ZERO);
    nng_recv_aio(c->d.sock, c->d.aio);
    nng_aio_wait(c->d.aio);
    return nng_aio_result(c->d.aio);
}

static int exchange(struct brig_ctl_client *c, nng_msg **ret, uint32_t timeout_ms)
{
    uint64_t begin = brig_clock_ns();
    uint32_t pipe = brig_dialled_pipe(&c->d);
    int rv = send_request(c, pipe, timeout_ms);
    if (rv != 0)
        return rv;
    uint64_t spent_ms = (brig_clock_ns() - begin) / BRIG_NS_PER_MS;
    rv = brig_dialled_run(&c->d, nng_recv_aio, pipe,
                          spent_ms < timeout_ms ? timeout_ms - (uint32_t)spent_ms : 0);
    if (rv == NNG_ECONNRESET && take_waiting(c) == 0) /* the answer came before the end */
        rv = 0;
    if (rv == 0)
        *ret = nng_aio_get_msg(c->d.aio);
    nng_aio_set_msg(c->d.aio, NULL);
    return rv;
}

static int take_reply(const struct brig_ctl_client *c, const struct brig_request *req,
                      struct brig_reply *reply, nng_msg *m, struct brig_fail *fail)
{
    int r = brig_reply_decode(reply, nng_msg_body(m), nng_msg_len(m), fail);
    nng_msg_free(m);
    if (r < 0)
        return brig_fail_prefix(fail, "%s", c->d.url);
    if (reply->kind != req->kind)
        return brig_fail_set(fail, BRIG_EPROTO, "%s: an answer to another question", c->d.url);
    return 0;
}

int brig_ctl_call(struct brig_ctl_client *c, const struct brig_request *req, struct brig_reply *reply,
                  uint32_t timeout_ms, struct brig_fail *fail)
{
    nng_msg *m = NULL;
    int r = brig_request_encode(req, &c->bytes);
    if (r < 0)
        return brig_fail_set(fail, (enum brig_err) - r, "%s: the request cannot be written", c->d.url);
    int rv = exchange(c, &m, timeout_ms);
    if (rv == 0)
        return take_reply(c, req, reply, m, fail);
    if (rv == NNG_ETIMEDOUT)
        return brig_fail_set(fail, BRIG_ETIMEOUT, "%s: no answer in %.3g s", c->d.url, timeout_ms / 1000.0);
    if (rv == NNG_ECONNRESET)
        return brig_fail_set(fail, BRIG_EDEAD, "%s: the connection has ended", c->d.url);
    return brig_fail_set(fail, brig_nng_err(rv), "%s: cannot ask: %s", c->d.url, nng_strerror(rv));
}

const char *brig_ctl_local_host(const struct brig_ctl_client *c)
{
    return c->d.local_host;
}

void brig_ctl_client_close(struct brig_ctl_client *c)
{
    if (c == NULL)
        return;
    brig_dialled_close(&c->d);
    brig_buf_release(&c->bytes);
    brig_free(c);
}
