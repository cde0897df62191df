/* Shared by the tests of the real brigade-shard: starting and ending it, and playing its driver. */
#ifndef BRIG_TESTS_UNIT_SERVE_UTIL_H
#define BRIG_TESTS_UNIT_SERVE_UTIL_H

#include "shard_util.h"

#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>

#include "proto/base/clock.h"
#include "proto/link/link.h"

extern char **environ;

#ifdef BRIG_SANITIZED
enum { PATIENCE_MS = 30000 };
#else
enum { PATIENCE_MS = 10000 };
#endif

/* The program beside this test's folder. */
static inline const char *shard_program(void)
{
    static char path[PATH_MAX];
    char self[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    assert_in_range(n, 1, sizeof self - 1);
    self[n] = '\0';
    int len = snprintf(path, sizeof path, "%s/../brigade-shard", dirname(self));
    assert_in_range(len, 1, sizeof path - 1);
    if (access(path, X_OK) != 0)
        fail_msg("%s is missing: build it first", path);
    return path;
}

struct process {
    pid_t pid;
    int words; /* its stderr */
    char text[4096];
    size_t n;
};

/* Those that still live; a test that fails must not leave any. */
static pid_t living[64];

static inline void living_set(pid_t from, pid_t to)
{
    for (unsigned i = 0; i < sizeof living / sizeof living[0]; i++)
        if (living[i] == from) {
            living[i] = to;
            return;
        }
}

static inline void kill_processes(void)
{
    for (unsigned i = 0; i < sizeof living / sizeof living[0]; i++)
        if (living[i] != 0)
            kill(living[i], SIGKILL);
}

/* Start it with these arguments (NULL-terminated, without the program's name) and descriptors: keep[i]
 * becomes 3 + i. */
static inline void start(struct process *p, char *const *args, const int *keep, unsigned n_keep)
{
    char *argv[40] = {(char *)"brigade-shard"};
    posix_spawn_file_actions_t actions;
    int err[2];
    unsigned n = 1;
    memset(p, 0, sizeof *p);
    for (; *args != NULL; args++) {
        assert_in_range(n, 1, 38);
        argv[n++] = *args;
    }
    assert_int_equal(pipe2(err, O_CLOEXEC), 0);
    assert_int_equal(posix_spawn_file_actions_init(&actions), 0);
    posix_spawn_file_actions_adddup2(&actions, err[1], 2);
    for (unsigned i = 0; i < n_keep; i++)
        posix_spawn_file_actions_adddup2(&actions, keep[i], 3 + (int)i);
    assert_int_equal(posix_spawn(&p->pid, shard_program(), &actions, NULL, argv, environ), 0);
    living_set(0, p->pid);
    posix_spawn_file_actions_destroy(&actions);
    close(err[1]);
    p->words = err[0];
}

/* Read what it says until `word` is in it, or its end; false at the deadline or the end. */
static inline bool hear(struct process *p, const char *word)
{
    uint64_t until = brig_clock_ns() + PATIENCE_MS * BRIG_NS_PER_MS;
    while (strstr(p->text, word) == NULL) {
        struct pollfd f = {.fd = p->words, .events = POLLIN};
        if (brig_clock_ns() > until || poll(&f, 1, 100) < 0)
            return false;
        if (f.revents == 0)
            continue;
        ssize_t got = read(p->words, p->text + p->n, sizeof p->text - 1 - p->n);
        if (got <= 0)
            return false;
        p->n += (size_t)got;
        p->text[p->n] = '\0';
    }
    return true;
}

/* Its wait status; kills what does not end by itself. */
static inline int wait_end(struct process *p)
{
    uint64_t until = brig_clock_ns() + PATIENCE_MS * BRIG_NS_PER_MS;
    int status = 0;
    bool killed = false;
    while (waitpid(p->pid, &status, WNOHANG) == 0) {
        if (!killed && brig_clock_ns() > until) {
            kill(p->pid, SIGKILL);
            killed = true;
        }
        poll(NULL, 0, 2);
    }
    living_set(p->pid, 0);
    hear(p, "\1"); /* the rest of its words */
    close(p->words);
    if (killed)
        fail_msg("brigade-shard did not end: %s", p->text);
    return status;
}

static inline void assert_exit(struct process *p, int code)
{
    int status = wait_end(p);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != code)
        fail_msg("wait status %#x, wanted exit code %d: %s", status, code, p->text);
}

/* ---- the driver's side ---- */

struct driver {
    const struct brig_model *model;
    struct brig_ctl_client *ctl;
    const struct brig_link *link;
    struct brig_rx *rx;
    struct brig_tx *tx;
    char rx_url[BRIG_URL_MAX];
    uint64_t run_id;
    uint32_t max_rows, n_stages;
    uint64_t frame_id;
    struct brig_frame got;
};

