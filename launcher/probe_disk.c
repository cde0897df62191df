/*
 * The disk, measured. Every way of reading gets one short sample, the likeliest first, as many as half of the
 * time allows; the best of them then take turns until the time is over, and the best median wins. A sample
 * goes on from where the last one ended, so that nothing is read twice while the file is large enough.
 */
#include "launcher/probe_parts.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "proto/base/clock.h"
#include "proto/base/mem.h"
#include "proto/base/proc.h"
#include "proto/base/size.h"
#include "proto/disk/pages.h"
#include "proto/disk/reader.h"

#define MIB             ((uint64_t)1 << 20)
#define BUDGET_MS       3000u
#define SMALL_BUDGET_MS 300u
#define SMALL_BYTES     (64 * MIB)
#define MAX_FLIGHT      (16 * MIB) /* what a stream's ring can spare; no disk in use asks for more */
#define SAMPLE_NS       (12 * BRIG_NS_PER_MS)
#define SAMPLE_MAX_NS   (80 * BRIG_NS_PER_MS) /* of a slow disk */
#define SAMPLE_MAX      (64 * MIB)
#define GAP_BYTES       (16 * MIB) /* after a sample, larger than the kernel's read-ahead */
#define ANSWER_MS       10000u
#define MIN_ROWS        4u
#define FIRST_PERCENT   40u
#define SEMIFINALISTS   12u
#define FINALISTS       4u
#define MAX_SAMPLES     64u
#define BESIDE_S        0.4
#define TMPFS           0x01021994
#define RAMFS           0x858458f6

/* KiB and depth, the likeliest first: a slow disk or a short time leaves the rest out. */
static const struct {
    uint32_t kib, depth;
} grid[] = {
    {1024, 4}, {4096, 1}, {2048, 2}, {1024, 2}, {512, 4},  {1024, 8}, {4096, 2},
    {2048, 4}, {512, 8},  {256, 8},  {8192, 1}, {2048, 1}, {4096, 4}, {2048, 8},
    {8192, 2}, {1024, 1}, {256, 4},  {512, 2},  {512, 1},  {256, 2},  {256, 1},
};
#define N_GRID (sizeof grid / sizeof *grid)

struct bench {
    struct brig_probe *p;
    const struct brig_probe_opts *o;
    struct brig_disk_file plain, direct; /* direct.fd -1: refused */
    uint8_t *buf;                        /* [2 * MAX_FLIGHT] */
    bool stuck;                          /* a read may still write into buf: all of this is kept for ever */
    uint64_t align;                      /* of all offsets */
    uint64_t cursor, begin_ns, end_ns;
    double samples[BRIG_PROBE_MAX_ROWS][MAX_SAMPLES];
    double cpu_s[BRIG_PROBE_MAX_ROWS], read_gb[BRIG_PROBE_MAX_ROWS]; /* of the samples that count */
};

/* Bytes that this process has caused to be read from a disk; UINT64_MAX where the kernel does not count. */
static uint64_t disk_bytes(void)
{
    char text[512];
    uint64_t bytes;
    return brig_proc_read(text, sizeof text, "/proc/self/io") > 0 &&
                   brig_proc_number(text, "read_bytes:", &bytes)
               ? bytes
               : UINT64_MAX;
}

