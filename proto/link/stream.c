/*
 * The link `stream`: frames over NNG's byte streams, in place of NNG's sockets: the same addresses, and fewer
 * threads that hand a frame on. This is its row and the sending end: it writes what the kernel takes at once,
 * and the rest of a longer frame leaves in the background.
 */
#include "proto/link/stream.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <nng/transport/ipc/ipc.h>

#include "proto/base/clock.h"
#include "proto/base/mem.h"

#define RETRY_MIN_MS 2u
#define RETRY_MAX_MS 50u
#define FLUSH_MS     500u /* how long a closing sender lets its last frame leave */

struct brig_tx {
    nng_stream *stream;
    nng_aio *now;   /* the first write of a frame */
    nng_aio *later; /* calls back: the rest of it */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool under_way, ended;
    uint8_t head[BRIG_STREAM_HEAD_BYTES];
    struct brig_msg *m;
    size_t sent;
    uint64_t max_bytes;
    char url[BRIG_URL_MAX];
};

static bool stream_speaks(const char *url)
{
    struct brig_url u;
    return brig_url_parse(&u, url, NULL) == 0 && u.stream;
}

bool brig_stream_user_ok(nng_stream *s, bool local)
{
    uint64_t uid;
    return !local || (nng_stream_get_uint64(s, NNG_OPT_IPC_PEER_UID, &uid) == 0 && uid == geteuid());
}

nng_duration brig_stream_ms(uint64_t until_ns)
{
    uint64_t now = brig_clock_ns();
    uint64_t ms = now < until_ns ? (until_ns - now) / BRIG_NS_PER_MS : 0;
    return ms > 0 ? brig_nng_ms((uint32_t)ms) : 1;
}

/* ---- sending ---- */

static void tx_free(struct brig_tx *tx)
{
    if (tx->stream != NULL)
        nng_stream_close(tx->stream);
    if (tx->now != NULL)
        nng_aio_free(tx->now);
    if (tx->later != NULL)
        nng_aio_free(tx->later);
    if (tx->stream != NULL)
        nng_stream_free(tx->stream);
    brig_msg_free(tx->m);
    pthread_cond_destroy(&tx->changed);
    pthread_mutex_destroy(&tx->lock);
    brig_free(tx);
}

/* The part of the frame that has not been written. */
static void start_write(struct brig_tx *tx, nng_aio *aio)
{
    nng_iov iov[2];
    unsigned n = 0;
    size_t of_body = tx->sent > BRIG_STREAM_HEAD_BYTES ? tx->sent - BRIG_STREAM_HEAD_BYTES : 0;
    if (tx->sent < BRIG_STREAM_HEAD_BYTES)
        iov[n++] = (nng_iov){.iov_buf = tx->head + tx->sent, .iov_len = BRIG_STREAM_HEAD_BYTES - tx->sent};
    iov[n++] = (nng_iov){.iov_buf = (uint8_t *)brig_msg_data(tx->m) + of_body,
                         .iov_len = brig_msg_len(tx->m) - of_body};
    nng_aio_set_iov(aio, n, iov);
    nng_stream_send(tx->stream, aio);
}

/* Under the lock. */
static bool all_sent(struct brig_tx *tx)
{
    if (tx->sent < BRIG_STREAM_HEAD_BYTES + brig_msg_len(tx->m))
        return false;
    brig_msg_free(tx->m);
    tx->m = NULL;
    return true;
}

static void on_later(void *ctx)
{
    struct brig_tx *tx = ctx;
    int rv = nng_aio_result(tx->later);
    pthread_mutex_lock(&tx->lock);
    if (rv == 0)
        tx->sent += nng_aio_count(tx->later);
    tx->ended = tx->ended || rv != 0;
    if (tx->ended || all_sent(tx)) {
        tx->under_way = false;
        pthread_cond_broadcast(&tx->changed);
    } else {
        start_write(tx, tx->later);
    }
    pthread_mutex_unlock(&tx->lock);
}

/* Under the lock: until the frame before has left. False when the time is over. */
static bool await_written(struct brig_tx *tx, uint64_t until_ns)
{
    struct timespec until = brig_link_deadline(until_ns);
    while (tx->under_way && pthread_cond_timedwait(&tx->changed, &tx->lock, &until) == 0)
        ;
    return !tx->under_way;
}

