/*
 * One file of a bundle. Its hash is the SHA-256 of the whole file, read with the digits of the hash itself as
 * zeros: so the head is covered too, and the file is written in one go, the hash last.
 */
#include "driver/pack/part.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "driver/pack/packed.h"
#include "driver/pack/panels.h"
#include "proto/base/mem.h"
#include "proto/base/size.h"
#include "proto/model/gguf_write.h"
#include "proto/model/sha256.h"

/* Elements that are converted at a time: a multiple of every block. */
#define STEP_ELEMS 65536u
#define STEP_BYTES (STEP_ELEMS * sizeof(float))

struct output {
    const struct brig_pack_plan *plan;
    const struct brig_pack_watch *watch;
    int fd;
    const char *path; /* for messages */
    struct brig_sha256 sha;
    uint64_t *done;
    /* Buffers of STEP_BYTES. */
    uint8_t *stored, *packed;
    float *numbers, *back;
    struct brig_pack_panels from, to; /* of the present tensor */
};

static int write_at(struct output *o, const void *bytes, size_t n, off_t at, struct brig_fail *fail)
{
    const char *p = bytes;
    while (n > 0) {
        ssize_t wrote = pwrite(o->fd, p, n, at);
        if (wrote < 0 && errno == EINTR)
            continue;
        if (wrote <= 0)
            return brig_fail_errno(fail, BRIG_EIO, "%s: cannot be written", o->path);
        p += wrote;
        n -= (size_t)wrote;
        at += wrote;
    }
    return 0;
}

/* At the end of what there is. */
static int append(struct output *o, const void *bytes, size_t n, uint64_t *at, struct brig_fail *fail)
{
    int r = write_at(o, bytes, n, (off_t)*at, fail);
    brig_sha256_add(&o->sha, bytes, n);
    *at += n;
    return r;
}

/* Blocks of the present tensor, in the order of its rows. */
static int append_rows(struct output *o, const uint8_t *bytes, size_t n, uint64_t *at, struct brig_fail *fail)
{
    const void *panel;
    int r = 0;
    if (o->to.type == NULL)
        return append(o, bytes, n, at, fail);
    for (size_t took; n > 0 && r == 0; bytes += took, n -= took) {
        took = brig_pack_panels_add(&o->to, bytes, n, &panel);
        if (panel != NULL)
            r = append(o, panel, o->to.panel_bytes, at, fail);
    }
    return r;
}

/* n bytes of the rows of the tensor that is read, from byte `from` on, to o->stored. */
static int read_rows(struct output *o, const struct brig_tensor *t, uint64_t from, size_t n,
                     struct brig_fail *fail)
{
    const struct brig_model *m = o->plan->request.model;
    if (o->from.type != NULL)
        return brig_pack_panels_read(&o->from, m, t, from, o->stored, n, fail);
    return brig_model_read(m, t->file, o->stored, n, t->offset + from, fail);
}

static bool cancelled(const struct output *o)
{
    return o->watch->cancel != NULL && *o->watch->cancel != 0;
}

static int no_number(const struct output *o, const struct brig_pack_item *item, const char *what,
                     struct brig_fail *fail)
{
    return brig_fail_set(fail, BRIG_EFORMAT, "%s: tensor '%.*s' holds a number that is %s",
                         o->plan->request.model->path, (int)item->from->name.len, item->from->name.ptr, what);
}

/* n_elems numbers to o->packed. What would not come back as a number is refused: infinities would
 * spread through everything that the model says. */
static int convert(struct output *o, const struct brig_pack_item *item, const float *numbers, size_t n_elems,
                   struct brig_fail *fail)
{
    for (size_t i = 0; i < n_elems; i++)
        if (!isfinite(numbers[i]))
            return no_number(o, item, "not finite", fail);
    const struct brig_type *type = brig_type_native(item->type);
    type->quantize(numbers, o->packed, n_elems);
    type->dequant(o->packed, o->back, n_elems);
    for (size_t i = 0; i < n_elems; i++)
        if (!isfinite(o->back[i])) {
            char what[48];
            snprintf(what, sizeof what, "too large for %s", type->name);
            return no_number(o, item, what, fail);
        }
    return 0;
}

static uint64_t bytes_of(const struct brig_type *t, uint64_t n_elems)
{
    return n_elems / t->block_elems * t->block_bytes;
}

static void tell(struct output *o, size_t bytes)
{
    *o->done += bytes;
    if (o->watch->progress != NULL)
        o->watch->progress(o->watch->arg, *o->done, o->plan->bytes);
}

