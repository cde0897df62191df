/* The byte streams of the link against peers that lie, stop in the middle or leave, and frames of every
 * length cut at every place. */
#include "tests/unit/link_util.h"

#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>

#define MAX   (1u << 20)
#define LONG  5000u
#define GREET 16

extern const struct brig_link brig_link_stream;
static const struct brig_link *const l = &brig_link_stream;
static const char greeting[GREET] = "brigade sender1", answer[GREET] = "brigade taker 1";
static struct brig_fail why;

static struct brig_rx *listen_at(char real[BRIG_URL_MAX])
{
    char url[BRIG_URL_MAX];
    struct brig_rx *rx = NULL;
    util_url(UTIL_STREAM, url);
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

/* A frame of n bytes that begins with this value. */
static void expect(struct brig_rx *rx, uint64_t value, size_t n)
{
    struct brig_msg *m = NULL;
    why.text[0] = '\0';
    int r = l->recv(rx, &m, LONG, &why);
    if (r != 0)
        fail_msg("%d %s", r, why.text);
    assert_int_equal(brig_msg_len(m), n);
    assert_true(util_value(m) == value);
    brig_msg_free(m);
}

static void expect_none(struct brig_rx *rx)
{
    struct brig_msg *m = NULL;
    assert_int_equal(l->recv(rx, &m, 50, &why), -BRIG_ETIMEOUT);
}

/* ---- a peer that is not our link ---- */

static struct sockaddr_un name_of(const char *url, socklen_t *len)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    const char *name = url + strlen("stream+abstract://");
    memcpy(a.sun_path + 1, name, strlen(name));
    *len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(name));
    return a;
}

static int rogue_dial(const char *url)
{
    socklen_t len;
    struct sockaddr_un a = name_of(url, &len);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&a, len), 0);
    return fd;
}

static bool rogue_write(int fd, const void *bytes, size_t n)
{
    return send(fd, bytes, n, MSG_NOSIGNAL) == (ssize_t)n;
}

/* Greeted and answered. */
static int rogue_sender(const char *url)
{
    char said[GREET];
    int fd = rogue_dial(url);
    assert_true(rogue_write(fd, greeting, GREET));
    assert_int_equal(recv(fd, said, GREET, MSG_WAITALL), GREET);
    assert_memory_equal(said, answer, GREET);
    return fd;
}

/* Does the other side end this connection, in time? */
static bool rogue_ended(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    char bytes[GREET];
    for (int i = 0; i < 3; i++) /* an answer may come before */
        if (poll(&p, 1, LONG) != 1 || recv(fd, bytes, sizeof bytes, 0) <= 0)
            return p.revents != 0;
    return false;
}

static void head(uint64_t n, uint8_t out[8])
{
    for (unsigned i = 0; i < 8; i++)
        out[i] = (uint8_t)(n >> 8 * i);
}

/* ---- senders that lie ---- */

/* Anything but the greeting: the connection is ended, nothing arrives, and others are served. */
static void wrong_greetings(void **state)
{
    static const char *const said[] = {"GET / HTTP/1.1\r\n", answer, "brigade ring 01",
                                       "\0SP\0\0\x50\0\0 and more of it"};
    char url[BRIG_URL_MAX];
    (void)state;
    struct brig_rx *rx = listen_at(url);
    for (size_t i = 0; i < sizeof said / sizeof *said; i++) {
        int fd = rogue_dial(url);
        assert_true(rogue_write(fd, said[i], GREET));
        assert_true(rogue_ended(fd));
        close(fd);
        struct brig_tx *tx = dial(url);
        assert_int_equal(l->send(tx, util_msg(i, 64), LONG, &why), 0);
        expect(rx, i, 64);
        l->tx_close(tx);
        expect_none(rx);
    }
    l->rx_close(rx);
}

/* Connections that say nothing, or half of the greeting, or leave after it: they keep nobody from being
 * served. */
