/*
 * The link `shm`: frames between processes of one machine through a ring of shared memory, which costs a copy
 * and at most one wake-up where a socket of NNG costs nine switches of threads.
 *
 * An NNG connection at the same address carries the sender's offer of the ring, is how each side learns of
 * the other's end, and takes the frames that are longer than a slot (the ring then says where they come in
 * order), or all of them when the offer is not accepted: by a receiver that has one sender already, or one
 * that may not look into the other process (another container).
 */
#include "proto/link/parts.h"

#include <string.h>

#include <nng/protocol/pipeline0/pull.h>
#include <nng/protocol/pipeline0/push.h>

#include "proto/base/clock.h"
#include "proto/base/mem.h"
#include "proto/link/ring.h"

#define ANSWER_MS 300u /* how long the first frame waits for the answer to an offer */
#define LOOK_MS   50u  /* how soon a sender that waits for room learns of the receiver's end */
#define LATE_MS                                                                                              \
    1000u /* how long a frame that was announced may still come after its connection has ended               \
           */

/* The message of an offer. No frame begins with these letters. */
struct offer {
    char magic[16];
    struct brig_ring_offer ring;
};

static const char magic[16] = "brigade ring 01";

struct brig_rx {
    nng_socket sock;
    nng_aio *aio; /* receives all the time but while a message is held */
    pthread_mutex_t lock;
    pthread_cond_t left;
    bool closing, inside;
    struct brig_bell own;   /* what is waited at without a ring */
    struct brig_bell *bell; /* own, or the ring's */
    struct brig_ring ring;
    uint32_t ring_pipe;     /* the connection that the ring belongs to, 0: there is none */
    uint32_t cut;           /* a connection that is to be ended, 0: none */
    uint64_t ring_ended_ns; /* since when that connection has ended, 0: it lives */
    nng_msg *held;          /* came by NNG and was not taken yet */
    uint64_t max_bytes;
    char url[BRIG_URL_MAX];
};

struct brig_tx {
    struct brig_dialled d;
    uint32_t pipe; /* the one connection that it ever has */
    uint64_t max_bytes;
    struct brig_ring ring;
    bool agreed; /* the ring's offer has been accepted; false with a ring: not answered yet */
};

static bool shm_speaks(const char *url)
{
    struct brig_url u;
    return brig_url_parse(&u, url, NULL) == 0 && u.shm;
}

/* ---- receiving: what NNG's threads do ---- */

static void rx_free(void *closed)
{
    struct brig_rx *rx = closed;
    pthread_cond_destroy(&rx->left);
    pthread_mutex_destroy(&rx->lock);
    brig_free(rx);
}

static bool is_offer(nng_msg *m)
{
    return nng_msg_len(m) == sizeof(struct offer) && memcmp(nng_msg_body(m), magic, sizeof magic) == 0;
}

/* Under the lock. */
static void take_offer(struct brig_rx *rx, nng_msg *m)
{
    struct offer o;
    struct brig_fail unsaid; /* without a ring frames come by NNG: that is no fault */
    uint64_t pid;
    nng_pipe p = nng_msg_get_pipe(m);
    memcpy(&o, nng_msg_body(m), sizeof o);
    if (nng_pipe_get_uint64(p, NNG_OPT_IPC_PEER_PID, &pid) != 0)
        return;
    if (rx->closing || rx->ring.mem != NULL) {
        brig_ring_decline(pid, &o.ring);
        return;
    }
    if (brig_ring_accept(&rx->ring, pid, &o.ring, &unsaid) < 0)
        return;
    rx->ring_pipe = (uint32_t)nng_pipe_id(p);
    rx->ring_ended_ns = 0;
    rx->bell = brig_ring_filled(&rx->ring);
}

/* A message has come by NNG: an offer is answered at once, a frame is held for who receives. */
static void on_message(void *ctx)
{
    struct brig_rx *rx = ctx;
    nng_msg *m = nng_aio_result(rx->aio) == 0 ? nng_aio_get_msg(rx->aio) : NULL;
    if (m == NULL) /* the socket is being closed */
        return;
    pthread_mutex_lock(&rx->lock);
    struct brig_bell *bell = rx->bell;
    bool offer = is_offer(m);
    if (offer)
        take_offer(rx, m);
    if (offer || rx->closing)
        nng_msg_free(m);
    else
        rx->held = m;
    bool again = offer && !rx->closing;
    brig_bell_ring(bell);
    pthread_mutex_unlock(&rx->lock);
    if (again)
        nng_recv_aio(rx->sock, rx->aio);
}

