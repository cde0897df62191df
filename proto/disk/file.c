/* Opening files for large reads. */
#include "proto/disk/file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proto/base/mem.h"

#define SAFE_ALIGN 4096u /* where the kernel does not tell: no file system in use needs more */

static bool power_of_two(uint32_t x)
{
    return x != 0 && (x & (x - 1)) == 0;
}

/* -1 with errno when it is refused. A file system without direct reads says EINVAL. */
static int open_either(const char *path, bool *direct)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | (*direct ? O_DIRECT : 0));
    if (fd < 0 && *direct && errno == EINVAL) {
        *direct = false;
        fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    }
    return fd;
}

/* True when direct reads work at all. */
static bool alignments(int fd, uint32_t *ret_align, uint32_t *ret_buf_align)
{
    *ret_align = *ret_buf_align = SAFE_ALIGN;
#ifdef STATX_DIOALIGN
    struct statx x;
    if (statx(fd, "", AT_EMPTY_PATH, STATX_DIOALIGN, &x) < 0 || (x.stx_mask & STATX_DIOALIGN) == 0)
        return true;
    if (x.stx_dio_offset_align == 0) /* says: none on this file (encrypted, compressed, journalled data) */
        return false;
    if (power_of_two(x.stx_dio_offset_align) && power_of_two(x.stx_dio_mem_align)) {
        *ret_align = x.stx_dio_offset_align;
        *ret_buf_align = x.stx_dio_mem_align;
    }
#endif
    return true;
}

static int clear_flag(const struct brig_disk_file *f, int flag, struct brig_fail *fail)
{
    int flags = fcntl(f->fd, F_GETFL);
    if (flags < 0 || fcntl(f->fd, F_SETFL, flags & ~flag) < 0)
        return brig_fail_errno(fail, BRIG_EIO, "%s", f->name);
    return 0;
}

static int describe(struct brig_disk_file *f, struct brig_fail *fail)
{
    struct stat st;
    if (fstat(f->fd, &st) < 0)
        return brig_fail_errno(fail, BRIG_EIO, "%s", f->name);
    if (!S_ISREG(st.st_mode))
        return brig_fail_set(fail, BRIG_EIO, "%s: not a regular file", f->name);
    f->bytes = (uint64_t)st.st_size;
    f->align = f->buf_align = 1;
    if (f->direct && !alignments(f->fd, &f->align, &f->buf_align)) {
        f->direct = false;
        f->align = f->buf_align = 1;
    }
    /* The kernel's read-ahead would go on into what is held in memory: a third more than was asked for. */
    if (!f->direct)
        posix_fadvise(f->fd, 0, 0, POSIX_FADV_RANDOM);
    /* With O_NONBLOCK io_uring would answer EAGAIN where it had to wait for the disk. */
    return clear_flag(f, O_NONBLOCK | (f->direct ? 0 : O_DIRECT), fail);
}

static int open_named(struct brig_disk_file *ret, const char *path, const char *name, bool direct,
                      struct brig_fail *fail)
{
    struct brig_disk_file f = {.fd = -1, .direct = direct};
    f.name = brig_strndup(name, strlen(name));
    if (f.name == NULL)
        return brig_fail_set(fail, BRIG_ENOMEM, "%s: out of memory", name);
    f.fd = open_either(path, &f.direct); /* O_NONBLOCK: a pipe without a writer must not stop us */
    int r = f.fd < 0 ? brig_fail_errno(fail, BRIG_EIO, "%s", name) : describe(&f, fail);
    if (r < 0) {
        brig_disk_file_close(&f);
        return r;
    }
    *ret = f;
    return 0;
}

int brig_disk_file_open(struct brig_disk_file *ret, const char *path, bool direct, struct brig_fail *fail)
{
    return open_named(ret, path, path, direct, fail);
}

int brig_disk_file_reopen(struct brig_disk_file *ret, int fd, const char *name, bool direct,
                          struct brig_fail *fail)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    return open_named(ret, path, name, direct, fail);
}

void brig_disk_file_close(struct brig_disk_file *f)
{
    if (f->name != NULL && f->fd >= 0)
        close(f->fd);
    brig_free(f->name);
    *f = (struct brig_disk_file){.fd = -1};
}
