/*
 * brigade-shard: one process that holds a slice of a model, turns each frame into the next, and is told
 * everything by its arguments and by frames.
 *
 * Reading order: args (what to hold), holding (slice, weights, cache), serve (threads and runs),
 * serve_control (requests), serve_work and serve_answer (frames), block/ (the mathematics).
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "proto/base/clock.h"
#include "proto/base/version.h"
#include "proto/link/link.h"
#include "shard/args.h"
#include "shard/bus.h"
#include "shard/holding.h"
#include "shard/serve.h"
#include "shard/watch.h"

static bool write_line(int fd, const char *line, size_t n)
{
    while (n > 0) {
        ssize_t w = write(fd, line, n);
        if (w < 0 && errno == EINTR)
            continue;
        if (w <= 0)
            return false;
        line += w;
        n -= (size_t)w;
    }
    return true;
}

/* One line for the launcher's pipe: "ready URL NANOSECONDS" or "error TEXT". After "ready" it is kept for
 * last words, which come from a signal handler. */
static bool tell_launcher(struct brig_shard_args *a, const char *word, const char *text)
{
    char line[BRIG_URL_MAX + 512];
    if (a->ready_fd < 0)
        return false;
    int n = snprintf(line, sizeof line, "%s %s\n", word, text);
    bool told = n > 0 && (size_t)n < sizeof line && write_line(a->ready_fd, line, (size_t)n);
    if (!told || strcmp(word, "ready") != 0) {
        brig_bus_tell(-1);
        close(a->ready_fd);
    }
    a->ready_fd = -1;
    return told;
}

static int complain(struct brig_shard_args *a, const struct brig_fail *fail)
{
    if (!tell_launcher(a, "error", fail->text))
        fprintf(stderr, "brigade-shard: %s%s\n", fail->text,
                fail->code == BRIG_EUSAGE ? " (--help has all options)" : "");
    return brig_err_exit(fail->code);
}

static int check_urls(const struct brig_shard_args *a, struct brig_fail *fail)
{
    int r = brig_link_check_url(a->control, a->insecure, fail);
    if (r < 0)
        return brig_fail_prefix(fail, "--control");
    r = a->listen != NULL ? brig_link_check_url(a->listen, a->insecure, fail) : 0;
    return r < 0 ? brig_fail_prefix(fail, "--listen") : 0;
}

/* Private memory all the same, which the kernel may swap. */
static void say_unlocked(const struct brig_weights_stats *w)
{
    if (w->unlocked_bytes > 0)
        fprintf(stderr, "brigade-shard: %.1f MB of weights are in memory, not locked there (see ulimit -l)\n",
                (double)w->unlocked_bytes / 1e6);
}

static void say_ready(struct brig_shard_args *a, const struct brig_serve *s)
{
    const struct brig_holding *h = s->hold;
    char text[BRIG_URL_MAX + 32];
    snprintf(text, sizeof text, "%s %llu", s->control_url, (unsigned long long)brig_clock_ns());
    if (tell_launcher(a, "ready", text) || a->launched)
        return;
    brig_bus_name(h->what);
    struct brig_weights_stats w = brig_weights_stats(h->weights);
    fprintf(stderr,
            "brigade-shard: %s of %s, %.1f MB of weights, %u positions, %u thread%s, kernel %s, \"%s\"\n",
            h->what, a->model, (double)w.held_bytes / 1e6, h->shape.ctx, h->threads,
            h->threads == 1 ? "" : "s", h->kernel->name, h->numeric_class);
    say_unlocked(&w);
    fprintf(stderr, "brigade-shard: listening at %s\n", s->control_url);
}

static void quit(void *serve)
{
    brig_serve_quit(serve);
}

static int serve(struct brig_shard_args *a, struct brig_holding *hold, struct brig_fail *fail)
{
    static struct brig_serve s; /* the signal thread may look at it until the process ends */
    int r = check_urls(a, fail);
    if (r == 0)
        r = brig_serve_open(&s, hold, fail);
    if (r < 0)
        return r;
    r = a->launched ? 0 : brig_watch_signals(quit, &s, fail);
    if (r < 0) {
        brig_serve_close(&s);
        return r;
    }
    say_ready(a, &s);
    brig_serve_work(&s);
    if (a->launched) /* sockets and maps end with the process; nothing of it lies in the file system */
        _exit(0);
    brig_serve_close(&s);
    return 0;
}

int main(int argc, char **argv)
{
    static struct brig_shard_args args; /* large for a stack */
    static struct brig_holding hold;
    struct brig_fail fail = {.code = BRIG_EINTERNAL};
    int r = brig_shard_args_parse(&args, argc, argv, &fail);
    if (r == 0 && (args.help || args.version)) {
        fputs(args.help ? brig_shard_help : "brigade-shard " BRIG_VERSION "\n", stdout);
        return fflush(stdout) == 0 ? 0 : 1;
    }
    if (r == 0)
        r = brig_watch_start(&args, &fail);
    if (r == 0)
        r = brig_holding_init(&hold, &args, &fail);
    if (r == 0)
        r = serve(&args, &hold, &fail);
    int code = r < 0 ? complain(&args, &fail) : 0;
    brig_holding_release(&hold);
    brig_link_fini();
    return code;
}
