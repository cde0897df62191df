/* The ring of shared memory against peers that lie: offers of what is no ring, and nonsense written into one.
 */
#include "tests/unit/link_util.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>

#include <nng/nng.h>
#include <nng/protocol/pipeline0/pull.h>
#include <nng/protocol/pipeline0/push.h>

#include "proto/link/ring.h"

#define MAX        (1u << 20)
#define LONG       5000u
#define HEAD_BYTES 4096u

extern const struct brig_link brig_link_shm;
static const struct brig_link *const l = &brig_link_shm;
static struct brig_fail why;

static struct brig_rx *listen_at(char real[BRIG_URL_MAX])
{
    char url[BRIG_URL_MAX];
    struct brig_rx *rx = NULL;
    util_url(UTIL_SHM, url);
    if (l->listen(&rx, url, MAX, real, &why) != 0)
        fail_msg("%s", why.text);
    return rx;
}

static void expect(struct brig_rx *rx, uint64_t value)
{
    struct brig_msg *m = NULL;
    why.text[0] = '\0';
    int r = l->recv(rx, &m, LONG, &why);
    if (r != 0)
        fail_msg("%d %s", r, why.text);
    assert_true(util_value(m) == value);
    brig_msg_free(m);
}

/* ---- a sender that is not our link ---- */

static nng_socket rogue_dial(const char *url)
{
    nng_socket s;
    assert_int_equal(nng_push0_open(&s), 0);
    assert_int_equal(nng_dial(s, url + strlen("shm+"), NULL, 0), 0);
    return s;
}

static void rogue_send(nng_socket s, const void *bytes, size_t n)
{
    assert_int_equal(nng_socket_set_ms(s, NNG_OPT_SENDTIMEO, (nng_duration)LONG), 0);
    assert_int_equal(nng_send(s, (void *)(uintptr_t)bytes, n, 0), 0);
}

static void rogue_offer(nng_socket s, uint32_t fd, uint64_t nonce)
{
    struct {
        char magic[16];
        struct brig_ring_offer ring;
    } o = {"brigade ring 01", {fd, nonce}};
    rogue_send(s, &o, sizeof o);
}

static int sealed_memory(size_t bytes, int seals)
{
    int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, (off_t)bytes), 0);
    assert_int_equal(fcntl(fd, F_ADD_SEALS, seals), 0);
    return fd;
}

/* What is offered is no ring: the frames of its sender come by NNG. */
static void false_offers(void **state)
{
    char url[BRIG_URL_MAX];
    int fds[8], pipes[2], n = 0;
    size_t right = HEAD_BYTES + BRIG_RING_SLOTS * BRIG_RING_SLOT_BYTES;
    (void)state;
    assert_int_equal(pipe(pipes), 0);
    fds[n++] = 1 << 20;                                                             /* not open */
    fds[n++] = pipes[0];                                                            /* no file */
    fds[n++] = open("/dev/zero", O_RDWR | O_CLOEXEC);                               /* a device */
    fds[n++] = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);                        /* not memory */
    fds[n++] = sealed_memory(right, F_SEAL_GROW | F_SEAL_SEAL);                     /* can become shorter */
    fds[n++] = sealed_memory(right - 1, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL); /* is shorter */
    fds[n++] = sealed_memory(1 << 30, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);   /* longer */
    fds[n++] = sealed_memory(right, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);     /* another nonce */
    struct brig_rx *rx = listen_at(url);
    for (int i = 0; i < n; i++) {
        nng_socket s = rogue_dial(url);
        uint64_t value = 100 + (uint64_t)i;
        rogue_offer(s, (uint32_t)fds[i], 77);
        rogue_send(s, &value, sizeof value);
        expect(rx, value);
        nng_close(s);
        if (i > 0)
            close(fds[i]);
    }
    close(pipes[1]);
    l->rx_close(rx);
}

/* Receive until nothing more comes; what is refused is refused in words. */
static bool receive_all(struct brig_rx *rx)
{
    for (;;) {
        struct brig_msg *m = NULL;
        uint64_t begin = brig_clock_ns();
        int r = l->recv(rx, &m, 5, &why);
        assert_in_range(util_ms_since(begin), 0, 2000);
        if (r == 0) {
            assert_true(brig_msg_len(m) <= MAX);
            brig_msg_free(m);
        } else if (r == -BRIG_EPROTO) {
            assert_non_null(strstr(why.text, "nonsense"));
            return false;
        } else {
            assert_int_equal(r, -BRIG_ETIMEOUT);
            return true;
        }
    }
}

