/* The links on every kind of address: what is promised of sending, receiving, waiting and closing. */
#include "tests/unit/link_util.h"

#include <pthread.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

#define MAX  (1u << 20)
#define LONG 10000u /* ms: nothing in these tests takes so long unless it is broken */

/* A test of what each row of the table promises. */
#define ON_EACH(test, nng_kind)                                                                              \
    static void test(void **state)                                                                           \
    {                                                                                                        \
        (void)state;                                                                                         \
        test##_at(nng_kind);                                                                                 \
        test##_at(UTIL_SHM);                                                                                 \
        test##_at(UTIL_STREAM);                                                                              \
    }

static const struct brig_link *l;
static struct brig_fail why;

static struct brig_rx *listen_at(int kind, char real[BRIG_URL_MAX])
{
    char url[BRIG_URL_MAX];
    struct brig_rx *rx = NULL;
    util_url(kind, url);
    l = brig_link_for(url, &why);
    assert_non_null(l);
    if (l->listen(&rx, url, MAX, real, &why) != 0)
        fail_msg("%s", why.text);
    return rx;
}

static struct brig_tx *dial(const char *url)
{
    struct brig_tx *tx = NULL;
    if (l->dial(&tx, url, MAX, LONG, &why) != 0)
        fail_msg("%s", why.text);
    return tx;
}

static void give(struct brig_tx *tx, uint64_t value, size_t n)
{
    if (l->send(tx, util_msg(value, n), LONG, &why) != 0)
        fail_msg("%s", why.text);
}

static uint64_t receive(struct brig_rx *rx, size_t *n)
{
    struct brig_msg *m = NULL;
    if (l->recv(rx, &m, LONG, &why) != 0)
        fail_msg("%s", why.text);
    uint64_t v = util_value(m);
    assert_true((uintptr_t)brig_msg_data(m) % 16 == 0);
    *n = brig_msg_len(m);
    brig_msg_free(m);
    return v;
}

static void round_trip(void **state)
{
    static const size_t sizes[] = {8, 9, 1000, 1024, 4096, 65536, MAX - 1, MAX};
    (void)state;
    for (int kind = 0; kind < UTIL_LINKS; kind++) {
        char url[BRIG_URL_MAX];
        struct brig_rx *rx = listen_at(kind, url);
        struct brig_tx *tx = dial(url);
        for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            size_t n;
            give(tx, 1000 + i, sizes[i]);
            assert_true(receive(rx, &n) == 1000 + i);
            assert_true(n == sizes[i]);
        }
        l->tx_close(tx);
        l->rx_close(rx);
    }
}

static void messages(void **state)
{
    (void)state;
    struct brig_msg *m = util_msg(42, 100), *copy = brig_msg_dup(m);
    assert_non_null(copy);
    assert_int_equal(brig_msg_len(copy), 100);
    memset(brig_msg_data(m), 0, 100);
    assert_true(util_value(copy) == 42);
    brig_msg_free(m);
    brig_msg_free(copy);
    brig_msg_free(NULL);
    l->rx_close(NULL);
    l->tx_close(NULL);
}

/* What was received is sent on, as a shard does. */
static void relay(void **state)
{
    char a[BRIG_URL_MAX], b[BRIG_URL_MAX];
    (void)state;
    struct brig_rx *rx1 = listen_at(UTIL_ABSTRACT, a), *rx2 = listen_at(UTIL_TCP, b);
    struct brig_tx *tx1 = dial(a), *tx2 = dial(b);
    struct brig_msg *m;
    size_t n;
    give(tx1, 7, 5000);
    assert_int_equal(l->recv(rx1, &m, LONG, &why), 0);
    ((uint8_t *)brig_msg_data(m))[0] = 8;
    assert_int_equal(l->send(tx2, m, LONG, &why), 0);
    assert_true(receive(rx2, &n) == 8 && n == 5000);
    l->tx_close(tx1);
    l->tx_close(tx2);
    l->rx_close(rx1);
    l->rx_close(rx2);
}

