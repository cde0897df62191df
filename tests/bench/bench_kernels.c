/*
 * How fast the matrix kernels of this machine are, for each stored type: `make bench-kernels`.
 *
 * cached  one row of activations, weights that stay in the second-level cache, one thread: what the kernel
 *         itself can do, in GB/s of stored weights
 * memory  the same from memory, with all threads of the team, beside a read-once probe of the same buffer
 * N rows  many rows of activations, one thread: 10^9 multiply-adds a second
 *
 * One thread is timed by its own CPU clock, so that a busy neighbour shows little. What all threads do
 * together is wall time: run it on a quiet machine.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "proto/base/mem.h"
#include "proto/model/r16.h"
#include "shard/kernels/kernel.h"
#include "shard/kernels/team.h"
#include "tests/unit/blocks_util.h"

enum {
    COLS = 2048,
    CACHE_BYTES = 384 << 10,
    PIECE_ROWS = 64,
    MANY_ROWS = 512,
    TOKENS_MAX = 512,
    BATCHES_MAX = 4096
};
#define BATCH_SECONDS 2e-3

struct bench {
    const struct brig_kernel *kernel;
    struct brig_team *team;
    uint8_t *buffer;
    size_t buffer_bytes;
    float *x, *y;
    struct brig_act act; /* of TOKENS_MAX rows */
    double seconds;      /* spent on each figure */
};

