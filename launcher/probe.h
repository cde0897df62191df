/*
 * What this machine's memory and the disk that holds a file can do, measured, so that a plan can say what a
 * budget costs before anything is started; and remembered, because measuring takes seconds.
 *
 * The disk is only read, and only the file that is named. Reads go past the page cache, or through it after
 * the pages were dropped; a figure that memory has answered is void, and counted as such.
 */
#ifndef BRIG_LAUNCHER_PROBE_H
#define BRIG_LAUNCHER_PROBE_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "proto/base/err.h"

#define BRIG_PROBE_MAX_ROWS 96u
/* How long figures are remembered: in general; where the disk's samples differ much; where the machine had
 * more to do than it has CPUs for, which is just long enough for what is run one after the other. */
#define BRIG_PROBE_MAX_AGE_S   86400u
#define BRIG_PROBE_NOISY_AGE_S 3600u
#define BRIG_PROBE_BUSY_AGE_S  600u

/* One way of reading. */
struct brig_probe_row {
    char how[16]; /* of `brigade list readers` */
    bool direct;
    uint32_t request_bytes, depth;
    uint32_t n;                  /* samples that count; 0: none, all were void */
    uint32_t n_void;             /* answered from the page cache */
    double bytes_s, least, most; /* median and extremes */
    double
        cpu_s_gb; /* CPU time for 10^9 bytes, all threads and the kernel's part: work that computing lacks */
};

struct brig_probe {
    double memory_bytes_s; /* read once by memory_threads threads together: the best of many short samples */
    double memory_median_bytes_s;
    uint32_t memory_threads, cpus;
    double load; /* of the minute before, as the system counts it: processes that ran or wanted to; 0: not
                    known */
    double disk_bytes_s; /* of the best row; 0: there is no figure, and why is in `why` */
    struct brig_probe_row best;
    /* Both at the same time, the disk in the best way: they share memory, CPUs and, in a virtual machine, the
     * CPU that serves the disk. 0: not measured. */
    double beside_memory_bytes_s, beside_disk_bytes_s;
    bool rough;       /* the file is too small for more than a hint; never remembered */
    char why[256];    /* empty, or why disk_bytes_s is 0 */
    char note[256];   /* empty, or what is to be known about the figure: io_uring refused, much other work */
    char host[192];   /* name, kernel, number of CPUs */
    char device[128]; /* of the file: type and number of its file system, number of the device */
    char disk[64];    /* the device's name, or empty */
    char file[256];   /* that was read (the end of its path when it is longer) */
    uint64_t file_bytes;
    uint64_t measured_s; /* seconds since 1970 */
    bool remembered;     /* from the file, not measured just now */
    uint32_t n_rows;
    struct brig_probe_row rows[BRIG_PROBE_MAX_ROWS]; /* all that were tried, in that order */
};

struct brig_probe_opts {
    bool only_remembered; /* measure nothing: without a figure that is remembered all speeds are 0 */
    bool fresh;           /* measure though there is a figure that is young enough */
    uint32_t budget_ms;   /* for the disk; 0: 3000. For a file under 64 MiB at most 300 */
    uint32_t threads;     /* for the memory; 0: as many as CPUs may be used */
    void (*progress)(void *arg, uint64_t done_ms, uint64_t total_ms); /* NULL allowed */
    void *arg;
    const volatile sig_atomic_t *cancel; /* NULL, or not 0 once it shall end */
};

/* The figures for this machine and the disk that holds `path` (NULL: the memory alone; a file; or a folder:
 * its largest file): remembered ones, or measured and then remembered in $XDG_CACHE_HOME/brigade/probe.json
 * (else
 * ~/.cache/brigade). opts NULL: defaults. A cache that cannot be read is measured anew, one that cannot be
 * written is said in ret->note. Failures: no such file, a disk that reports an error, cancelled. */
int brig_probe_cached(struct brig_probe *ret, const char *path, const struct brig_probe_opts *opts,
                      struct brig_fail *fail);

/* As it is remembered and printed; the caller decrefs (jansson). NULL when memory is out. */
struct json_t;
struct json_t *brig_probe_json(const struct brig_probe *p);

/* Sum a buffer of 256 MiB once, shared between so many threads; bytes per second. */
int brig_probe_read_once(unsigned threads, double *ret_bytes_s, struct brig_fail *fail);

#endif
