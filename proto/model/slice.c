/* Slices of an open model: which tensors a range of cells has, and how many bytes. */
#include "proto/model/slice.h"

#include <string.h>

#include "proto/base/mem.h"
#include "proto/base/size.h"

static uint64_t tensor_bytes(const struct brig_model *m, enum brig_role role, uint32_t layer)
{
    const struct brig_tensor *t = brig_model_tensor(m, role, layer);
    return t != NULL ? t->bytes : 0;
}

static uint64_t cell_bytes(const struct brig_model *m, uint32_t cell)
{
    uint64_t sum = 0; /* fits: each tensor lies in a file of its own bytes */
    if (cell == m->desc.n_layers)
        return tensor_bytes(m, BRIG_ROLE_OUTPUT_NORM, 0) + tensor_bytes(m, BRIG_ROLE_OUTPUT, 0);
    for (unsigned role = 0; role < BRIG_ROLE_LAYER_COUNT; role++)
        sum += tensor_bytes(m, (enum brig_role)role, cell);
    return sum;
}

/* Bytes that go with every slice that has a layer. */
static uint64_t layer_extra(const struct brig_model *m)
{
    return tensor_bytes(m, BRIG_ROLE_ROPE_FACTORS, 0);
}

uint64_t brig_slice_cells_bytes(const struct brig_model *m, struct brig_cells cells)
{
    uint64_t sum = cells.first < cells.last && cells.first < m->desc.n_layers ? layer_extra(m) : 0;
    for (uint32_t c = cells.first; c < cells.last && c <= m->desc.n_layers; c++)
        sum += cell_bytes(m, c);
    return sum;
}

int brig_slice_cut(const struct brig_model *m, unsigned n, struct brig_cells *cells, struct brig_fail *fail)
{
    unsigned n_cells = m->desc.n_layers + 1;
    uint64_t *bytes = brig_alloc(n_cells, sizeof *bytes);
    if (bytes == NULL)
        return brig_fail_set(fail, BRIG_ENOMEM, "no memory for the sizes of %u cells", n_cells);
    for (unsigned c = 0; c < n_cells; c++)
        bytes[c] = cell_bytes(m, c);
    int r = brig_slice_cut_sizes(bytes, n_cells, layer_extra(m), n, cells, fail);
    brig_free(bytes);
    return r;
}

static void add_tensor(struct brig_slice *s, const struct brig_tensor *t, enum brig_role role)
{
    s->tensors[s->n_tensors++] = (struct brig_slice_tensor){
        .role = role,
        .layer = role < BRIG_ROLE_LAYER_COUNT ? t->layer : 0,
        .type = t->type,
        .rows = t->dims[1],
        .cols = t->dims[0],
        .file = t->file,
        .offset = t->offset,
        .bytes = t->bytes,
    };
}

/* In the order that the decoder demands: layers, what goes with layers, head. */
static void add_tensors(struct brig_slice *s, const struct brig_model *m)
{
    const struct brig_tensor *t;
    uint32_t n_layers = m->desc.n_layers;
    for (uint32_t c = s->cells.first; c < s->cells.last && c < n_layers; c++)
        for (unsigned role = 0; role < BRIG_ROLE_LAYER_COUNT; role++)
            if (brig_desc_has(&m->desc, (enum brig_role)role))
                add_tensor(s, brig_model_tensor(m, (enum brig_role)role, c), (enum brig_role)role);
    if (s->cells.first < n_layers && (t = brig_model_tensor(m, BRIG_ROLE_ROPE_FACTORS, 0)) != NULL)
        add_tensor(s, t, BRIG_ROLE_ROPE_FACTORS);
    if (brig_cells_has_head(s->cells, n_layers)) {
        add_tensor(s, brig_model_tensor(m, BRIG_ROLE_OUTPUT_NORM, 0), BRIG_ROLE_OUTPUT_NORM);
        add_tensor(s, brig_model_tensor(m, BRIG_ROLE_OUTPUT, 0),
                   BRIG_ROLE_OUTPUT); /* token table when tied */
    }
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
    size_t most = (size_t)(cells.last - cells.first) * BRIG_ROLE_LAYER_COUNT + 1;
    s.file_bytes = brig_alloc(s.n_files, sizeof *s.file_bytes);
    s.tensors = brig_alloc(most, sizeof *s.tensors);
    if (s.file_bytes == NULL || s.tensors == NULL) {
        brig_slice_release(&s);
        return brig_fail_set(fail, BRIG_ENOMEM, "no memory to describe cells %u:%u", cells.first, cells.last);
    }
    for (unsigned i = 0; i < s.n_files; i++)
        s.file_bytes[i] = m->files[i].bytes;
    add_tensors(&s, m);
    *ret = s;
    return 0;
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