/* CPU time of this process, the kernel's part included. */
static double cpu_seconds(void)
{
    struct rusage u;
    if (getrusage(RUSAGE_SELF, &u) < 0)
        return 0;
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
           1e-6 * (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

static bool cancelled(const struct bench *b)
{
    return b->o->cancel != NULL && *b->o->cancel != 0;
}

/* ---- one sample ---- */

struct sample {
    const struct brig_disk_file *file;
    uint32_t request_bytes, slots;
    uint64_t least, most; /* bytes to submit */
    uint64_t submitted, wanted, begin_ns;
};

static int submit(struct bench *b, struct brig_reader *r, struct sample *s, uint64_t slot,
                  struct brig_fail *fail)
{
    if (b->cursor >= s->file->bytes)
        b->cursor = 0;
    uint64_t real = s->file->bytes - b->cursor, bytes = brig_align_up(real, b->align);
    bytes = bytes < s->request_bytes ? bytes : s->request_bytes;
    struct brig_extent e = {.file = s->file,
                            .offset = b->cursor,
                            .bytes = bytes,
                            .buf = b->buf + slot * s->request_bytes,
                            .tag = slot};
    b->cursor += bytes;
    s->submitted += bytes;
    s->wanted += real < bytes ? real : bytes;
    return brig_reader_submit(r, &e, fail);
}

/* Keep the reader busy until the sample is long enough; then let it run dry. */
static int pump(struct bench *b, struct brig_reader *r, struct sample *s, struct brig_fail *fail)
{
    int status = 0;
    for (uint64_t slot = 0; status == 0 && slot < s->slots && s->submitted < s->most; slot++)
        status = submit(b, r, s, slot, fail);
    while (status == 0 && brig_reader_pending(r) > 0) {
        uint64_t slot;
        status = brig_reader_wait(r, ANSWER_MS, &slot, fail);
        if (status == 0 && cancelled(b))
            status = brig_fail_set(fail, BRIG_ECANCELLED, "cancelled");
        uint64_t ns = brig_clock_ns() - s->begin_ns;
        bool more =
            s->submitted < s->most && ns < SAMPLE_MAX_NS && (s->submitted < s->least || ns < SAMPLE_NS);
        if (status == 0 && more)
            status = submit(b, r, s, slot, fail);
    }
    return status;
}

/* Forget what is cached of the range that the sample may read. False: some of it stays (or nobody knows), so
 * that memory would answer. */
static bool make_cold(const struct bench *b, const struct sample *s)
{
    uint64_t at = b->cursor < s->file->bytes ? b->cursor : 0, left = 0;
    uint64_t bytes = s->most < s->file->bytes - at ? s->most : s->file->bytes - at;
    uint64_t beyond = s->most + s->slots * s->request_bytes; /* it wraps around */
    posix_fadvise(s->file->fd, (off_t)at, (off_t)(beyond + GAP_BYTES), POSIX_FADV_DONTNEED);
    if (bytes < s->most)
        posix_fadvise(s->file->fd, 0, (off_t)beyond, POSIX_FADV_DONTNEED);
    return brig_pages_resident(s->file->fd, s->file->name, at, bytes, &left, NULL) == 0 && left <= bytes / 20;
}

static int run_sample(struct bench *b, const struct brig_probe_row *row, struct sample *s,
                      double *ret_seconds, struct brig_fail *fail)
{
    struct brig_reader *r = NULL;
    struct brig_reader_opts o = {.how = brig_reader_ops_by_name(row->how),
                                 .request_bytes = row->request_bytes,
                                 .depth = row->depth,
                                 .max_extents = s->slots,
                                 .drop = true};
    int status = brig_reader_open(&r, &o, fail);
    if (status < 0)
        return status;
    s->begin_ns = brig_clock_ns();
    status = pump(b, r, s, fail);
    *ret_seconds = (double)(brig_clock_ns() - s->begin_ns) / (double)BRIG_NS_PER_S;
    if (brig_reader_close(r, ANSWER_MS) < 0) {
        b->stuck = true;
        if (status == 0)
            status = brig_fail_set(fail, BRIG_ETIMEOUT, "%s: the disk does not answer", s->file->name);
    }
    return status;
}

static void count(struct bench *b, struct brig_probe_row *row, double bytes, double seconds, double cpu_s)
{
    size_t i = (size_t)(row - b->p->rows);
    b->samples[i][row->n++] = bytes / seconds;
    b->cpu_s[i] += cpu_s;
    b->read_gb[i] += bytes / 1e9;
}

/* The next piece of the file, for a row. */
static struct sample next_sample(struct bench *b, const struct brig_probe_row *row)
{
    struct sample s = {.file = row->direct ? &b->direct : &b->plain,
                       .request_bytes = row->request_bytes,
                       .slots = 2 * row->depth};
    uint64_t size = s.file->bytes;
    s.least = 2 * (uint64_t)row->depth * row->request_bytes;
    s.most = SAMPLE_MAX < size ? SAMPLE_MAX : size; /* never twice the same within a sample */
    if (b->cursor + s.most > size && size > s.most)
        b->cursor = 0;
    return s;
}

static int take_sample(struct bench *b, struct brig_probe_row *row, struct brig_fail *fail)
{
    struct sample s = next_sample(b, row);
    uint64_t size = s.file->bytes;
    bool cold = row->direct || make_cold(b, &s);
    double seconds = 0, cpu_s = cpu_seconds();
    uint64_t before = disk_bytes();
    int status = run_sample(b, row, &s, &seconds, fail);
    if (status < 0)
        return status;
    uint64_t after = disk_bytes();
    cpu_s = cpu_seconds() - cpu_s;
    /* Page cache or not, the kernel counts what came from the disk, pages read ahead included. */
    if (!row->direct && before != UINT64_MAX && after != UINT64_MAX)
        cold = cold && after - before >= s.wanted / 10 * 9;
    if (size > 4 * (SAMPLE_MAX + GAP_BYTES))
        b->cursor += GAP_BYTES;
    if (!cold || seconds <= 0)
        row->n_void++;
    else if (row->n < MAX_SAMPLES)
        count(b, row, (double)s.wanted, seconds, cpu_s);
    return 0;
}

/* ---- all of them ---- */

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void sum_up(struct bench *b, struct brig_probe_row *row)
{
    size_t i = (size_t)(row - b->p->rows);
    double *v = b->samples[i];
    if (row->n == 0)
        return;
    row->cpu_s_gb = b->cpu_s[i] / b->read_gb[i];
    qsort(v, row->n, sizeof *v, by_size);
    row->bytes_s = row->n % 2 == 1 ? v[row->n / 2] : (v[row->n / 2 - 1] + v[row->n / 2]) / 2;
    row->least = v[0];
    row->most = v[row->n - 1];
}

/* The rows in the order in which they are tried: each of the grid by every reader, direct and not. */
static void list_rows(struct bench *b)
{
    struct brig_probe *p = b->p;
    for (size_t g = 0; g < N_GRID; g++) {
        uint64_t bytes = grid[g].kib * (uint64_t)1024, flight = bytes * grid[g].depth;
        if (flight > MAX_FLIGHT || (g > 0 && 2 * flight > b->plain.bytes))
            continue;
        for (unsigned direct = 2; direct-- > 0;) {
            const char *name, *help;
            for (unsigned i = 0; (name = brig_reader_at(i, &help)) != NULL; i++) {
                if (p->n_rows == BRIG_PROBE_MAX_ROWS || (direct && b->direct.fd < 0) ||
                    (i == 0 && p->note[0] != '\0'))
                    continue;
                struct brig_probe_row *row = &p->rows[p->n_rows++];
                *row = (struct brig_probe_row){
                    .direct = direct != 0, .request_bytes = (uint32_t)bytes, .depth = grid[g].depth};
                snprintf(row->how, sizeof row->how, "%s", name);
            }
        }
    }
}

static int sample_row(struct bench *b, struct brig_probe_row *row, struct brig_fail *fail)
{
    int r = cancelled(b) ? brig_fail_set(fail, BRIG_ECANCELLED, "cancelled") : take_sample(b, row, fail);
    uint64_t now = brig_clock_ns();
    if (b->o->progress != NULL)
        b->o->progress(b->o->arg, (now - b->begin_ns) / BRIG_NS_PER_MS,
                       (b->end_ns - b->begin_ns) / BRIG_NS_PER_MS);
    return r;
}

/* First samples. Rows that the time did not reach are taken off the list; the first line of the grid, both
 * direct and not, is tried whatever it takes. */
static int first_round(struct bench *b, struct brig_fail *fail)
{
    uint64_t until = b->begin_ns + (b->end_ns - b->begin_ns) / 100 * FIRST_PERCENT;
    for (uint32_t i = 0; i < b->p->n_rows; i++) {
        if (i >= MIN_ROWS && brig_clock_ns() >= until)
            b->p->n_rows = i;
        int r = i < b->p->n_rows ? sample_row(b, &b->p->rows[i], fail) : 0;
        if (r < 0)
            return r;
        if (i < b->p->n_rows)
            sum_up(b, &b->p->rows[i]);
    }
    return 0;
}

/* The best `most` rows, the fastest first, of those that have at least `samples`. */
static uint32_t choose(const struct brig_probe *p, uint32_t most, uint32_t samples, uint32_t *best)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < p->n_rows; i++) {
        if (p->rows[i].n < samples)
            continue;
        uint32_t at = n < most ? n++ : most;
        while (at > 0 && p->rows[best[at - 1]].bytes_s < p->rows[i].bytes_s) {
            if (at < most)
                best[at] = best[at - 1];
            at--;
        }
        if (at < most)
            best[at] = i;
    }
    return n;
}

