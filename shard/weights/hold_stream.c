/*
 * Residency stream: matrices pass through a ring of buffers, load by load (proto/model/load.h), in the order
 * of their use. What will be used next is known: the layers, then the head as often as the frame wants it,
 * then the layers again. So the reader is always asked for as much as the ring has room for, across the end
 * of a pass too, and it works while others compute and while nobody does.
 *
 * A section is one use of the layers or of the head; sections are counted. The queue holds loads in the order
 * that they were asked for in, each with its section. Work that uses something else than was foreseen empties
 * the queue and begins where it is.
 */
#include <sys/mman.h>

#include "proto/base/mem.h"
#include "proto/model/load.h"
#include "shard/weights/parts.h"
#include "shard/weights/ring.h"

#define QUEUE 512u /* loads that are in the ring at once, at most: below what the reader takes */
#define NONE  UINT32_MAX

struct queued {
    struct brig_fetch fetch;
    uint32_t load;
    uint64_t section, at; /* at: in the ring */
    bool stale;           /* not foreseen: its room is wanted back */
};

/* Where the reading is. */
struct cursor {
    uint64_t section;
    enum brig_part part;
    uint32_t load;
};

struct stream {
    struct brig_feed *feed;
    const struct brig_slice *slice;
    struct brig_loads loads;
    uint8_t *memory;
    struct brig_ring ring;
    struct queued *queue; /* [QUEUE] ring too: from `oldest` on */
    uint32_t oldest, n_queued;
    uint32_t *where; /* [n_loads] place in the queue, NONE: not in it */
    struct cursor cursor;
    /* the work */
    uint64_t section; /* in use; 0: none yet */
    uint32_t taken;   /* pieces of the section before this one have been taken */
    /* heads of the pass whose layers are section `told`; before it, and when it is over: one each pass */
    uint64_t told;
    unsigned n_heads;
};

/* ---- what comes next ---- */

static uint32_t first_load(const struct stream *s, enum brig_part part)
{
    return part == BRIG_PART_HEAD ? s->loads.head_load : 0;
}

static uint32_t end_load(const struct stream *s, enum brig_part part)
{
    return part == BRIG_PART_HEAD ? s->loads.n_loads : s->loads.head_load;
}

static bool has(const struct stream *s, enum brig_part part)
{
    return end_load(s, part) > first_load(s, part);
}

/* The part that is used after the cursor's. */
static enum brig_part foreseen(const struct stream *s)
{
    const struct cursor *c = &s->cursor;
    bool head = c->part == BRIG_PART_LAYERS; /* once each pass */
    if (c->section >= s->told && c->section - s->told <= s->n_heads)
        head = c->section - s->told < s->n_heads;
    if (!has(s, BRIG_PART_LAYERS))
        return BRIG_PART_HEAD;
    return head && has(s, BRIG_PART_HEAD) ? BRIG_PART_HEAD : BRIG_PART_LAYERS;
}

static void move_on(struct stream *s)
{
    struct cursor *c = &s->cursor;
    if (++c->load < end_load(s, c->part))
        return;
    c->part = foreseen(s);
    c->section++;
    c->load = first_load(s, c->part);
}

/* ---- the queue ---- */

static struct queued *queued_at(struct stream *s, uint32_t i)
{
    return &s->queue[(s->oldest + i) % QUEUE];
}

static void set_stale(struct stream *s, uint32_t i)
{
    struct queued *q = queued_at(s, i);
    q->stale = true;
    if (s->where[q->load] == (uint32_t)(q - s->queue))
        s->where[q->load] = NONE;
}

/* The room of the oldest ones that are done with comes back; not while they are read into. */
static void drop_stale(struct stream *s)
{
    while (s->n_queued > 0) {
        const struct queued *q = queued_at(s, 0);
        if (!q->stale || q->fetch.state == BRIG_FETCH_READING)
            return;
        s->oldest = (s->oldest + 1) % QUEUE;
        s->n_queued--;
        brig_ring_give(&s->ring, s->n_queued > 0 ? queued_at(s, 0)->at : s->ring.next);
    }
}

/* What is in the queue from i on was not foreseen; go on from there. */
static void seek(struct stream *s, uint32_t i, enum brig_part part, uint32_t load)
{
    for (; i < s->n_queued; i++)
        set_stale(s, i);
    s->cursor = (struct cursor){s->section, part, load};
}