/* Under the lock: write what goes at once, and leave the rest to the background. False: the connection has
 * ended. */
static bool write_now(struct brig_tx *tx)
{
    start_write(tx, tx->now);
    nng_aio_cancel(tx->now); /* nothing, when it was written at once */
    nng_aio_wait(tx->now);
    int rv = nng_aio_result(tx->now);
    if (rv == 0)
        tx->sent += nng_aio_count(tx->now);
    else if (rv != NNG_ECANCELED)
        return false;
    if (!all_sent(tx)) {
        tx->under_way = true;
        start_write(tx, tx->later);
    }
    return true;
}

static int send_locked(struct brig_tx *tx, struct brig_msg *m, uint32_t timeout_ms, struct brig_fail *fail)
{
    if (!await_written(tx, brig_clock_ns() + timeout_ms * BRIG_NS_PER_MS))
        return brig_fail_set(fail, BRIG_ETIMEOUT, "%s: no room for a frame in %.3g s", tx->url,
                             timeout_ms / 1000.0);
    if (!tx->ended) {
        uint64_t n = brig_msg_len(m);
        for (unsigned i = 0; i < BRIG_STREAM_HEAD_BYTES; i++)
            tx->head[i] = (uint8_t)(n >> 8 * i);
        tx->m = m;
        tx->sent = 0;
        tx->ended = !write_now(tx);
        if (!tx->ended)
            return 0;
        tx->m = NULL;
    }
    return brig_fail_set(fail, BRIG_EDEAD, "%s: the connection has ended", tx->url);
}

static int stream_send(struct brig_tx *tx, struct brig_msg *m, uint32_t timeout_ms, struct brig_fail *fail)
{
    if (brig_msg_len(m) > tx->max_bytes)
        return brig_fail_set(fail, BRIG_ELIMIT, "%s: a frame of %zu bytes is over the limit of %llu", tx->url,
                             brig_msg_len(m), (unsigned long long)tx->max_bytes);
    pthread_mutex_lock(&tx->lock);
    int r = send_locked(tx, m, timeout_ms, fail);
    pthread_mutex_unlock(&tx->lock);
    return r;
}

static void stream_tx_close(struct brig_tx *tx)
{
    if (tx == NULL)
        return;
    pthread_mutex_lock(&tx->lock);
    await_written(tx, brig_clock_ns() + FLUSH_MS * BRIG_NS_PER_MS);
    tx->ended = true;
    pthread_mutex_unlock(&tx->lock);
    tx_free(tx);
}

/* ---- connecting ---- */

/* Write the greeting, or read the answer, whole. */
static int exchange(nng_stream *s, nng_aio *aio, void (*op)(nng_stream *, nng_aio *),
                    char bytes[BRIG_STREAM_GREET_BYTES], uint64_t until_ns)
{
    size_t done = 0;
    while (done < BRIG_STREAM_GREET_BYTES) {
        nng_iov iov = {.iov_buf = bytes + done, .iov_len = BRIG_STREAM_GREET_BYTES - done};
        nng_aio_set_iov(aio, 1, &iov);
        nng_aio_set_timeout(aio, brig_stream_ms(until_ns));
        op(s, aio);
        nng_aio_wait(aio);
        int rv = nng_aio_result(aio);
        if (rv != 0)
            return rv;
        done += nng_aio_count(aio);
    }
    return 0;
}

/* Is it a receiver of frames that has been reached? */
static bool answers(nng_stream *s, uint64_t until_ns)
{
    char bytes[BRIG_STREAM_GREET_BYTES];
    nng_aio *aio;
    if (nng_aio_alloc(&aio, NULL, NULL) != 0)
        return false;
    memcpy(bytes, BRIG_STREAM_GREETING, BRIG_STREAM_GREET_BYTES);
    bool good = exchange(s, aio, nng_stream_send, bytes, until_ns) == 0 &&
                exchange(s, aio, nng_stream_recv, bytes, until_ns) == 0 &&
                memcmp(bytes, BRIG_STREAM_ANSWER, BRIG_STREAM_GREET_BYTES) == 0;
    nng_aio_free(aio); /* and with it a time-out that is just being served */
    return good;
}

