/*
 * Cutting and joining. A cell whose streamed bytes are few is read in the order of the file, its neighbours
 * joined; of a larger one the matrices are read in the order of their use, the large ones cut into strips of
 * rows.
 */
#include "proto/model/load.h"

#include <stdlib.h>
#include <string.h>

#include "proto/base/mem.h"
#include "proto/base/size.h"
#include "proto/model/r16.h"

#define GAP_BYTES ((uint64_t)16 << 10) /* read along with what lies around it */

/* The order that the block uses matrices in. */
static unsigned turn_of(enum brig_role role)
{
    static const enum brig_role order[] = {
        BRIG_ROLE_ATTN_Q, BRIG_ROLE_ATTN_K, BRIG_ROLE_ATTN_V,   BRIG_ROLE_ATTN_OUT,
        BRIG_ROLE_ROUTER, BRIG_ROLE_FFN_UP, BRIG_ROLE_FFN_GATE, BRIG_ROLE_FFN_DOWN,
    };
    unsigned i = 0;
    while (i < sizeof order / sizeof order[0] && order[i] != role)
        i++;
    return i;
}

struct item {
    const struct brig_slice_tensor *t;
    uint32_t tensor, cell;
    uint64_t turn; /* within the pass */
};

struct builder {
    const struct brig_slice *s;
    enum brig_hold hold;
    uint64_t align, max_bytes, gap;
    struct item *items; /* [n_items] in the order of use */
    uint32_t n_items;
    struct brig_loads out;
};

static bool takes_part(const struct brig_slice_tensor *t, enum brig_hold hold)
{
    bool expert = t->role >= BRIG_ROLE_EXPERT_FIRST && t->role < BRIG_ROLE_LAYER_COUNT;
    return t->hold == hold && t->rows > 1 && !(expert && hold == BRIG_HOLD_STREAM);
}

static uint32_t cell_of(const struct brig_slice *s, const struct brig_slice_tensor *t)
{
    return t->role < BRIG_ROLE_LAYER_COUNT ? t->layer : s->desc.n_layers;
}

/* Rows that a cut can be made at: 0 when none can. */
static uint64_t cut_rows(const struct brig_slice_tensor *t)
{
    return t->type->packing == NULL && t->rows > BRIG_R16_ROWS ? BRIG_R16_ROWS : 0;
}

static uint64_t widened(uint64_t offset, uint64_t bytes, uint64_t align)
{
    return brig_align_up(offset + bytes, align) - (offset & ~(align - 1));
}

/* Rows of a strip; all of them: it is not cut. */
static uint64_t strip_rows(const struct brig_slice_tensor *t, uint64_t align, uint64_t max_bytes)
{
    uint64_t grain = cut_rows(t), row = t->bytes / t->rows;
    if (grain == 0 || widened(t->offset, t->bytes, align) <= max_bytes)
        return t->rows;
    uint64_t room = max_bytes > 2 * align ? max_bytes - 2 * align : 0;
    uint64_t most = room / (row * grain) * grain;
    most = most < grain ? grain : most;
    uint64_t n = (t->rows + most - 1) / most;
    return brig_align_up((t->rows + n - 1) / n, grain); /* strips of about the same size */
}

static int by_use(const void *a, const void *b)
{
    const struct item *x = a, *y = b;
    if (x->cell != y->cell)
        return x->cell < y->cell ? -1 : 1;
    if (x->turn != y->turn)
        return x->turn < y->turn ? -1 : 1;
    return (x->tensor > y->tensor) - (x->tensor < y->tensor);
}

static int by_place(const void *a, const void *b)
{
    const struct brig_slice_tensor *x = ((const struct item *)a)->t, *y = ((const struct item *)b)->t;
    if (x->file != y->file)
        return x->file < y->file ? -1 : 1;
    return (x->offset > y->offset) - (x->offset < y->offset);
}

static void list_items(struct builder *b)
{
    for (uint32_t i = 0; i < b->s->n_tensors; i++) {
        const struct brig_slice_tensor *t = &b->s->tensors[i];
        if (takes_part(t, b->hold))
            b->items[b->n_items++] =
                (struct item){.t = t, .tensor = i, .cell = cell_of(b->s, t), .turn = turn_of(t->role)};
    }
    qsort(b->items, b->n_items, sizeof *b->items, by_use);
}

