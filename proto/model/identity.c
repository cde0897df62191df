/*
 * The identity of a checkpoint: SHA-256 over metadata and tensor table as they lie in the file, the number
 * and sizes of the files (u64, little-endian), and the first and last 4 KiB of each tensor in the table's
 * order (a tensor of at most 8 KiB: all of it, once). Enough to tell two models apart, and fast for one of
 * any size.
 */
#include "proto/model/private.h"

#include <string.h>

#include <mbedtls/sha256.h>

#define END_BYTES 4096u

static int add_u64(mbedtls_sha256_context *sha, uint64_t v)
{
    uint8_t bytes[8];
    for (int i = 0; i < 8; i++)
        bytes[i] = (uint8_t)(v >> (8 * i));
    return mbedtls_sha256_update_ret(sha, bytes, sizeof bytes);
}

/* 0, 1 when SHA-256 failed, or the failure to read. */
static int add_tensor(mbedtls_sha256_context *sha, const struct brig_model *m, const struct brig_tensor *t,
                      struct brig_fail *fail)
{
    uint8_t ends[2 * END_BYTES];
    int fd = m->files[t->file].fd, r;
    size_t n = sizeof ends;
    if (t->bytes <= sizeof ends) {
        n = (size_t)t->bytes;
        r = brig_model_file_read(fd, ends, n, t->offset, fail);
    } else {
        r = brig_model_file_read(fd, ends, END_BYTES, t->offset, fail);
        if (r == 0)
            r = brig_model_file_read(fd, ends + END_BYTES, END_BYTES, t->offset + t->bytes - END_BYTES, fail);
    }
    if (r < 0)
        return r;
    return mbedtls_sha256_update_ret(sha, ends, n) != 0;
}

static int add_all(mbedtls_sha256_context *sha, struct brig_model *m, const void *head, size_t n,
                   struct brig_fail *fail)
{
    if (mbedtls_sha256_starts_ret(sha, 0) != 0 || mbedtls_sha256_update_ret(sha, head, n) != 0 ||
        add_u64(sha, m->n_files) != 0)
        return 1;
    for (unsigned i = 0; i < m->n_files; i++)
        if (add_u64(sha, m->files[i].bytes) != 0)
            return 1;
    for (unsigned i = 0; i < m->n_tensors; i++) {
        int r = add_tensor(sha, m, &m->tensors[i], fail);
        if (r != 0)
            return r;
    }
    return mbedtls_sha256_finish_ret(sha, m->identity) != 0;
}

int brig_model_identify(struct brig_model *m, const void *head, size_t n, struct brig_fail *fail)
{
    mbedtls_sha256_context sha;
    mbedtls_sha256_init(&sha);
    int r = add_all(&sha, m, head, n, fail);
    mbedtls_sha256_free(&sha);
    return r > 0 ? brig_fail_set(fail, BRIG_EINTERNAL, "SHA-256 failed") : r;
}