static void silent_ones(void **state)
{
    char url[BRIG_URL_MAX];
    int fds[30];
    (void)state;
    struct brig_rx *rx = listen_at(url);
    struct brig_tx *tx = dial(url);
    for (int i = 0; i < 30; i++) {
        fds[i] = rogue_dial(url);
        if (i % 3 == 1)
            assert_true(rogue_write(fds[i], greeting, 7));
        if (i % 3 == 2)
            assert_true(rogue_write(fds[i], greeting, GREET));
        if (i % 2 == 0) {
            close(fds[i]);
            fds[i] = -1;
        }
        assert_int_equal(l->send(tx, util_msg((uint64_t)i, 64), LONG, &why), 0);
        expect(rx, (uint64_t)i, 64);
    }
    l->tx_close(tx);
    expect_none(rx);
    l->rx_close(rx);
    for (int i = 0; i < 30; i++)
        if (fds[i] >= 0) {
            assert_true(rogue_ended(fds[i]));
            close(fds[i]);
        }
}

/* A length over the limit is refused before anything is taken for it. */
static void lengths_over_the_limit(void **state)
{
    static const uint64_t lengths[] = {MAX + 1ull, 1ull << 32, 1ull << 62, UINT64_MAX, UINT64_MAX - 7};
    char url[BRIG_URL_MAX];
    (void)state;
    struct brig_rx *rx = listen_at(url);
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        uint8_t h[8];
        int fd = rogue_sender(url);
        head(lengths[i], h);
        assert_true(rogue_write(fd, h, sizeof h));
        expect_none(rx);
        assert_true(rogue_ended(fd));
        close(fd);
    }
    struct brig_tx *tx = dial(url);
    assert_int_equal(l->send(tx, util_msg(5, MAX), LONG, &why), 0);
    expect(rx, 5, MAX);
    l->tx_close(tx);
    l->rx_close(rx);
}

/* Half a head, or a part of a frame, and then the end: no frame of it arrives; those before it do. */
static void cut_short(void **state)
{
    static const size_t parts[] = {1, 7, 8, 9, 100, 8 + 999};
    char url[BRIG_URL_MAX];
    uint8_t bytes[2016] = {0};
    (void)state;
    struct brig_rx *rx = listen_at(url);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        int fd = rogue_sender(url);
        head(1000, bytes);
        memset(bytes + 8, 0, 1000);
        bytes[8] = 42;
        memcpy(bytes + 1008, bytes, 1008);
        assert_true(rogue_write(fd, bytes, 1008 + parts[i]));
        close(fd);
        expect(rx, 42, 1000);
        expect_none(rx);
    }
    l->rx_close(rx);
}

/* Random bytes behind a good greeting: nothing crashes or hangs, no frame is over the limit, and another
 * sender's frames arrive. */
static void nonsense(void **state)
{
    unsigned seed = 1;
    char url[BRIG_URL_MAX];
    (void)state;
    struct brig_rx *rx = listen_at(url);
    for (unsigned round = 0; round < 100; round++) {
        uint8_t bytes[4096];
        int fd = rogue_sender(url);
        size_t n = 1 + (size_t)rand_r(&seed) % sizeof bytes;
        for (size_t i = 0; i < n; i++)
            bytes[i] = (uint8_t)(rand_r(&seed) % (round % 4 == 0 ? 256 : 3));
        for (size_t at = 0, part; at < n; at += part) {
            part = 1 + (size_t)rand_r(&seed) % 700;
            part = part < n - at ? part : n - at;
            if (!rogue_write(fd, bytes + at, part))
                break;
        }
        struct brig_tx *tx = dial(url);
        assert_int_equal(l->send(tx, util_msg(round, 777777), LONG, &why), 0);
        for (bool found = false; !found;) {
            struct brig_msg *m = NULL;
            assert_int_equal(l->recv(rx, &m, LONG, &why), 0);
            assert_true(brig_msg_len(m) <= MAX);
            found = brig_msg_len(m) == 777777;
            brig_msg_free(m);
        }
        l->tx_close(tx);
        close(fd);
    }
    l->rx_close(rx);
}

/* ---- frames cut at every place ---- */