static void on_rx_pipe(nng_pipe p, nng_pipe_ev ev, void *ctx)
{
    struct brig_rx *rx = ctx;
    if (ev == NNG_PIPE_EV_ADD_PRE) {
        if (!brig_pipe_user_ok(p))
            nng_pipe_close(p);
        return;
    }
    pthread_mutex_lock(&rx->lock);
    if (rx->ring_pipe == (uint32_t)nng_pipe_id(p)) {
        rx->ring_ended_ns = brig_clock_ns();
        brig_bell_ring(rx->bell);
    }
    pthread_mutex_unlock(&rx->lock);
}

static int start_receiver(struct brig_rx *rx, const char *url, char real_url[BRIG_URL_MAX],
                          struct brig_fail *fail)
{
    int rv = nng_aio_alloc(&rx->aio, on_message, rx);
    if (rv == 0)
        rv = nng_pipe_notify(rx->sock, NNG_PIPE_EV_ADD_PRE, on_rx_pipe, rx);
    if (rv == 0)
        rv = nng_pipe_notify(rx->sock, NNG_PIPE_EV_REM_POST, on_rx_pipe, rx);
    if (rv != 0)
        return brig_fail_set(fail, brig_nng_err(rv), "%s: cannot receive: %s", url, nng_strerror(rv));
    return brig_socket_listen(rx->sock, url, real_url, fail);
}

static int shm_listen(struct brig_rx **ret, const char *url, uint64_t max_bytes, char real_url[BRIG_URL_MAX],
                      struct brig_fail *fail)
{
    struct brig_rx *rx = brig_alloc(1, sizeof *rx);
    if (rx == NULL)
        return brig_fail_set(fail, BRIG_ENOMEM, "%s: out of memory for a receiver", url);
    rx->max_bytes = max_bytes;
    rx->bell = &rx->own;
    rx->ring.fd = -1;
    /* An offer must pass, whatever frames are allowed. */
    int r = brig_socket_open(&rx->sock, nng_pull0_open,
                             max_bytes > sizeof(struct offer) ? max_bytes : sizeof(struct offer), fail);
    if (r < 0) {
        brig_free(rx);
        return r;
    }
    brig_link_locks_init(&rx->lock, &rx->left);
    snprintf(rx->url, sizeof rx->url, "%s", url);
    r = start_receiver(rx, url, real_url, fail);
    if (r < 0) {
        nng_close(rx->sock);
        if (rx->aio != NULL)
            nng_aio_free(rx->aio);
        rx_free(rx);
        return r;
    }
    nng_recv_aio(rx->sock, rx->aio);
    *ret = rx;
    return 0;
}

/* ---- receiving: the thread that wants a frame ---- */

/* Under the lock: the ring is no longer used. Frames come by NNG alone, or by another ring. */
static void drop_ring(struct brig_rx *rx)
{
    rx->bell = &rx->own;
    rx->ring_pipe = 0;
    brig_ring_release(&rx->ring);
}

/* The connection that the ring belonged to is ended by who holds no lock: its number is left in rx->cut. */
static int scribbled(struct brig_rx *rx, struct brig_fail *fail)
{
    rx->cut = rx->ring_pipe;
    drop_ring(rx);
    return brig_fail_set(fail, BRIG_EPROTO, "%s: the peer has written nonsense into the shared memory",
                         rx->url);
}

/* Under the lock: the message that is held, and the next may come. */
static struct brig_msg *take_held(struct brig_rx *rx, bool *again)
{
    struct brig_msg *m = (struct brig_msg *)rx->held;
    rx->held = NULL;
    *again = !rx->closing;
    return m;
}

/* Under the lock: a frame that lies in the ring, copied. */
static int take_here(struct brig_rx *rx, size_t n, struct brig_msg **ret, struct brig_fail *fail)
{
    if (n > rx->max_bytes)
        return scribbled(rx, fail);
    struct brig_msg *m = brig_msg_new(n);
    if (m == NULL)
        return brig_fail_set(fail, BRIG_ENOMEM, "%s: out of memory for a frame of %zu bytes", rx->url, n);
    brig_ring_take(&rx->ring, brig_msg_data(m), n);
    *ret = m;
    return 0;
}

/* Under the lock: the ring's next frame, in the ring or beside it. */
static int take_from_ring(struct brig_rx *rx, struct brig_msg **ret, bool *again, struct brig_fail *fail)
{
    size_t n = 0;
    int kind = brig_ring_next(&rx->ring, &n);
    if (kind < 0)
        return scribbled(rx, fail);
    if (kind == BRIG_RING_HERE)
        return take_here(rx, n, ret, fail);
    if (kind == BRIG_RING_BESIDE && rx->held != NULL) {
        brig_ring_take(&rx->ring, NULL, 0);
        *ret = take_held(rx, again);
    } else if (rx->ring_ended_ns != 0 &&
               (kind == 0 || brig_clock_ns() - rx->ring_ended_ns > LATE_MS * BRIG_NS_PER_MS)) {
        drop_ring(rx);
    }
    return 0;
}