/* A ring that was offered by hand, accepted. */
static nng_socket rogue_ring(const char *url, struct brig_ring *ring)
{
    struct brig_ring_offer o;
    nng_socket s = rogue_dial(url);
    if (brig_ring_new(ring, &o, &why) != 0)
        fail_msg("%s", why.text);
    rogue_offer(s, o.fd, o.nonce);
    assert_true(brig_ring_answered(ring, brig_clock_ns() + LONG * BRIG_NS_PER_MS));
    return s;
}

/* Bytes over the numbers in the head until they are refused; false when they never are. */
static bool scribble(struct brig_rx *rx, struct brig_ring *ring, unsigned n, unsigned *seed)
{
    bool good = true;
    for (int i = 0; good && i < 20; i++) {
        uint8_t *at = (uint8_t *)ring->mem;
        for (unsigned k = 0; k < n; k++)
            at[(unsigned)rand_r(seed) % 4 * 64 + (unsigned)rand_r(seed) % 16] = (uint8_t)rand_r(seed);
        brig_bell_ring(brig_ring_filled(ring));
        good = receive_all(rx);
    }
    return !good;
}

/* A frame of n bytes arrives, after others that scribbling has made, or their refusal. */
static void expect_after_nonsense(struct brig_rx *rx, size_t n)
{
    for (bool found = false; !found;) {
        struct brig_msg *m = NULL;
        int r = l->recv(rx, &m, LONG, &why);
        if (r != 0 && r != -BRIG_EPROTO)
            fail_msg("%d %s", r, why.text);
        found = r == 0 && brig_msg_len(m) == n;
        brig_msg_free(m);
    }
}

/* Random bytes while frames travel: no crash, no hang, and another sender's frames still arrive. */
static void scribbling_sender(void **state)
{
    unsigned seed = 1, refused = 0;
    (void)state;
    for (unsigned round = 0; round < 60; round++) {
        char url[BRIG_URL_MAX];
        struct brig_ring ring;
        struct brig_tx *tx = NULL;
        struct brig_rx *rx = listen_at(url);
        nng_socket s = rogue_ring(url, &ring);
        assert_int_equal(l->dial(&tx, url, MAX, LONG, &why), 0);
        uint64_t v = 5;
        brig_ring_put(&ring, &v, sizeof v);
        expect(rx, 5);
        refused += scribble(rx, &ring, 1 + round % 8, &seed);
        assert_int_equal(l->send(tx, util_msg(9, 64), LONG, &why), 0);
        expect_after_nonsense(rx, 64);
        nng_close(s);
        brig_ring_release(&ring);
        l->tx_close(tx);
        l->rx_close(rx);
    }
    assert_true(refused > 30); /* most of it made no sense, and was found out */
}

/* A frame that is announced beside the ring and does not come: others are served meanwhile, and after its
 * connection has ended. */
static void announced_and_not_sent(void **state)
{
    char url[BRIG_URL_MAX];
    struct brig_ring ring;
    struct brig_tx *tx = NULL;
    struct brig_msg *m = NULL;
    (void)state;
    struct brig_rx *rx = listen_at(url);
    nng_socket s = rogue_ring(url, &ring);
    brig_ring_put(&ring, NULL, 0);
    assert_int_equal(l->recv(rx, &m, 50, &why), -BRIG_ETIMEOUT);
    assert_int_equal(l->dial(&tx, url, MAX, LONG, &why), 0);
    assert_int_equal(l->send(tx, util_msg(3, 64), LONG, &why), 0);
    expect(rx, 3);
    nng_close(s);
    brig_ring_release(&ring);
    assert_int_equal(l->recv(rx, &m, 1500, &why), -BRIG_ETIMEOUT);
    assert_int_equal(l->send(tx, util_msg(4, 64), LONG, &why), 0);
    expect(rx, 4);
    l->tx_close(tx);
    l->rx_close(rx);
}

