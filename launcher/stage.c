/* The process of a stage: ready line, end, and the words for how it ended. */
#include "launcher/stage.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "proto/base/clock.h"

void brig_stage_name(const struct brig_stage *s, char *out, size_t cap)
{
    bool head = brig_cells_has_head(s->cells, s->n_layers);
    uint32_t last = head ? s->n_layers : s->cells.last;
    if (s->cells.first == last)
        snprintf(out, cap, "shard %u (head)", s->number);
    else
        snprintf(out, cap, "shard %u (layers %u:%u%s)", s->number, s->cells.first, last,
                 head ? ", head" : "");
}

static void close_fd(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

/* What the process said last, if we have not read it: a line "error TEXT" among those that are left. */
static void last_words(struct brig_stage *s)
{
    char text[2048], *save = NULL;
    if (s->ready_fd < 0 || s->words[0] != '\0' || fcntl(s->ready_fd, F_SETFL, O_NONBLOCK) < 0)
        return;
    ssize_t n = read(s->ready_fd, text, sizeof text - 1);
    text[n > 0 ? n : 0] = '\0';
    for (char *line = strtok_r(text, "\n", &save); line != NULL; line = strtok_r(NULL, "\n", &save))
        if (strncmp(line, "error ", 6) == 0)
            snprintf(s->words, sizeof s->words, "%.390s", line + 6);
}

static void ended(struct brig_stage *s, int status)
{
    last_words(s);
    s->wait_status = status;
    s->pid = 0;
    s->is_ready = false;
    close_fd(&s->pid_fd);
    close_fd(&s->ready_fd);
}

bool brig_stage_poll(struct brig_stage *s)
{
    int status = 0;
    if (s->pid == 0)
        return false;
    pid_t r = waitpid(s->pid, &status, WNOHANG);
    if (r == 0 || (r < 0 && errno == EINTR))
        return true;
    ended(s, r < 0 ? 0 : status); /* ECHILD: somebody ignores SIGCHLD; all we know is that it is gone */
    return false;
}

static void wait_end(struct brig_stage *s, uint64_t deadline_ns)
{
    while (brig_stage_poll(s)) {
        uint64_t now = brig_clock_ns();
        if (now >= deadline_ns)
            return;
        struct pollfd p = {.fd = s->pid_fd, .events = POLLIN};
        poll(&p, 1, (int)((deadline_ns - now) / BRIG_NS_PER_MS) + 1);
    }
}

void brig_stage_end(struct brig_stage *s, uint32_t timeout_ms)
{
    wait_end(s, brig_clock_ns() + timeout_ms * BRIG_NS_PER_MS);
    if (s->pid == 0)
        return;
    kill(s->pid, SIGKILL);
    wait_end(s, brig_clock_ns() +
                    10 * BRIG_NS_PER_S); /* a process in an uninterruptible read can take a while */
}

int brig_stage_fail(const struct brig_stage *s, struct brig_fail *fail)
{
    char name[64];
    brig_stage_name(s, name, sizeof name);
    if (s->words[0] != '\0')
        return brig_fail_set(fail, BRIG_EDEAD, "%s: %s", name, s->words);
    if (brig_enclosure_blame(s->enclosure, name, s->wait_status, fail))
        return -BRIG_ELIMIT;
    if (WIFSIGNALED(s->wait_status))
        return brig_fail_set(fail, BRIG_EDEAD, "%s was killed by signal %d (%s)", name,
                             WTERMSIG(s->wait_status), strsignal(WTERMSIG(s->wait_status)));
    return brig_fail_set(fail, BRIG_EDEAD, "%s ended too early with exit code %d", name,
                         WEXITSTATUS(s->wait_status));
}

/* One line from the pipe into out, without its newline; false at its end, at the deadline or when it is too
 * long. */
static bool read_line(int fd, char *out, size_t cap, uint64_t deadline_ns)
{
    size_t n = 0;
    while (n + 1 < cap) {
        uint64_t now = brig_clock_ns();
        struct pollfd p = {.fd = fd, .events = POLLIN};
        if (now >= deadline_ns || poll(&p, 1, (int)((deadline_ns - now) / BRIG_NS_PER_MS) + 1) == 0)
            return false;
        ssize_t got = read(fd, out + n, cap - 1 - n);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return false;
        n += (size_t)got;
        out[n] = '\0';
        char *end = strchr(out, '\n');
        if (end != NULL) {
            *end = '\0';
            return true;
        }
    }
    return false;
}

/* "ready URL NANOSECONDS": the child's own clock, for we may read the line much later than it was written. */
static bool parse_ready(struct brig_stage *s, const char *line)
{
    unsigned long long ready_ns;
    char url[BRIG_URL_MAX];
    _Static_assert(BRIG_URL_MAX == 256, "the width in the format below");
    if (sscanf(line, "ready %255s %llu", url, &ready_ns) != 2)
        return false;
    memcpy(s->control_url, url, sizeof url);
    s->start_ns = ready_ns > s->spawned_ns ? ready_ns - s->spawned_ns : 0;
    return true;
}

int brig_stage_wait_ready(struct brig_stage *s, uint64_t deadline_ns, struct brig_fail *fail)
{
    char line[1024] = "", name[64];
    brig_stage_name(s, name, sizeof name);
    if (s->is_ready)
        return 0;
    if (s->pid == 0)
        return brig_stage_fail(s, fail);
    bool got = read_line(s->ready_fd, line, sizeof line, deadline_ns);
    if (got && parse_ready(s, line)) {
        s->is_ready = true;
        return 0;
    }
    if (got && strncmp(line, "error ", 6) == 0)
        snprintf(s->words, sizeof s->words, "%.390s", line + 6);
    bool late = !got && brig_clock_ns() >= deadline_ns;
    brig_stage_end(s, late ? 0 : 1000);
    if (late)
        return brig_fail_set(fail, BRIG_ETIMEOUT, "%s was started and is not ready in time", name);
    return brig_stage_fail(s, fail);
}