/* Ask for what follows, as long as there is room. A load is in the queue once. */
static int ask(struct stream *s, struct brig_fail *fail)
{
    while (s->n_queued < QUEUE && s->where[s->cursor.load] == NONE) {
        const struct brig_load *l = &s->loads.loads[s->cursor.load];
        uint32_t slot = (s->oldest + s->n_queued) % QUEUE;
        struct queued *q = &s->queue[slot];
        struct brig_ring before = s->ring;
        uint64_t at;
        if (!brig_ring_take(&s->ring, l->bytes, &at))
            return 0;
        *q = (struct queued){.load = s->cursor.load, .section = s->cursor.section, .at = at};
        int r = brig_feed_fetch(s->feed, l->file, l->offset, l->bytes, s->memory + at, true, &q->fetch, fail);
        if (r < 0) {
            s->ring = before;
            return r == -BRIG_ELIMIT ? 0 : r;
        }
        s->where[q->load] = slot;
        s->n_queued++;
        move_on(s);
    }
    return 0;
}

/* ---- the work's side ---- */

/* Take note of what has come, and ask for more. */
static int turn(struct stream *s, struct brig_fail *fail)
{
    brig_feed_poll(s->feed);
    drop_stale(s);
    return ask(s, fail);
}

static enum brig_part part_of(const struct stream *s, uint32_t load)
{
    return load >= s->loads.head_load ? BRIG_PART_HEAD : BRIG_PART_LAYERS;
}

static void stream_begin(void *state, enum brig_part part)
{
    struct stream *s = state;
    const struct cursor *c = &s->cursor;
    uint32_t i = 0, first = first_load(s, part);
    if (!has(s, part))
        return;
    s->section++;
    s->taken = 0;
    for (; i < s->n_queued && queued_at(s, i)->section < s->section; i++)
        set_stale(s, i);
    bool foreseen = i < s->n_queued ? part_of(s, queued_at(s, i)->load) == part
                                    : c->section == s->section && c->part == part && c->load == first;
    if (!foreseen)
        seek(s, i, part, first);
}

static void stream_expect(void *state, unsigned n_heads)
{
    struct stream *s = state;
    /* Without layers the pass begins with a head: as if they had been the section before. */
    s->told = s->section + (has(s, BRIG_PART_LAYERS) ? 1 : 0);
    s->n_heads = n_heads;
}

/* Done with are the loads whose last piece was taken. */
static void stream_give(void *state)
{
    struct stream *s = state;
    for (uint32_t i = 0; i < s->n_queued; i++) {
        const struct queued *q = queued_at(s, i);
        if (q->section > s->section || (s->taken > 0 && q->load > s->loads.pieces[s->taken - 1].load))
            break;
        if (!q->stale && s->loads.loads[q->load].last_piece < s->taken)
            set_stale(s, i);
    }
    struct brig_fail fail;
    (void)turn(s, &fail); /* a failure comes again when the next piece is taken */
}

static uint32_t piece_of(const struct stream *s, uint32_t tensor, uint64_t row)
{
    const struct brig_load_piece *p = s->loads.pieces;
    uint32_t i = s->loads.first[tensor];
    while (p[i].first_row + p[i].n_rows <= row && i + 1 < s->loads.n_pieces && p[i + 1].tensor == tensor)
        i++;
    return i;
}

static void view(const struct stream *s, struct brig_entry *e, const struct brig_load_piece *p,
                 const struct queued *q, struct brig_matrix *ret)
{
    *ret = e->matrix;
    ret->data = s->memory + q->at + p->at;
    ret->rows = p->n_rows;
    if (ret->packed != NULL) /* comes whole */
        e->packed.words = ret->data;
}

/* The load of the present section in the queue; NULL: it is not in it yet. */
static struct queued *in_hand(struct stream *s, uint32_t load)
{
    struct queued *q = s->where[load] != NONE ? &s->queue[s->where[load]] : NULL;
    return q != NULL && q->section == s->section ? q : NULL;
}

/* One step towards having a load that is not in the queue. Nothing is on loan. */
static int make_way(struct stream *s, uint32_t load, unsigned *seeks, struct brig_fail *fail)
{
    struct queued *first = s->n_queued > 0 ? queued_at(s, 0) : NULL;
    if (first != NULL && first->stale && first->fetch.state == BRIG_FETCH_READING) {
        int r = brig_feed_wait(s->feed, &first->fetch, fail);
        return first->fetch.state == BRIG_FETCH_READING ? r : 0; /* how it ended is of no interest */
    }
    if (++*seeks > 2)
        return brig_fail_set(fail, BRIG_EINTERNAL, "a ring of %llu bytes has no room for %llu",
                             (unsigned long long)s->ring.bytes,
                             (unsigned long long)s->loads.loads[load].bytes);
    seek(s, 0, part_of(s, load), load);
    return 0;
}

