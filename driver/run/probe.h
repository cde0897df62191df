/* A read-once probe of memory bandwidth: what this machine can read at most, measured beside the figures that
 * are compared with it. */
#ifndef BRIG_DRIVER_RUN_PROBE_H
#define BRIG_DRIVER_RUN_PROBE_H

#include "proto/base/err.h"

/* Sum a buffer of 256 MiB once, shared between so many threads; bytes per second. */
int brig_probe_read_once(unsigned threads, double *ret_bytes_s, struct brig_fail *fail);

#endif