static void *send_thousand(void *arg)
{
    for (uint64_t i = 0; i < 1000; i++)
        if (l->send(arg, util_msg(i, 8 + (size_t)(i * 37) % 3000), LONG, NULL) != 0)
            return arg;
    return NULL;
}

static void order(void **state)
{
    (void)state;
    for (int kind = 0; kind < UTIL_LINKS; kind++) {
        char url[BRIG_URL_MAX];
        pthread_t sender;
        void *failed;
        struct brig_rx *rx = listen_at(kind, url);
        struct brig_tx *tx = dial(url);
        assert_int_equal(pthread_create(&sender, NULL, send_thousand, tx), 0);
        for (uint64_t i = 0; i < 1000; i++) {
            size_t n;
            assert_true(receive(rx, &n) == i);
            assert_true(n == 8 + (i * 37) % 3000);
        }
        pthread_join(sender, &failed);
        assert_null(failed);
        l->tx_close(tx);
        l->rx_close(rx);
    }
}

/* The driver's receiver has many senders. */
static void two_senders_at(int kind)
{
    char url[BRIG_URL_MAX];
    uint64_t next[2] = {0, 0};
    struct brig_rx *rx = listen_at(kind, url);
    struct brig_tx *tx[2] = {dial(url), dial(url)};
    for (uint64_t i = 0; i < 200; i++) {
        size_t n;
        give(tx[i % 2], (i % 2) * 1000 + i / 2, 16);
        uint64_t v = receive(rx, &n);
        assert_true(v % 1000 == next[v / 1000]++);
    }
    assert_true(next[0] == 100 && next[1] == 100);
    l->tx_close(tx[0]);
    give(tx[1], 5, 16); /* the end of one is nothing to the other */
    size_t n;
    assert_true(receive(rx, &n) == 5);
    l->tx_close(tx[1]);
    l->rx_close(rx);
}

ON_EACH(two_senders, UTIL_ABSTRACT)

static void nothing_comes_at(int kind)
{
    char url[BRIG_URL_MAX];
    struct brig_msg *m = NULL;
    struct brig_rx *rx = listen_at(kind, url);
    uint64_t begin = brig_clock_ns();
    memset(&why, 0, sizeof why);
    assert_int_equal(l->recv(rx, &m, 60, &why), -BRIG_ETIMEOUT);
    assert_in_range(util_ms_since(begin), 55, 2000);
    assert_int_equal(why.text[0], 0); /* not an error yet */
    assert_int_equal(l->recv(rx, &m, 0, &why), -BRIG_ETIMEOUT);
    struct brig_tx *tx = dial(url);
    give(tx, 9, 16); /* a wait that ended leaves nothing behind that would take a frame */
    size_t n;
    assert_true(receive(rx, &n) == 9);
    l->tx_close(tx);
    l->rx_close(rx);
}

ON_EACH(nothing_comes, UTIL_ABSTRACT)

/* A peer that takes nothing: the sender is told after its time, and the frame is still its own. */
static void no_room_at(int kind)
{
    char url[BRIG_URL_MAX];
    struct brig_rx *rx = listen_at(kind, url);
    struct brig_tx *tx = dial(url);
    uint64_t sent = 0, got = 0, begin = brig_clock_ns();
    for (;;) {
        struct brig_msg *m = util_msg(sent, MAX);
        int r = l->send(tx, m, 100, &why);
        if (r != 0) {
            assert_int_equal(r, -BRIG_ETIMEOUT);
            assert_true(util_value(m) == sent);
            brig_msg_free(m);
            break;
        }
        sent++;
        assert_true(sent < 100 && util_ms_since(begin) < LONG);
    }
    for (size_t n; got < sent; got++) /* none of those before is lost */
        assert_true(receive(rx, &n) == got);
    give(tx, 77, 16);
    size_t n;
    assert_true(receive(rx, &n) == 77);
    l->tx_close(tx);
    l->rx_close(rx);
}

ON_EACH(no_room, UTIL_ABSTRACT)

