/* The control path: questions, answers, and partners that go in the middle of them. */
#include "tests/unit/link_util.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/socket.h>

#define LONG 10000u

static struct brig_fail why;

/* ---- a server in a thread: answers by kind, as a shard would ---- */

struct server {
    struct brig_ctl_server *ctl;
    char url[BRIG_URL_MAX];
    pthread_t thread;
    atomic_uint n_requests, last_peer, n_gone, last_gone;
    atomic_uint n_unheard; /* answers to clients that had gone */
    atomic_bool stalls;    /* takes requests and is slow to answer */
    atomic_bool quit;
};

static void gone(void *ctx, uint32_t peer)
{
    struct server *s = ctx;
    atomic_store(&s->last_gone, peer);
    atomic_fetch_add(&s->n_gone, 1);
}

static void wait_until(atomic_uint *value, unsigned at_least)
{
    uint64_t begin = brig_clock_ns();
    while (atomic_load(value) < at_least && util_ms_since(begin) < LONG)
        sched_yield();
    assert_true(atomic_load(value) >= at_least);
}

/* STATUS is answered; STOP is answered and ends the server at once; DRAIN is never answered. */
static void answer(struct server *s, const struct brig_buf *bytes)
{
    struct brig_request req;
    struct brig_buf out = {0};
    if (brig_request_decode(&req, bytes->data, bytes->len, NULL) != 0 || req.kind == BRIG_CONTROL_DRAIN)
        return;
    unsigned seen_gone = atomic_load(&s->n_gone);
    uint64_t begin = brig_clock_ns();
    while (atomic_load(&s->stalls) && atomic_load(&s->n_gone) == seen_gone && util_ms_since(begin) < LONG)
        sched_yield();
    struct brig_reply reply = {.kind = req.kind, .frame_id = req.run_id};
    if (brig_reply_encode(&reply, &out) == 0 && brig_ctl_reply(s->ctl, &out, NULL) == -BRIG_EDEAD)
        atomic_fetch_add(&s->n_unheard, 1);
    brig_buf_release(&out);
    if (req.kind == BRIG_CONTROL_STOP)
        atomic_store(&s->quit, true);
}

static void *serve(void *arg)
{
    struct server *s = arg;
    struct brig_buf req = {0};
    while (!atomic_load(&s->quit)) {
        uint32_t peer = 0;
        if (brig_ctl_recv(s->ctl, &req, &peer, 20, NULL) != 0)
            continue;
        atomic_store(&s->last_peer, peer);
        atomic_fetch_add(&s->n_requests, 1);
        answer(s, &req);
    }
    brig_buf_release(&req);
    brig_ctl_server_close(s->ctl);
    return NULL;
}

static void start_at(struct server *s, const char *url)
{
    memset(s, 0, sizeof *s);
    uint64_t begin = brig_clock_ns();
    int r;
    do { /* an address that was closed just now is free a moment later */
        r = brig_ctl_listen(&s->ctl, url, s->url, gone, s, &why);
    } while (r != 0 && util_ms_since(begin) < LONG);
    if (r != 0)
        fail_msg("%s", why.text);
    assert_int_equal(pthread_create(&s->thread, NULL, serve, s), 0);
}

static void start(struct server *s, int kind)
{
    char url[BRIG_URL_MAX];
    util_url(kind, url);
    start_at(s, url);
}

static void end(struct server *s)
{
    atomic_store(&s->quit, true);
    pthread_join(s->thread, NULL);
}

static struct brig_ctl_client *dial(const struct server *s)
{
    struct brig_ctl_client *c = NULL;
    if (brig_ctl_dial(&c, s->url, LONG, &why) != 0)
        fail_msg("%s", why.text);
    return c;
}

static int ask(struct brig_ctl_client *c, enum brig_control_kind kind, uint64_t value, uint32_t timeout_ms)
{
    struct brig_request req = {.kind = kind, .run_id = value};
    struct brig_reply reply;
    int r = brig_ctl_call(c, &req, &reply, timeout_ms, &why);
    if (r == 0 && kind == BRIG_CONTROL_STATUS)
        assert_true(reply.frame_id == value);
    return r;
}

/* ---- tests ---- */

