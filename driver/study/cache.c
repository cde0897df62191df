/* The page cache before a run: emptied or filled, and looked at. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "driver/study/parts.h"
#include "proto/base/mem.h"
#include "proto/disk/pages.h"

#define PIECE_BYTES ((size_t)4 << 20)

/* Read through once, by the plain way that goes through the page cache. */
static int fill(const struct brig_model_file *f, struct brig_fail *fail)
{
    char *piece = brig_alloc(PIECE_BYTES, 1);
    if (piece == NULL)
        return brig_fail_set(fail, BRIG_ENOMEM, "%s: out of memory for reading it through", f->path);
    ssize_t n = 1;
    for (uint64_t at = 0; n > 0 && at < f->bytes; at += (uint64_t)n)
        do
            n = pread(f->fd, piece, PIECE_BYTES, (off_t)at);
        while (n < 0 && errno == EINTR);
    brig_free(piece);
    if (n < 0)
        return brig_fail_errno(fail, BRIG_EIO, "%s", f->path);
    return n == 0 && f->bytes > 0 ? brig_fail_set(fail, BRIG_EIO, "%s has become shorter", f->path) : 0;
}

static int resident(const struct brig_model *m, double *ret_share, struct brig_fail *fail)
{
    uint64_t all = 0, there = 0;
    for (unsigned i = 0; i < m->n_files; i++) {
        uint64_t bytes = 0;
        int r = brig_pages_resident(m->files[i].fd, m->files[i].path, 0, 0, &bytes, fail);
        if (r == -BRIG_EUNSUPPORTED) {
            *ret_share = -1;
            return 0;
        }
        if (r < 0)
            return r;
        there += bytes;
        all += m->files[i].bytes;
    }
    *ret_share = all == 0 ? 0 : (double)there / (double)all;
    return 0;
}

int brig_study_cache_set(const struct brig_model *m, enum brig_study_cache wanted, double *ret_share,
                         char *why, size_t n, struct brig_fail *fail)
{
    for (unsigned i = 0; i < m->n_files; i++) {
        const struct brig_model_file *f = &m->files[i];
        uint64_t left;
        int r = wanted == BRIG_STUDY_CACHED ? fill(f, fail) : brig_pages_drop(f->fd, f->path, &left, fail);
        if (r < 0 && r != -BRIG_EUNSUPPORTED)
            return r;
    }
    int r = resident(m, ret_share, fail);
    if (r < 0)
        return r;
    why[0] = '\0';
    if (*ret_share >= 0.01 && wanted == BRIG_STUDY_DROPPED)
        snprintf(why, n,
                 "%.1f %% of the model's files stayed in the page cache: something else has them open",
                 100 * *ret_share);
    if (*ret_share >= 0 && *ret_share < 0.99 && wanted == BRIG_STUDY_CACHED)
        snprintf(why, n, "only %.1f %% of the model's files stay in the page cache", 100 * *ret_share);
    return 0;
}