/* Rows are whole blocks in both types, so a tensor is one long run of blocks. */
static int add_tensor(struct output *o, const struct brig_pack_item *item, uint64_t *at,
                      struct brig_fail *fail)
{
    const struct brig_tensor *t = item->from;
    const struct brig_type *stored = brig_type_native(t->type);
    bool same = brig_type_native(item->type) == stored;
    uint64_t n = t->bytes / stored->block_bytes * stored->block_elems, from = 0;
    int r = 0;
    while (n > 0 && r == 0) {
        size_t step = n < STEP_ELEMS ? (size_t)n : STEP_ELEMS;
        size_t in = (size_t)bytes_of(stored, step), out = (size_t)bytes_of(item->type, step);
        if (cancelled(o))
            return brig_fail_set(fail, BRIG_ECANCELLED, "cancelled");
        r = read_rows(o, t, from, in, fail);
        if (r == 0 && !same) {
            stored->dequant(o->stored, o->numbers, step);
            r = convert(o, item, o->numbers, step, fail);
        }
        if (r == 0)
            r = append_rows(o, same ? o->stored : o->packed, out, at, fail);
        n -= step;
        from += in;
        tell(o, out);
    }
    return r;
}

/* A matrix whose rows share words: whole in memory, row by row. */
static int add_packed(struct output *o, const struct brig_pack_item *item, uint64_t *at,
                      struct brig_fail *fail)
{
    const struct brig_tensor *t = item->from;
    struct brig_pack_packed p;
    int r = brig_pack_packed_open(&p, o->plan->request.model, t, fail);
    for (uint64_t row = 0; row < t->dims[1] && r == 0; row++) {
        const float *numbers = brig_pack_packed_row(&p, row);
        if (cancelled(o))
            r = brig_fail_set(fail, BRIG_ECANCELLED, "cancelled");
        for (uint64_t col = 0; col < t->dims[0] && r == 0; col += STEP_ELEMS) {
            size_t step = t->dims[0] - col < STEP_ELEMS ? (size_t)(t->dims[0] - col) : STEP_ELEMS;
            size_t out = (size_t)bytes_of(item->type, step);
            r = convert(o, item, numbers + col, step, fail);
            if (r == 0)
                r = append_rows(o, o->packed, out, at, fail);
            tell(o, out);
        }
    }
    brig_pack_packed_release(&p);
    return r;
}

static int add_item(struct output *o, const struct brig_pack_item *item, uint64_t *at, struct brig_fail *fail)
{
    int r = brig_pack_panels_open(&o->from, item->from->type, item->from, fail);
    if (r == 0)
        r = brig_pack_panels_open(&o->to, item->type, item->from, fail);
    if (r == 0)
        r = (item->from->type->packing != NULL ? add_packed : add_tensor)(o, item, at, fail);
    brig_pack_panels_release(&o->from);
    brig_pack_panels_release(&o->to);
    return r;
}

static int pad(struct output *o, uint64_t *at, struct brig_fail *fail)
{
    static const uint8_t zeros[BRIG_GGUF_ALIGNMENT];
    size_t n = (size_t)(brig_align_up(*at, BRIG_GGUF_ALIGNMENT) - *at);
    *o->done += n;
    return append(o, zeros, n, at, fail);
}

static void finish_hash(struct brig_sha256 *sha, char hex[65])
{
    uint8_t digest[BRIG_SHA256_BYTES];
    brig_sha256_finish(sha, digest);
    for (unsigned i = 0; i < sizeof digest; i++)
        snprintf(hex + 2 * i, 3, "%02x", digest[i]);
}

static int write_part(struct output *o, unsigned part, const struct brig_buf *head, uint64_t hash_at,
                      struct brig_pack_part *ret, struct brig_fail *fail)
{
    uint64_t at = 0;
    brig_sha256_init(&o->sha);
    int r = append(o, head->data, head->len, &at, fail);
    for (unsigned i = 0; i < o->plan->n_items && r == 0; i++) {
        if (o->plan->items[i].part != part)
            continue;
        r = add_item(o, &o->plan->items[i], &at, fail);
        if (r == 0)
            r = pad(o, &at, fail);
    }
    if (r < 0)
        return r;
    ret->bytes = at;
    finish_hash(&o->sha, ret->sha256);
    r = write_at(o, ret->sha256, 64, (off_t)hash_at, fail);
    if (r == 0 && fsync(o->fd) != 0)
        r = brig_fail_errno(fail, BRIG_EIO, "%s: cannot be written", o->path);
    return r;
}

