/*
 * The link `nng`: frames over PUSH and PULL sockets, on every scheme that NNG has. One sender has one peer; a
 * connection that has ended stays ended, for a data address belongs to one process life.
 */
#include "proto/link/parts.h"

#include <string.h>

#include <nng/protocol/pipeline0/pull.h>
#include <nng/protocol/pipeline0/push.h>

#include "proto/base/mem.h"

struct brig_rx {
    nng_socket sock;
    nng_aio *aio;
    pthread_mutex_t lock;
    pthread_cond_t left;
    bool closing, inside;
    char url[BRIG_URL_MAX];
};

struct brig_tx {
    struct brig_dialled d;
    uint32_t pipe; /* the one connection that it ever has */
    uint64_t max_bytes;
};

static bool nng_speaks(const char *url)
{
    struct brig_url u;
    return brig_url_parse(&u, url, NULL) == 0 && !u.shm && !u.stream;
}

/* ---- receiving ---- */

static void rx_free(void *closed)
{
    struct brig_rx *rx = closed;
    pthread_cond_destroy(&rx->left);
    pthread_mutex_destroy(&rx->lock);
    brig_free(rx);
}

static void on_rx_pipe(nng_pipe p, nng_pipe_ev ev, void *ctx)
{
    (void)ev;
    (void)ctx;
    if (!brig_pipe_user_ok(p))
        nng_pipe_close(p);
}

static int nng_listen_frames(struct brig_rx **ret, const char *url, uint64_t max_bytes,
                             char real_url[BRIG_URL_MAX], struct brig_fail *fail)
{
    struct brig_rx *rx = brig_alloc(1, sizeof *rx);
    if (rx == NULL)
        return brig_fail_set(fail, BRIG_ENOMEM, "%s: out of memory for a receiver", url);
    int r = brig_socket_open(&rx->sock, nng_pull0_open, max_bytes, fail);
    if (r < 0) {
        brig_free(rx);
        return r;
    }
    brig_link_locks_init(&rx->lock, &rx->left);
    int rv = nng_aio_alloc(&rx->aio, NULL, NULL);
    if (rv == 0)
        rv = nng_pipe_notify(rx->sock, NNG_PIPE_EV_ADD_PRE, on_rx_pipe, NULL);
    if (rv != 0)
        r = brig_fail_set(fail, brig_nng_err(rv), "%s: cannot receive: %s", url, nng_strerror(rv));
    else
        r = brig_socket_listen(rx->sock, url, real_url, fail);
    if (r < 0) {
        nng_close(rx->sock);
        if (rx->aio != NULL)
            nng_aio_free(rx->aio);
        rx_free(rx);
        return r;
    }
    memcpy(rx->url, real_url, sizeof rx->url);
    *ret = rx;
    return 0;
}

static int nng_recv_frame(struct brig_rx *rx, struct brig_msg **ret, uint32_t timeout_ms,
                          struct brig_fail *fail)
{
    pthread_mutex_lock(&rx->lock);
    if (rx->closing || rx->inside) {
        bool closing = rx->closing;
        pthread_mutex_unlock(&rx->lock);
        return closing ? brig_fail_set(fail, BRIG_ECANCELLED, "%s: closed", rx->url)
                       : brig_fail_set(fail, BRIG_EINTERNAL, "%s: two threads receive at once", rx->url);
    }
    rx->inside = true;
    nng_aio_set_timeout(rx->aio, brig_nng_ms(timeout_ms));
    nng_recv_aio(rx->sock, rx->aio);
    pthread_mutex_unlock(&rx->lock);
    nng_aio_wait(rx->aio);
    int rv = nng_aio_result(rx->aio);
    nng_msg *m = rv == 0 ? nng_aio_get_msg(rx->aio) : NULL;
    pthread_mutex_lock(&rx->lock);
    rx->inside = false;
    pthread_cond_signal(&rx->left);
    pthread_mutex_unlock(&rx->lock);
    if (rv == 0) {
        *ret = (struct brig_msg *)m;
        return 0;
    }
    if (rv == NNG_ETIMEDOUT)
        return -BRIG_ETIMEOUT;
    return brig_fail_set(fail, brig_nng_err(rv), "%s: cannot receive: %s", rx->url, nng_strerror(rv));
}

static void nng_rx_close(struct brig_rx *rx)
{
    if (rx == NULL)
        return;
    pthread_mutex_lock(&rx->lock);
    rx->closing = true;
    nng_aio_cancel(rx->aio);
    while (rx->inside) /* it leaves at once: its operation has been cancelled */
        pthread_cond_wait(&rx->left, &rx->lock);
    pthread_mutex_unlock(&rx->lock);
    nng_close(rx->sock);
    nng_aio_free(rx->aio);
    brig_link_keep(rx, rx_free);
}

/* ---- sending ---- */

static int nng_dial_frames(struct brig_tx **ret, const char *url, uint64_t max_bytes, uint32_t timeout_ms,
                           struct brig_fail *fail)
{
    struct brig_tx *tx = brig_alloc(1, sizeof *tx);
    if (tx == NULL)
        return brig_fail_set(fail, BRIG_ENOMEM, "%s: out of memory for a sender", url);
    tx->max_bytes = max_bytes;
    /* Nothing comes back on this socket. */
    int r = brig_dialled_open(&tx->d, nng_push0_open, url, 1, true, timeout_ms, fail);
    if (r < 0) {
        brig_free(tx);
        return r;
    }
    tx->pipe = brig_dialled_pipe(&tx->d); /* 0 when it has ended since: sending then fails */
    *ret = tx;
    return 0;
}

static int nng_send_frame(struct brig_tx *tx, struct brig_msg *m, uint32_t timeout_ms, struct brig_fail *fail)
{
    if (brig_msg_len(m) > tx->max_bytes)
        return brig_fail_set(fail, BRIG_ELIMIT, "%s: a frame of %zu bytes is over the limit of %llu",
                             tx->d.url, brig_msg_len(m), (unsigned long long)tx->max_bytes);
    return brig_dialled_send(&tx->d, tx->pipe, m, timeout_ms, fail);
}

static void nng_tx_close(struct brig_tx *tx)
{
    if (tx == NULL)
        return;
    brig_dialled_flush(&tx->d, tx->pipe);
    brig_dialled_close(&tx->d);
    brig_free(tx);
}

const struct brig_link brig_link_nng = {
    .name = "nng",
    .help = "NNG sockets: ipc, abstract, tcp, inproc",
    .prefix = "",
    .speaks = nng_speaks,
    .listen = nng_listen_frames,
    .dial = nng_dial_frames,
    .send = nng_send_frame,
    .recv = nng_recv_frame,
    .rx_close = nng_rx_close,
    .tx_close = nng_tx_close,
};