/* ---- a receiver that is not our link ---- */

/* It says that it has taken more than was put: the sender is told. It never answers: frames come by NNG. */
static void scribbling_receiver(void **state)
{
    char url[BRIG_URL_MAX];
    nng_socket s;
    nng_msg *m;
    struct brig_ring_offer o;
    struct brig_tx *tx = NULL;
    struct brig_ring ring;
    (void)state;
    util_url(UTIL_SHM, url);
    assert_int_equal(nng_pull0_open(&s), 0);
    assert_int_equal(nng_listen(s, url + strlen("shm+"), NULL, 0), 0);
    assert_int_equal(l->dial(&tx, url, MAX, LONG, &why), 0);
    assert_int_equal(nng_recvmsg(s, &m, 0), 0);
    memcpy(&o, (uint8_t *)nng_msg_body(m) + 16, sizeof o);
    nng_msg_free(m);
    assert_int_equal(brig_ring_accept(&ring, (uint64_t)getpid(), &o, &why), 0);
    assert_int_equal(l->send(tx, util_msg(1, 64), LONG, &why), 0);
    for (int i = 0; i < 100; i++)
        brig_ring_take(&ring, NULL, 0);
    struct brig_msg *frame = util_msg(2, 64);
    assert_int_equal(l->send(tx, frame, LONG, &why), -BRIG_EPROTO);
    brig_msg_free(frame);
    l->tx_close(tx);
    brig_ring_release(&ring);
    assert_int_equal(l->dial(&tx, url, MAX, LONG, &why), 0);
    assert_int_equal(nng_recvmsg(s, &m, 0), 0); /* the offer, which is left lying */
    nng_msg_free(m);
    assert_int_equal(l->send(tx, util_msg(6, 64), LONG, &why), 0);
    assert_int_equal(nng_recvmsg(s, &m, 0), 0);
    assert_int_equal(nng_msg_len(m), 64);
    nng_msg_free(m);
    l->tx_close(tx);
    nng_close(s);
}

/* Long and short frames mixed: longer ones travel by NNG and keep their place. */
static void *send_mixed(void *arg)
{
    for (uint64_t i = 0; i < 300; i++)
        if (l->send(arg, util_msg(i, i % 3 == 0 ? BRIG_RING_SLOT_BYTES + 1 + i : 8 + i), LONG, &why) != 0)
            return arg;
    return NULL;
}

static void long_frames_keep_their_place(void **state)
{
    char url[BRIG_URL_MAX];
    pthread_t sender;
    void *failed;
    struct brig_tx *tx = NULL;
    (void)state;
    struct brig_rx *rx = listen_at(url);
    assert_int_equal(l->dial(&tx, url, MAX, LONG, &why), 0);
    assert_int_equal(pthread_create(&sender, NULL, send_mixed, tx), 0);
    for (uint64_t i = 0; i < 300; i++)
        expect(rx, i);
    pthread_join(sender, &failed);
    assert_null(failed);
    l->tx_close(tx);
    l->rx_close(rx);
}

/* What lies in the ring when its sender has gone is still received, in order. */
static void left_in_the_ring(void **state)
{
    char url[BRIG_URL_MAX];
    struct brig_tx *tx = NULL;
    (void)state;
    struct brig_rx *rx = listen_at(url);
    for (int round = 0; round < 10; round++) {
        assert_int_equal(l->dial(&tx, url, MAX, LONG, &why), 0);
        for (uint64_t i = 0; i < BRIG_RING_SLOTS; i++)
            assert_int_equal(l->send(tx, util_msg(i, 64), LONG, &why), 0);
        l->tx_close(tx);
        for (uint64_t i = 0; i < BRIG_RING_SLOTS; i++)
            expect(rx, i);
        receive_all(rx);
    }
    l->rx_close(rx);
}

static int end(void **state)
{
    (void)state;
    brig_link_fini();
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(false_offers),
        cmocka_unit_test(scribbling_sender),
        cmocka_unit_test(announced_and_not_sent),
        cmocka_unit_test(scribbling_receiver),
        cmocka_unit_test(long_frames_keep_their_place),
        cmocka_unit_test(left_in_the_ring),
    };
    return cmocka_run_group_tests(tests, NULL, end);
}
