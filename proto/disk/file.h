/* A file that is read in large pieces: its size as opened, whether its reads bypass the page cache, and what
 * alignment they need. */
#ifndef BRIG_PROTO_DISK_FILE_H
#define BRIG_PROTO_DISK_FILE_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/base/err.h"

struct brig_disk_file {
    int fd; /* -1: not open */
    bool direct;
    uint32_t align;     /* of offsets and lengths, a power of two: 1 when not direct */
    uint32_t buf_align; /* of addresses of buffers */
    uint64_t bytes;     /* when opened; less at the time of reading is a failure */
    char *name;         /* for messages */
};

/* Regular files only. direct: with O_DIRECT; where the file system refuses that, the file is opened without
 * and ret->direct is false. Sizes and alignments as statx tells (else 4096). */
int brig_disk_file_open(struct brig_disk_file *ret, const char *path, bool direct, struct brig_fail *fail);

/* A descriptor of one's own for the file behind fd, which stays the caller's and as it is (O_DIRECT is a
 * property of what is open, and would reach all who share it). name is copied. */
int brig_disk_file_reopen(struct brig_disk_file *ret, int fd, const char *name, bool direct,
                          struct brig_fail *fail);

void brig_disk_file_close(struct brig_disk_file *f); /* {.fd = -1} and {0} with no name allowed */

#endif
