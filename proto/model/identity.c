/*
 * The identity of a checkpoint: SHA-256 over metadata and tensor table as they lie in the file, the number
 * and sizes of the files (u64, little-endian), and the first and last 4 KiB of each tensor in the table's
 * order (a tensor of at most 8 KiB: all of it, once), what lies beside it included. Enough to tell two models
 * apart, and fast for one of any size.
 */
#include "proto/model/private.h"

#include "proto/model/sha256.h"

#define END_BYTES 4096u

static void add_u64(struct brig_sha256 *sha, uint64_t v)
{
    uint8_t bytes[8];
    for (int i = 0; i < 8; i++)
        bytes[i] = (uint8_t)(v >> (8 * i));
    brig_sha256_add(sha, bytes, sizeof bytes);
}

static int add_ends(struct brig_sha256 *sha, int fd, uint64_t offset, uint64_t bytes, struct brig_fail *fail)
{
    uint8_t ends[2 * END_BYTES];
    size_t n = sizeof ends;
    int r;
    if (bytes <= sizeof ends) {
        n = (size_t)bytes;
        r = brig_model_file_read(fd, ends, n, offset, fail);
    } else {
        r = brig_model_file_read(fd, ends, END_BYTES, offset, fail);
        if (r == 0)
            r = brig_model_file_read(fd, ends + END_BYTES, END_BYTES, offset + bytes - END_BYTES, fail);
    }
    if (r == 0)
        brig_sha256_add(sha, ends, n);
    return r;
}

static int add_tensor(struct brig_sha256 *sha, const struct brig_model *m, const struct brig_tensor *t,
                      struct brig_fail *fail)
{
    int r = add_ends(sha, m->files[t->file].fd, t->offset, t->bytes, fail);
    for (unsigned i = 0; i < BRIG_SIDE_COUNT && r == 0; i++) {
        const struct brig_side *side = &t->sides.side[i];
        if (side->bytes != 0)
            r = add_ends(sha, m->files[side->file].fd, side->offset, side->bytes, fail);
    }
    return r;
}

int brig_model_identify(struct brig_model *m, const void *head, size_t n, struct brig_fail *fail)
{
    struct brig_sha256 sha;
    int r = 0;
    brig_sha256_init(&sha);
    brig_sha256_add(&sha, head, n);
    add_u64(&sha, m->n_files);
    for (unsigned i = 0; i < m->n_files; i++)
        add_u64(&sha, m->files[i].bytes);
    for (unsigned i = 0; i < m->n_tensors && r == 0; i++)
        r = add_tensor(&sha, m, &m->tensors[i], fail);
    if (r == 0)
        brig_sha256_finish(&sha, m->identity);
    return r;
}