/* The best n rows take turns, in whole rounds, so that what changes on the machine meets all alike. */
static int take_turns(struct bench *b, uint32_t n, uint32_t samples, unsigned rounds, struct brig_fail *fail)
{
    uint32_t best[SEMIFINALISTS];
    n = choose(b->p, n, samples, best);
    for (unsigned round = 0; n > 0 && round < rounds && brig_clock_ns() < b->end_ns; round++)
        for (uint32_t k = 0; k < n; k++) {
            int r = sample_row(b, &b->p->rows[best[k]], fail);
            if (r < 0)
                return r;
        }
    for (uint32_t k = 0; k < n; k++)
        sum_up(b, &b->p->rows[best[k]]);
    return 0;
}

static uint64_t flight_of(const struct brig_probe_row *row)
{
    return (uint64_t)row->request_bytes * row->depth;
}

/* The fastest with at least so many samples; then, of those within 5 % of it, the one with the most bytes in
 * flight: while others compute, whoever asks the disk for more comes late to it. */
static const struct brig_probe_row *fastest(const struct brig_probe *p, bool direct, uint32_t enough)
{
    const struct brig_probe_row *top = NULL, *deep;
    for (uint32_t i = 0; i < p->n_rows; i++)
        if (p->rows[i].direct == direct && p->rows[i].n >= enough &&
            (top == NULL || p->rows[i].bytes_s > top->bytes_s))
            top = &p->rows[i];
    deep = top;
    for (uint32_t i = 0; top != NULL && i < p->n_rows; i++)
        if (p->rows[i].direct == direct && p->rows[i].n >= enough &&
            p->rows[i].bytes_s >= 0.95 * top->bytes_s && flight_of(&p->rows[i]) > flight_of(deep))
            deep = &p->rows[i];
    return deep;
}