/* Pieces of all items in the order of use; their loads come after. */
static uint32_t count_pieces(const struct builder *b)
{
    uint64_t n = 0;
    for (uint32_t i = 0; i < b->n_items; i++) {
        const struct brig_slice_tensor *t = b->items[i].t;
        uint64_t rows = b->hold == BRIG_HOLD_STREAM ? strip_rows(t, b->align, b->max_bytes) : t->rows;
        n += (t->rows + rows - 1) / rows;
    }
    return n <= UINT32_MAX ? (uint32_t)n : 0;
}

static void list_pieces(struct builder *b)
{
    struct brig_loads *o = &b->out;
    for (uint32_t i = 0; i < b->n_items; i++) {
        const struct brig_slice_tensor *t = b->items[i].t;
        uint64_t rows = b->hold == BRIG_HOLD_STREAM ? strip_rows(t, b->align, b->max_bytes) : t->rows;
        if (b->items[i].cell < b->s->desc.n_layers)
            o->head_piece = o->n_pieces + (uint32_t)((t->rows + rows - 1) / rows);
        o->first[b->items[i].tensor] = o->n_pieces;
        for (uint64_t r = 0; r < t->rows; r += rows)
            o->pieces[o->n_pieces++] =
                (struct brig_load_piece){.tensor = b->items[i].tensor,
                                         .first_row = r,
                                         .n_rows = t->rows - r < rows ? t->rows - r : rows};
    }
}

/* A piece into the last load when it lies right behind what is in it, else into a new one. */
static void place(struct builder *b, uint32_t piece, bool fresh)
{
    struct brig_loads *o = &b->out;
    struct brig_load_piece *p = &o->pieces[piece];
    const struct brig_slice_tensor *t = &b->s->tensors[p->tensor];
    uint64_t row = t->bytes / t->rows, begin = t->offset + p->first_row * row, bytes = p->n_rows * row;
    struct brig_load *l = o->n_loads > 0 && !fresh ? &o->loads[o->n_loads - 1] : NULL;
    uint64_t start = begin & ~(b->align - 1), end = brig_align_up(begin + bytes, b->align);
    if (l == NULL || l->file != t->file || begin < l->offset || start > l->offset + l->bytes + b->gap ||
        end - l->offset > b->max_bytes) {
        l = &o->loads[o->n_loads++];
        *l = (struct brig_load){.file = t->file, .offset = start};
    }
    if (end > l->offset + l->bytes)
        l->bytes = end - l->offset;
    l->last_piece = l->last_piece > piece ? l->last_piece : piece;
    p->load = o->n_loads - 1;
    p->at = begin - l->offset;
}

/* The items [first, end) of one cell. */
static void place_cell(struct builder *b, uint32_t first, uint32_t end)
{
    uint64_t sum = 0;
    bool fresh = true;
    for (uint32_t i = first; i < end; i++)
        sum += widened(b->items[i].t->offset, b->items[i].t->bytes, b->align);
    if (b->hold == BRIG_HOLD_LOCK || sum <= b->max_bytes)
        qsort(b->items + first, end - first, sizeof *b->items, by_place);
    for (uint32_t i = first; i < end; i++) {
        uint32_t tensor = b->items[i].tensor;
        for (uint32_t k = b->out.first[tensor]; k < b->out.n_pieces && b->out.pieces[k].tensor == tensor;
             k++, fresh = false)
            place(b, k, fresh);
    }
}

/* Loads of a cell that was placed in the order of the file: in the order of their first pieces. */
struct rank {
    uint32_t first_piece, load;
};

static int by_first_piece(const void *a, const void *b)
{
    const struct rank *x = a, *y = b;
    return (x->first_piece > y->first_piece) - (x->first_piece < y->first_piece);
}

static int sort_loads(struct brig_loads *o, struct brig_fail *fail)
{
    struct rank *ranks = brig_alloc(o->n_loads, sizeof *ranks);
    uint32_t *number = brig_alloc(o->n_loads, sizeof *number);
    struct brig_load *sorted = brig_alloc(o->n_loads, sizeof *sorted);
    int r = 0;
    if (ranks == NULL || number == NULL || sorted == NULL)
        r = brig_fail_set(fail, BRIG_ENOMEM, "no memory to order %u reads", o->n_loads);
    for (uint32_t i = 0; r == 0 && i < o->n_loads; i++)
        ranks[i] = (struct rank){UINT32_MAX, i};
    for (uint32_t i = o->n_pieces; r == 0 && i-- > 0;)
        ranks[o->pieces[i].load].first_piece = i;
    if (r == 0) {
        qsort(ranks, o->n_loads, sizeof *ranks, by_first_piece);
        for (uint32_t i = 0; i < o->n_loads; i++) {
            sorted[i] = o->loads[ranks[i].load];
            number[ranks[i].load] = i;
            if (ranks[i].first_piece < o->head_piece)
                o->head_load = i + 1;
        }
        for (uint32_t i = 0; i < o->n_pieces; i++)
            o->pieces[i].load = number[o->pieces[i].load];
        memcpy(o->loads, sorted, o->n_loads * sizeof *sorted);
    }
    brig_free(ranks);
    brig_free(number);
    brig_free(sorted);
    return r;
}

