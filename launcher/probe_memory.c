/* The read-once probe. Starting the threads is inside the measured time: some 0.1 ms beside 10 ms or more. */
#include "launcher/probe_parts.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>

#include "proto/base/clock.h"
#include "proto/base/mem.h"

#define PROBE_BYTES       ((size_t)256 << 20)
#define PROBE_MAX_THREADS 64u

struct part {
    const uint64_t *v;
    size_t n; /* a multiple of 32 */
    uint64_t sum;
    pthread_t thread;
    bool started;
};

typedef uint64_t lanes __attribute__((vector_size(32)));

static void *sum_part(void *arg)
{
    struct part *p = arg;
    const lanes *v = (const lanes *)p->v;
    lanes a = {0}, b = {0}, c = {0}, d = {0};
    for (size_t i = 0; i < p->n / 4; i += 4) {
        a += v[i];
        b += v[i + 1];
        c += v[i + 2];
        d += v[i + 3];
    }
    a += b + c + d;
    p->sum = a[0] + a[1] + a[2] + a[3];
    return NULL;
}

static uint64_t sum_all(const uint64_t *v, size_t each, unsigned threads)
{
    struct part parts[PROBE_MAX_THREADS];
    uint64_t sum = 0;
    for (unsigned i = 0; i < threads; i++) {
        parts[i] = (struct part){.v = v + i * each, .n = each};
        parts[i].started = i > 0 && pthread_create(&parts[i].thread, NULL, sum_part, &parts[i]) == 0;
    }
    for (unsigned i = 0; i < threads; i++) {
        if (parts[i].started)
            pthread_join(parts[i].thread, NULL);
        else
            sum_part(&parts[i]);
        sum += parts[i].sum;
    }
    return sum;
}

int brig_probe_memory(unsigned threads, unsigned n, unsigned pieces, double *ret_bytes_s,
                      struct brig_fail *fail)
{
    threads = threads < 1 ? 1 : threads > PROBE_MAX_THREADS ? PROBE_MAX_THREADS : threads;
    uint64_t *v = mmap(NULL, PROBE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (v == MAP_FAILED)
        return brig_fail_errno(fail, BRIG_ENOMEM, "memory for the bandwidth probe");
    for (size_t i = 0; i < PROBE_BYTES / sizeof *v; i++)
        v[i] = 1;
    size_t each = PROBE_BYTES / sizeof *v / pieces / threads / 32 * 32;
    bool right = true;
    for (unsigned i = 0; i < n; i++) {
        uint64_t begin = brig_clock_ns();
        uint64_t sum = sum_all(v + i % pieces * (each * threads), each, threads);
        uint64_t ns = brig_clock_ns() - begin;
        right = right && sum == (uint64_t)each * threads && ns > 0; /* all ones: the sum is the length */
        ret_bytes_s[i] = right ? (double)(sum * sizeof *v) * (double)BRIG_NS_PER_S / (double)ns : 0;
    }
    munmap(v, PROBE_BYTES);
    return right ? 0 : brig_fail_set(fail, BRIG_EINTERNAL, "the bandwidth probe summed wrongly");
}

/* ---- beside something else ---- */

#define LOAD_PIECE ((size_t)4 << 20) /* between looks whether it is over */

struct reader {
    struct brig_probe_load *load;
    struct part part; /* what is being summed */
    uint64_t bytes;
    pthread_t thread;
    bool started;
};

struct brig_probe_load {
    uint64_t *v;
    atomic_bool stop;
    uint64_t begin_ns;
    unsigned n;
    struct reader readers[PROBE_MAX_THREADS];
};

static void *read_on(void *arg)
{
    struct reader *r = arg;
    size_t pieces = PROBE_BYTES / LOAD_PIECE;
    for (size_t i = 0; !atomic_load_explicit(&r->load->stop, memory_order_relaxed); i++) {
        size_t at = (i + (size_t)(r - r->load->readers) * (pieces / r->load->n)) % pieces;
        r->part = (struct part){.v = r->load->v + at * (LOAD_PIECE / sizeof *r->part.v),
                                .n = LOAD_PIECE / sizeof *r->part.v};
        sum_part(&r->part);
        r->bytes += LOAD_PIECE;
    }
    return NULL;
}

int brig_probe_load_start(struct brig_probe_load **ret, unsigned threads, struct brig_fail *fail)
{
    struct brig_probe_load *l = brig_alloc(1, sizeof *l);
    if (l != NULL)
        l->v = brig_alloc(PROBE_BYTES, 1);
    if (l == NULL || l->v == NULL) {
        brig_free(l);
        return brig_fail_set(fail, BRIG_ENOMEM, "memory for the bandwidth probe");
    }
    l->n = threads < 1 ? 1 : threads > PROBE_MAX_THREADS ? PROBE_MAX_THREADS : threads;
    l->begin_ns = brig_clock_ns();
    for (unsigned i = 0; i < l->n; i++) {
        struct reader *r = &l->readers[i];
        r->load = l;
        r->started = pthread_create(&r->thread, NULL, read_on, r) == 0;
        if (!r->started) {
            brig_probe_load_stop(l);
            return brig_fail_set(fail, BRIG_EIO, "no threads for the bandwidth probe");
        }
    }
    *ret = l;
    return 0;
}

double brig_probe_load_stop(struct brig_probe_load *l)
{
    uint64_t sum = 0;
    atomic_store(&l->stop, true);
    for (unsigned i = 0; i < l->n && l->readers[i].load != NULL; i++) {
        if (l->readers[i].started)
            pthread_join(l->readers[i].thread, NULL);
        sum += l->readers[i].bytes;
    }
    double s = (double)(brig_clock_ns() - l->begin_ns) / (double)BRIG_NS_PER_S;
    brig_free(l->v);
    brig_free(l);
    return s > 0 ? (double)sum / s : 0;
}

int brig_probe_read_once(unsigned threads, double *ret_bytes_s, struct brig_fail *fail)
{
    double once;
    int r = brig_probe_memory(threads, 1, 1, &once, fail);
    if (r == 0)
        *ret_bytes_s = once;
    return r;
}