/* One try: NNG's code, or NNG_EPROTO when something else answers, NNG_EPERM when it is another user's. */
static int try_once(struct brig_tx *tx, const struct brig_url *u, uint64_t until_ns)
{
    int rv = brig_stream_connect(&tx->stream, brig_url_bare(tx->url), (uint32_t)brig_stream_ms(until_ns));
    if (rv != 0)
        return rv;
    if (!brig_stream_user_ok(tx->stream, brig_url_is_local(u)))
        rv = NNG_EPERM;
    else if (!answers(tx->stream, until_ns))
        rv = NNG_EPROTO;
    else if (u->scheme == BRIG_SCHEME_TCP)
        rv = nng_stream_set_bool(tx->stream, NNG_OPT_TCP_NODELAY, true);
    if (rv != 0) {
        nng_stream_free(tx->stream);
        tx->stream = NULL;
    }
    return rv;
}

static void rest(struct brig_tx *tx, uint64_t until_ns)
{
    struct timespec until = brig_link_deadline(until_ns);
    pthread_mutex_lock(&tx->lock);
    while (pthread_cond_timedwait(&tx->changed, &tx->lock, &until) == 0)
        ;
    pthread_mutex_unlock(&tx->lock);
}

static int connect_within(struct brig_tx *tx, const struct brig_url *u, uint32_t timeout_ms,
                          struct brig_fail *fail)
{
    uint64_t until_ns = brig_clock_ns() + timeout_ms * BRIG_NS_PER_MS;
    int why = NNG_ETIMEDOUT; /* the last try has no time left, and knows less than those before */
    for (uint32_t pause_ms = RETRY_MIN_MS;;) {
        int rv = try_once(tx, u, until_ns);
        why = rv != NNG_ETIMEDOUT ? rv : why;
        uint64_t again_ns = brig_clock_ns() + pause_ms * BRIG_NS_PER_MS;
        if (rv == 0)
            return 0;
        if (rv == NNG_EADDRINVAL)
            return brig_fail_set(fail, BRIG_EIO, "%s: no such host: %s", tx->url, u->host);
        rest(tx, again_ns < until_ns ? again_ns : until_ns);
        if (again_ns >= until_ns)
            return brig_no_connection(tx->url, u, why == NNG_EPROTO ? 0 : why, why == NNG_EPERM, timeout_ms,
                                      fail);
        pause_ms = 2 * pause_ms < RETRY_MAX_MS ? 2 * pause_ms : RETRY_MAX_MS;
    }
}

static int stream_dial(struct brig_tx **ret, const char *url, uint64_t max_bytes, uint32_t timeout_ms,
                       struct brig_fail *fail)
{
    struct brig_url u;
    int r = brig_url_parse(&u, url, fail);
    if (r == 0 && u.scheme == BRIG_SCHEME_TCP && (u.port == 0 || u.wildcard))
        r = brig_fail_set(fail, BRIG_EUSAGE, "%s: to connect takes a host and a port above 0", url);
    if (r == 0)
        r = brig_nng_start(fail);
    if (r < 0)
        return r;
    struct brig_tx *tx = brig_alloc(1, sizeof *tx);
    if (tx == NULL)
        return brig_fail_set(fail, BRIG_ENOMEM, "%s: out of memory for a sender", url);
    brig_link_locks_init(&tx->lock, &tx->changed);
    tx->max_bytes = max_bytes;
    snprintf(tx->url, sizeof tx->url, "%s", url);
    int rv = nng_aio_alloc(&tx->now, NULL, NULL);
    if (rv == 0)
        rv = nng_aio_alloc(&tx->later, on_later, tx);
    r = rv == 0 ? connect_within(tx, &u, timeout_ms, fail)
                : brig_fail_set(fail, brig_nng_err(rv), "%s: cannot connect: %s", url, nng_strerror(rv));
    if (r < 0)
        tx_free(tx);
    else
        *ret = tx;
    return r;
}

const struct brig_link brig_link_stream = {
    .name = "stream",
    .help = "NNG's byte streams, one for each sender: ipc, abstract, tcp",
    .prefix = BRIG_URL_STREAM,
    .speaks = stream_speaks,
    .listen = brig_stream_listen,
    .dial = stream_dial,
    .send = stream_send,
    .recv = brig_stream_recv,
    .rx_close = brig_stream_rx_close,
    .tx_close = stream_tx_close,
};