static double clock_of(clockid_t id)
{
    struct timespec t;
    clock_gettime(id, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void *or_die(void *p)
{
    if (p == NULL) {
        fprintf(stderr, "bench_kernels: out of memory\n");
        exit(1);
    }
    return p;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The time of one call of fn by the clock: the lower quartile of batches that last long enough for it. */
static double time_of(const struct bench *b, clockid_t id, void (*fn)(void *), void *ctx)
{
    double took[BATCHES_MAX];
    unsigned n = 0, calls = 1;
    for (double spent = 0; n < BATCHES_MAX && spent < b->seconds;) {
        double begin = clock_of(id);
        for (unsigned i = 0; i < calls; i++)
            fn(ctx);
        double t = clock_of(id) - begin;
        spent += t;
        if (t < BATCH_SECONDS && spent < b->seconds)
            calls *= 2;
        else
            took[n++] = t / calls;
    }
    qsort(took, n, sizeof took[0], by_size);
    return took[n / 4];
}

struct product {
    const struct bench *b;
    struct brig_matrix w;
    struct brig_act x;
};

static void piece(void *ctx, unsigned thread, uint32_t i)
{
    const struct product *p = ctx;
    uint64_t begin = (uint64_t)i * PIECE_ROWS, end = begin + PIECE_ROWS;
    (void)thread;
    p->b->kernel->matmul(&p->w, begin, end < p->w.rows ? end : p->w.rows, &p->x, p->b->y, p->w.rows);
}

static void alone(void *ctx)
{
    const struct product *p = ctx;
    for (uint32_t i = 0; i * (uint64_t)PIECE_ROWS < p->w.rows; i++)
        piece(ctx, 0, i);
}

static void together(void *ctx)
{
    struct product *p = ctx;
    brig_team_run(p->b->team, (uint32_t)((p->w.rows + PIECE_ROWS - 1) / PIECE_ROWS), piece, p);
}

static volatile uint64_t sink;

static void probe_piece(void *ctx, unsigned thread, uint32_t i)
{
    const struct bench *b = ctx;
    const uint64_t *at = (const uint64_t *)(const void *)(b->buffer + ((size_t)i << 20));
    uint64_t sum[8] = {0};
    (void)thread;
    for (unsigned k = 0; k < (1u << 20) / sizeof *at; k += 8)
        for (unsigned l = 0; l < 8; l++)
            sum[l] += at[k + l];
    sink = sum[0] + sum[1] + sum[2] + sum[3] + sum[4] + sum[5] + sum[6] + sum[7];
}

static void probe(void *ctx)
{
    struct bench *b = ctx;
    brig_team_run(b->team, (uint32_t)(b->buffer_bytes >> 20), probe_piece, b);
}

/* A panel of random blocks, copied over and over. */
static void fill(const struct bench *b, const struct brig_type *type)
{
    size_t row_bytes = brig_type_row_bytes(type, COLS), panel = BRIG_R16_ROWS * row_bytes;
    uint8_t *rows = or_die(brig_alloc(panel, 1));
    for (size_t i = 0; i < panel; i += type->block_bytes)
        block_of_size(brig_type_native(type), rows + i, 0.05f);
    if (type->native != NULL)
        brig_r16_join(type, rows, row_bytes, b->buffer);
    else
        memcpy(b->buffer, rows, panel);
    for (size_t at = panel; at < b->buffer_bytes; at += panel)
        memcpy(b->buffer + at, b->buffer, b->buffer_bytes - at < panel ? b->buffer_bytes - at : panel);
    brig_free(rows);
}

static struct product product_of(const struct bench *b, const struct brig_type *type, uint64_t rows,
                                 uint32_t tokens)
{
    struct product p = {.b = b, .x = b->act};
    uint64_t row_bytes = brig_type_row_bytes(type, COLS);
    p.w = (struct brig_matrix){.type = type,
                               .data = b->buffer,
                               .rows = rows,
                               .cols = COLS,
                               .row_bytes = row_bytes,
                               .unit_cols = BRIG_UNIT_COLS};
    p.x.n_rows = tokens;
    if (type->group == 0)
        p.x.q = NULL;
    return p;
}

static void report(const struct bench *b, const struct brig_type *type)
{
    uint64_t row_bytes = brig_type_row_bytes(type, COLS);
    fill(b, type);
    struct product p = product_of(b, type, CACHE_BYTES / row_bytes / 16 * 16, 1);
    double bytes = (double)(p.w.rows * row_bytes);
    printf("%-9s %8.2f", type->name, bytes / time_of(b, CLOCK_THREAD_CPUTIME_ID, alone, &p) * 1e-9);
    p = product_of(b, type, b->buffer_bytes / row_bytes / 16 * 16, 1);
    bytes = (double)(p.w.rows * row_bytes);
    printf(" %8.2f", bytes / time_of(b, CLOCK_MONOTONIC, together, &p) * 1e-9);
    const uint32_t tokens[] = {4, 8, 64, TOKENS_MAX};
    for (unsigned i = 0; i < sizeof tokens / sizeof tokens[0]; i++) {
        p = product_of(b, type, MANY_ROWS, tokens[i]);
        double macs = (double)MANY_ROWS * COLS * tokens[i];
        printf(" %8.1f", macs / time_of(b, CLOCK_THREAD_CPUTIME_ID, alone, &p) * 1e-9);
    }
    printf("\n");
    fflush(stdout);
}

static void activations(struct bench *b)
{
    size_t stride = brig_act_stride(COLS), n = TOKENS_MAX * stride;
    int8_t *q = or_die(brig_alloc(n, 1));
    float *d = or_die(brig_alloc(n / BRIG_ACT_GROUP, sizeof *d));
    int32_t *sum = or_die(brig_alloc(n / 16, sizeof *sum));
    b->x = or_die(brig_alloc(n, sizeof *b->x));
    for (size_t i = 0; i < n; i++)
        b->x[i] = random_f32();
    for (size_t t = 0; t < TOKENS_MAX; t++)
        b->kernel->quantize(b->x + t * COLS, COLS, q + t * stride, d + t * (stride / BRIG_ACT_GROUP),
                            sum + t * (stride / 16));
    b->act = (struct brig_act){TOKENS_MAX, COLS, b->x, q, d, sum};
}

static bool wanted(const struct brig_type *type, char **names, int n)
{
    for (int i = 0; i < n; i++)
        if (strcasecmp(names[i], type->name) == 0)
            return true;
    return n == 0;
}

static double setting(const char *name, double usual)
{
    const char *text = getenv(name);
    double v = text != NULL ? strtod(text, NULL) : usual;
    return v > 0.0 ? v : usual;
}

/* bench_kernels [TYPE]...: BRIGADE_KERNEL, BENCH_THREADS, BENCH_SECONDS and BENCH_MIB change the defaults. */
int main(int argc, char **argv)
{
    struct brig_fail fail;
    struct bench b = {.kernel = brig_kernel_choose(),
                      .buffer_bytes = (size_t)setting("BENCH_MIB", 128) << 20,
                      .seconds = setting("BENCH_SECONDS", 0.3)};
    unsigned n_threads = (unsigned)setting("BENCH_THREADS", brig_team_default_threads());
    if (b.kernel == NULL || b.buffer_bytes == 0 || brig_team_new(&b.team, n_threads, &fail) < 0) {
        fprintf(stderr, "bench_kernels: no such kernel, size or team\n");
        return 2;
    }
    b.buffer = or_die(aligned_alloc(4096, b.buffer_bytes));
    memset(b.buffer, 1, b.buffer_bytes);
    b.y = or_die(brig_alloc((size_t)1 << 24, sizeof *b.y));
    activations(&b);
    printf("kernel %s, %u threads, %d columns, probe %.2f GB/s\n", b.kernel->name, n_threads, COLS,
           (double)b.buffer_bytes / time_of(&b, CLOCK_MONOTONIC, probe, &b) * 1e-9);
    printf("%-9s %8s %8s %8s %8s %8s %8s\n", "type", "cached", "memory", "4 rows", "8 rows", "64 rows",
           "512 rows");
    for (unsigned i = 0; brig_type_at(i) != NULL; i++)
        if (brig_type_at(i)->packing == NULL && wanted(brig_type_at(i), argv + 1, argc - 1))
            report(&b, brig_type_at(i));
    brig_team_free(b.team);
    return 0;
}
