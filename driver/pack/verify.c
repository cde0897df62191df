/* Hashes of files, as part.c makes them: the digits of the hash itself count as zeros. */
#include "driver/pack/verify.h"

#include <stdio.h>
#include <string.h>

#include "proto/base/mem.h"
#include "proto/base/size.h"
#include "proto/model/sha256.h"

#define STEP_BYTES (1u << 20)

struct reading {
    const struct brig_model *m;
    const struct brig_verify_watch *watch;
    uint8_t *buffer;
    uint64_t done, total;
};

/* The part of [from, from + n) in the buffer that holds the hash. */
static void blank(uint8_t *buffer, uint64_t from, size_t n, const struct brig_model_file *f)
{
    for (uint64_t i = 0; i < f->sha256.len; i++)
        if (f->sha256_at + i >= from && f->sha256_at + i - from < n)
            buffer[f->sha256_at + i - from] = '0';
}

static int hash_file(struct reading *r, unsigned file, char hex[65], struct brig_fail *fail)
{
    const struct brig_model_file *f = &r->m->files[file];
    struct brig_sha256 sha;
    uint8_t digest[BRIG_SHA256_BYTES];
    brig_sha256_init(&sha);
    for (uint64_t at = 0; at < f->bytes;) {
        size_t n = f->bytes - at < STEP_BYTES ? (size_t)(f->bytes - at) : STEP_BYTES;
        if (r->watch->cancel != NULL && *r->watch->cancel != 0)
            return brig_fail_set(fail, BRIG_ECANCELLED, "cancelled");
        int err = brig_model_read(r->m, file, r->buffer, n, at, fail);
        if (err < 0)
            return err;
        blank(r->buffer, at, n, f);
        brig_sha256_add(&sha, r->buffer, n);
        at += n;
        r->done += n;
        if (r->watch->progress != NULL)
            r->watch->progress(r->watch->arg, r->done, r->total);
    }
    brig_sha256_finish(&sha, digest);
    for (unsigned i = 0; i < sizeof digest; i++)
        snprintf(hex + 2 * i, 3, "%02x", digest[i]);
    return 0;
}

int brig_verify(const struct brig_model *m, const struct brig_verify_watch *watch, unsigned *ret_hashed,
                struct brig_fail *fail)
{
    struct reading r = {.m = m, .watch = watch, .buffer = brig_alloc(STEP_BYTES, 1)};
    unsigned hashed = 0;
    int err = 0;
    if (r.buffer == NULL)
        return brig_fail_set(fail, BRIG_ENOMEM, "%s: no memory to read into", m->path);
    for (unsigned i = 0; i < m->n_files; i++)
        r.total += m->files[i].bytes;
    for (unsigned i = 0; i < m->n_files && err == 0; i++) {
        const struct brig_model_file *f = &m->files[i];
        char hex[65];
        if ((err = hash_file(&r, i, hex, fail)) < 0 || f->sha256.len == 0)
            continue;
        hashed++;
        if (!brig_str_eq(f->sha256, hex))
            err = brig_fail_set(
                fail, BRIG_EMISMATCH,
                "%s: its bytes are not those that were packed: their hash is %.12s..., it carries "
                "%.12s...",
                f->path, hex, f->sha256.ptr);
    }
    brig_free(r.buffer);
    if (err == 0)
        *ret_hashed = hashed;
    return err;
}