/* One look: *ret is set when there is a frame. `again`: NNG is to receive its next message. */
static int look(struct brig_rx *rx, struct brig_msg **ret, bool *again, struct brig_fail *fail)
{
    if (rx->closing)
        return brig_fail_set(fail, BRIG_ECANCELLED, "%s: closed", rx->url);
    bool rings = rx->ring.mem != NULL && rx->held != NULL &&
                 (uint32_t)nng_pipe_id(nng_msg_get_pipe(rx->held)) == rx->ring_pipe;
    if (rx->held != NULL && !rings) {
        *ret = take_held(rx, again);
        return 0;
    }
    return rx->ring.mem != NULL ? take_from_ring(rx, ret, again, fail) : 0;
}

static int receive(struct brig_rx *rx, struct brig_msg **ret, uint64_t until_ns, struct brig_fail *fail)
{
    for (;;) {
        bool again = false;
        pthread_mutex_lock(&rx->lock);
        struct brig_bell *bell = rx->bell;
        uint32_t seen = brig_bell_look(bell);
        int r = look(rx, ret, &again, fail);
        bool moved = bell != rx->bell;
        nng_pipe cut = {.id = rx->cut};
        rx->cut = 0;
        pthread_mutex_unlock(&rx->lock);
        if (cut.id != 0)
            nng_pipe_close(cut);
        if (again)
            nng_recv_aio(rx->sock, rx->aio);
        if (r < 0 || *ret != NULL)
            return r;
        if (moved)
            continue;
        if (brig_clock_ns() >= until_ns)
            return -BRIG_ETIMEOUT;
        brig_bell_wait(bell, seen, until_ns);
    }
}

static int shm_recv(struct brig_rx *rx, struct brig_msg **ret, uint32_t timeout_ms, struct brig_fail *fail)
{
    struct brig_msg *m = NULL;
    pthread_mutex_lock(&rx->lock);
    if (rx->closing || rx->inside) {
        bool closing = rx->closing;
        pthread_mutex_unlock(&rx->lock);
        return closing ? brig_fail_set(fail, BRIG_ECANCELLED, "%s: closed", rx->url)
                       : brig_fail_set(fail, BRIG_EINTERNAL, "%s: two threads receive at once", rx->url);
    }
    rx->inside = true;
    pthread_mutex_unlock(&rx->lock);
    int r = receive(rx, &m, brig_clock_ns() + timeout_ms * BRIG_NS_PER_MS, fail);
    pthread_mutex_lock(&rx->lock);
    rx->inside = false;
    pthread_cond_signal(&rx->left);
    pthread_mutex_unlock(&rx->lock);
    if (r == 0)
        *ret = m;
    return r;
}

static void shm_rx_close(struct brig_rx *rx)
{
    if (rx == NULL)
        return;
    pthread_mutex_lock(&rx->lock);
    rx->closing = true;
    brig_bell_ring(rx->bell);
    while (rx->inside) { /* it leaves at once; a peer that scribbles could have made it miss the bell */
        struct timespec until = brig_link_deadline(brig_clock_ns() + LOOK_MS * BRIG_NS_PER_MS);
        if (pthread_cond_timedwait(&rx->left, &rx->lock, &until) != 0)
            brig_bell_ring(rx->bell);
    }
    pthread_mutex_unlock(&rx->lock);
    nng_close(rx->sock);
    nng_aio_free(rx->aio);
    if (rx->held != NULL)
        nng_msg_free(rx->held);
    rx->held = NULL;
    drop_ring(rx);
    brig_link_keep(rx, rx_free);
}

/* ---- sending ---- */

/* Without a ring all goes by NNG: a failure to offer one is none of the link. */
static void offer_ring(struct brig_tx *tx)
{
    struct offer o = {.ring = {0}};
    struct brig_fail unsaid;
    memcpy(o.magic, magic, sizeof magic);
    if (brig_ring_new(&tx->ring, &o.ring, &unsaid) < 0)
        return;
    struct brig_msg *m = brig_msg_new(sizeof o);
    if (m != NULL)
        memcpy(brig_msg_data(m), &o, sizeof o);
    if (m == NULL || brig_dialled_send(&tx->d, tx->pipe, m, ANSWER_MS, &unsaid) < 0) {
        brig_msg_free(m);
        brig_ring_release(&tx->ring);
    }
}

