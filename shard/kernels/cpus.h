/* How many CPUs this process may really use: affinity and the cgroup's quota. */
#ifndef BRIG_SHARD_KERNELS_CPUS_H
#define BRIG_SHARD_KERNELS_CPUS_H

/* CPUs in the affinity mask, at least 1. */
unsigned brig_cpus_affinity(void);

/* The smallest CPU quota, rounded up to whole CPUs, along the cgroup paths listed in the file `membership`
 * (/proc/self/cgroup) below the folder `root` (/sys/fs/cgroup), versions 1 and 2; 0 when none is set or
 * nothing can be read. */
unsigned brig_cpus_quota(const char *membership, const char *root);

#endif