static int build(struct builder *b, struct brig_fail *fail)
{
    struct brig_loads *o = &b->out;
    list_items(b);
    uint32_t n = count_pieces(b);
    o->pieces = brig_alloc(n, sizeof *o->pieces);
    o->loads = brig_alloc(n, sizeof *o->loads);
    o->first = brig_alloc(b->s->n_tensors, sizeof *o->first);
    if ((n == 0 && b->n_items > 0) || o->pieces == NULL || o->loads == NULL || o->first == NULL)
        return brig_fail_set(fail, BRIG_ENOMEM, "no memory to list what is read of %u tensors", b->n_items);
    list_pieces(b);
    for (uint32_t i = 0, end; i < b->n_items; i = end) {
        for (end = i; end < b->n_items && b->items[end].cell == b->items[i].cell; end++)
            ;
        place_cell(b, i, end);
    }
    for (uint32_t i = 0; i < o->n_loads; i++) {
        o->bytes += o->loads[i].bytes;
        o->most = o->most > o->loads[i].bytes ? o->most : o->loads[i].bytes;
    }
    return sort_loads(o, fail);
}

int brig_loads_build(struct brig_loads *ret, const struct brig_slice *s, enum brig_hold hold, uint64_t align,
                     uint64_t max_bytes, struct brig_fail *fail)
{
    struct builder b = {.s = s, .hold = hold, .align = align, .max_bytes = max_bytes};
    b.gap = hold == BRIG_HOLD_STREAM ? GAP_BYTES : 0;
    b.items = brig_alloc(s->n_tensors, sizeof *b.items);
    int r = b.items != NULL ? build(&b, fail)
                            : brig_fail_set(fail, BRIG_ENOMEM, "no memory to list %u tensors", s->n_tensors);
    brig_free(b.items);
    if (r < 0) {
        brig_loads_release(&b.out);
        return r;
    }
    *ret = b.out;
    return 0;
}

void brig_loads_release(struct brig_loads *l)
{
    brig_free(l->loads);
    brig_free(l->pieces);
    brig_free(l->first);
    *l = (struct brig_loads){0};
}

uint64_t brig_slice_ring_min(const struct brig_slice *s, uint64_t align)
{
    uint64_t most = 0;
    for (unsigned i = 0; i < s->n_tensors; i++) {
        const struct brig_slice_tensor *t = &s->tensors[i];
        uint64_t rows = takes_part(t, BRIG_HOLD_STREAM) ? strip_rows(t, align, 0) : 0;
        uint64_t bytes = rows > 0 ? brig_align_up(t->bytes / t->rows * rows, align) + align : 0;
        most = most > bytes ? most : bytes;
    }
    return BRIG_RING_PARTS * most;
}

uint64_t brig_slice_ring_default(const struct brig_slice *s, uint64_t align)
{
    uint64_t least = brig_slice_ring_min(s, align), largest = 0, second = 0;
    bool layers = s->cells.first < s->desc.n_layers; /* a head is cut into pieces, and used only once */
    uint32_t end =
        layers && brig_cells_has_head(s->cells, s->desc.n_layers) ? s->desc.n_layers : s->cells.last;
    for (uint32_t cell = s->cells.first; cell < end; cell++) {
        uint64_t bytes = 0;
        for (unsigned i = 0; i < s->n_tensors; i++)
            if (cell_of(s, &s->tensors[i]) == cell && takes_part(&s->tensors[i], BRIG_HOLD_STREAM))
                bytes += widened(s->tensors[i].offset, s->tensors[i].bytes, align);
        if (bytes > largest) {
            second = largest;
            largest = bytes;
        } else if (bytes > second) {
            second = bytes;
        }
    }
    uint64_t both = layers ? largest + second : BRIG_RING_PARTS * BRIG_LOAD_MAX_BYTES;
    return both > least ? both : least;
}

uint64_t brig_ring_load_bytes(uint64_t ring_bytes)
{
    uint64_t part = ring_bytes / BRIG_RING_PARTS;
    return part < BRIG_LOAD_MAX_BYTES ? part : BRIG_LOAD_MAX_BYTES;
}
