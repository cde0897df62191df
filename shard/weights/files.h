/*
 * The files of a slice while its weights are in use. What is mapped of a file that is cut reads as zeros up
 * to the end of the page, without a signal, so the length is looked at after every pass.
 */
#ifndef BRIG_SHARD_WEIGHTS_FILES_H
#define BRIG_SHARD_WEIGHTS_FILES_H

#include "proto/model/slice.h"

struct brig_weights_file {
    int fd;
    uint32_t number; /* in the slice */
    uint64_t bytes;  /* when it was described */
};

struct brig_weights_files {
    unsigned n;
    struct brig_weights_file *files; /* [n] those that tensors of the slice lie in */
};

/* fds[n] are the files of the slice (borrowed until return): as many as it says, each as long as it says. */
int brig_weights_files_open(struct brig_weights_files *ret, const struct brig_slice *slice, const int *fds,
                            unsigned n, struct brig_fail *fail);
void brig_weights_files_close(struct brig_weights_files *f); /* {0} allowed */

/* Is each still as long? -BRIG_EIO: fail names the one that is not. One system call a file. */
int brig_weights_files_check(const struct brig_weights_files *f, struct brig_fail *fail);

/* The path of what is open at fd, for messages; or "file NUMBER of the model". */
void brig_weights_file_name(int fd, unsigned number, char *out, size_t cap);

#endif