static void too_large_at(int kind)
{
    char url[BRIG_URL_MAX];
    struct brig_rx *rx = listen_at(kind, url);
    struct brig_tx *tx = dial(url);
    struct brig_msg *m = util_msg(1, MAX + 1);
    assert_int_equal(l->send(tx, m, LONG, &why), -BRIG_ELIMIT);
    assert_non_null(strstr(why.text, url));
    brig_msg_free(m);
    give(tx, 2, 16);
    size_t n;
    assert_true(receive(rx, &n) == 2);
    l->tx_close(tx);
    /* A sender with other ideas of the limit: the receiver takes none of it, and goes on with others. */
    struct brig_tx *liar = NULL;
    assert_int_equal(l->dial(&liar, url, 4 * MAX, LONG, &why), 0);
    m = util_msg(3, 2 * MAX);
    if (l->send(liar, m, LONG, &why) != 0)
        brig_msg_free(m);
    assert_int_equal(l->recv(rx, &m, 100, &why), -BRIG_ETIMEOUT);
    tx = dial(url);
    give(tx, 4, 16);
    assert_true(receive(rx, &n) == 4);
    l->tx_close(liar);
    l->tx_close(tx);
    l->rx_close(rx);
}

ON_EACH(too_large, UTIL_TCP)

/* ---- closing ---- */

static void *close_soon(void *rx)
{
    struct timespec t = {.tv_nsec = 30 * 1000 * 1000};
    nanosleep(&t, NULL); /* so that the other is most likely inside; any order is good */
    l->rx_close(rx);
    return NULL;
}

static void closed_in_mid_wait(void **state)
{
    (void)state;
    for (int round = 0; round < 20; round++) { /* more than are kept */
        char url[BRIG_URL_MAX];
        struct brig_msg *m;
        pthread_t closer;
        struct brig_rx *rx = listen_at(round % UTIL_LINKS, url);
        assert_int_equal(pthread_create(&closer, NULL, close_soon, rx), 0);
        uint64_t begin = brig_clock_ns();
        assert_int_equal(l->recv(rx, &m, LONG, &why), -BRIG_ECANCELLED);
        assert_in_range(util_ms_since(begin), 0, 2000);
        pthread_join(closer, NULL);
        assert_int_equal(l->recv(rx, &m, LONG, &why), -BRIG_ECANCELLED); /* comes back once more */
    }
}

static void *close_tx(void *tx)
{
    l->tx_close(tx);
    return NULL;
}

/* Large frames whose receiver is slow: closing the sender at once does not lose the last. */
static void last_frame_leaves(void **state)
{
    (void)state;
    for (int kind = 0; kind < UTIL_LINKS; kind++) {
        if (kind == UTIL_INPROC)
            continue;
        char url[BRIG_URL_MAX];
        struct brig_rx *rx = listen_at(kind, url);
        for (int round = 0; round < 10; round++) {
            struct brig_tx *tx = dial(url);
            pthread_t closer;
            give(tx, (uint64_t)round, MAX);
            assert_int_equal(pthread_create(&closer, NULL, close_tx, tx), 0);
            size_t n;
            assert_true(receive(rx, &n) == (uint64_t)round && n == MAX);
            pthread_join(closer, NULL);
        }
        l->rx_close(rx);
    }
}

/* NNG gives an address back to the kernel soon after a close, not before it returns. */
static void listen_again(struct brig_rx **rx, const char *url)
{
    char real[BRIG_URL_MAX];
    uint64_t begin = brig_clock_ns();
    int r;
    do {
        r = l->listen(rx, url, MAX, real, &why);
    } while (r != 0 && util_ms_since(begin) < LONG);
    if (r != 0)
        fail_msg("%s", why.text);
    assert_string_equal(url, real);
}

/* The kernel's name is free again, the path is gone. */
static void leaves_nothing(void **state)
{
    char url[BRIG_URL_MAX], real[BRIG_URL_MAX];
    (void)state;
    static const int kinds[] = {UTIL_ABSTRACT, UTIL_IPC, UTIL_STREAM, UTIL_STREAM_IPC};
    for (unsigned i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        struct brig_rx *rx = listen_at(kinds[i], url), *second = NULL;
        assert_int_equal(l->listen(&second, url, MAX, real, &why), -BRIG_EIO); /* taken */
        assert_non_null(strstr(why.text, "another process listens there"));
        l->rx_close(rx);
        listen_again(&rx, url);
        l->rx_close(rx);
        if (strstr(url, "ipc://") != NULL)
            assert_int_equal(access(strstr(url, "://") + strlen("://"), F_OK), -1);
    }
}

