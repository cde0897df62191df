/* The parts of a probe: the disk, and what is remembered. */
#ifndef BRIG_LAUNCHER_PROBE_PARTS_H
#define BRIG_LAUNCHER_PROBE_PARTS_H

#include "launcher/probe.h"
#include "proto/disk/file.h"

/* Fill a buffer of 256 MiB and sum n pieces of it, of so many that it is taken for, shared between so many
 * threads; bytes per second of each. */
int brig_probe_memory(unsigned threads, unsigned n, unsigned pieces, double *ret_bytes_s,
                      struct brig_fail *fail);

/* Threads that read memory again and again until they are stopped, and what they read then, bytes per second
 * of all together. */
struct brig_probe_load;
int brig_probe_load_start(struct brig_probe_load **ret, unsigned threads, struct brig_fail *fail);
double brig_probe_load_stop(struct brig_probe_load *l);

/* Fill p's figures of the disk by reading this file; file: opened without `direct`. */
int brig_probe_disk(struct brig_probe *p, const struct brig_disk_file *file,
                    const struct brig_probe_opts *opts, struct brig_fail *fail);

/* The best of p->rows, by median among those with the most samples: the fastest that reads direct, unless one
 * through the page cache, which takes several times the CPU time from those that compute, is faster by a
 * quarter. Of such as are within 5 % of it the one with the most bytes in flight. NULL: no row has a
 * figure. */
const struct brig_probe_row *brig_probe_best(const struct brig_probe *p);

/* Whether the best row's samples differ so much that something else must have been at work; says so in
 * p->note when that is empty. A disk that is shared does so by itself. */
bool brig_probe_noisy(struct brig_probe *p);

/* Whether the machine had other work: its load was above the number of its CPUs, or half of the samples of
 * the memory fell far behind the best. Whatever was measured then may be too low. */
bool brig_probe_busy(const struct brig_probe *p);

/* For how long p's figures are remembered, by the two above; what is to be said of that is put into p->note.
 */
uint32_t brig_probe_age_s(struct brig_probe *p);

/* Overwrite p with what is remembered for p->host and p->device. False when there is nothing, or it is too
 * old or not what can be believed; p is as it was then. */
bool brig_probe_recall(struct brig_probe *p, uint64_t now_s);
/* Put p among what is remembered. */
int brig_probe_remember(const struct brig_probe *p, struct brig_fail *fail);

#endif
