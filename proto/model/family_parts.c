/* Tensors that hold several: stacked experts, fused projections. Before roles are given, such a tensor's row
 * of the table is replaced by its parts, each under the name that it has where it lies alone. Every part is a
 * run of whole rows, so nothing is copied: a part is a smaller range of the same file. */
#include "proto/model/private.h"

#include <inttypes.h>
#include <stdio.h>

#include "proto/base/mem.h"
#include "proto/model/meta.h"

#define MAX_TENSORS (1u << 20) /* after the splitting */
#define NAME_BYTES  64u        /* of a part */

/* Names of parts, for as long as the model lives. */
struct brig_part_names {
    struct brig_part_names *next;
    char text[][NAME_BYTES];
};

/* What is split, and where not: a layer whose first part lies alone has them all so, whatever the others are
 * called ("ffn_up" beside a "ffn_gate" is no gate and up). */
struct plan {
    const struct brig_model *m;
    const struct brig_split *splits;
    unsigned n;
    uint8_t apart[BRIG_MAX_LAYERS]; /* bit i: of split i */
};

static void find_apart(struct plan *p)
{
    uint32_t layer;
    struct brig_str rest;
    for (unsigned t = 0; t < p->m->n_tensors; t++) {
        if (!brig_family_layer_name(p->m->tensors[t].name, &layer, &rest) || layer >= p->m->desc.n_layers)
            continue;
        for (unsigned i = 0; i < p->n; i++) {
            struct brig_str stem = brig_family_stem(p->splits[i].parts[0]);
            struct brig_str start = {rest.ptr, stem.len}, end = {rest.ptr + stem.len, rest.len - stem.len};
            if (!p->splits[i].stacked && rest.len > stem.len && brig_str_order(start, stem) == 0 &&
                brig_str_eq(end, ".weight"))
                p->apart[layer] |= (uint8_t)(1u << i);
        }
    }
}

static const struct brig_split *find(const struct plan *p, const struct brig_tensor *t, uint32_t *layer)
{
    struct brig_str rest;
    if (!brig_family_layer_name(t->name, layer, &rest) || *layer >= p->m->desc.n_layers)
        return NULL;
    for (unsigned i = 0; i < p->n; i++)
        if (brig_str_eq(rest, p->splits[i].whole) && (p->apart[*layer] & 1u << i) == 0 &&
            brig_desc_count(&p->m->desc, p->splits[i].parts[0], *layer) > 0)
            return &p->splits[i];
    return NULL;
}

/* How many parts: all experts of one role, or one of each role. */
static uint32_t count_of(const struct brig_desc *d, const struct brig_split *s)
{
    uint32_t n = 0;
    if (s->stacked)
        return d->n_experts;
    while (n < BRIG_SPLIT_PARTS && s->parts[n] != BRIG_ROLE_COUNT)
        n++;
    return n;
}

static uint64_t rows_of(const struct brig_desc *d, const struct brig_split *s, uint32_t part)
{
    uint64_t rows, cols;
    brig_role_shape(d, s->parts[s->stacked ? 0 : part], &rows, &cols);
    return rows;
}

/* The outermost dimension is the sum of the parts: experts, or rows. */
static int check(const struct brig_model *m, const struct brig_tensor *t, const struct brig_split *s,
                 struct brig_fail *fail)
{
    uint64_t rows = 0, depth = 1;
    if (!brig_type_has_rows(t->type)) /* its rows do not lie one by one */
        return brig_fail_set(fail, BRIG_EUNSUPPORTED,
                             "tensor '%.*s' is %s and holds several matrices in one: that is not supported",
                             (int)t->own_name.len, t->own_name.ptr, t->type->name);
    for (uint32_t i = 0; i < count_of(&m->desc, s); i++)
        rows += rows_of(&m->desc, s, i);
    if (s->stacked) {
        depth = m->desc.n_experts;
        rows = rows_of(&m->desc, s, 0);
    }
    if (t->dims[1] == rows && t->dims[2] == depth && t->dims[3] == 1)
        return 0;
    return brig_fail_set(fail, BRIG_EFORMAT,
                         "tensor '%.*s' has the shape %" PRIu64 " x %" PRIu64 " x %" PRIu64 " x %" PRIu64
                         ", the model needs %" PRIu64 " rows%s in each of %" PRIu64,
                         (int)t->own_name.len, t->own_name.ptr, t->dims[0], t->dims[1], t->dims[2],
                         t->dims[3], rows, s->stacked ? "" : " for all that it joins", depth);
}

