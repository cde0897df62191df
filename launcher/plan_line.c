/*
 * The weights of a line, and the order in which they are pinned.
 *
 * First vectors, which are always held, and routers. Then the head, the largest single read of a pass: while
 * it streams there is nothing to compute, so it is the first thing worth holding. Then matrices, level by
 * level: a tensor's level is the share of its layer's bytes that lie before it in order of use, and the
 * layers take their turns in bit-reversed order, so that whatever the budget, what is held is spread evenly
 * over the line and the disk never waits for the compute, nor the compute for the disk. Experts come last: a
 * byte of a dense matrix is read for every token, one of an expert only when it is chosen.
 */
#include "launcher/plan_parts.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "proto/base/mem.h"
#include "proto/base/size.h"
#include "proto/model/packed.h"

/* What one core turns over, in bytes of stored weights a second: types with an integer product, plain floats,
 * and those that are made floats block by block (docs/benchmarks.md, kernels for each stored type; rounded
 * down). Rough: it tells when the cores are what holds a token up, and by about how much. */
#define CORE_INTEGER 9e9
#define CORE_FLOAT   9e9
#define CORE_BLOCKS  3e8

#define ORDER_ROUTER 0.5
#define ORDER_HEAD   1.0
#define ORDER_LAYERS 2.0 /* to 3 */
#define ORDER_EXPERT 4.0

uint64_t brig_plan_pages(uint64_t bytes)
{
    return brig_align_up(bytes, BRIG_PLAN_PAGE);
}

static double core_rate(const struct brig_type *t)
{
    if (t->group != 0)
        return CORE_INTEGER;
    return t->block_elems == 1 ? CORE_FLOAT : CORE_BLOCKS;
}

/* 0, 1/2, 1/4, 3/4, 1/8 ...: the bits of i mirrored at the point. Any first few are spread evenly. */
static double mirrored(uint32_t i)
{
    double r = 0, bit = 0.5;
    for (; i != 0; i >>= 1, bit /= 2)
        r += (i & 1) != 0 ? bit : 0;
    return r;
}

static int by_order(const void *a, const void *b)
{
    const struct brig_plan_item *x = a, *y = b;
    if (x->order != y->order)
        return x->order < y->order ? -1 : 1;
    if (x->cell != y->cell)
        return x->cell < y->cell ? -1 : 1;
    if (x->role != y->role)
        return x->role < y->role ? -1 : 1;
    return x->expert < y->expert ? -1 : x->expert > y->expert;
}

static bool by_level(const struct brig_plan_item *t)
{
    return !t->vector && !t->of_expert && t->role != BRIG_ROLE_ROUTER;
}

/* The order of the items of one layer, which lie together: the level of each, and the layer's turn in it. */
static void order_layer(struct brig_plan_item *items, unsigned n)
{
    uint64_t all = 0, before = 0;
    for (unsigned i = 0; i < n; i++)
        all += by_level(&items[i]) ? items[i].bytes : 0;
    for (unsigned i = 0; i < n; i++) {
        struct brig_plan_item *t = &items[i];
        double turn = mirrored(t->cell);
        if (t->vector) {
            t->order = 0;
        } else if (t->role == BRIG_ROLE_ROUTER) {
            t->order = ORDER_ROUTER;
        } else if (t->of_expert) {
            t->order = ORDER_EXPERT + turn;
        } else {
            t->order = ORDER_LAYERS + ((double)before + turn * (double)t->bytes) / (double)(all + 1);
            before += t->bytes;
        }
    }
}

static void add_up(struct brig_plan_line *l, uint32_t experts, uint32_t used)
{
    double share = experts > 0 ? (double)used / experts : 1;
    double expert_bytes = 0;
    for (unsigned i = 0; i < l->n_items; i++) {
        const struct brig_plan_item *t = &l->items[i];
        l->pages += t->pages;
        l->cell_pages[t->cell] += t->pages;
        l->cell_bytes[t->cell] += t->bytes;
        l->core_s += t->of_expert ? t->core_s * share : t->core_s;
        if (t->vector)
            l->vector_pages += t->pages;
        else if (t->bytes > l->largest)
            l->largest = t->bytes;
        if (t->of_expert) {
            l->expert_pages += t->pages;
            expert_bytes += (double)t->bytes * share;
        } else {
            l->token_bytes += t->bytes;
        }
    }
    l->expert_token_bytes = (uint64_t)expert_bytes;
    l->token_bytes += l->expert_token_bytes;
}