static int shm_dial(struct brig_tx **ret, const char *url, uint64_t max_bytes, uint32_t timeout_ms,
                    struct brig_fail *fail)
{
    struct brig_tx *tx = brig_alloc(1, sizeof *tx);
    if (tx == NULL)
        return brig_fail_set(fail, BRIG_ENOMEM, "%s: out of memory for a sender", url);
    tx->max_bytes = max_bytes;
    tx->ring.fd = -1;
    int r = brig_dialled_open(&tx->d, nng_push0_open, url, 1, true, timeout_ms, fail);
    if (r < 0) {
        brig_free(tx);
        return r;
    }
    tx->pipe = brig_dialled_pipe(&tx->d); /* 0 when it has ended since: sending then fails */
    offer_ring(tx);
    *ret = tx;
    return 0;
}

static bool is_connected(struct brig_tx *tx)
{
    return tx->pipe != 0 && brig_dialled_pipe(&tx->d) == tx->pipe;
}

/* Before the first frame: is there a ring? Here and not when connecting, so that a line of many is joined
 * without waiting. */
static void settle(struct brig_tx *tx, uint64_t until_ns)
{
    uint64_t latest = brig_clock_ns() + ANSWER_MS * BRIG_NS_PER_MS;
    if (tx->ring.mem == NULL || tx->agreed)
        return;
    tx->agreed = brig_ring_answered(&tx->ring, until_ns < latest ? until_ns : latest);
    if (!tx->agreed)
        brig_ring_release(&tx->ring);
}

/* Until a slot is free, or the connection has ended, or the time is over. */
static int await_room(struct brig_tx *tx, uint64_t until_ns, struct brig_fail *fail)
{
    for (;;) {
        uint32_t seen = brig_bell_look(brig_ring_freed(&tx->ring));
        int room = brig_ring_room(&tx->ring);
        uint64_t now = brig_clock_ns(), soon = now + LOOK_MS * BRIG_NS_PER_MS;
        if (!is_connected(tx))
            return brig_fail_set(fail, BRIG_EDEAD, "%s: the connection has ended", tx->d.url);
        if (room < 0)
            return brig_fail_set(fail, BRIG_EPROTO,
                                 "%s: the peer has written nonsense into the shared memory", tx->d.url);
        if (room > 0)
            return 0;
        if (now >= until_ns)
            return brig_fail_set(fail, BRIG_ETIMEOUT, "%s: no room for a frame", tx->d.url);
        brig_bell_wait(brig_ring_freed(&tx->ring), seen, soon < until_ns ? soon : until_ns);
    }
}

static uint32_t left_ms(uint64_t until_ns)
{
    uint64_t now = brig_clock_ns();
    return now < until_ns ? (uint32_t)((until_ns - now) / BRIG_NS_PER_MS) : 0;
}

static int shm_send(struct brig_tx *tx, struct brig_msg *m, uint32_t timeout_ms, struct brig_fail *fail)
{
    uint64_t until_ns = brig_clock_ns() + timeout_ms * BRIG_NS_PER_MS;
    size_t n = brig_msg_len(m);
    if (n > tx->max_bytes)
        return brig_fail_set(fail, BRIG_ELIMIT, "%s: a frame of %zu bytes is over the limit of %llu",
                             tx->d.url, n, (unsigned long long)tx->max_bytes);
    settle(tx, until_ns);
    if (tx->ring.mem == NULL)
        return brig_dialled_send(&tx->d, tx->pipe, m, left_ms(until_ns), fail);
    int r = await_room(tx, until_ns, fail);
    if (r < 0)
        return r;
    if (n <= BRIG_RING_SLOT_BYTES) {
        brig_ring_put(&tx->ring, brig_msg_data(m), n);
        brig_msg_free(m);
        return 0;
    }
    r = brig_dialled_send(&tx->d, tx->pipe, m, left_ms(until_ns), fail);
    if (r == 0)
        brig_ring_put(&tx->ring, NULL, 0);
    return r;
}

/* What lies in the ring stays there for the receiver. */
static void shm_tx_close(struct brig_tx *tx)
{
    if (tx == NULL)
        return;
    settle(tx, 0);
    brig_dialled_flush(&tx->d, tx->pipe);
    brig_dialled_close(&tx->d);
    brig_ring_release(&tx->ring);
    brig_free(tx);
}

const struct brig_link brig_link_shm = {
    .name = "shm",
    .help = "shared memory between processes of one machine, offered at ipc and abstract addresses",
    .prefix = BRIG_URL_SHM,
    .speaks = shm_speaks,
    .listen = shm_listen,
    .dial = shm_dial,
    .send = shm_send,
    .recv = shm_recv,
    .rx_close = shm_rx_close,
    .tx_close = shm_tx_close,
};
