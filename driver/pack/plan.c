/* What a bundle will hold. */
#include "driver/pack/plan.h"

#include <inttypes.h>
#include <stdio.h>

#include "proto/base/mem.h"
#include "proto/base/size.h"

/* The cell that a tensor belongs to, n_layers for the head; -1: to none. */
static int64_t cell_of(const struct brig_model *m, const struct brig_tensor *t)
{
    if (t->role < BRIG_ROLE_LAYER_COUNT)
        return t->layer;
    switch (t->role) {
    case BRIG_ROLE_OUTPUT_NORM:
    case BRIG_ROLE_OUTPUT_NORM_BIAS:
    case BRIG_ROLE_OUTPUT:
        return m->desc.n_layers;
    default:
        return -1;
    }
}

static bool is_head(const struct brig_model *m, const struct brig_tensor *t)
{
    return t->role == BRIG_ROLE_OUTPUT || (t->role == BRIG_ROLE_TOKEN_TABLE && m->desc.tied);
}

/* What the routers and learned positions of a model say is too little to be worth rounding. */
static bool may_change(const struct brig_tensor *t)
{
    return t->role != BRIG_ROLE_COUNT && t->role != BRIG_ROLE_ROUTER && t->role != BRIG_ROLE_POSITION_TABLE &&
           t->dims[1] > 1;
}

static int no_place(const struct brig_pack_request *r, const struct brig_tensor *t, struct brig_fail *fail)
{
    return brig_fail_set(
        fail, BRIG_EUNSUPPORTED,
        "%s: tensor '%.*s' is %s, whose scales lie beside it: a bundle cannot hold that. Pack the float "
        "original, or convert it: --quant TYPE --allow-requantize",
        r->model->path, (int)t->own_name.len, t->own_name.ptr, t->type->name);
}

static int choose(struct brig_pack_plan *p, struct brig_pack_item *item, struct brig_fail *fail)
{
    const struct brig_pack_request *r = &p->request;
    const struct brig_tensor *t = item->from;
    const struct brig_type *want = is_head(r->model, t) && r->head_quant != NULL ? r->head_quant : r->quant;
    item->type = brig_type_native(t->type);
    item->bytes = t->bytes;
    if (want == NULL || want == item->type || !may_change(t))
        return t->type->packing == NULL ? 0 : no_place(r, t, fail);
    if (t->type->block_elems > 1 && !r->requantize)
        return brig_fail_set(
            fail, BRIG_EUSAGE,
            "%s: tensor '%.*s' is %s already, and rounding it again loses more: pack the float "
            "original, or say --allow-requantize",
            r->model->path, (int)t->name.len, t->name.ptr, t->type->name);
    uint64_t bytes = brig_type_row_bytes(want, t->dims[0]);
    if (bytes == 0) {
        if (t->type->packing != NULL)
            return no_place(r, t, fail);
        if (p->n_kept++ == 0)
            p->kept = t;
        return 0;
    }
    for (unsigned i = 1; i < 4; i++)
        if (!brig_mul_u64(bytes, t->dims[i], &bytes))
            return brig_fail_set(fail, BRIG_ELIMIT, "%s: tensor '%.*s' is too large for %s", r->model->path,
                                 (int)t->name.len, t->name.ptr, want->name);
    item->type = want;
    item->bytes = bytes;
    return 0;
}

/* The layout, once the type is chosen: the bytes stay as many. Single rows are read from the token table. */
static void lay(struct brig_pack_plan *p, struct brig_pack_item *item)
{
    const struct brig_tensor *t = item->from;
    const struct brig_type *joint = brig_type_interleaved(item->type);
    if (!p->request.interleave || !may_change(t))
        return;
    if (joint != NULL && t->dims[1] % brig_type_panel_rows(joint) == 0 && t->role != BRIG_ROLE_TOKEN_TABLE)
        item->type = joint;
    else if (p->n_native++ == 0)
        p->native = item;
}