/* ---- peers that go ---- */

static void peer_closes(void **state)
{
    (void)state;
    for (int kind = 0; kind < UTIL_LINKS; kind++) {
        char url[BRIG_URL_MAX];
        struct brig_rx *rx = listen_at(kind, url);
        struct brig_tx *tx = dial(url);
        size_t n;
        give(tx, 1, 16); /* NNG 1.5.2 can keep an address that is closed while a connection is being made */
        assert_true(receive(rx, &n) == 1);
        l->rx_close(rx);
        uint64_t begin = brig_clock_ns();
        int r = 0;
        while (r == 0 && util_ms_since(begin) < LONG) { /* a frame or two may still go into the kernel */
            struct brig_msg *m = util_msg(1, 16);
            r = l->send(tx, m, LONG, &why);
            if (r != 0)
                brig_msg_free(m);
        }
        assert_int_equal(r, -BRIG_EDEAD);
        struct brig_rx *again = NULL; /* another life at the same address is not this one's peer */
        listen_again(&again, url);
        struct brig_msg *m = util_msg(2, 16), *none;
        assert_int_equal(l->send(tx, m, 100, &why), -BRIG_EDEAD);
        assert_int_equal(l->recv(again, &none, 50, &why), -BRIG_ETIMEOUT);
        brig_msg_free(m);
        l->tx_close(tx);
        l->rx_close(again);
    }
}

/* The peer ends while the sender waits for room: it waits no longer. */
static void peer_closes_in_mid_send_at(int kind)
{
    char url[BRIG_URL_MAX];
    pthread_t closer;
    struct brig_rx *rx = listen_at(kind, url);
    struct brig_tx *tx = dial(url);
    assert_int_equal(pthread_create(&closer, NULL, close_soon, rx), 0);
    uint64_t begin = brig_clock_ns();
    int r = 0;
    for (int i = 0; i < 100 && r == 0; i++) {
        struct brig_msg *m = util_msg(1, MAX);
        r = l->send(tx, m, LONG, &why);
        if (r != 0)
            brig_msg_free(m);
    }
    assert_int_equal(r, -BRIG_EDEAD);
    assert_in_range(util_ms_since(begin), 0, 3000);
    pthread_join(closer, NULL);
    l->tx_close(tx);
}

ON_EACH(peer_closes_in_mid_send, UTIL_ABSTRACT)

/* ---- addresses ---- */

static void nobody_there(void **state)
{
    char url[BRIG_URL_MAX];
    struct brig_tx *tx = NULL;
    (void)state;
    for (int kind = 0; kind < UTIL_LINKS; kind++) {
        util_url(kind, url);
        l = brig_link_for(url, &why);
        if (kind == UTIL_TCP || kind == UTIL_STREAM_TCP) {
            struct brig_rx *rx = listen_at(kind, url);
            l->rx_close(rx); /* a port that was free just now */
        }
        uint64_t begin = brig_clock_ns();
        assert_int_equal(l->dial(&tx, url, MAX, 100, &why), -BRIG_ETIMEOUT);
        assert_in_range(util_ms_since(begin), 95, 3000);
        assert_non_null(strstr(why.text, url));
        assert_non_null(strstr(why.text, "nobody listens there"));
    }
}

static int dial_tcp(const struct brig_link *link, const char *host_port, uint32_t timeout_ms)
{
    char url[BRIG_URL_MAX];
    struct brig_tx *tx = NULL;
    snprintf(url, sizeof url, "%stcp://%s", link->prefix, host_port);
    return link->dial(&tx, url, MAX, timeout_ms, &why);
}

