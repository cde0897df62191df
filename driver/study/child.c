/*
 * Running a program to its end. It may leave processes behind that hold its pipes for a while: the end is the
 * end of the program itself, and what is in the pipes then.
 */
#include "driver/study/child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "proto/base/clock.h"

#define TICK_MS  50
#define GRACE_MS 10000u

extern char **environ;

struct child {
    pid_t pid;
    int out, err; /* our ends; -1: closed */
    int theirs[3];
};

static void close_all(int *fds, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        if (fds[i] >= 0)
            close(fds[i]);
        fds[i] = -1;
    }
}

static int input_of(const char *text)
{
    if (text == NULL)
        return open("/dev/null", O_RDONLY | O_CLOEXEC);
    int fd = memfd_create("brigade-input", MFD_CLOEXEC);
    size_t n = strlen(text), done = 0;
    while (fd >= 0 && done < n) {
        ssize_t w = pwrite(fd, text + done, n - done, (off_t)done);
        if (w < 0 && errno == EINTR)
            continue;
        if (w <= 0) {
            close(fd);
            return -1;
        }
        done += (size_t)w;
    }
    return fd;
}

static int open_pipes(struct child *c, const char *input)
{
    int out[2] = {-1, -1}, err[2] = {-1, -1};
    c->theirs[0] = input_of(input);
    if (c->theirs[0] < 0 || pipe2(out, O_CLOEXEC | O_NONBLOCK) < 0 ||
        pipe2(err, O_CLOEXEC | O_NONBLOCK) < 0) {
        close_all(out, 2);
        return -1;
    }
    c->out = out[0];
    c->err = err[0];
    c->theirs[1] = out[1];
    c->theirs[2] = err[1];
    /* The flag is of the pipe's end: theirs must block. */
    return fcntl(out[1], F_SETFL, 0) < 0 || fcntl(err[1], F_SETFL, 0) < 0 ? -1 : 0;
}

static int spawn(struct child *c, const struct brig_child_opts *o)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attr;
    sigset_t pipes;
    sigemptyset(&pipes);
    sigaddset(&pipes, SIGPIPE); /* ignored here, and that would be inherited */
    int r = posix_spawn_file_actions_init(&actions);
    if (r != 0)
        return r;
    r = posix_spawnattr_init(&attr);
    for (int i = 0; r == 0 && i < 3; i++)
        r = posix_spawn_file_actions_adddup2(&actions, c->theirs[i], i);
    if (r == 0)
        r = posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGDEF);
    if (r == 0)
        r = posix_spawnattr_setsigdefault(&attr, &pipes);
    if (r == 0)
        r = posix_spawnp(&c->pid, o->argv[0], &actions, &attr, o->argv, environ);
    posix_spawnattr_destroy(&attr);
    posix_spawn_file_actions_destroy(&actions);
    return r;
}

/* What is there now; closes *fd at its end. keep: how much of it; false when there is more than that. */
static bool take(int *fd, struct brig_buf *to, size_t keep)
{
    char piece[16384];
    while (*fd >= 0) {
        ssize_t n = read(*fd, piece, sizeof piece);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            return true;
        if (n <= 0) {
            close(*fd);
            *fd = -1;
            return true;
        }
        size_t room = keep - to->len, add = (size_t)n < room ? (size_t)n : room;
        if (brig_buf_add(to, piece, add) < 0 || add < (size_t)n)
            return false;
    }
    return true;
}

static bool take_both(struct child *c, struct brig_child_end *e)
{
    if (!take(&c->out, &e->out, BRIG_CHILD_OUT_MAX))
        return false;
    /* The rest of what it says on standard error is read and dropped; bounded, for it may say it fast. */
    for (unsigned i = 0; i < 1000 && !take(&c->err, &e->err, BRIG_CHILD_ERR_MAX); i++)
        continue;
    return true;
}

static bool cancelled(const struct brig_child_opts *o)
{
    return o->cancel != NULL && *o->cancel != 0;
}

/* Ask, then make: called in every tick. */
static void end_in_time(const struct child *c, const struct brig_child_opts *o, uint64_t began_ns,
                        uint64_t *asked_ns, struct brig_child_end *e)
{
    uint64_t now = brig_clock_ns();
    bool late = now - began_ns > (uint64_t)o->timeout_ms * BRIG_NS_PER_MS;
    if (*asked_ns == 0 && (late || cancelled(o))) {
        e->late = !cancelled(o);
        *asked_ns = now;
        kill(c->pid, SIGTERM);
    } else if (*asked_ns != 0 && now - *asked_ns > GRACE_MS * BRIG_NS_PER_MS) {
        kill(c->pid, SIGKILL);
    }
}

static int wait_for(struct child *c, const struct brig_child_opts *o, struct brig_child_end *e,
                    struct brig_fail *fail)
{
    uint64_t began = brig_clock_ns(), asked = 0;
    bool fits = true;
    for (;;) {
        struct pollfd p[2] = {{.fd = c->out, .events = POLLIN}, {.fd = c->err, .events = POLLIN}};
        poll(p, 2, TICK_MS);
        fits = fits && take_both(c, e);
        if (!fits && asked == 0) {
            asked = brig_clock_ns();
            kill(c->pid, SIGTERM);
        }
        pid_t ended = waitpid(c->pid, &e->wait_status, WNOHANG);
        if (ended == c->pid)
            break;
        if (ended < 0 && errno != EINTR)
            return brig_fail_errno(fail, BRIG_EIO, "%s: cannot be waited for", o->argv[0]);
        end_in_time(c, o, began, &asked, e);
    }
    fits = fits && take_both(c, e);
    if (cancelled(o))
        return brig_fail_set(fail, BRIG_ECANCELLED, "cancelled");
    return fits ? 0
                : brig_fail_set(fail, BRIG_ELIMIT, "%s: it wrote more than %zu bytes", o->argv[0],
                                BRIG_CHILD_OUT_MAX);
}

int brig_child_run(const struct brig_child_opts *o, struct brig_child_end *ret, struct brig_fail *fail)
{
    struct child c = {.out = -1, .err = -1, .theirs = {-1, -1, -1}};
    memset(ret, 0, sizeof *ret);
    int r = open_pipes(&c, o->input) < 0 ? errno : spawn(&c, o);
    close_all(c.theirs, 3);
    if (r != 0) {
        errno = r;
        r = brig_fail_errno(fail, BRIG_EIO, "%s: cannot be started", o->argv[0]);
    } else {
        r = wait_for(&c, o, ret, fail);
    }
    close_all(&c.out, 1);
    close_all(&c.err, 1);
    return r;
}

void brig_child_release(struct brig_child_end *e)
{
    brig_buf_release(&e->out);
    brig_buf_release(&e->err);
}

void brig_child_last_words(const struct brig_child_end *e, char *out, size_t n)
{
    size_t len = e->err.len;
    while (len > 0 && e->err.data[len - 1] == '\n')
        len--;
    const char *begin = len == 0 ? NULL : memrchr(e->err.data, '\n', len);
    begin = begin == NULL ? e->err.data : begin + 1;
    size_t words = len == 0 ? 0 : (size_t)(e->err.data + len - begin);
    const char *colon = words == 0 ? NULL : memmem(begin, words, ": ", 2);
    if (colon != NULL && words >= 8 && memcmp(begin, "brigade ", 8) == 0) {
        words -= (size_t)(colon + 2 - begin);
        begin = colon + 2;
    }
    snprintf(out, n, "%.*s", (int)(words < n ? words : n - 1), words == 0 ? "" : begin);
}