static int choose_all(struct brig_pack_plan *p, struct brig_fail *fail)
{
    const struct brig_model *m = p->request.model;
    p->items = brig_alloc(m->n_tensors, sizeof *p->items);
    if (p->items == NULL)
        return brig_fail_set(fail, BRIG_ENOMEM, "no memory for %u tensors", m->n_tensors);
    for (; p->n_items < m->n_tensors; p->n_items++) {
        struct brig_pack_item *item = &p->items[p->n_items];
        item->from = &m->tensors[p->n_items];
        int r = choose(p, item, fail);
        if (r < 0)
            return r;
        lay(p, item);
        if (!brig_add_u64(p->bytes, brig_align_up(item->bytes, 4096), &p->bytes))
            return brig_fail_set(fail, BRIG_ELIMIT, "%s: too large for any disk", m->path);
    }
    return 0;
}

/* As a run of the bundle will cut the line: by the bytes of the new types, the tied table with the head. */
static int cut(struct brig_pack_plan *p, struct brig_fail *fail)
{
    const struct brig_model *m = p->request.model;
    unsigned n_cells = m->desc.n_layers + 1;
    uint64_t *bytes = brig_alloc(n_cells, sizeof *bytes);
    p->cells = brig_alloc(p->request.n_slices, sizeof *p->cells);
    int r = 0;
    if (bytes == NULL || p->cells == NULL) {
        r = brig_fail_set(fail, BRIG_ENOMEM, "no memory for the sizes of %u cells", n_cells);
    } else {
        for (unsigned i = 0; i < p->n_items; i++) {
            int64_t cell = is_head(m, p->items[i].from) ? m->desc.n_layers : cell_of(m, p->items[i].from);
            if (cell >= 0)
                bytes[cell] += p->items[i].bytes;
        }
        r = brig_slice_cut_sizes(bytes, n_cells, p->request.n_slices, p->cells, fail);
    }
    brig_free(bytes);
    return r;
}

static void deal(struct brig_pack_plan *p)
{
    for (unsigned i = 0; i < p->n_items; i++) {
        int64_t cell = cell_of(p->request.model, p->items[i].from);
        for (unsigned k = 0; cell >= 0 && k < p->request.n_slices; k++)
            if (cell >= p->cells[k].first && cell < p->cells[k].last)
                p->items[i].part = k + 1;
    }
}

int brig_pack_plan(struct brig_pack_plan *ret, const struct brig_pack_request *request,
                   struct brig_fail *fail)
{
    struct brig_pack_plan p = {.request = *request, .n_parts = request->n_slices + 1};
    int r = p.n_parts <= BRIG_MAX_FILES
                ? 0
                : brig_fail_set(fail, BRIG_EUSAGE, "%u slices: a bundle has at most %u", request->n_slices,
                                BRIG_MAX_FILES - 1);
    if (r == 0)
        r = choose_all(&p, fail);
    if (r == 0)
        r = cut(&p, fail);
    if (r < 0) {
        brig_pack_plan_release(&p);
        return r;
    }
    deal(&p);
    *ret = p;
    return 0;
}

void brig_pack_plan_release(struct brig_pack_plan *p)
{
    brig_free(p->cells);
    brig_free(p->items);
    *p = (struct brig_pack_plan){0};
}

int brig_pack_words(const struct brig_pack_request *r, struct brig_buf *out)
{
    const struct brig_type *head = r->head_quant != NULL ? r->head_quant : r->quant;
    return brig_buf_printf(out, "%u slices, matrices %s, head %s, layout %s", r->n_slices,
                           r->quant != NULL ? r->quant->name : "as stored",
                           head != NULL ? head->name : "as stored", r->interleave ? "r16" : "native");
}

void brig_pack_name(unsigned part, unsigned n_parts, char *out)
{
    snprintf(out, 40, "model-%05u-of-%05u.gguf", part + 1, n_parts);
}
