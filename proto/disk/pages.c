/* What the page cache holds of a file. */
#include "proto/disk/pages.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proto/base/size.h"

#define STEP_PAGES 8192u /* a step's answer fits a small array on the stack */

/* The kernel's own rule (can_do_mincore): to all others it says that every page is there. */
static bool may_ask(int fd, const struct stat *st)
{
    char path[64];
    if (geteuid() == 0 || st->st_uid == geteuid())
        return true;
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    return faccessat(AT_FDCWD, path, W_OK, AT_EACCESS) == 0;
}

/* Resident bytes of a mapping, the first `skip` of which do not count. */
static int count(unsigned char *map, uint64_t skip, uint64_t bytes, uint64_t page, uint64_t *ret)
{
    unsigned char there[STEP_PAGES];
    uint64_t sum = 0;
    for (uint64_t at = 0; at < bytes; at += STEP_PAGES * page) {
        uint64_t n = bytes - at < STEP_PAGES * page ? bytes - at : STEP_PAGES * page;
        if (mincore(map + at, n, there) < 0)
            return -BRIG_EIO;
        for (uint64_t i = 0; i * page < n; i++) {
            uint64_t first = at + i * page < skip ? skip : at + i * page;
            uint64_t last = at + (i + 1) * page < bytes ? at + (i + 1) * page : bytes;
            if ((there[i] & 1) != 0 && last > first)
                sum += last - first;
        }
    }
    *ret = sum;
    return 0;
}

int brig_pages_resident(int fd, const char *name, uint64_t offset, uint64_t bytes, uint64_t *ret_bytes,
                        struct brig_fail *fail)
{
    struct stat st;
    if (fstat(fd, &st) < 0)
        return brig_fail_errno(fail, BRIG_EIO, "%s", name);
    uint64_t size = S_ISREG(st.st_mode) ? (uint64_t)st.st_size : 0;
    bytes = bytes == 0 && offset <= size ? size - offset : bytes;
    if (!brig_range_ok(offset, bytes, size))
        return brig_fail_set(fail, BRIG_EUSAGE, "%s: %llu bytes at offset %llu: the file has %llu", name,
                             (unsigned long long)bytes, (unsigned long long)offset, (unsigned long long)size);
    if (!may_ask(fd, &st))
        return brig_fail_set(fail, BRIG_EUNSUPPORTED,
                             "%s: what is cached of it the kernel tells only to who may write to it", name);
    if (bytes == 0) {
        *ret_bytes = 0;
        return 0;
    }
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), skip = offset % page;
    void *map = mmap(NULL, skip + bytes, PROT_READ, MAP_SHARED, fd, (off_t)(offset - skip));
    if (map == MAP_FAILED)
        return brig_fail_errno(fail, BRIG_EIO, "%s cannot be mapped", name);
    int r = count(map, skip, skip + bytes, page, ret_bytes);
    if (r < 0)
        r = brig_fail_errno(fail, BRIG_EIO, "%s: mincore", name);
    munmap(map, skip + bytes);
    return r;
}

int brig_pages_drop(int fd, const char *name, uint64_t *ret_left, struct brig_fail *fail)
{
    if (fsync(fd) < 0 && errno != EROFS && errno != EINVAL) /* on what is read-only nothing is dirty */
        return brig_fail_errno(fail, BRIG_EIO, "%s: fsync", name);
    int rc = posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    if (rc != 0) {
        errno = rc;
        return brig_fail_errno(fail, BRIG_EIO, "%s: its pages cannot be dropped", name);
    }
    return brig_pages_resident(fd, name, 0, 0, ret_left, fail);
}
