/* Signals and the launcher's pipe. Called by main. */
#include "shard/watch.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "shard/bus.h"

/* The launcher holds the only write end: its end of file is the launcher's death, however it died. */
static void *watch_pipe(void *arg)
{
    int fd = (int)(intptr_t)arg;
    char c;
    ssize_t n;
    do {
        n = read(fd, &c, 1);
    } while (n > 0 || (n < 0 && errno == EINTR));
    _exit(1);
}

static int start_thread(void *(*fn)(void *), void *arg, struct brig_fail *fail)
{
    pthread_t thread;
    int r = pthread_create(&thread, NULL, fn, arg);
    if (r != 0)
        return brig_fail_set(fail, BRIG_ELIMIT, "no thread to watch: %s", strerror(r));
    pthread_detach(thread);
    return 0;
}

static int bind_to_launcher(const struct brig_shard_args *a, struct brig_fail *fail)
{
    /* First the signal, then the look: a parent that dies between them is noticed by one of the two. */
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
        return brig_fail_errno(fail, BRIG_EINTERNAL, "prctl");
    if (a->parent != 0 && (long)getppid() != a->parent)
        return brig_fail_set(fail, BRIG_EDEAD, "the launcher (process %ld) is gone", a->parent);
    return a->watch_fd >= 0 ? start_thread(watch_pipe, (void *)(intptr_t)a->watch_fd, fail) : 0;
}

static void stop_signals(sigset_t *set)
{
    sigemptyset(set);
    sigaddset(set, SIGINT);
    sigaddset(set, SIGTERM);
}

int brig_watch_start(const struct brig_shard_args *args, struct brig_fail *fail)
{
    sigset_t stop;
    brig_bus_install();
    brig_bus_tell(args->ready_fd);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
    if (args->launched)
        return bind_to_launcher(args, fail);
    stop_signals(&stop); /* every later thread inherits the mask; one of them takes the signals */
    pthread_sigmask(SIG_BLOCK, &stop, NULL);
    return 0;
}

struct signals_job {
    void (*quit)(void *ctx);
    void *ctx;
};

static void *watch_signals(void *arg)
{
    const struct signals_job *j = arg;
    sigset_t stop;
    int signal_number;
    stop_signals(&stop);
    while (sigwait(&stop, &signal_number) == 0)
        j->quit(j->ctx);
    return NULL;
}

int brig_watch_signals(void (*quit)(void *ctx), void *ctx, struct brig_fail *fail)
{
    static struct signals_job job; /* read by the thread until the process ends */
    job = (struct signals_job){quit, ctx};
    return start_thread(watch_signals, &job, fail);
}