static void no_such_place(void **state)
{
    static const char *const rows[] = {"nng", "stream"};
    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        const struct brig_link *row = brig_link_by_name(rows[i]);
        assert_int_equal(dial_tcp(row, "127.0.0.1:0", 100), -BRIG_EUSAGE);
        assert_int_equal(dial_tcp(row, "0.0.0.0:9", 100), -BRIG_EUSAGE);
        int r = dial_tcp(row, "no-such-host.invalid:9", 1000);
        if (r == -BRIG_EIO) /* else this machine's name service is slow to say no */
            assert_non_null(strstr(why.text, "no such host: no-such-host.invalid"));
        else
            assert_int_equal(r, -BRIG_ETIMEOUT);
    }
}

struct late {
    char url[BRIG_URL_MAX];
    struct brig_rx *rx;
};

static void *listen_late(void *arg)
{
    struct late *late = arg;
    char real[BRIG_URL_MAX];
    struct timespec t = {.tv_nsec = 100 * 1000 * 1000};
    nanosleep(&t, NULL);
    return l->listen(&late->rx, late->url, MAX, real, NULL) == 0 ? NULL : arg;
}

/* The dialer came first: it is connected soon after there is somebody (NNG's own first retry takes a second).
 */
static void dialled_before_listening(void **state)
{
    (void)state;
    for (int kind = 0; kind < UTIL_LINKS; kind++) {
        struct late late = {.rx = NULL};
        pthread_t listener;
        void *failed;
        size_t n;
        util_url(kind, late.url);
        l = brig_link_for(late.url, &why);
        if (kind == UTIL_TCP || kind == UTIL_STREAM_TCP) {
            struct brig_rx *rx = listen_at(kind, late.url);
            l->rx_close(rx);
        }
        assert_int_equal(pthread_create(&listener, NULL, listen_late, &late), 0);
        uint64_t begin = brig_clock_ns();
        struct brig_tx *tx = dial(late.url);
        uint64_t took_ms = util_ms_since(begin);
        pthread_join(listener, &failed);
        assert_null(failed);
#ifndef BRIG_SANITIZED
        assert_in_range(took_ms, 95, 900);
#else
        (void)took_ms;
#endif
        give(tx, 3, 16);
        assert_true(receive(late.rx, &n) == 3);
        l->tx_close(tx);
        l->rx_close(late.rx);
    }
}

/* Something else listens: said so, after the time that was given. */
static void not_a_shard_at(int kind)
{
    char url[BRIG_URL_MAX];
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    struct brig_tx *tx = NULL;
    util_url(kind, url);
    l = brig_link_for(url, &why);
    const char *name = strstr(url, "://") + strlen("://");
    size_t n = strlen(name);
    memcpy(a.sun_path + 1, name, n);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(
        bind(fd, (struct sockaddr *)&a, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + n)), 0);
    assert_int_equal(listen(fd, 8), 0);
    assert_int_equal(l->dial(&tx, url, MAX, 200, &why), -BRIG_ETIMEOUT);
    assert_non_null(strstr(why.text, "does not speak this protocol"));
    close(fd);
}

ON_EACH(not_a_shard, UTIL_ABSTRACT)

/* The socket file of a process that was killed is taken over; a file of another kind is left alone. */
static void stale_paths_at(int kind)
{
    char url[BRIG_URL_MAX], real[BRIG_URL_MAX];
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    struct brig_rx *rx = NULL;
    struct stat st;
    util_url(kind, url);
    l = brig_link_for(url, &why);
    const char *path = strstr(url, "://") + strlen("://");
    memcpy(a.sun_path, path, strlen(path));
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof a), 0);
    close(fd);
    assert_int_equal(l->listen(&rx, url, MAX, real, &why), 0);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    l->rx_close(rx);
    FILE *precious = fopen(path, "w");
    assert_non_null(precious);
    fputs("precious", precious);
    fclose(precious);
    assert_int_equal(l->listen(&rx, url, MAX, real, &why), -BRIG_EUSAGE);
    assert_non_null(strstr(why.text, "no socket"));
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_size, 8);
    unlink(path);
    snprintf(url, sizeof url, "%sipc:///no/such/folder/x", l->prefix);
    assert_int_equal(l->listen(&rx, url, MAX, real, &why), -BRIG_EIO);
}