const struct brig_probe_row *brig_probe_best(const struct brig_probe *p)
{
    uint32_t most = 0;
    for (uint32_t i = 0; i < p->n_rows; i++)
        most = p->rows[i].n > most ? p->rows[i].n : most;
    uint32_t enough =
        most > 0 ? (2 * most + 2) / 3 : 1; /* finalists; a void sample costs none of them its place */
    const struct brig_probe_row *direct = fastest(p, true, enough), *buffered = fastest(p, false, enough);
    if (direct == NULL || buffered == NULL)
        return direct != NULL ? direct : buffered;
    return direct->bytes_s >= 0.8 * buffered->bytes_s ? direct : buffered;
}

bool brig_probe_noisy(struct brig_probe *p)
{
    if (p->disk_bytes_s <= 0 || p->rough || p->best.most <= 2 * p->best.least)
        return false;
    if (p->note[0] == '\0')
        snprintf(p->note, sizeof p->note,
                 "samples from %.3f to %.3f GB/s: the machine or the disk had other work, measure again when "
                 "it is idle",
                 p->best.least / 1e9, p->best.most / 1e9);
    return true;
}

static void conclude(struct brig_probe *p)
{
    const struct brig_probe_row *best = brig_probe_best(p);
    uint32_t n_void = 0;
    for (uint32_t i = 0; i < p->n_rows; i++)
        n_void += p->rows[i].n_void;
    if (best != NULL) {
        p->best = *best;
        p->disk_bytes_s = best->bytes_s;
        brig_probe_noisy(p);
    } else if (p->why[0] == '\0') {
        snprintf(p->why, sizeof p->why, "all %u samples were answered from the page cache", n_void);
    }
}