/* The parts of t into ret and names, [count] each. */
static void split(const struct brig_model *m, const struct brig_tensor *t, const struct brig_split *s,
                  uint32_t layer, struct brig_tensor *ret, char (*names)[NAME_BYTES])
{
    uint64_t row_bytes = brig_type_row_bytes(t->type, t->dims[0]), at = t->offset;
    for (uint32_t i = 0; i < count_of(&m->desc, s); i++) {
        struct brig_str stem = brig_family_stem(s->parts[s->stacked ? 0 : i]);
        int n =
            s->stacked
                ? snprintf(names[i], NAME_BYTES, "blk.%u.%.*s.%u.weight", layer, (int)stem.len, stem.ptr, i)
                : snprintf(names[i], NAME_BYTES, "blk.%u.%.*s.weight", layer, (int)stem.len, stem.ptr);
        uint64_t rows = rows_of(&m->desc, s, i);
        ret[i] = *t;
        ret[i].name = (struct brig_str){names[i], (size_t)n};
        ret[i].n_dims = 2;
        ret[i].dims[1] = rows;
        ret[i].dims[2] = 1;
        ret[i].offset = at;
        ret[i].bytes = rows * row_bytes; /* fits: with the others it makes up t->bytes */
        at += ret[i].bytes;
    }
}

/* How many rows the table gets, and how many of them are parts. */
static int count(const struct plan *p, uint64_t *ret_all, uint64_t *ret_parts, struct brig_fail *fail)
{
    uint64_t parts = 0, whole = 0;
    for (unsigned i = 0; i < p->m->n_tensors; i++) {
        uint32_t layer;
        const struct brig_split *s = find(p, &p->m->tensors[i], &layer);
        int r = s != NULL ? check(p->m, &p->m->tensors[i], s, fail) : 0;
        if (r < 0)
            return r;
        parts += s != NULL ? count_of(&p->m->desc, s) : 0;
        whole += s == NULL;
    }
    *ret_all = whole + parts;
    *ret_parts = parts;
    if (*ret_all > MAX_TENSORS)
        return brig_fail_set(fail, BRIG_ELIMIT, "%" PRIu64 " tensors, each expert by itself: at most %u",
                             *ret_all, MAX_TENSORS);
    return 0;
}

int brig_family_split(struct brig_model *m, const struct brig_split *splits, unsigned n,
                      struct brig_fail *fail)
{
    uint64_t all, parts;
    struct plan plan = {.m = m, .splits = splits, .n = n};
    find_apart(&plan);
    int r = count(&plan, &all, &parts, fail);
    if (r < 0 || parts == 0)
        return r;
    struct brig_tensor *tensors = brig_alloc(all, sizeof *tensors);
    struct brig_part_names *names = brig_alloc(1, sizeof *names + parts * sizeof names->text[0]);
    if (tensors == NULL || names == NULL) {
        brig_free(tensors);
        brig_free(names);
        return brig_fail_set(fail, BRIG_ENOMEM, "no memory for %" PRIu64 " tensors", all);
    }
    unsigned at = 0, named = 0;
    for (unsigned i = 0; i < m->n_tensors; i++) {
        uint32_t layer;
        const struct brig_split *s = find(&plan, &m->tensors[i], &layer);
        if (s == NULL) {
            tensors[at++] = m->tensors[i];
            continue;
        }
        split(m, &m->tensors[i], s, layer, &tensors[at], &names->text[named]);
        at += count_of(&m->desc, s);
        named += count_of(&m->desc, s);
    }
    brig_free(m->tensors);
    m->tensors = tensors;
    m->n_tensors = at;
    names->next = m->part_names;
    m->part_names = names;
    return 0;
}

void brig_part_names_free(struct brig_part_names *names)
{
    while (names != NULL) {
        struct brig_part_names *next = names->next;
        brig_free(names);
        names = next;
    }
}