static inline void driver_open(struct driver *d, const struct brig_model *m, const char *control)
{
    static unsigned count;
    struct brig_fail fail;
    char url[BRIG_URL_MAX];
    memset(d, 0, sizeof *d);
    d->model = m;
    d->run_id = 1000 + ++count;
    d->max_rows = 32;
    d->n_stages = 1;
    snprintf(url, sizeof url, "abstract://brigade-test-driver-%d-%u", (int)getpid(), count);
    d->link = brig_link_for(url, &fail);
    if (d->link == NULL || d->link->listen(&d->rx, url, 1 << 26, d->rx_url, &fail) < 0 ||
        brig_ctl_dial(&d->ctl, control, PATIENCE_MS, &fail) < 0)
        fail_msg("%s", fail.text);
}

static inline void driver_close(struct driver *d)
{
    if (d->tx != NULL)
        d->link->tx_close(d->tx);
    brig_ctl_client_close(d->ctl);
    d->link->rx_close(d->rx);
}

static inline struct brig_reply call(struct driver *d, enum brig_control_kind kind)
{
    struct brig_request req = {.kind = kind, .run_id = d->run_id};
    struct brig_reply reply;
    struct brig_fail fail;
    if (brig_ctl_call(d->ctl, &req, &reply, PATIENCE_MS, &fail) < 0)
        fail_msg("%s", fail.text);
    return reply;
}

static inline struct brig_request attach_request(const struct driver *d)
{
    struct brig_request req = {.kind = BRIG_CONTROL_ATTACH,
                               .run_id = d->run_id,
                               .n_stages = d->n_stages,
                               .max_rows = d->max_rows,
                               .ctx = 64,
                               .slots = 2};
    memcpy(req.identity, d->model->identity, sizeof req.identity);
    brig_numeric_class(req.numeric_class, false, "f16");
    memcpy(req.next_url, d->rx_url, sizeof req.next_url);
    return req;
}

static inline struct brig_reply ask(struct driver *d, const struct brig_request *req)
{
    struct brig_reply reply;
    struct brig_fail fail;
    if (brig_ctl_call(d->ctl, req, &reply, PATIENCE_MS, &fail) < 0)
        fail_msg("%s", fail.text);
    return reply;
}

static inline void attach(struct driver *d, char data_url[BRIG_URL_MAX])
{
    struct brig_request req = attach_request(d);
    struct brig_reply reply = ask(d, &req);
    struct brig_fail fail;
    if (reply.err != BRIG_OK)
        fail_msg("attach: %s", reply.text);
    if (d->link->dial(&d->tx, reply.data_url, 1 << 26, PATIENCE_MS, &fail) < 0)
        fail_msg("%s", fail.text);
    memcpy(data_url, reply.data_url, BRIG_URL_MAX);
}

/* A frame of this run; the caller sets what differs. */
static inline struct brig_frame frame_of(struct driver *d)
{
    return (struct brig_frame){
        .run_id = d->run_id, .frame_id = ++d->frame_id, .n_stages = d->n_stages, .n_parts = 1};
}

static inline void send_message(struct driver *d, struct brig_msg *m)
{
    struct brig_fail fail;
    if (d->link->send(d->tx, m, PATIENCE_MS, &fail) < 0)
        fail_msg("%s", fail.text);
}

static inline void send_frame(struct driver *d, struct brig_frame *f, const float *h)
{
    struct brig_fail fail;
    if (brig_frame_layout(f, &fail) < 0)
        fail_msg("%s", fail.text);
    struct brig_msg *m = brig_msg_new(f->message_bytes);
    assert_non_null(m);
    assert_int_equal(brig_frame_encode(f, brig_msg_data(m), f->message_bytes, &fail), 0);
    if (f->payload_bytes > 0)
        memcpy((uint8_t *)brig_msg_data(m) + f->payload_offset, h, f->payload_bytes);
    send_message(d, m);
}

/* What comes back, decoded into d->got; NULL when nothing comes in timeout_ms. Free it. */
static inline struct brig_msg *receive(struct driver *d, uint32_t timeout_ms)
{
    struct brig_msg *m;
    struct brig_fail fail = {.text = "?"};
    int r = d->link->recv(d->rx, &m, timeout_ms, &fail);
    if (r == -BRIG_ETIMEOUT)
        return NULL;
    if (r < 0 || brig_frame_decode(&d->got, brig_msg_data(m), brig_msg_len(m), &fail) < 0)
        fail_msg("%s", fail.text);
    return m;
}

static inline const uint8_t *payload_of(const struct driver *d, struct brig_msg *m)
{
    return (const uint8_t *)brig_msg_data(m) + d->got.payload_offset;
}

#endif