/* Buffers, the file under its temporary name, and its final name when it is whole. */
static int make_part(struct output *o, unsigned part, int dir, const char *name, const struct brig_buf *head,
                     uint64_t hash_at, struct brig_pack_part *ret, struct brig_fail *fail)
{
    char temp[64];
    snprintf(temp, sizeof temp, "%s" BRIG_PACK_TEMP, name);
    o->stored = brig_alloc(4, STEP_BYTES);
    if (o->stored == NULL)
        return brig_fail_set(fail, BRIG_ENOMEM, "no memory to convert tensors in");
    o->packed = o->stored + STEP_BYTES;
    o->numbers = (float *)(void *)(o->stored + 2 * STEP_BYTES);
    o->back = o->numbers + STEP_ELEMS;
    o->fd = openat(dir, temp, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0666);
    int r = o->fd < 0 ? brig_fail_errno(fail, BRIG_EIO, "%s: cannot be written", o->path)
                      : write_part(o, part, head, hash_at, ret, fail);
    if (o->fd >= 0)
        close(o->fd);
    if (r == 0 && renameat(dir, temp, dir, name) != 0)
        r = brig_fail_errno(fail, BRIG_EIO, "%s: cannot be written", o->path);
    if (r < 0 && o->fd >= 0)
        unlinkat(dir, temp, 0);
    brig_free(o->stored);
    return r;
}

static uint64_t part_bytes(const struct brig_pack_plan *p, unsigned part, const struct brig_buf *head)
{
    uint64_t bytes = head->len;
    for (unsigned i = 0; i < p->n_items; i++)
        if (p->items[i].part == part)
            bytes += brig_align_up(p->items[i].bytes, BRIG_GGUF_ALIGNMENT);
    return bytes;
}

/* A file of that name is this part, finished: a part gets its name when it is whole, so head and size tell
 * it. 1: yes. 0: there is none. Something else under the name is a failure. */
static int find_part(int dir, const char *path, const char *name, const struct brig_buf *head,
                     uint64_t hash_at, struct brig_pack_part *ret, uint64_t bytes, struct brig_fail *fail)
{
    struct stat st;
    int fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0 && errno == ENOENT)
        return 0;
    char *text = fd < 0 ? NULL : brig_alloc(head->len, 1);
    bool same = text != NULL && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && (uint64_t)st.st_size == bytes &&
                pread(fd, text, head->len, 0) == (ssize_t)head->len;
    if (same) {
        memcpy(ret->sha256, text + hash_at, 64);
        memcpy(text + hash_at, head->data + hash_at, 64);
        same = memcmp(text, head->data, head->len) == 0 && strspn(ret->sha256, "0123456789abcdef") == 64;
    }
    brig_free(text);
    if (fd >= 0)
        close(fd);
    if (!same)
        return brig_fail_set(
            fail, BRIG_EMISMATCH,
            "%s is of another model or another pack: choose another folder, or remove this one", path);
    ret->bytes = bytes;
    ret->was_there = true;
    return 1;
}

int brig_pack_part(const struct brig_pack_plan *p, unsigned part, int dir, const char *folder,
                   const struct brig_pack_watch *watch, uint64_t *done, struct brig_pack_part *ret,
                   struct brig_fail *fail)
{
    struct brig_buf head = {0}, path = {0};
    uint64_t hash_at = 0;
    char name[40];
    struct output o = {.plan = p, .watch = watch, .fd = -1, .done = done};
    *ret = (struct brig_pack_part){0};
    brig_pack_name(part, p->n_parts, name);
    int r = brig_pack_head(p, part, &head, &hash_at, fail);
    if (r == 0 && brig_buf_printf(&path, "%s/%s", folder, name) < 0)
        r = brig_fail_set(fail, BRIG_ENOMEM, "no memory");
    if (r == 0) {
        uint64_t bytes = part_bytes(p, part, &head);
        o.path = path.data;
        r = find_part(dir, path.data, name, &head, hash_at, ret, bytes, fail);
        if (r == 0)
            r = make_part(&o, part, dir, name, &head, hash_at, ret, fail);
        else if (r == 1)
            *done += bytes - head.len;
    }
    brig_buf_release(&head);
    brig_buf_release(&path);
    return r < 0 ? r : 0;
}
