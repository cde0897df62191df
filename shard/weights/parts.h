/*
 * Inside shard/weights: the struct behind brig_weights, and the residencies. weights.c has the table of
 * tensors and asks the residency of each; tensors.c makes the entries.
 */
#ifndef BRIG_SHARD_WEIGHTS_PARTS_H
#define BRIG_SHARD_WEIGHTS_PARTS_H

#include "shard/weights/feed.h"
#include "shard/weights/files.h"
#include "shard/weights/weights.h"

/* One tensor of the slice. */
struct brig_entry {
    struct brig_matrix matrix; /* type NULL: the slice has none */
    enum brig_hold hold;
    uint32_t tensor;           /* its number in the slice */
    float *vector;             /* rows 1 only: its numbers as f32 */
    struct brig_packed packed; /* what matrix.packed points at */
    uint32_t *order, *starts;  /* that packed borrows */
};

/* What does the work of a residency for all tensors of the slice that are held so. */
struct brig_hold_ops {
    enum brig_hold hold;
    const char *name;
    /* Make memory and begin to fill it. state stays NULL when the slice holds no matrix so. close takes what
     * open left behind when it failed; nothing is read into it any more. */
    int (*open)(struct brig_weights *w, void **state, struct brig_fail *fail);
    void (*close)(void *state); /* never NULL */
    /* Where bytes of a tensor, or beside it, lie for as long as the weights are open; NULL: they are not
     * held. Those of a tensor with a loan may not be there yet. Absent: nothing lies anywhere for good. */
    const uint8_t *(*address)(const void *state, uint32_t tensor, const struct brig_side *range);
    /* The part is used from its beginning; all of the part before is given back. Absent: the same to it, as
     * give and expect. */
    void (*begin)(void *state, enum brig_part part);
    void (*expect)(void *state, unsigned n_heads);
    void (*give)(void *state);
    /* brig_weights_take for a matrix with a loan. Absent: none has one. */
    int (*take)(void *state, struct brig_entry *e, uint64_t row, bool wait, struct brig_matrix *ret,
                struct brig_fail *fail);
    void (*add_stats)(const void *state, struct brig_weights_stats *s);
    bool (*prefetch)(void *state); /* absent: nothing to do */
};

struct brig_weights {
    const struct brig_slice *slice; /* which lives longer */
    struct brig_cells cells;
    uint32_t n_layers; /* of the model */
    const struct brig_desc *desc;
    const int *fds; /* [slice->n_files] while it is opened, then NULL */
    struct brig_weights_files files;
    size_t n_entries;
    struct brig_entry *entries; /* [layers of the slice, brig_desc_places], then the whole-model roles */
    void *states[BRIG_HOLD_COUNT];
    struct brig_feed *feed;            /* NULL: all is mapped */
    struct brig_expert_cache *experts; /* NULL: none are streamed */
    uint8_t **beside; /* [n_beside] what packed matrices have beside them that no residency has in memory */
    size_t n_beside;
    uint64_t beside_bytes;
};

const struct brig_hold_ops *brig_hold_ops_at(enum brig_hold hold);

/* weights.c: the place of a tensor, NULL when the slice cannot have it. */
struct brig_entry *brig_weights_entry(const struct brig_weights *w, enum brig_role role, uint32_t layer,
                                      uint32_t expert);

/* tensors.c: make the entry of a tensor of the slice. */
int brig_weights_add(struct brig_weights *w, uint32_t tensor, struct brig_fail *fail);

#endif
