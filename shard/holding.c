/* Setting up what a shard holds. Called by main. */
#include "shard/holding.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proto/base/mem.h"

#define SLICE_MAX_BYTES ((off_t)256 << 20)
#define DEFAULT_CTX     4096u

bool brig_holding_has_head(const struct brig_holding *h)
{
    return brig_cells_has_head(h->slice.cells, h->slice.desc.n_layers);
}

static int decode_slice(struct brig_holding *h, struct brig_fail *fail)
{
    int fd = h->args->slice_fd;
    struct stat st;
    if (fstat(fd, &st) < 0)
        return brig_fail_errno(fail, BRIG_EIO, "--slice");
    if (st.st_size <= 0 || st.st_size > SLICE_MAX_BYTES)
        return brig_fail_set(fail, BRIG_EFORMAT, "--slice: a description of %lld bytes",
                             (long long)st.st_size);
    size_t n = (size_t)st.st_size;
    void *p = mmap(NULL, n, PROT_READ, MAP_PRIVATE, fd, 0);
    if (p == MAP_FAILED)
        return brig_fail_errno(fail, BRIG_EIO, "--slice");
    int r = brig_slice_decode(&h->slice, p, n, fail);
    munmap(p, n);
    close(fd);
    return r < 0 ? brig_fail_prefix(fail, "--slice") : 0;
}

static int from_launcher(struct brig_holding *h, struct brig_fail *fail)
{
    const struct brig_shard_args *a = h->args;
    int r = decode_slice(h, fail);
    if (r == 0)
        r = brig_weights_open(&h->weights, &h->slice, a->file_fds, a->n_files, fail);
    for (unsigned i = 0; i < a->n_files; i++)
        close(a->file_fds[i]);
    return r;
}

static int cells_of(const struct brig_shard_args *a, const struct brig_model *m, struct brig_cells *ret,
                    struct brig_fail *fail)
{
    uint32_t n = m->desc.n_layers;
    struct brig_cells c = {n, n};
    if (a->all_layers)
        c.first = 0;
    if (a->some_layers)
        c = (struct brig_cells){a->first_layer, a->last_layer};
    if (c.last > n)
        return brig_fail_set(fail, BRIG_EUSAGE, "--layers %u:%u: %s has %u layers", c.first, c.last, a->model,
                             n);
    if (a->head && c.last != n)
        return brig_fail_set(fail, BRIG_EUSAGE,
                             "--head goes with the last layers: %s has %u, --layers ends at %u", a->model, n,
                             c.last);
    c.last += a->head;
    *ret = c;
    return 0;
}

/* Spread evenly: after each matrix as near to the share as one can be. */
static void pin_some(struct brig_slice *s, uint32_t percent)
{
    double all = 0, pinned = 0;
    for (unsigned i = 0; i < s->n_tensors; i++) {
        struct brig_slice_tensor *t = &s->tensors[i];
        double bytes = (double)t->bytes;
        if (t->hold != BRIG_HOLD_STREAM)
            continue;
        all += bytes;
        if (pinned + bytes / 2 > all * percent / 100)
            continue;
        t->hold = BRIG_HOLD_LOCK;
        pinned += bytes;
    }
}

static int open_model(struct brig_holding *h, const struct brig_model *m, struct brig_fail *fail)
{
    struct brig_cells cells;
    int r = cells_of(h->args, m, &cells, fail);
    if (r == 0)
        r = brig_slice_build(&h->slice, m, cells, fail);
    if (r == 0) {
        brig_slice_hold(&h->slice, h->args->hold);
        pin_some(&h->slice, h->args->pin_percent);
        h->slice.stream.ring_bytes = h->args->ring_bytes;
    }
    int *fds = r == 0 ? brig_alloc(m->n_files, sizeof *fds) : NULL;
    if (r == 0 && fds == NULL)
        r = brig_fail_set(fail, BRIG_ENOMEM, "out of memory for %u files", m->n_files);
    for (unsigned i = 0; r == 0 && i < m->n_files; i++)
        fds[i] = m->files[i].fd;
    if (r == 0)
        r = brig_weights_open(&h->weights, &h->slice, fds, m->n_files, fail);
    brig_free(fds);
    return r;
}

static int from_model(struct brig_holding *h, struct brig_fail *fail)
{
    struct brig_model *m;
    int r = brig_model_open(&m, h->args->model, fail);
    if (r < 0)
        return r;
    r = open_model(h, m, fail);
    brig_model_close(m);
    return r;
}

static bool has_layers(const struct brig_holding *h)
{
    return h->slice.cells.first < h->slice.desc.n_layers;
}

static int open_cache(struct brig_holding *h, struct brig_fail *fail)
{
    const struct brig_shard_args *a = h->args;
    uint32_t trained = h->slice.desc.ctx_trained;
    h->shape = (struct brig_kv_shape){.type = a->kv, .slots = a->slots, .ctx = a->ctx};
    if (a->ctx == 0)
        h->shape.ctx = trained != 0 && trained < DEFAULT_CTX ? trained : DEFAULT_CTX;
    int fd = a->cache_fd;
    if (fd < 0 && has_layers(h)) {
        fd = memfd_create("brigade-kv", MFD_CLOEXEC);
        if (fd < 0)
            return brig_fail_errno(fail, BRIG_EIO, "memory for the KV cache");
    }
    return brig_kv_open(&h->kv, fd, &h->slice, h->shape, fail);
}

static void name_what(struct brig_holding *h)
{
    struct brig_cells c = h->slice.cells;
    bool head = brig_holding_has_head(h);
    if (!has_layers(h))
        snprintf(h->what, sizeof h->what, "head");
    else
        snprintf(h->what, sizeof h->what, "layers %u:%u%s", c.first, c.last - head, head ? ", head" : "");
}

int brig_holding_init(struct brig_holding *h, const struct brig_shard_args *args, struct brig_fail *fail)
{
    memset(h, 0, sizeof *h);
    h->args = args;
    h->kernel = brig_kernel_choose();
    if (h->kernel == NULL) {
        const char *name = getenv("BRIGADE_KERNEL");
        return brig_fail_set(fail, BRIG_EUSAGE, "BRIGADE_KERNEL=%s: no such kernel, or this CPU lacks it",
                             name != NULL ? name : "");
    }
    h->threads = args->threads != 0 ? args->threads : brig_team_default_threads();
    brig_numeric_class(h->numeric_class, args->exact, brig_kv_type_name(args->kv));
    int r = args->launched ? from_launcher(h, fail) : from_model(h, fail);
    if (r < 0)
        return r;
    name_what(h);
    return open_cache(h, fail);
}

void brig_holding_release(struct brig_holding *h)
{
    brig_team_free(h->team);
    brig_kv_close(h->kv);
    brig_weights_close(h->weights);
    brig_slice_release(&h->slice);
    memset(h, 0, sizeof *h);
}
