/* The thread team: every piece once, whatever the timing; nothing of one run leaks into the next. And the
 * count of CPUs, from made-up cgroup folders. */
#include "tests/unit/kernels_util.h"

#include <ftw.h>
#include <sched.h>
#include <signal.h>
#include <sys/stat.h>
#include <time.h>

#include "proto/base/mem.h"
#include "shard/kernels/cpus.h"
#include "shard/kernels/crowd.h"
#include "shard/kernels/team.h"

enum { PIECES_MAX = 1000 };

struct run {
    uint32_t number; /* differs from run to run: a piece done for another run shows */
    unsigned n_threads;
    uint32_t n_pieces;
    uint32_t done[PIECES_MAX]; /* one writer each, read after the run */
    atomic_uint wrong;
};

static void piece_done(void *ctx, unsigned thread, uint32_t piece)
{
    struct run *r = ctx;
    if (thread >= r->n_threads || piece >= r->n_pieces) {
        atomic_fetch_add(&r->wrong, 1);
        return;
    }
    r->done[piece] += r->number;
}

static void piece_other(void *ctx, unsigned thread, uint32_t piece)
{
    struct run *r = ctx;
    piece_done(ctx, thread, piece);
    if (piece < r->n_pieces)
        r->done[piece] += 1000000;
}

static void check_runs(unsigned n_threads, unsigned n_runs)
{
    struct brig_team *t;
    struct run *runs[2];
    runs[0] = brig_alloc(1, sizeof **runs);
    runs[1] = brig_alloc(1, sizeof **runs);
    assert_int_equal(brig_team_new(&t, n_threads, NULL), 0);
    assert_int_equal(brig_team_threads(t), n_threads);
    uint64_t allocs = brig_alloc_count(), total = 0;
    for (unsigned i = 1; i <= n_runs; i++) {
        struct run *r = runs[i % 2];
        memset(r->done, 0, sizeof r->done);
        r->number = i;
        r->n_threads = n_threads;
        r->n_pieces = i % 50 == 0 ? PIECES_MAX : i % 7;
        if (i % 13 == 0)
            brig_team_rest(t);
        if (i % 17 == 0) /* some stay out, and come back */
            brig_team_limit(t, 1 + i % n_threads);
        brig_team_run(t, r->n_pieces, i % 3 == 0 ? piece_other : piece_done, r);
        total += r->n_pieces;
        assert_true(atomic_load(brig_team_progress(t)) == total);
        for (uint32_t p = 0; p < r->n_pieces; p++)
            assert_int_equal(r->done[p], i + (i % 3 == 0 ? 1000000 : 0));
        for (uint32_t p = r->n_pieces; p < PIECES_MAX; p++)
            assert_int_equal(r->done[p], 0);
        assert_int_equal(atomic_load(&r->wrong), 0);
    }
    assert_true(brig_alloc_count() == allocs);
    brig_team_free(t);
    brig_free(runs[0]);
    brig_free(runs[1]);
}

static void every_piece_once(void **state)
{
    (void)state;
    check_runs(1, 2000);
    check_runs(2, 20000);
    check_runs(4, 3000); /* more threads than this machine may have */
    check_runs(9, 1000);
}

struct shares {
    atomic_uint by_thread[2];
};

static void slow_piece(void *ctx, unsigned thread, uint32_t piece)
{
    struct shares *s = ctx;
    (void)piece;
    atomic_fetch_add(&s->by_thread[thread], 1);
    nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
}

static void workers_take_part(void **state)
{
    (void)state;
    struct brig_team *t;
    struct shares s = {0};
    assert_int_equal(brig_team_new(&t, 2, NULL), 0);
    nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL); /* the worker sleeps by now */
    brig_team_run(t, 40, slow_piece, &s);
    assert_true(atomic_load(&s.by_thread[0]) >= 5 && atomic_load(&s.by_thread[1]) >= 5);
    assert_int_equal(atomic_load(&s.by_thread[0]) + atomic_load(&s.by_thread[1]), 40);
    brig_team_free(t);
}

static uint64_t cpu_time_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static void idle_costs_nothing(void **state)
{
    (void)state;
#if defined(BRIG_SANITIZED)
    print_message("a sanitizer's own threads cost time: skipped\n");
    skip();
#endif
    struct brig_team *t;
    struct shares s = {0};
    assert_int_equal(brig_team_new(&t, 2, NULL), 0);
    brig_team_run(t, 2, slow_piece, &s);
    nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    uint64_t before = cpu_time_ns();
    nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
    assert_true(cpu_time_ns() - before < 5000000);
    brig_team_free(t);
}

