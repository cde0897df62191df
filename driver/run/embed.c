/*
 * Rows of the token table. They are read with pread: a row is a few hundred bytes at a random place, and a
 * file that shrinks under a mapping would be a signal instead of a message.
 */
#include "driver/run/embed.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "proto/base/mem.h"
#include "proto/base/size.h"

struct brig_embed {
    const struct brig_model *model;
    const struct brig_tensor *table;
    const struct brig_model_file *file;
    uint64_t row_bytes;
    void *row;
};

int brig_embed_open(struct brig_embed **ret, const struct brig_model *m, struct brig_fail *fail)
{
    const struct brig_tensor *table = brig_model_tensor(m, BRIG_ROLE_TOKEN_TABLE, 0);
    if (table == NULL)
        return brig_fail_set(fail, BRIG_EFORMAT, "%s: no token table", m->path);
    uint64_t row_bytes = brig_type_row_bytes(table->type, m->desc.hidden), all;
    if (row_bytes == 0 || !brig_mul_u64(row_bytes, m->desc.vocab, &all) || all > table->bytes)
        return brig_fail_set(fail, BRIG_EFORMAT, "%s: tensor %.*s is too small for %u rows of %u columns",
                             m->path, (int)table->name.len, table->name.ptr, m->desc.vocab, m->desc.hidden);
    struct brig_embed *e = brig_alloc(1, sizeof *e);
    if (e == NULL)
        return brig_fail_set(fail, BRIG_ENOMEM, "%s: out of memory", m->path);
    *e = (struct brig_embed){
        .model = m, .table = table, .file = &m->files[table->file], .row_bytes = row_bytes};
    e->row = brig_alloc(row_bytes, 1);
    if (e->row == NULL) {
        brig_free(e);
        return brig_fail_set(fail, BRIG_ENOMEM, "%s: out of memory for a row of the token table", m->path);
    }
    posix_fadvise(e->file->fd, (off_t)table->offset, (off_t)table->bytes, POSIX_FADV_RANDOM);
    *ret = e;
    return 0;
}

void brig_embed_close(struct brig_embed *e)
{
    if (e == NULL)
        return;
    brig_free(e->row);
    brig_free(e);
}

static int read_row(struct brig_embed *e, uint32_t id, struct brig_fail *fail)
{
    uint64_t offset = e->table->offset + id * e->row_bytes;
    for (uint64_t done = 0; done < e->row_bytes;) {
        ssize_t r = pread(e->file->fd, (char *)e->row + done, e->row_bytes - done, (off_t)(offset + done));
        if (r < 0 && errno == EINTR)
            continue;
        if (r < 0)
            return brig_fail_errno(fail, BRIG_EIO, "%s: row %u of the token table", e->file->path, id);
        if (r == 0)
            return brig_fail_set(fail, BRIG_EIO, "%s: the file became shorter while it was in use",
                                 e->file->path);
        done += (uint64_t)r;
    }
    return 0;
}

int brig_embed_rows(struct brig_embed *e, const uint32_t *ids, size_t n, float *h, struct brig_fail *fail)
{
    const struct brig_desc *d = &e->model->desc;
    for (size_t i = 0; i < n; i++) {
        if (ids[i] >= d->vocab)
            return brig_fail_set(fail, BRIG_EUSAGE, "token id %u is outside the vocabulary of %u", ids[i],
                                 d->vocab);
        int r = read_row(e, ids[i], fail);
        if (r < 0)
            return r;
        e->table->type->dequant(e->row, h + i * d->hidden, d->hidden);
    }
    return 0;
}

uint64_t brig_embed_row_bytes(const struct brig_embed *e)
{
    return e->row_bytes;
}
