/*
 * Rows of the token table, and of the table of learned positions. They are read with pread: a row is a few
 * hundred bytes at a random place, and a file that shrinks under a mapping would be a signal instead of a
 * message.
 */
#include "driver/run/embed.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "proto/base/mem.h"
#include "proto/base/size.h"

/* A table that is read row by row. */
struct table {
    const struct brig_tensor *tensor; /* NULL: the model has none */
    const struct brig_model_file *file;
    uint64_t row_bytes;
    void *row; /* [row_bytes] */
};

struct brig_embed {
    const struct brig_model *model;
    struct table tokens, positions;
    float *position; /* [hidden], NULL without learned positions */
};

static int open_table(struct table *ret, const struct brig_model *m, enum brig_role role, uint32_t rows,
                      struct brig_fail *fail)
{
    const struct brig_tensor *t = brig_model_tensor(m, role, 0);
    if (t == NULL)
        return brig_fail_set(fail, BRIG_EFORMAT, "%s: no %s", m->path, brig_role_name(role));
    uint64_t row_bytes = brig_type_row_bytes(t->type, m->desc.hidden), all;
    if (row_bytes == 0 || !brig_mul_u64(row_bytes, rows, &all) || all > t->bytes)
        return brig_fail_set(fail, BRIG_EFORMAT, "%s: tensor %.*s is too small for %u rows of %u columns",
                             m->path, (int)t->name.len, t->name.ptr, rows, m->desc.hidden);
    *ret = (struct table){.tensor = t, .file = &m->files[t->file], .row_bytes = row_bytes};
    ret->row = brig_alloc(row_bytes, 1);
    if (ret->row == NULL)
        return brig_fail_set(fail, BRIG_ENOMEM, "%s: out of memory for a row of %.*s", m->path,
                             (int)t->name.len, t->name.ptr);
    posix_fadvise(ret->file->fd, (off_t)t->offset, (off_t)t->bytes, POSIX_FADV_RANDOM);
    return 0;
}

int brig_embed_open(struct brig_embed **ret, const struct brig_model *m, struct brig_fail *fail)
{
    struct brig_embed *e = brig_alloc(1, sizeof *e);
    if (e == NULL)
        return brig_fail_set(fail, BRIG_ENOMEM, "%s: out of memory", m->path);
    e->model = m;
    int r = open_table(&e->tokens, m, BRIG_ROLE_TOKEN_TABLE, m->desc.vocab, fail);
    if (r == 0 && m->desc.learned_positions) {
        r = open_table(&e->positions, m, BRIG_ROLE_POSITION_TABLE, m->desc.ctx_trained, fail);
        e->position = brig_alloc(m->desc.hidden, sizeof *e->position);
        if (r == 0 && e->position == NULL)
            r = brig_fail_set(fail, BRIG_ENOMEM, "%s: out of memory for a position", m->path);
    }
    if (r < 0) {
        brig_embed_close(e);
        return r;
    }
    *ret = e;
    return 0;
}

void brig_embed_close(struct brig_embed *e)
{
    if (e == NULL)
        return;
    brig_free(e->tokens.row);
    brig_free(e->positions.row);
    brig_free(e->position);
    brig_free(e);
}

/* Row `number` as floats into out [hidden]. */
static int read_row(const struct table *t, uint32_t number, uint32_t hidden, float *out,
                    struct brig_fail *fail)
{
    uint64_t offset = t->tensor->offset + number * t->row_bytes;
    for (uint64_t done = 0; done < t->row_bytes;) {
        ssize_t r = pread(t->file->fd, (char *)t->row + done, t->row_bytes - done, (off_t)(offset + done));
        if (r < 0 && errno == EINTR)
            continue;
        if (r < 0)
            return brig_fail_errno(fail, BRIG_EIO, "%s: row %u of %.*s", t->file->path, number,
                                   (int)t->tensor->name.len, t->tensor->name.ptr);
        if (r == 0)
            return brig_fail_set(fail, BRIG_EIO, "%s: the file became shorter while it was in use",
                                 t->file->path);
        done += (uint64_t)r;
    }
    t->tensor->type->dequant(t->row, out, hidden);
    return 0;
}

/* h += the row of position pos. */
static int add_position(const struct brig_embed *e, uint32_t pos, float *h, struct brig_fail *fail)
{
    const struct brig_desc *d = &e->model->desc;
    if (pos >= d->ctx_trained)
        return brig_fail_set(
            fail, BRIG_ELIMIT,
            "the model knows %u positions and no more (--ctx %u makes an answer end in time)", d->ctx_trained,
            d->ctx_trained);
    int r = read_row(&e->positions, pos, d->hidden, e->position, fail);
    for (uint32_t i = 0; r == 0 && i < d->hidden; i++)
        h[i] = h[i] + e->position[i];
    return r;
}

int brig_embed_rows(struct brig_embed *e, const uint32_t *ids, size_t n, uint32_t pos, float *h,
                    struct brig_fail *fail)
{
    const struct brig_desc *d = &e->model->desc;
    for (size_t i = 0; i < n; i++, h += d->hidden) {
        if (ids[i] >= d->vocab)
            return brig_fail_set(fail, BRIG_EUSAGE, "token id %u is outside the vocabulary of %u", ids[i],
                                 d->vocab);
        int r = read_row(&e->tokens, ids[i], d->hidden, h, fail);
        for (uint32_t k = 0; r == 0 && k < d->hidden; k++)
            h[k] = h[k] * d->embed_scale;
        if (r == 0 && d->learned_positions)
            r = add_position(e, pos + (uint32_t)i, h, fail);
        if (r < 0)
            return r;
    }
    return 0;
}

uint64_t brig_embed_row_bytes(const struct brig_embed *e)
{
    return (e->model->desc.tied ? 0 : e->tokens.row_bytes) + e->positions.row_bytes;
}