static void questions(void **state)
{
    (void)state;
    for (int kind = 0; kind < UTIL_KINDS; kind++) {
        struct server s;
        start(&s, kind);
        struct brig_ctl_client *c = dial(&s);
        assert_string_equal(brig_ctl_local_host(c), kind == UTIL_TCP ? "127.0.0.1" : "");
        for (uint64_t i = 0; i < 100; i++)
            assert_int_equal(ask(c, BRIG_CONTROL_STATUS, i, LONG), 0);
        unsigned peer = atomic_load(&s.last_peer);
        assert_true(peer != 0);
        assert_int_equal(atomic_load(&s.n_gone), 0);
        brig_ctl_client_close(c);
        wait_until(&s.n_gone, 1);
        assert_int_equal(atomic_load(&s.last_gone), peer);
        end(&s);
    }
    brig_ctl_client_close(NULL);
    brig_ctl_server_close(NULL);
}

/* Each connection has its own number; a connection that never asked is never said to have gone. */
static void clients_are_told_apart(void **state)
{
    struct server s;
    (void)state;
    start(&s, UTIL_ABSTRACT);
    struct brig_ctl_client *a = dial(&s), *b = dial(&s), *silent = dial(&s);
    assert_int_equal(ask(a, BRIG_CONTROL_STATUS, 1, LONG), 0);
    unsigned peer_a = atomic_load(&s.last_peer);
    assert_int_equal(ask(b, BRIG_CONTROL_STATUS, 2, LONG), 0);
    unsigned peer_b = atomic_load(&s.last_peer);
    assert_true(peer_a != peer_b);
    brig_ctl_client_close(silent);
    brig_ctl_client_close(a);
    wait_until(&s.n_gone, 1);
    assert_int_equal(atomic_load(&s.last_gone), peer_a);
    assert_int_equal(ask(b, BRIG_CONTROL_STATUS, 3, LONG), 0);
    assert_int_equal(atomic_load(&s.n_gone), 1);
    brig_ctl_client_close(b);
    end(&s);
}

/* No answer: said after its time; the next question gets its own answer, not a late one. */
static void no_answer(void **state)
{
    struct server s;
    (void)state;
    start(&s, UTIL_TCP);
    struct brig_ctl_client *c = dial(&s);
    for (int round = 0; round < 3; round++) {
        uint64_t begin = brig_clock_ns();
        assert_int_equal(ask(c, BRIG_CONTROL_DRAIN, 1, 80), -BRIG_ETIMEOUT);
        assert_in_range(util_ms_since(begin), 75, 3000);
        assert_non_null(strstr(why.text, s.url));
        assert_int_equal(ask(c, BRIG_CONTROL_STATUS, 10, LONG), 0);
    }
    assert_int_equal(atomic_load(&s.n_requests), 6); /* none was sent again by itself */
    brig_ctl_client_close(c);
    end(&s);
}

static void *end_soon(void *arg)
{
    struct server *s = arg;
    wait_until(&s->n_requests, 1);
    atomic_store(&s->quit, true);
    return NULL;
}

/* The server ends while an answer is awaited: known at once, not after the time-out. A later life at the same
 * address can be asked by the same client, and does not get the old question. */
static void server_dies(void **state)
{
    (void)state;
    for (int kind = 0; kind < UTIL_KINDS; kind++) {
        struct server s, next;
        pthread_t ender;
        start(&s, kind);
        struct brig_ctl_client *c = dial(&s);
        assert_int_equal(pthread_create(&ender, NULL, end_soon, &s), 0);
        uint64_t begin = brig_clock_ns();
        assert_int_equal(ask(c, BRIG_CONTROL_DRAIN, 1, LONG), -BRIG_EDEAD);
        assert_in_range(util_ms_since(begin), 0, 3000);
        pthread_join(ender, NULL);
        end(&s);
        begin = brig_clock_ns();
        assert_int_equal(ask(c, BRIG_CONTROL_STATUS, 2, LONG), -BRIG_EDEAD);
        assert_in_range(util_ms_since(begin), 0, 1000);
        start_at(&next, s.url);
        int r;
        do {
            r = ask(c, BRIG_CONTROL_STATUS, 3, LONG);
        } while (r == -BRIG_EDEAD && util_ms_since(begin) < LONG);
        assert_int_equal(r, 0);
        assert_int_equal(atomic_load(&next.n_requests), 1);
        brig_ctl_client_close(c);
        end(&next);
    }
}

