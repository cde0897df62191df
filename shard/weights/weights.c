/*
 * The weights of a slice: the table of its tensors, and the residencies that hold them. Made once at the
 * program's start, used by the block.
 */
#include "shard/weights/weights.h"

#include "proto/base/mem.h"
#include "shard/weights/expert_cache.h"

static uint32_t layer_count(const struct brig_weights *w)
{
    uint32_t last = w->cells.last < w->n_layers ? w->cells.last : w->n_layers;
    return last > w->cells.first ? last - w->cells.first : 0;
}

struct brig_entry *brig_weights_entry(const struct brig_weights *w, enum brig_role role, uint32_t layer,
                                      uint32_t expert)
{
    uint64_t at, places = brig_desc_places(w->desc);
    if (role < BRIG_ROLE_LAYER_COUNT) {
        if (layer < w->cells.first || layer - w->cells.first >= layer_count(w))
            return NULL;
        at = (layer - w->cells.first) * places + brig_desc_place(w->desc, role, expert);
    } else {
        at = layer_count(w) * places + (role - BRIG_ROLE_LAYER_COUNT);
    }
    return role < BRIG_ROLE_COUNT ? &w->entries[at] : NULL;
}

/* A row of residency.def whose code is missing does not link. */
#define BRIG_RESIDENCY(hold, name, help) extern const struct brig_hold_ops brig_hold_##name;
#include "proto/model/residency.def"
#undef BRIG_RESIDENCY

const struct brig_hold_ops *brig_hold_ops_at(enum brig_hold hold)
{
    static const struct brig_hold_ops *const ops[] = {
#define BRIG_RESIDENCY(hold, name, help) &brig_hold_##name,
#include "proto/model/residency.def"
#undef BRIG_RESIDENCY
    };
    return ops[hold];
}

static int make_table(struct brig_weights *w, struct brig_fail *fail)
{
    size_t n = (size_t)layer_count(w) * brig_desc_places(w->desc) + (BRIG_ROLE_COUNT - BRIG_ROLE_LAYER_COUNT);
    w->entries = brig_alloc(n, sizeof *w->entries);
    w->beside = brig_alloc((size_t)w->slice->n_tensors * BRIG_SIDE_COUNT, sizeof *w->beside);
    if (w->entries == NULL || w->beside == NULL)
        return brig_fail_set(fail, BRIG_ENOMEM, "out of memory for the table of weights");
    w->n_entries = n;
    return 0;
}

#define QUEUED_FETCHES 1024u /* beside those of locked matrices, which are all asked for at once */
#define MAX_FETCHES    65536u

/* What is not mapped is read. */
static int open_feed(struct brig_weights *w, struct brig_fail *fail)
{
    uint32_t n_read = 0;
    for (unsigned i = 0; i < w->slice->n_tensors; i++)
        n_read += w->slice->tensors[i].hold != BRIG_HOLD_MAP && w->slice->tensors[i].rows > 1;
    if (n_read == 0)
        return 0;
    uint32_t most = n_read < MAX_FETCHES - QUEUED_FETCHES ? n_read + QUEUED_FETCHES : MAX_FETCHES;
    return brig_feed_open(&w->feed, w->slice, w->fds, most, fail);
}

static int open_all(struct brig_weights *w, struct brig_fail *fail)
{
    int r = make_table(w, fail);
    if (r == 0)
        r = open_feed(w, fail);
    for (unsigned i = 0; r == 0 && i < BRIG_HOLD_COUNT; i++)
        r = brig_hold_ops_at((enum brig_hold)i)->open(w, &w->states[i], fail);
    for (unsigned i = 0; r == 0 && i < w->slice->n_tensors; i++)
        r = brig_weights_add(w, i, fail);
    return r == 0 ? brig_expert_cache_open(&w->experts, w, fail) : r;
}

int brig_weights_open(struct brig_weights **ret, const struct brig_slice *slice, const int *fds, unsigned n,
                      struct brig_fail *fail)
{
    struct brig_weights *w = brig_alloc(1, sizeof *w);
    if (w == NULL)
        return brig_fail_set(fail, BRIG_ENOMEM, "out of memory for the weights");
    w->slice = slice;
    w->cells = slice->cells;
    w->desc = &slice->desc;
    w->n_layers = slice->desc.n_layers;
    w->fds = fds;
    int r = brig_weights_files_open(&w->files, slice, fds, n, fail);
    if (r == 0)
        r = open_all(w, fail);
    w->fds = NULL;
    if (r < 0) {
        brig_weights_close(w);
        return r;
    }
    *ret = w;
    return 0;
}

