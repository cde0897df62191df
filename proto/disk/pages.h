/* How much of a file the kernel holds in its page cache, and making it forget that. For honest figures: what
 * was read from memory was not read from the disk. */
#ifndef BRIG_PROTO_DISK_PAGES_H
#define BRIG_PROTO_DISK_PAGES_H

#include <stdint.h>

#include "proto/base/err.h"

/* Bytes of [offset, offset + bytes) of the file that lie in the page cache, in whole pages cut to the range
 * (mincore; bytes 0: to the end of the file). name is for messages. -BRIG_EUNSUPPORTED where the kernel does
 * not tell: it answers only who owns the file or may write to it, for others every page looks resident. */
int brig_pages_resident(int fd, const char *name, uint64_t offset, uint64_t bytes, uint64_t *ret_bytes,
                        struct brig_fail *fail);

/* Write what is dirty to the disk, tell the kernel to forget the file's pages, and look: *ret_left are the
 * bytes that are resident even so (somebody has them mapped, locked or dirty again). */
int brig_pages_drop(int fd, const char *name, uint64_t *ret_left, struct brig_fail *fail);

#endif
