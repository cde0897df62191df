/* brigade probe: what the memory and the disk of this machine can do. */
#include <stdio.h>
#include <string.h>

#include "driver/front/interrupt.h"
#include "driver/front/progress.h"
#include "driver/front/verb.h"
#include "driver/run/json.h"
#include "launcher/launcher.h"

static void progress(void *arg, uint64_t done_ms, uint64_t total_ms)
{
    brig_progress_update(arg, (size_t)done_ms, (size_t)total_ms);
}

static const char *size_text(char room[16], uint32_t bytes)
{
    if (bytes % (1u << 20) == 0)
        snprintf(room, 16, "%u MiB", bytes >> 20);
    else
        snprintf(room, 16, "%u KiB", bytes >> 10);
    return room;
}

static const char *cache_text(const struct brig_probe_row *row)
{
    return row->direct ? "direct" : "buffered";
}

/* The fastest first, those without a figure last. */
static int by_speed(const void *a, const void *b)
{
    const struct brig_probe_row *x = a, *y = b;
    if (x->bytes_s != y->bytes_s)
        return x->bytes_s < y->bytes_s ? 1 : -1;
    return (x > y) - (x < y);
}

static void print_rows(struct brig_probe *p)
{
    char size[16];
    qsort(p->rows, p->n_rows, sizeof *p->rows, by_speed);
    printf("\n%-10s %-9s %8s %6s %9s %9s %9s %8s\n", "reader", "cache", "request", "depth", "GB/s", "least",
           "most", "samples");
    for (uint32_t i = 0; i < p->n_rows; i++) {
        const struct brig_probe_row *row = &p->rows[i];
        printf("%-10s %-9s %8s %6u ", row->how, cache_text(row), size_text(size, row->request_bytes),
               row->depth);
        if (row->n > 0)
            printf("%9.3f %9.3f %9.3f %9.3f %8u", row->bytes_s / 1e9, row->least / 1e9, row->most / 1e9,
                   row->cpu_s_gb, row->n);
        else
            printf("%9s %9s %9s %9s %8u", "void", "", "", "", 0u);
        if (row->n_void > 0)
            printf("  (%u void: answered from the page cache)", row->n_void);
        putchar('\n');
    }
}

static void print_text(struct brig_probe *p)
{
    char size[16];
    printf("machine  %s\n", p->host);
    printf("memory   %.2f GB/s, read once by %u thread%s (half of the samples above %.2f)\n",
           p->memory_bytes_s / 1e9, p->memory_threads, p->memory_threads == 1 ? "" : "s",
           p->memory_median_bytes_s / 1e9);
    if (p->disk_bytes_s > 0) {
        printf("disk     %.3f GB/s%s: %s, %s, requests of %s, %u in flight (median of %u)\n",
               p->disk_bytes_s / 1e9, p->rough ? ", a rough figure" : "", p->best.how,
               p->best.direct ? "past the page cache" : "through the page cache",
               size_text(size, p->best.request_bytes), p->best.depth, p->best.n);
        if (p->beside_disk_bytes_s > 0)
            printf("at once  memory %.2f GB/s, disk %.3f GB/s\n", p->beside_memory_bytes_s / 1e9,
                   p->beside_disk_bytes_s / 1e9);
        printf("file     %s, %.1f MB%s%s\n", p->file, (double)p->file_bytes / 1e6,
               p->disk[0] != '\0' ? ", on " : "", p->disk);
    } else {
        printf("disk     no figure: %s\n", p->why);
    }
    if (p->note[0] != '\0')
        printf("note     %s\n", p->note);
    if (p->n_rows > 0)
        print_rows(p);
}

static int print_json(const struct brig_probe *p, struct brig_fail *fail)
{
    json_t *o = brig_probe_json(p);
    json_object_set_new(o, "schema", json_integer(1));
    json_object_set_new(o, "remembered", json_boolean(p->remembered));
    json_object_set_new(o, "rough", json_boolean(p->rough));
    json_object_set_new(o, "why", p->why[0] != '\0' ? json_string(p->why) : json_null());
    int r = brig_json_print(o, fail);
    json_decref(o);
    return r;
}

static void say_remembered(const struct brig_settings *s, const struct brig_probe *p)
{
    if (!s->quiet && p->remembered)
        fputs("brigade: these figures are remembered; --fresh measures again\n", stderr);
}

static int run(const struct brig_settings *s, struct brig_fail *fail)
{
    struct brig_progress bar;
    struct brig_probe p;
    brig_progress_init(&bar, "probing the disk, ms", s->quiet);
    const struct brig_probe_opts o = {
        .fresh = s->fresh, .progress = progress, .arg = &bar, .cancel = brig_interrupt_flag()};
    int r = brig_probe_cached(&p, s->operand, &o, fail);
    brig_progress_wipe(&bar);
    if (r < 0)
        return r;
    say_remembered(s, &p);
    if (s->json)
        return print_json(&p, fail);
    print_text(&p);
    return fflush(stdout) != 0 ? brig_fail_errno(fail, BRIG_EIO, "standard output") : 0;
}

const struct brig_verb brig_verb_probe = {
    .name = "probe",
    .help = "measure what memory and disk of this machine can do",
    .usage = "[MODEL|FILE] [--json] [--fresh]",
    .about =
        "Reads memory once, and pieces of the file in many ways for three seconds: sizes and numbers of "
        "requests,\n"
        "io_uring and threads, past the page cache and through it (what is cached of those pieces is "
        "dropped\n"
        "before). The best way is remembered for this machine and disk, for a day, and for minutes where\n"
        "the machine had other work. Nothing is written "
        "to the\n"
        "disk that is measured. Without a file only the memory is measured.\n"
        "\n"
        "examples:\n"
        "  brigade probe MODEL\n"
        "  brigade probe MODEL --fresh --json\n",
    .operand = "FILE",
    .run = run,
};