void brig_plan_line_settle(struct brig_plan_line *l, uint32_t experts, uint32_t used)
{
    for (unsigned i = 0, n; i < l->n_items; i += n) {
        for (n = 1; i + n < l->n_items && l->items[i + n].cell == l->items[i].cell; n++)
            ;
        if (l->items[i].cell + 1 < l->n_cells)
            order_layer(l->items + i, n);
        else
            for (unsigned k = i; k < i + n; k++)
                l->items[k].order = l->items[k].vector ? 0 : ORDER_HEAD;
    }
    add_up(l, experts, used);
    qsort(l->items, l->n_items, sizeof *l->items, by_order);
}

/* A tensor by itself, read in whole pages from a place of any offset. */
static uint64_t own_pages(const struct brig_tensor *t)
{
    uint64_t at = t->offset % BRIG_PLAN_PAGE, sum = brig_plan_pages(at + t->bytes);
    for (unsigned i = 0; i < BRIG_SIDE_COUNT; i++) {
        const struct brig_side *side = &t->sides.side[i];
        if (side->bytes != 0)
            sum += brig_plan_pages(side->offset % BRIG_PLAN_PAGE + side->bytes);
    }
    return sum;
}

static bool add_item(struct brig_plan_line *l, const struct brig_model *m, uint32_t cell, enum brig_role role,
                     uint32_t expert)
{
    const struct brig_tensor *t = brig_model_expert(m, role, cell, expert);
    if (t == NULL)
        return false;
    uint64_t bytes = t->bytes + brig_sides_bytes(&t->sides);
    l->items[l->n_items++] = (struct brig_plan_item){
        .bytes = bytes,
        .pages = own_pages(t),
        .core_s = (double)bytes / core_rate(t->type),
        .role = role,
        .cell = cell,
        .expert = expert,
        .vector = t->dims[1] == 1,
        .of_expert = role >= BRIG_ROLE_EXPERT_FIRST && role < BRIG_ROLE_LAYER_COUNT,
    };
    return true;
}

int brig_plan_line_make(struct brig_plan_line *ret, const struct brig_model *m, struct brig_fail *fail)
{
    const struct brig_desc *d = &m->desc;
    struct brig_plan_line l = {.n_cells = d->n_layers + 1};
    size_t most = (size_t)d->n_layers * brig_desc_places(d) + BRIG_ROLE_COUNT;
    l.items = brig_alloc(most, sizeof *l.items);
    l.cell_pages = brig_alloc(l.n_cells, sizeof *l.cell_pages);
    l.cell_bytes = brig_alloc(l.n_cells, sizeof *l.cell_bytes);
    if (l.items == NULL || l.cell_pages == NULL || l.cell_bytes == NULL) {
        brig_plan_line_release(&l);
        return brig_fail_set(fail, BRIG_ENOMEM, "out of memory for a plan of %zu tensors", most);
    }
    for (uint32_t cell = 0; cell < l.n_cells; cell++)
        for (unsigned role = 0; role < BRIG_ROLE_COUNT; role++)
            for (uint32_t e = 0; e < brig_desc_count(d, (enum brig_role)role, cell); e++)
                if (!add_item(&l, m, cell, (enum brig_role)role, e)) {
                    brig_plan_line_release(&l);
                    return brig_fail_set(fail, BRIG_EFORMAT, "%s: layer %u has no %s", m->path, cell,
                                         brig_role_name((enum brig_role)role));
                }
    brig_plan_line_settle(&l, d->n_experts, d->n_experts_used);
    *ret = l;
    return 0;
}

void brig_plan_line_release(struct brig_plan_line *l)
{
    brig_free(l->items);
    brig_free(l->cell_pages);
    brig_free(l->cell_bytes);
    *l = (struct brig_plan_line){0};
}
