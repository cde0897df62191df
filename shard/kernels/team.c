/*
 * The thread team. One team per shard; the shard's compute thread calls brig_team_run, everything else
 * happens here.
 *
 * Pieces are claimed from one 64-bit ticket: the run's number above, the next piece below. Before the fields
 * of a run are written the ticket is closed (the new number, no piece left), and opened when they stand. So a
 * successful claim proves that the fields read before it belong to the run that the ticket names: a thread
 * that comes late can never do a piece of the next run with the function of the last one.
 */
#include "shard/kernels/team.h"

#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "proto/base/clock.h"
#include "proto/base/mem.h"
#include "shard/kernels/cpus.h"
#include "shard/kernels/crowd.h"

enum { SPIN_PAUSES = 1000, THREADS_MAX = 4096 };

struct worker {
    struct brig_team *team;
    unsigned thread;
    pthread_t id;
    atomic_int tid;     /* the kernel's number; 0: not known yet */
    uint64_t waited_ns; /* for a CPU, at the end of the last window */
};

struct brig_team {
    unsigned n_threads;
    unsigned n_started; /* workers that exist: thread numbers 1..n_started */
    unsigned spin_pauses;
    struct worker *workers;

    struct brig_crowd crowd; /* the caller's, as what follows */
    uint64_t window_ns;      /* when the present window began */

    _Alignas(64) _Atomic uint64_t ticket; /* run number << 32 | next piece */
    _Atomic(brig_team_fn) fn;
    _Atomic(void *) ctx;
    _Atomic uint32_t n_pieces;

    _Alignas(64) _Atomic uint32_t done; /* pieces finished in this run; the caller's futex */
    atomic_bool caller_waits;

    _Alignas(64) _Atomic uint32_t call; /* goes up by one for each run; the workers' futex */
    _Atomic uint32_t n_asleep;
    _Atomic uint32_t limit; /* threads from this number on stay out; their futex */
    atomic_bool resting, stop;

    _Alignas(64) atomic_uint_fast64_t progress;
};

static void futex_wait(_Atomic uint32_t *word, uint32_t seen)
{
    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, seen, NULL, NULL, 0);
}

static void futex_wake(_Atomic uint32_t *word, uint32_t n)
{
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, n < INT_MAX ? (int)n : INT_MAX, NULL, NULL, 0);
}

