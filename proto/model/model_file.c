/* Opening and reading the files of a checkpoint. Reads go through pread into memory of our own: a file that
 * becomes shorter meanwhile is an error, never a signal. */
#include "proto/model/private.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/stat.h>
#include <unistd.h>

int brig_model_file_open(const char *path, int *ret_fd, uint64_t *ret_bytes, struct brig_fail *fail)
{
    /* O_NONBLOCK: a FIFO without a writer must not hold us up; it means nothing for a regular file. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (fd < 0)
        return brig_fail_errno(fail, BRIG_EIO, "cannot open it");
    struct stat st;
    int r = 0;
    if (fstat(fd, &st) != 0)
        r = brig_fail_errno(fail, BRIG_EIO, "cannot examine it");
    else if (S_ISDIR(st.st_mode))
        r = brig_fail_set(fail, BRIG_EFORMAT, "it is a folder, a model file is wanted");
    else if (!S_ISREG(st.st_mode))
        r = brig_fail_set(fail, BRIG_EFORMAT, "it is not a regular file");
    if (r < 0) {
        close(fd);
        return r;
    }
    *ret_fd = fd;
    *ret_bytes = (uint64_t)st.st_size;
    return 0;
}

int brig_model_file_read(int fd, void *dst, size_t n, uint64_t offset, struct brig_fail *fail)
{
    char *p = dst;
    while (n > 0) {
        ssize_t got = pread(fd, p, n, (off_t)offset);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return brig_fail_errno(fail, BRIG_EIO, "cannot read at byte %" PRIu64, offset);
        if (got == 0)
            return brig_fail_set(fail, BRIG_EIO,
                                 "it became shorter while it was read (ends at byte %" PRIu64 ")", offset);
        p += got;
        n -= (size_t)got;
        offset += (uint64_t)got;
    }
    return 0;
}