void brig_weights_close(struct brig_weights *w)
{
    if (w == NULL)
        return;
    bool quiet = brig_feed_close(w->feed); /* else memory stays: the disk may still write into it */
    for (unsigned i = 0; quiet && i < BRIG_HOLD_COUNT; i++)
        if (w->states[i] != NULL)
            brig_hold_ops_at((enum brig_hold)i)->close(w->states[i]);
    if (quiet)
        brig_expert_cache_close(w->experts);
    for (size_t i = 0; i < w->n_entries; i++) {
        brig_free(w->entries[i].vector);
        brig_free(w->entries[i].order);
        brig_free(w->entries[i].starts);
    }
    for (size_t i = 0; i < w->n_beside; i++)
        brig_free(w->beside[i]);
    brig_weights_files_close(&w->files);
    brig_free(w->beside);
    brig_free(w->entries);
    brig_free(w);
}

bool brig_weights_matrix(const struct brig_weights *w, enum brig_role role, uint32_t layer,
                         struct brig_matrix *ret)
{
    const struct brig_entry *e = brig_weights_entry(w, role, layer, 0);
    if (e == NULL || e->matrix.type == NULL)
        return false;
    *ret = e->matrix;
    return true;
}

bool brig_weights_expert(const struct brig_weights *w, enum brig_role role, uint32_t layer, uint32_t expert,
                         struct brig_matrix *ret)
{
    const struct brig_entry *e = brig_weights_entry(w, role, layer, expert);
    if (e == NULL || e->matrix.type == NULL)
        return false;
    *ret = e->matrix;
    ret->loan = 0;
    return true;
}

const float *brig_weights_vector(const struct brig_weights *w, enum brig_role role, uint32_t layer)
{
    const struct brig_entry *e = brig_weights_entry(w, role, layer, 0);
    return e != NULL ? e->vector : NULL;
}

int brig_weights_take(struct brig_weights *w, const struct brig_matrix *m, uint64_t row, bool wait,
                      struct brig_matrix *ret, struct brig_fail *fail)
{
    if (m->loan == 0) {
        *ret = *m;
        return 1;
    }
    struct brig_entry *e = &w->entries[m->loan - 1];
    int r = brig_hold_ops_at(e->hold)->take(w->states[e->hold], e, row, wait, ret, fail);
    if (r >= 0)
        return r;
    const struct brig_slice_tensor *t = &w->slice->tensors[e->tensor];
    return brig_fail_prefix(fail, "tensor %s of layer %u", brig_role_name(t->role), t->layer);
}

struct brig_weights_stats brig_weights_stats(const struct brig_weights *w)
{
    struct brig_weights_stats s = {.held_bytes = w->beside_bytes};
    if (w->feed != NULL) {
        struct brig_feed_stats f = brig_feed_stats(w->feed);
        s.read_bytes = f.read_bytes;
        s.stall_ns = f.stall_ns;
    }
    for (unsigned i = 0; i < BRIG_HOLD_COUNT; i++)
        if (w->states[i] != NULL)
            brig_hold_ops_at((enum brig_hold)i)->add_stats(w->states[i], &s);
    if (w->experts != NULL)
        brig_expert_cache_add_stats(w->experts, &s);
    return s;
}

bool brig_weights_prefetch(struct brig_weights *w)
{
    bool more = false;
    for (unsigned i = 0; !more && i < BRIG_HOLD_COUNT; i++) {
        const struct brig_hold_ops *ops = w->states[i] != NULL ? brig_hold_ops_at((enum brig_hold)i) : NULL;
        more = ops != NULL && ops->prefetch != NULL && ops->prefetch(w->states[i]);
    }
    return more;
}

/* ---- a pass ---- */

/* Each residency that has something in hand, and cares. */
#define FOR_EACH(w, member, call)                                                                            \
    for (unsigned i = 0; (w) != NULL && i < BRIG_HOLD_COUNT; i++) {                                          \
        const struct brig_hold_ops *ops = brig_hold_ops_at((enum brig_hold)i);                               \
        if ((w)->states[i] != NULL && ops->member != NULL)                                                   \
            ops->call;                                                                                       \
    }

void brig_weights_expect(struct brig_weights *w, unsigned n_heads)
{
    FOR_EACH(w, expect, expect(w->states[i], n_heads))
}

void brig_weights_begin(struct brig_weights *w, enum brig_part part)
{
    FOR_EACH(w, begin, begin(w->states[i], part))
    if (w != NULL && w->experts != NULL && part == BRIG_PART_LAYERS)
        brig_expert_cache_begin(w->experts);
}

void brig_weights_give(struct brig_weights *w)
{
    FOR_EACH(w, give, give(w->states[i]))
}

int brig_weights_check(const struct brig_weights *w, struct brig_fail *fail)
{
    return brig_weights_files_check(&w->files, fail);
}

uint64_t brig_weights_progress(const struct brig_weights *w)
{
    return w->feed != NULL ? brig_feed_progress(w->feed) : 0;
}
