/* Slices of an open model: which tensors a range of cells has, and how many bytes. */
#include "proto/model/slice.h"

#include <string.h>

#include "proto/base/mem.h"
#include "proto/model/private.h"

bool brig_slice_settle(const struct brig_desc *d, struct brig_cells cells, struct brig_slice_place *p)
{
    for (; p->cell < cells.last; p->cell++, p->role = 0)
        for (; p->role < BRIG_ROLE_COUNT; p->role++, p->expert = 0)
            if (p->expert < brig_desc_count(d, (enum brig_role)p->role, p->cell))
                return true;
    return false;
}

static const struct brig_tensor *tensor_at(const struct brig_model *m, const struct brig_slice_place *p)
{
    return brig_model_expert(m, (enum brig_role)p->role, p->cell, p->expert);
}

uint64_t brig_slice_cells_bytes(const struct brig_model *m, struct brig_cells cells)
{
    uint64_t sum = 0; /* fits: each tensor lies in a file of its own bytes */
    struct brig_slice_place p = {.cell = cells.first};
    for (; brig_slice_settle(&m->desc, cells, &p); p.expert++) {
        const struct brig_tensor *t = tensor_at(m, &p);
        sum += t != NULL ? t->bytes + brig_sides_bytes(&t->sides) : 0;
    }
    return sum;
}

uint64_t brig_slice_token_bytes(const struct brig_model *m, struct brig_cells cells)
{
    uint64_t all = 0, experts = 0;
    struct brig_slice_place p = {.cell = cells.first};
    for (; brig_slice_settle(&m->desc, cells, &p); p.expert++) {
        const struct brig_tensor *t = tensor_at(m, &p);
        bool of_expert = p.role >= BRIG_ROLE_EXPERT_FIRST && p.role < BRIG_ROLE_LAYER_COUNT;
        *(of_expert ? &experts : &all) += t != NULL ? t->bytes : 0;
    }
    if (experts == 0)
        return all;
    return all + (uint64_t)((double)experts * m->desc.n_experts_used / m->desc.n_experts);
}

int brig_slice_cut(const struct brig_model *m, unsigned n, struct brig_cells *cells, struct brig_fail *fail)
{
    unsigned n_cells = m->desc.n_layers + 1;
    uint64_t *bytes = brig_alloc(n_cells, sizeof *bytes);
    if (bytes == NULL)
        return brig_fail_set(fail, BRIG_ENOMEM, "no memory for the sizes of %u cells", n_cells);
    for (unsigned c = 0; c < n_cells; c++)
        bytes[c] = brig_slice_cells_bytes(m, (struct brig_cells){c, c + 1});
    int r = brig_slice_cut_sizes(bytes, n_cells, n, cells, fail);
    brig_free(bytes);
    return r;
}

/* The token table stands for a tied output table. */
static void add_tensor(struct brig_slice *s, const struct brig_model *m, const struct brig_slice_place *p)
{
    const struct brig_tensor *t = tensor_at(m, p);
    s->tensors[s->n_tensors++] = (struct brig_slice_tensor){
        .role = (enum brig_role)p->role,
        .layer = p->cell < m->desc.n_layers ? p->cell : 0,
        .expert = p->expert,
        .type = t->type,
        .rows = t->dims[1],
        .cols = t->dims[0],
        .file = t->file,
        .offset = t->offset,
        .bytes = t->bytes,
        .sides = t->sides,
    };
}

int brig_slice_build(struct brig_slice *ret, const struct brig_model *m, struct brig_cells cells,
                     struct brig_fail *fail)
{
    if (cells.first >= cells.last || cells.last > m->desc.n_layers + 1)
        return brig_fail_set(fail, BRIG_EUSAGE,
                             "cells %u:%u: the model has %u layers and the head (%u cells)", cells.first,
                             cells.last, m->desc.n_layers, m->desc.n_layers + 1);
    struct brig_slice s = {.desc = m->desc, .cells = cells, .n_files = m->n_files};
    memcpy(s.identity, m->identity, sizeof s.identity);
    size_t most = (size_t)(cells.last - cells.first) * brig_desc_places(&m->desc);
    s.file_bytes = brig_alloc(s.n_files, sizeof *s.file_bytes);
    s.tensors = brig_alloc(most, sizeof *s.tensors);
    if (s.file_bytes == NULL || s.tensors == NULL) {
        brig_slice_release(&s);
        return brig_fail_set(fail, BRIG_ENOMEM, "no memory to describe cells %u:%u", cells.first, cells.last);
    }
    for (unsigned i = 0; i < s.n_files; i++)
        s.file_bytes[i] = m->files[i].bytes;
    struct brig_slice_place p = {.cell = cells.first};
    for (; brig_slice_settle(&s.desc, cells, &p); p.expert++)
        add_tensor(&s, m, &p);
    *ret = s;
    return 0;
}

void brig_slice_hold(struct brig_slice *s, enum brig_hold hold)
{
    for (unsigned i = 0; i < s->n_tensors; i++) {
        struct brig_slice_tensor *t = &s->tensors[i];
        bool small = brig_role_is_vector(t->role) || t->role == BRIG_ROLE_ROUTER;
        t->hold = hold == BRIG_HOLD_STREAM && small ? BRIG_HOLD_LOCK : hold;
    }
}

void brig_slice_release(struct brig_slice *s)
{
    brig_free(s->file_bytes);
    brig_free(s->tensors);
    *s = (struct brig_slice){0};
}

const struct brig_slice_tensor *brig_slice_tensor_of(const struct brig_slice *s, enum brig_role role,
                                                     uint32_t layer)
{
    for (unsigned i = 0; i < s->n_tensors; i++)
        if (s->tensors[i].role == role && (role >= BRIG_ROLE_LAYER_COUNT || s->tensors[i].layer == layer))
            return &s->tensors[i];
    return NULL;
}