static void stale_paths(void **state)
{
    (void)state;
    stale_paths_at(UTIL_IPC);
    stale_paths_at(UTIL_SHM_IPC);
    stale_paths_at(UTIL_STREAM_IPC);
}

static void no_such_address_here(void **state)
{
    static const char *const urls[] = {"tcp://192.0.2.1:0", "stream+tcp://192.0.2.1:0"};
    char real[BRIG_URL_MAX];
    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        struct brig_rx *rx = NULL;
        assert_int_equal(brig_link_for(urls[i], &why)->listen(&rx, urls[i], MAX, real, &why), -BRIG_EIO);
        assert_non_null(strstr(why.text, urls[i]));
    }
}

/* ---- another user's process ---- */

#define OTHER_TIMES 2u

static struct {
    pid_t pid; /* 0: none, for only root can become another user */
    int to, from;
} other;

/* Listen as another user where the parent says, and let it come: nothing may arrive. */
static void be_other(int from, int to)
{
    if (setuid(65534) != 0)
        _exit(1);
    for (unsigned i = 0; i < OTHER_TIMES; i++) {
        char url[BRIG_URL_MAX] = {0}, real[BRIG_URL_MAX];
        struct brig_rx *rx = NULL;
        struct brig_msg *m;
        if (read(from, url, sizeof url) != sizeof url || (l = brig_link_for(url, NULL)) == NULL ||
            l->listen(&rx, url, MAX, real, NULL) != 0 || write(to, "x", 1) != 1)
            _exit(1);
        if (l->recv(rx, &m, 600, NULL) != -BRIG_ETIMEOUT)
            _exit(2);
        l->rx_close(rx);
    }
    _exit(0);
}

/* Before anything else: NNG's threads do not go with a fork. */
static int start_other(void **state)
{
    int down[2], up[2];
    (void)state;
    l = brig_link_at(0);
    if (geteuid() != 0)
        return 0;
    if (pipe(down) != 0 || pipe(up) != 0)
        return -1;
    other.pid = fork();
    if (other.pid == 0) {
        close(down[1]);
        close(up[0]);
        be_other(down[0], up[1]);
    }
    close(down[0]);
    close(up[1]);
    other.to = down[1];
    other.from = up[0];
    return other.pid < 0 ? -1 : 0;
}

static void other_users(void **state)
{
    char url[BRIG_URL_MAX] = {0}, c;
    struct brig_tx *tx = NULL;
    int status;
    (void)state;
    if (other.pid == 0) {
        print_message("skipped: only root can become another user\n");
        skip();
    }
    static const int kinds[OTHER_TIMES] = {UTIL_ABSTRACT, UTIL_STREAM};
    for (unsigned i = 0; i < OTHER_TIMES; i++) {
        util_url(kinds[i], url);
        l = brig_link_for(url, &why);
        assert_int_equal(write(other.to, url, sizeof url), sizeof url);
        assert_int_equal(read(other.from, &c, 1), 1);
        assert_int_equal(l->dial(&tx, url, MAX, 300, &why), -BRIG_ETIMEOUT);
        assert_non_null(strstr(why.text, "another user"));
    }
    assert_int_equal(waitpid(other.pid, &status, 0), other.pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
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
        cmocka_unit_test(messages),
        cmocka_unit_test(round_trip),
        cmocka_unit_test(relay),
        cmocka_unit_test(order),
        cmocka_unit_test(two_senders),
        cmocka_unit_test(nothing_comes),
        cmocka_unit_test(no_room),
        cmocka_unit_test(too_large),
        cmocka_unit_test(closed_in_mid_wait),
        cmocka_unit_test(last_frame_leaves),
        cmocka_unit_test(leaves_nothing),
        cmocka_unit_test(peer_closes),
        cmocka_unit_test(peer_closes_in_mid_send),
        cmocka_unit_test(nobody_there),
        cmocka_unit_test(no_such_place),
        cmocka_unit_test(dialled_before_listening),
        cmocka_unit_test(not_a_shard),
        cmocka_unit_test(stale_paths),
        cmocka_unit_test(no_such_address_here),
        cmocka_unit_test(other_users),
    };
    return cmocka_run_group_tests(tests, start_other, end);
}