/* The best row once more while all threads read memory, as work that streams does. */
static int measure_beside(struct bench *b, struct brig_fail *fail)
{
    struct brig_probe *p = b->p;
    struct brig_probe_load *load;
    double bytes = 0, seconds = 0;
    if (p->rough || p->disk_bytes_s <= 0)
        return 0;
    int r = brig_probe_load_start(&load, p->memory_threads, fail);
    if (r < 0)
        return r;
    while (r == 0 && seconds < BESIDE_S && !cancelled(b)) {
        struct sample s = next_sample(b, &p->best);
        double took = 0;
        if (!p->best.direct && !make_cold(b, &s))
            break;
        r = run_sample(b, &p->best, &s, &took, fail);
        bytes += (double)s.wanted;
        seconds += took;
    }
    p->beside_memory_bytes_s = brig_probe_load_stop(load);
    p->beside_disk_bytes_s = seconds > 0 ? bytes / seconds : 0;
    return r;
}

static int allocate(struct bench *b, struct brig_fail *fail)
{
    b->buf = brig_alloc(2 * MAX_FLIGHT, 1); /* on huge pages, as the buffers of weights that are read are */
    return b->buf != NULL ? 0 : brig_fail_set(fail, BRIG_ENOMEM, "no memory for reading the disk");
}

/* Whether the first reader of the table works here; its absence is a note, not a failure. */
static int note_readers(struct brig_probe *p, struct brig_fail *fail)
{
    struct brig_reader *r = NULL;
    int status = brig_reader_open(&r, &(struct brig_reader_opts){.depth = 1}, fail);
    if (status == 0 && brig_reader_note(r) != NULL)
        snprintf(p->note, sizeof p->note, "%.255s", brig_reader_note(r));
    brig_reader_close(r, ANSWER_MS);
    return status;
}

static int measure(struct bench *b, struct brig_fail *fail)
{
    int r = note_readers(b->p, fail);
    if (r == 0)
        r = allocate(b, fail);
    if (r < 0)
        return r;
    list_rows(b);
    uint32_t ms = b->o->budget_ms != 0 ? b->o->budget_ms : BUDGET_MS;
    b->p->rough = b->plain.bytes < SMALL_BYTES;
    ms = b->p->rough && ms > SMALL_BUDGET_MS ? SMALL_BUDGET_MS : ms;
    b->begin_ns = brig_clock_ns();
    b->end_ns = b->begin_ns + ms * BRIG_NS_PER_MS;
    /* Another place each time: what lies behind the device (a hypervisor, a controller) has caches, too. */
    b->align = b->direct.fd >= 0 && b->direct.align > 4096 ? b->direct.align : 4096;
    if (!b->p->rough)
        b->cursor = b->begin_ns % (b->plain.bytes / 2) / MIB * MIB;
    r = first_round(b, fail);
    if (r == 0) /* one sample may have been luck */
        r = take_turns(b, SEMIFINALISTS, 1, 2, fail);
    if (r == 0)
        r = take_turns(b, FINALISTS, 2, MAX_SAMPLES, fail);
    if (r < 0)
        return r;
    conclude(b->p);
    return measure_beside(b, fail);
}

int brig_probe_disk(struct brig_probe *p, const struct brig_disk_file *file,
                    const struct brig_probe_opts *opts, struct brig_fail *fail)
{
    struct statfs fs;
    size_t n = strlen(file->name), most = sizeof p->file - 1;
    snprintf(p->file, sizeof p->file, "%s", file->name + (n > most ? n - most : 0));
    p->file_bytes = file->bytes;
    if (file->bytes == 0)
        return brig_fail_set(fail, BRIG_EIO, "%s: an empty file tells nothing about its disk", file->name);
    if (fstatfs(file->fd, &fs) == 0 && (fs.f_type == TMPFS || (unsigned long)fs.f_type == RAMFS)) {
        snprintf(p->why, sizeof p->why, "the file lies in memory (tmpfs): there is no disk to measure");
        return 0;
    }
    struct bench *b = brig_alloc(1, sizeof *b);
    if (b == NULL)
        return brig_fail_set(fail, BRIG_ENOMEM, "out of memory for reading the disk");
    b->p = p;
    b->o = opts;
    b->plain = *file;
    int r = brig_disk_file_reopen(&b->direct, file->fd, file->name, true, fail);
    if (r == 0 && !b->direct.direct)
        brig_disk_file_close(&b->direct);
    if (r == 0)
        r = measure(b, fail);
    if (b->stuck)
        return r;
    brig_free(b->buf);
    brig_disk_file_close(&b->direct);
    brig_free(b);
    return r;
}
