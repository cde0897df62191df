/* Counters that figures are made of: percentiles of samples, memory of this process, mapped ranges. */
#ifndef BRIG_PROTO_STAT_STAT_H
#define BRIG_PROTO_STAT_STAT_H

#include <stdint.h>
#include <sys/types.h>

/* The newest `cap` samples. {0} with cap set by init. */
struct brig_samples {
    uint64_t *v;
    unsigned n, cap, next;
};
int brig_samples_init(struct brig_samples *s, unsigned cap); /* 0 or -BRIG_ENOMEM */
void brig_samples_release(struct brig_samples *s);
void brig_samples_add(struct brig_samples *s, uint64_t v);

/* p in 0..100, nearest rank, of n samples in any order (they are not changed; up to 65,536 considered). 0 of
 * none. */
uint64_t brig_percentile(const uint64_t *v, unsigned n, double p);

/* Proportional set size of this process (/proc/self/smaps_rollup), 0 when it cannot be read. Allocates
 * nothing. */
uint64_t brig_pss_bytes(void);
/* The most memory that this process has had at once, pages of files that it mapped included (VmHWM); 0 when
 * it cannot be read. */
uint64_t brig_peak_rss_bytes(void);
/* memory.peak (v2) or memory.max_usage_in_bytes (v1) of this process's cgroup; 0 when there is none. */
uint64_t brig_cgroup_peak_bytes(void);
/* Bytes that a process has had fetched from storage (read_bytes of /proc/PID/io): page faults, read-ahead and
 * direct reads, and what its children fetched once it has waited for them. 0 when it cannot be read. */
uint64_t brig_disk_read_bytes(pid_t pid);

#endif