static void pause_cpu(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

static void finish_piece(struct brig_team *t, uint32_t n_pieces)
{
    atomic_fetch_add(&t->progress, 1);
    uint32_t done = atomic_fetch_add(&t->done, 1) + 1;
    if (done == n_pieces && atomic_load(&t->caller_waits))
        futex_wake(&t->done, 1);
}

/* Claim and do pieces until the present run has none left. */
static void work(struct brig_team *t, unsigned thread)
{
    uint64_t ticket = atomic_load(&t->ticket);
    for (;;) {
        brig_team_fn fn = atomic_load(&t->fn);
        void *ctx = atomic_load(&t->ctx);
        uint32_t n = atomic_load(&t->n_pieces);
        if ((uint32_t)ticket >= n) /* all claimed, or closed: the run that is being written wakes us itself */
            return;
        if (atomic_compare_exchange_weak(&t->ticket, &ticket, ticket + 1)) {
            fn(ctx, thread, (uint32_t)ticket);
            finish_piece(t, n);
            ticket = atomic_load(&t->ticket);
        }
    }
}

/* Wait for the next run: spin a little, then sleep. */
static void await_call(struct brig_team *t, uint32_t seen)
{
    for (unsigned i = 0; i < t->spin_pauses && !atomic_load(&t->resting); i++) {
        if (atomic_load(&t->call) != seen)
            return;
        pause_cpu();
    }
    atomic_fetch_add(&t->n_asleep, 1);
    while (atomic_load(&t->call) == seen)
        futex_wait(&t->call, seen);
    atomic_fetch_sub(&t->n_asleep, 1);
}

/* Sleep while this thread is one too many; false when it works. */
static bool stay_out(struct brig_team *t, unsigned thread)
{
    uint32_t limit = atomic_load(&t->limit);
    if (thread < limit)
        return false;
    futex_wait(&t->limit, limit);
    return true;
}

static void *worker_main(void *arg)
{
    struct worker *w = arg;
    struct brig_team *t = w->team;
    atomic_store(&w->tid, (int)syscall(SYS_gettid));
    for (uint32_t seen = 0; !atomic_load(&t->stop);) {
        if (stay_out(t, w->thread))
            continue;
        await_call(t, seen);
        seen = atomic_load(&t->call);
        if (w->thread < atomic_load(&t->limit))
            work(t, w->thread);
    }
    return NULL;
}

/* Start the workers with all signals blocked: they belong to the program's own threads. */
static int start_workers(struct brig_team *t, struct brig_fail *fail)
{
    sigset_t all, before;
    sigfillset(&all);
    sigdelset(&all, SIGBUS); /* a mapped file that was cut short: whoever touches it must be able to say so */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int rc = 0;
    for (unsigned i = 1; i < t->n_threads && rc == 0; i++) {
        struct worker *w = &t->workers[i];
        w->team = t;
        w->thread = i;
        rc = pthread_create(&w->id, NULL, worker_main, w);
        if (rc == 0)
            t->n_started = i;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (rc != 0)
        return brig_fail_set(fail, BRIG_ELIMIT, "thread %u of %u cannot be started: %s", t->n_started + 1,
                             t->n_threads, strerror(rc));
    return 0;
}

int brig_team_new(struct brig_team **ret, unsigned n_threads, struct brig_fail *fail)
{
    if (n_threads < 1 || n_threads > THREADS_MAX)
        return brig_fail_set(fail, BRIG_ELIMIT, "%u threads: must be 1 to %u", n_threads,
                             (unsigned)THREADS_MAX);
    struct brig_team *t = brig_alloc(1, sizeof *t);
    if (t != NULL)
        t->workers = brig_alloc(n_threads, sizeof *t->workers);
    if (t == NULL || t->workers == NULL) {
        brig_free(t);
        return brig_fail_set(fail, BRIG_ENOMEM, "no memory for a team of %u threads", n_threads);
    }
    t->n_threads = n_threads;
    t->limit = n_threads;
    t->crowd = (struct brig_crowd){.n_threads = n_threads, .limit = n_threads};
    /* More threads than CPUs: spinning would only keep the others from running. */
    t->spin_pauses = n_threads <= brig_team_default_threads() ? SPIN_PAUSES : 0;
    int rc = start_workers(t, fail);
    if (rc != 0) {
        brig_team_free(t);
        return rc;
    }
    *ret = t;
    return 0;
}

void brig_team_free(struct brig_team *t)
{
    if (t == NULL)
        return;
    atomic_store(&t->stop, true);
    brig_team_limit(t, t->n_threads);
    atomic_fetch_add(&t->call, 1);
    futex_wake(&t->call, INT_MAX);
    for (unsigned i = 1; i <= t->n_started; i++)
        pthread_join(t->workers[i].id, NULL);
    brig_free(t->workers);
    brig_free(t);
}

unsigned brig_team_threads(const struct brig_team *t)
{
    return t->n_threads;
}

/* The caller's own pieces are done: wait for those that workers still hold. */
static void await_done(struct brig_team *t, uint32_t n_pieces)
{
    for (unsigned i = 0; i < t->spin_pauses; i++) {
        if (atomic_load(&t->done) == n_pieces)
            return;
        pause_cpu();
    }
    atomic_store(&t->caller_waits, true);
    for (;;) {
        uint32_t done = atomic_load(&t->done);
        if (done == n_pieces)
            break;
        futex_wait(&t->done, done);
    }
    atomic_store(&t->caller_waits, false);
}

void brig_team_limit(struct brig_team *t, unsigned limit)
{
    uint32_t before = atomic_exchange(&t->limit, limit);
    if (before < limit)
        futex_wake(&t->limit, INT_MAX);
}

/* The end of a window: how long the working threads have waited for a CPU in it, at most and at least. */
static void look_at_waits(struct brig_team *t, uint64_t *most_ns, uint64_t *least_ns)
{
    *most_ns = 0;
    *least_ns = UINT64_MAX;
    for (unsigned i = 0; i < t->n_threads; i++) {
        struct worker *w = &t->workers[i];
        int tid = i == 0 ? (int)syscall(SYS_gettid) : atomic_load(&w->tid);
        uint64_t before = w->waited_ns;
        if (tid == 0 || !brig_crowd_waited(tid, &w->waited_ns) || i >= t->crowd.limit)
            continue;
        uint64_t waited = w->waited_ns - before;
        *most_ns = waited > *most_ns ? waited : *most_ns;
        *least_ns = waited < *least_ns ? waited : *least_ns;
    }
}

/* Now and then, by the caller: are there too many of us? */
static void look_around(struct brig_team *t)
{
    uint64_t now = brig_clock_ns(), window = now - t->window_ns;
    if (window < BRIG_CROWD_WINDOW_NS)
        return;
    uint64_t most, least;
    look_at_waits(t, &most, &least);
    if (t->window_ns != 0) {
        unsigned before = t->crowd.limit;
        if (brig_crowd_step(&t->crowd, now, window, most, least) != before)
            brig_team_limit(t, t->crowd.limit);
    }
    t->window_ns = now;
}

void brig_team_run(struct brig_team *t, uint32_t n_pieces, brig_team_fn fn, void *ctx)
{
    if (t->n_threads > 1)
        look_around(t);
    if (n_pieces <= 1 || atomic_load(&t->limit) <= 1) {
        for (uint32_t piece = 0; piece < n_pieces; piece++) {
            fn(ctx, 0, piece);
            atomic_fetch_add(&t->progress, 1);
        }
        return;
    }
    uint64_t run = ((atomic_load(&t->ticket) >> 32) + 1) << 32;
    atomic_store(&t->ticket, run | UINT32_MAX);
    atomic_store(&t->resting, false);
    atomic_store(&t->done, 0);
    atomic_store(&t->fn, fn);
    atomic_store(&t->ctx, ctx);
    atomic_store(&t->n_pieces, n_pieces);
    atomic_store(&t->ticket, run);
    atomic_fetch_add(&t->call, 1);
    if (atomic_load(&t->n_asleep) > 0)
        futex_wake(&t->call, n_pieces - 1);
    work(t, 0);
    await_done(t, n_pieces);
}

atomic_uint_fast64_t *brig_team_progress(struct brig_team *t)
{
    return &t->progress;
}

void brig_team_rest(struct brig_team *t)
{
    atomic_store(&t->resting, true);
}

unsigned brig_team_default_threads(void)
{
    unsigned cpus = brig_cpus_affinity();
    unsigned quota = brig_cpus_quota("/proc/self/cgroup", "/sys/fs/cgroup");
    return quota != 0 && quota < cpus ? quota : cpus;
}