/* Bytes that come one by one, and many frames in one piece. */
static void cut_anywhere(void **state)
{
    char url[BRIG_URL_MAX];
    uint8_t bytes[8 * 24], none[8] = {0};
    struct brig_msg *m = NULL;
    (void)state;
    struct brig_rx *rx = listen_at(url);
    int fd = rogue_sender(url);
    for (unsigned i = 0; i < 8; i++) {
        head(16, bytes + 24 * i);
        head(i, bytes + 24 * i + 8);
        head(~0ull, bytes + 24 * i + 16);
    }
    for (size_t i = 0; i < 2 * 24; i++)
        assert_true(rogue_write(fd, bytes + i, 1));
    expect(rx, 0, 16);
    expect(rx, 1, 16);
    assert_true(rogue_write(fd, bytes, sizeof bytes));
    for (unsigned i = 0; i < 8; i++)
        expect(rx, i, 16);
    assert_true(rogue_write(fd, none, 8)); /* a frame without bytes is one too */
    assert_int_equal(l->recv(rx, &m, LONG, &why), 0);
    assert_int_equal(brig_msg_len(m), 0);
    brig_msg_free(m);
    close(fd);
    l->rx_close(rx);
}

struct burst {
    struct brig_tx *tx;
    size_t from, step;
};

#define BURST 300u

static void *send_burst(void *arg)
{
    const struct burst *b = arg;
    for (uint64_t i = 0; i < BURST; i++)
        if (l->send(b->tx, util_msg(i, b->from + b->step * i), LONG, NULL) != 0)
            return arg;
    return NULL;
}

/* Lengths about those where a frame is read into the buffer, through it, and past it. */
static void every_length(void **state)
{
    static const size_t about[][2] = {{8, 1}, {32768 - 160, 1}, {65536 - 160, 1}, {9000, 3391}};
    (void)state;
    for (size_t k = 0; k < sizeof about / sizeof *about; k++) {
        char url[BRIG_URL_MAX];
        pthread_t sender;
        void *failed;
        struct brig_rx *rx = listen_at(url);
        struct burst b = {dial(url), about[k][0], about[k][1]};
        assert_int_equal(pthread_create(&sender, NULL, send_burst, &b), 0);
        for (uint64_t i = 0; i < BURST; i++) {
            struct brig_msg *m = NULL;
            assert_int_equal(l->recv(rx, &m, LONG, &why), 0);
            size_t n = b.from + b.step * i;
            assert_int_equal(brig_msg_len(m), n);
            assert_true(util_value(m) == i);
            const uint8_t *at = brig_msg_data(m);
            for (size_t j = 8; j < n; j++)
                assert_true(at[j] == (uint8_t)i);
            brig_msg_free(m);
        }
        pthread_join(sender, &failed);
        assert_null(failed);
        l->tx_close(b.tx);
        l->rx_close(rx);
    }
}

/* ---- ends ---- */

/* Long enough for the receiver to be waiting when the frames come, most of the time. */
static void pause_a_little(void)
{
    struct timespec t = {.tv_nsec = 1000 * 1000};
    nanosleep(&t, NULL);
}

static void *send_and_leave(void *url)
{
    struct brig_tx *tx = NULL;
    if (l->dial(&tx, url, MAX, LONG, NULL) != 0)
        return url;
    pause_a_little();
    for (uint64_t i = 0; i < 3; i++)
        if (l->send(tx, util_msg(i, 2000), LONG, NULL) != 0)
            return url;
    l->tx_close(tx);
    return NULL;
}

static void *write_and_leave(void *url)
{
    static uint8_t bytes[3][2008];
    int fd = rogue_sender(url);
    pause_a_little();
    for (unsigned i = 0; i < 3; i++) {
        head(2000, bytes[i]);
        bytes[i][8] = (uint8_t)i;
    }
    bool good = rogue_write(fd, bytes, sizeof bytes);
    close(fd);
    return good ? NULL : url;
}