/* The client goes between its question and the answer: the server learns of it both ways. */
static void client_dies(void **state)
{
    struct server s;
    (void)state;
    start(&s, UTIL_ABSTRACT);
    atomic_store(&s.stalls, true);
    struct brig_ctl_client *c = dial(&s);
    assert_int_equal(ask(c, BRIG_CONTROL_STATUS, 1, 50), -BRIG_ETIMEOUT);
    brig_ctl_client_close(c);
    wait_until(&s.n_gone, 1);
    wait_until(&s.n_unheard, 1);
    atomic_store(&s.stalls, false);
    struct brig_ctl_client *d = dial(&s);
    assert_int_equal(ask(d, BRIG_CONTROL_HELLO, 0, LONG), 0); /* serves on */
    assert_int_equal(atomic_load(&s.n_unheard), 1);
    brig_ctl_client_close(d);
    end(&s);
}

static void reply_to_nobody(void **state)
{
    struct brig_ctl_server *ctl;
    struct server seen = {0};
    struct brig_buf req = {0}, out = {0};
    char real[BRIG_URL_MAX];
    uint32_t peer;
    (void)state;
    util_url(UTIL_ABSTRACT, seen.url);
    assert_int_equal(brig_ctl_listen(&ctl, seen.url, real, gone, &seen, &why), 0);
    assert_int_equal(brig_ctl_recv(ctl, &req, &peer, 10, &why), -BRIG_ETIMEOUT);
    assert_int_equal(brig_buf_add(&out, "x", 1), 0);
    assert_int_equal(brig_ctl_reply(ctl, &out, &why), -BRIG_EINTERNAL); /* nobody asked */
    struct brig_ctl_client *c = dial(&seen);
    assert_int_equal(ask(c, BRIG_CONTROL_STATUS, 1, 20), -BRIG_ETIMEOUT);
    assert_int_equal(brig_ctl_recv(ctl, &req, &peer, LONG, &why), 0);
    brig_ctl_client_close(c);
    wait_until(&seen.n_gone, 1);
    assert_int_equal(atomic_load(&seen.last_gone), peer);
    assert_int_equal(brig_ctl_reply(ctl, &out, &why), -BRIG_EDEAD);
    /* One that went before its question was taken is not heard of at all, or it is also said to have gone. */
    c = dial(&seen);
    assert_int_equal(ask(c, BRIG_CONTROL_STATUS, 1, 20), -BRIG_ETIMEOUT);
    brig_ctl_client_close(c);
    if (brig_ctl_recv(ctl, &req, &peer, 100, &why) == 0)
        wait_until(&seen.n_gone, 2);
    else
        assert_int_equal(atomic_load(&seen.n_gone), 1);
    brig_buf_release(&req);
    brig_buf_release(&out);
    brig_ctl_server_close(ctl);
}

/* The answer to STOP arrives although the server closes right after it. */
static void last_answer_arrives(void **state)
{
    (void)state;
    for (int round = 0; round < 40; round++) {
        struct server s;
        start(&s, round % UTIL_KINDS);
        struct brig_ctl_client *c = dial(&s);
        int r = ask(c, BRIG_CONTROL_STOP, 1, LONG);
        if (r != 0)
            fail_msg("round %d: %s", round, why.text);
        brig_ctl_client_close(c);
        end(&s);
    }
}

static void bad_answers(void **state)
{
    struct brig_ctl_server *ctl;
    char url[BRIG_URL_MAX], real[BRIG_URL_MAX];
    struct brig_buf out = {0};
    (void)state;
    util_url(UTIL_INPROC, url);
    assert_int_equal(brig_ctl_listen(&ctl, url, real, NULL, NULL, &why), 0);
    static char large[BRIG_CONTROL_MAX_BYTES + 1];
    assert_int_equal(brig_buf_add(&out, large, sizeof large), 0);
    struct server s = {.ctl = ctl};
    memcpy(s.url, real, sizeof real);
    struct brig_ctl_client *c = dial(&s);
    assert_int_equal(ask(c, BRIG_CONTROL_STATUS, 1, 20), -BRIG_ETIMEOUT);
    struct brig_buf req = {0};
    uint32_t peer;
    assert_int_equal(brig_ctl_recv(ctl, &req, &peer, LONG, &why), 0);
    assert_int_equal(brig_ctl_reply(ctl, &out, &why), -BRIG_ELIMIT);
    brig_ctl_client_close(c);
    brig_ctl_server_close(ctl);
    brig_buf_release(&out);
    brig_buf_release(&req);
}