static void mask_of_thread(void *ctx, unsigned thread, uint32_t piece)
{
    sigset_t now;
    (void)piece;
    pthread_sigmask(SIG_SETMASK, NULL, &now);
    if (thread == 1 && (!sigismember(&now, SIGINT) || !sigismember(&now, SIGTERM)))
        atomic_store((atomic_bool *)ctx, true);
    nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

static void workers_block_signals(void **state)
{
    (void)state;
    struct brig_team *t;
    atomic_bool open = false;
    assert_int_equal(brig_team_new(&t, 2, NULL), 0);
    brig_team_run(t, 20, mask_of_thread, &open);
    assert_false(atomic_load(&open));
    sigset_t now;
    pthread_sigmask(SIG_SETMASK, NULL, &now);
    assert_false(sigismember(&now, SIGINT));
    brig_team_free(t);
}

static void bad_counts(void **state)
{
    (void)state;
    struct brig_team *t = NULL;
    struct brig_fail fail = {0};
    assert_int_equal(brig_team_new(&t, 0, &fail), -BRIG_ELIMIT);
    assert_int_equal(brig_team_new(&t, 1000000, &fail), -BRIG_ELIMIT);
    assert_non_null(strstr(fail.text, "1000000"));
    assert_null(t);
    brig_team_free(NULL);
}

/* ---- CPUs ---- */

static char root[] = "/tmp/brigade-cgroup-XXXXXX";

static void put(const char *name, const char *text)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", root, name);
    for (char *p = path + strlen(root) + 1; (p = strchr(p, '/')) != NULL; p++) {
        *p = '\0';
        mkdir(path, 0700);
        *p = '/';
    }
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    assert_int_equal(fclose(f), 0);
}

static unsigned quota(const char *membership)
{
    char path[512];
    put("membership", membership);
    snprintf(path, sizeof path, "%s/membership", root);
    return brig_cpus_quota(path, root);
}

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *walk)
{
    (void)st;
    (void)flag;
    (void)walk;
    return remove(path);
}

static void cgroup_quota(void **state)
{
    (void)state;
    assert_non_null(mkdtemp(root));
    put("a/b/cpu.max", "150000 100000\n");
    put("a/cpu.max", "max 100000\n");
    put("c/cpu.max", "400000 100000\n");
    put("c/d/cpu.max", "max 100000\n");
    put("e/cpu.max", "rubbish\n");
    put("cpu/v1/cpu.cfs_quota_us", "250000\n");
    put("cpu/v1/cpu.cfs_period_us", "100000\n");
    put("cpu/free/cpu.cfs_quota_us", "-1\n");
    put("cpu/free/cpu.cfs_period_us", "100000\n");
    put("cpu,cpuacct/twin/cpu.cfs_quota_us", "50000\n");
    put("cpu,cpuacct/twin/cpu.cfs_period_us", "100000\n");
    assert_int_equal(quota("0::/a/b\n"), 2);
    assert_int_equal(quota("0::/a\n"), 0);
    assert_int_equal(quota("0::/c/d\n"), 4);         /* set above */
    assert_int_equal(quota("0::/c/d/nowhere\n"), 4); /* the path itself is not mounted */
    assert_int_equal(quota("0::/e\n"), 0);
    assert_int_equal(quota("0::/\n"), 0);
    assert_int_equal(quota("4:memory:/v1\n3:cpu,cpuacct:/v1\n"), 3);
    assert_int_equal(quota("3:cpu:/free\n"), 0);
    assert_int_equal(quota("3:cpu,cpuacct:/twin\n"), 1);
    assert_int_equal(quota("3:cpuset:/v1\n"), 0); /* not the cpu controller */
    assert_int_equal(quota("3:cpu,cpuacct:/v1\n0::/a/b\n"), 2);
    assert_int_equal(quota("no colons\n\n:\n"), 0);
    put("cpu.max", "100000 100000\n");
    assert_int_equal(quota("0::/somewhere/else\n"), 1);
    assert_int_equal(brig_cpus_quota("/nonexistent", root), 0);
    assert_int_equal(nftw(root, remove_one, 16, FTW_DEPTH | FTW_PHYS), 0);
}