/* A sender that leaves right after its frames, whose receiver is waiting: all of them arrive. */
static void leaving_loses_nothing(void **state)
{
    char url[BRIG_URL_MAX];
    (void)state;
    struct brig_rx *rx = listen_at(url);
    for (int round = 0; round < 100; round++) {
        pthread_t sender;
        void *failed;
        assert_int_equal(
            pthread_create(&sender, NULL, round % 2 == 0 ? send_and_leave : write_and_leave, url), 0);
        for (uint64_t i = 0; i < 3; i++)
            expect(rx, i, 2000);
        pthread_join(sender, &failed);
        assert_null(failed);
    }
    l->rx_close(rx);
}

/* Many senders at once, each flooding: none is left out. */
static void many_senders(void **state)
{
    enum { SENDERS = 8 };
    char url[BRIG_URL_MAX];
    pthread_t threads[SENDERS];
    struct burst b[SENDERS];
    unsigned count[SENDERS] = {0};
    (void)state;
    struct brig_rx *rx = listen_at(url);
    for (unsigned i = 0; i < SENDERS; i++) {
        b[i] = (struct burst){dial(url), 1000 + i, 0}; /* told apart by their length */
        assert_int_equal(pthread_create(&threads[i], NULL, send_burst, &b[i]), 0);
    }
    for (unsigned n = 0; n < SENDERS * BURST; n++) {
        struct brig_msg *m = NULL;
        assert_int_equal(l->recv(rx, &m, LONG, &why), 0);
        size_t who = brig_msg_len(m) - 1000;
        assert_true(who < SENDERS && util_value(m) == count[who]++);
        brig_msg_free(m);
    }
    for (unsigned i = 0; i < SENDERS; i++) {
        void *failed;
        pthread_join(threads[i], &failed);
        assert_null(failed);
        l->tx_close(b[i].tx);
    }
    l->rx_close(rx);
}

/* ---- a receiver that is not our link ---- */

struct rogue {
    int fd;
    const char *answer; /* GREET bytes, or NULL: it ends the connection */
};

static void *rogue_listen(void *arg)
{
    struct rogue *r = arg;
    char said[GREET];
    struct pollfd p = {.fd = r->fd, .events = POLLIN};
    while (poll(&p, 1, 1000) == 1) { /* until the dialer has given up */
        int c = accept4(r->fd, NULL, NULL, SOCK_CLOEXEC);
        if (c < 0 || recv(c, said, GREET, MSG_WAITALL) != GREET || memcmp(said, greeting, GREET) != 0)
            return arg;
        if (r->answer != NULL && !rogue_write(c, r->answer, GREET))
            return arg;
        close(c);
    }
    return NULL;
}

static void wrong_answers(void **state)
{
    static const char *const answers[] = {"something else..", greeting, NULL};
    (void)state;
    for (int i = 0; i < 3; i++) {
        char url[BRIG_URL_MAX];
        struct brig_tx *tx = NULL;
        struct rogue rogue = {socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), answers[i]};
        pthread_t t;
        void *failed;
        socklen_t len;
        util_url(UTIL_STREAM, url);
        struct sockaddr_un a = name_of(url, &len);
        assert_int_equal(bind(rogue.fd, (struct sockaddr *)&a, len), 0);
        assert_int_equal(listen(rogue.fd, 8), 0);
        assert_int_equal(pthread_create(&t, NULL, rogue_listen, &rogue), 0);
        uint64_t begin = brig_clock_ns();
        assert_int_equal(l->dial(&tx, url, MAX, 200, &why), -BRIG_ETIMEOUT);
        assert_in_range(util_ms_since(begin), 195, 3000);
        assert_non_null(strstr(why.text, "does not speak this protocol"));
        pthread_join(t, &failed);
        assert_null(failed);
        close(rogue.fd);
    }
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
        cmocka_unit_test(wrong_greetings),
        cmocka_unit_test(silent_ones),
        cmocka_unit_test(lengths_over_the_limit),
        cmocka_unit_test(cut_short),
        cmocka_unit_test(nonsense),
        cmocka_unit_test(cut_anywhere),
        cmocka_unit_test(every_length),
        cmocka_unit_test(leaving_loses_nothing),
        cmocka_unit_test(many_senders),
        cmocka_unit_test(wrong_answers),
    };
    return cmocka_run_group_tests(tests, NULL, end);
}