/* A server on every address of the machine gives data addresses that others can dial. */
static void every_address(void **state)
{
    struct brig_ctl_server *ctl;
    struct server s = {0};
    struct brig_buf req = {0};
    char real[BRIG_URL_MAX], data[BRIG_URL_MAX];
    uint32_t peer;
    unsigned port;
    (void)state;
    assert_int_equal(brig_ctl_listen(&ctl, "tcp://0.0.0.0:0", real, NULL, NULL, &why), 0);
    assert_int_equal(sscanf(real, "tcp://0.0.0.0:%u", &port), 1);
    assert_int_equal(brig_ctl_data_url(ctl, data, &why), -BRIG_EINTERNAL); /* nobody has asked */
    snprintf(s.url, sizeof s.url, "tcp://127.0.0.1:%u", port);
    struct brig_ctl_client *c = dial(&s);
    assert_int_equal(ask(c, BRIG_CONTROL_STATUS, 1, 20), -BRIG_ETIMEOUT);
    assert_int_equal(brig_ctl_recv(ctl, &req, &peer, LONG, &why), 0);
    assert_int_equal(brig_ctl_data_url(ctl, data, &why), 0);
    assert_string_equal(data, "tcp://127.0.0.1:0");
    brig_ctl_client_close(c);
    brig_ctl_server_close(ctl);
    brig_buf_release(&req);
    util_url(UTIL_ABSTRACT, s.url);
    assert_int_equal(brig_ctl_listen(&ctl, s.url, real, NULL, NULL, &why), 0);
    assert_int_equal(brig_ctl_data_url(ctl, data, &why), 0);
    assert_memory_equal(data, real, strlen(real));
    brig_ctl_server_close(ctl);
}

/* Bytes of strangers on the control port: it serves its clients as before. */
static void strangers(void **state)
{
    struct server s;
    (void)state;
    start(&s, UTIL_TCP);
    struct brig_ctl_client *c = dial(&s);
    unsigned port;
    assert_int_equal(sscanf(s.url, "tcp://127.0.0.1:%u", &port), 1);
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    static const char *const lines[] = {"GET / HTTP/1.0\r\n\r\n", "\0SP\0\0\x30\0\0", ""};
    static const char huge[] = "\0SP\0\0\x30\0\0\x7f\xff\xff\xff\xff\xff\xff\xff";
    for (int i = 0; i < 4; i++) {
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        assert_int_equal(connect(fd, (struct sockaddr *)&a, sizeof a), 0);
        const char *bytes = i < 3 ? lines[i] : huge;
        size_t n = i == 1 ? 8 : i == 3 ? 16 : strlen(bytes);
        assert_int_equal(send(fd, bytes, n, MSG_NOSIGNAL), (ssize_t)n);
        assert_int_equal(ask(c, BRIG_CONTROL_STATUS, 5, LONG), 0);
        close(fd);
    }
    struct brig_ctl_client *late = dial(&s);
    assert_int_equal(ask(late, BRIG_CONTROL_STATUS, 6, LONG), 0);
    brig_ctl_client_close(late);
    brig_ctl_client_close(c);
    end(&s);
}

/* Signals belong to the main thread: NNG's threads have them blocked. */
static volatile sig_atomic_t caught_by_main;
static pthread_t main_thread;
static void on_signal(int sig)
{
    (void)sig;
    caught_by_main = pthread_equal(pthread_self(), main_thread) ? 1 : 2;
}

static void signals_are_the_main_threads(void **state)
{
    struct sigaction sa = {.sa_handler = on_signal};
    sigset_t one, old;
    (void)state;
    main_thread = pthread_self();
    sigaction(SIGUSR1, &sa, NULL);
    sigemptyset(&one);
    sigaddset(&one, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &one, &old);
    kill(getpid(), SIGUSR1); /* any thread that lets it in would take it now */
    struct timespec t = {.tv_nsec = 20 * 1000 * 1000};
    nanosleep(&t, NULL);
    assert_int_equal(caught_by_main, 0);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    assert_int_equal(caught_by_main, 1);
}

static int fini(void **state)
{
    (void)state;
    brig_link_fini();
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(questions),
        cmocka_unit_test(clients_are_told_apart),
        cmocka_unit_test(no_answer),
        cmocka_unit_test(server_dies),
        cmocka_unit_test(client_dies),
        cmocka_unit_test(reply_to_nobody),
        cmocka_unit_test(last_answer_arrives),
        cmocka_unit_test(bad_answers),
        cmocka_unit_test(every_address),
        cmocka_unit_test(strangers),
        cmocka_unit_test(signals_are_the_main_threads),
    };
    return cmocka_run_group_tests(tests, NULL, fini);
}