static int stream_take(void *state, struct brig_entry *e, uint64_t row, bool wait, struct brig_matrix *ret,
                       struct brig_fail *fail)
{
    struct stream *s = state;
    uint32_t number = piece_of(s, e->tensor, row);
    const struct brig_load_piece *p = &s->loads.pieces[number];
    unsigned seeks = 0;
    for (;;) {
        int r = turn(s, fail);
        struct queued *q = in_hand(s, p->load);
        if (r == 0 && q != NULL && q->fetch.state == BRIG_FETCH_READY) {
            view(s, e, p, q, ret);
            s->taken = s->taken > number + 1 ? s->taken : number + 1;
            return 1;
        }
        if (r == 0 && !wait)
            return 0;
        if (r == 0)
            r = q != NULL ? brig_feed_wait(s->feed, &q->fetch, fail) : make_way(s, p->load, &seeks, fail);
        if (r < 0) {
            seek(s, 0, part_of(s, p->load), p->load); /* who comes again asks again */
            return r;
        }
    }
}

/* ---- open and close ---- */

static int make_ring(struct stream *s, struct brig_fail *fail)
{
    uint64_t align = brig_feed_align(s->feed), least = brig_slice_ring_min(s->slice, align);
    uint64_t bytes = s->slice->stream.ring_bytes & ~(align - 1);
    if (s->slice->stream.ring_bytes == 0)
        bytes = brig_slice_ring_default(s->slice, align);
    if (bytes < least)
        return brig_fail_set(fail, BRIG_EUSAGE,
                             "a ring of %llu bytes is too small to stream through: %llu are needed",
                             (unsigned long long)s->slice->stream.ring_bytes, (unsigned long long)least);
    int r = brig_loads_build(&s->loads, s->slice, BRIG_HOLD_STREAM, align, brig_ring_load_bytes(bytes), fail);
    if (r < 0)
        return r;
    uint64_t most = s->loads.bytes + BRIG_RING_PARTS * s->loads.most; /* more would never be filled */
    s->ring.bytes = bytes < most ? bytes : most;
    void *p = mmap(NULL, s->ring.bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        return brig_fail_errno(fail, BRIG_ENOMEM, "no memory for a ring of %llu bytes",
                               (unsigned long long)s->ring.bytes);
    s->memory = p;
    madvise(p, s->ring.bytes, MADV_HUGEPAGE);
    return 0;
}

static int start(struct stream *s, struct brig_fail *fail)
{
    int r = make_ring(s, fail);
    if (r < 0)
        return r;
    s->queue = brig_alloc(QUEUE, sizeof *s->queue);
    s->where = brig_alloc(s->loads.n_loads, sizeof *s->where);
    if (s->queue == NULL || s->where == NULL)
        return brig_fail_set(fail, BRIG_ENOMEM, "out of memory for streaming");
    for (uint32_t i = 0; i < s->loads.n_loads; i++)
        s->where[i] = NONE;
    s->cursor = (struct cursor){1, BRIG_PART_LAYERS, 0};
    if (!has(s, BRIG_PART_LAYERS))
        s->cursor.part = BRIG_PART_HEAD;
    return ask(s, fail);
}

static int stream_open(struct brig_weights *w, void **state, struct brig_fail *fail)
{
    if (w->feed == NULL || brig_slice_ring_min(w->slice, 1) == 0)
        return 0;
    struct stream *s = brig_alloc(1, sizeof *s);
    if (s == NULL)
        return brig_fail_set(fail, BRIG_ENOMEM, "out of memory for streaming");
    s->feed = w->feed;
    s->slice = w->slice;
    *state = s;
    return start(s, fail);
}

static void stream_close(void *state)
{
    struct stream *s = state;
    if (s->memory != NULL)
        munmap(s->memory, s->ring.bytes);
    brig_loads_release(&s->loads);
    brig_free(s->queue);
    brig_free(s->where);
    brig_free(s);
}

static void stream_add_stats(const void *state, struct brig_weights_stats *stats)
{
    const struct stream *s = state;
    stats->held_bytes += s->ring.bytes;
}

extern const struct brig_hold_ops brig_hold_stream;

const struct brig_hold_ops brig_hold_stream = {
    .hold = BRIG_HOLD_STREAM,
    .name = "stream",
    .open = stream_open,
    .close = stream_close,
    .begin = stream_begin,
    .expect = stream_expect,
    .give = stream_give,
    .take = stream_take,
    .add_stats = stream_add_stats,
};