static void affinity(void **state)
{
    (void)state;
    cpu_set_t before, one;
    assert_int_equal(sched_getaffinity(0, sizeof before, &before), 0);
    assert_int_equal(brig_cpus_affinity(), CPU_COUNT(&before));
    assert_true(brig_team_default_threads() >= 1 && brig_team_default_threads() <= brig_cpus_affinity());
    CPU_ZERO(&one);
    for (int i = 0; i < CPU_SETSIZE && CPU_COUNT(&one) == 0; i++)
        if (CPU_ISSET(i, &before))
            CPU_SET(i, &one);
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    assert_int_equal(brig_cpus_affinity(), 1);
    assert_int_equal(brig_team_default_threads(), 1);
    assert_int_equal(sched_setaffinity(0, sizeof before, &before), 0);
}

/* ---- how many threads work beside neighbours ---- */

#define MS 1000000ull
#define W  BRIG_CROWD_WINDOW_NS

/* n windows in which the threads waited so many hundredths of the time, at most and at least. */
static unsigned windows(struct brig_crowd *c, uint64_t *now, unsigned n, unsigned most, unsigned least)
{
    for (; n > 0; n--) {
        *now += W;
        brig_crowd_step(c, *now, W, W * most / 100, W * least / 100);
    }
    return c->limit;
}

static void one_neighbour(void **state)
{
    struct brig_crowd c = {.n_threads = 2, .limit = 2};
    uint64_t now = 1000 * MS;
    (void)state;
    assert_int_equal(windows(&c, &now, 1000, 3, 0), 2); /* wake-ups, and a neighbour of low priority */
    assert_int_equal(windows(&c, &now, 1, 50, 1), 1);
    assert_int_equal(windows(&c, &now, 1, 50, 50), 1); /* the kernel has not spread them yet */
    unsigned out = 0, total = 0;
    for (; total < 1000; total++) /* it stays: one of two that work is taken off, one alone is not */
        out += windows(&c, &now, 1, c.limit == 1 ? 1 : 50, 1) == 1;
    assert_true(out > 900);                                                 /* tried again, but seldom */
    for (total = 0; total < 60 && windows(&c, &now, 1, 1, 1) != 2; total++) /* it has gone */
        ;
    assert_true(total < 60);
    assert_int_equal(windows(&c, &now, 1000, 2, 0), 2);
}

static void more_neighbours_than_cpus(void **state)
{
    struct brig_crowd c = {.n_threads = 2, .limit = 2};
    uint64_t now = 1000 * MS;
    unsigned all = 0;
    (void)state;
    assert_int_equal(windows(&c, &now, 100, 50, 40), 2); /* all wait: fewer would not help */
    assert_int_equal(windows(&c, &now, 1, 50, 1), 1);    /* it looks as if; but then one alone waits too */
    for (unsigned i = 0; i < 1000; i++) {
        unsigned least = c.limit == 1 ? 50 : 1;
        all += windows(&c, &now, 1, 50, least) == 2;
    }
    assert_true(all > 900);
}

static void large_teams(void **state)
{
    struct brig_crowd c = {.n_threads = 8, .limit = 8};
    uint64_t now = 1000 * MS;
    (void)state;
    for (unsigned i = 0; i < 30; i++) /* three neighbours */
        windows(&c, &now, 1, c.limit > 5 ? 50 : 1, 0);
    assert_in_range(c.limit, 5, 6);
    assert_int_equal(windows(&c, &now, 300, 1, 0), 8); /* they have gone */
    struct brig_crowd one = {.n_threads = 1, .limit = 1};
    assert_int_equal(windows(&one, &now, 100, 50, 50), 1);
}

static void the_kernel_counts(void **state)
{
    uint64_t ns = 0, later = 0;
    (void)state;
    assert_false(brig_crowd_waited(-1, &ns));
    if (!brig_crowd_waited(getpid(), &ns)) {
        print_message("skipped: this kernel does not count how long threads wait\n");
        skip();
    }
    assert_true(brig_crowd_waited(getpid(), &later) && later >= ns);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_piece_once),
        cmocka_unit_test(workers_take_part),
        cmocka_unit_test(idle_costs_nothing),
        cmocka_unit_test(workers_block_signals),
        cmocka_unit_test(bad_counts),
        cmocka_unit_test(cgroup_quota),
        cmocka_unit_test(affinity),
        cmocka_unit_test(one_neighbour),
        cmocka_unit_test(more_neighbours_than_cpus),
        cmocka_unit_test(large_teams),
        cmocka_unit_test(the_kernel_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
