/* Descriptors of our own for the files that a shard's weights come from, and whether they changed. */
#include "shard/weights/files.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proto/base/mem.h"

void brig_weights_file_name(int fd, unsigned number, char *out, size_t cap)
{
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, out, cap - 1);
    if (n > 0)
        out[n] = '\0';
    else
        snprintf(out, cap, "file %u of the model", number);
}

static int check_described(const struct brig_slice *slice, int fd, unsigned number, struct brig_fail *fail)
{
    char name[PATH_MAX];
    struct stat st;
    uint64_t had = slice->file_bytes[number];
    if (fstat(fd, &st) < 0)
        return brig_fail_errno(fail, BRIG_EIO, "file %u of the model", number);
    if ((uint64_t)st.st_size == had)
        return 0;
    brig_weights_file_name(fd, number, name, sizeof name);
    return brig_fail_set(fail, BRIG_EMISMATCH, "%s has %llu bytes, it had %llu when it was described", name,
                         (unsigned long long)st.st_size, (unsigned long long)had);
}

static bool is_used(const struct brig_slice *slice, uint32_t file)
{
    for (unsigned i = 0; i < slice->n_tensors; i++) {
        const struct brig_slice_tensor *t = &slice->tensors[i];
        if (t->file == file)
            return true;
        for (unsigned k = 0; k < BRIG_SIDE_COUNT; k++)
            if (t->sides.side[k].bytes > 0 && t->sides.side[k].file == file)
                return true;
    }
    return false;
}

static int keep(struct brig_weights_files *f, const struct brig_slice *slice, int fd, uint32_t number,
                struct brig_fail *fail)
{
    int own = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    if (own < 0)
        return brig_fail_errno(fail, BRIG_EIO, "file %u of the model", number);
    f->files[f->n++] = (struct brig_weights_file){own, number, slice->file_bytes[number]};
    return 0;
}

int brig_weights_files_open(struct brig_weights_files *ret, const struct brig_slice *slice, const int *fds,
                            unsigned n, struct brig_fail *fail)
{
    struct brig_weights_files f = {0};
    if (n != slice->n_files)
        return brig_fail_set(fail, BRIG_EMISMATCH, "the slice lies in %u files, %u were given",
                             slice->n_files, n);
    f.files = brig_alloc(n, sizeof *f.files);
    if (f.files == NULL)
        return brig_fail_set(fail, BRIG_ENOMEM, "out of memory for %u files", n);
    int r = 0;
    for (unsigned i = 0; r == 0 && i < n; i++) {
        r = check_described(slice, fds[i], i, fail);
        if (r == 0 && is_used(slice, i))
            r = keep(&f, slice, fds[i], i, fail);
    }
    if (r < 0)
        brig_weights_files_close(&f);
    else
        *ret = f;
    return r;
}

void brig_weights_files_close(struct brig_weights_files *f)
{
    for (unsigned i = 0; i < f->n; i++)
        close(f->files[i].fd);
    brig_free(f->files);
    *f = (struct brig_weights_files){0};
}

int brig_weights_files_check(const struct brig_weights_files *f, struct brig_fail *fail)
{
    for (unsigned i = 0; i < f->n; i++) {
        const struct brig_weights_file *file = &f->files[i];
        char name[PATH_MAX];
        struct stat st;
        int r = fstat(file->fd, &st);
        if (r == 0 && (uint64_t)st.st_size == file->bytes)
            continue;
        brig_weights_file_name(file->fd, file->number, name, sizeof name);
        if (r < 0)
            return brig_fail_errno(fail, BRIG_EIO, "%s", name);
        return brig_fail_set(fail, BRIG_EIO,
                             "%s: the file became %s while it was in use: it has %llu bytes, it had %llu",
                             name, (uint64_t)st.st_size < file->bytes ? "shorter" : "longer",
                             (unsigned long long)st.st_size, (unsigned long long)file->bytes);
    }
    return 0;
}
