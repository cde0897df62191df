/*
 * Inside the plan: the weights of a line as a list in the order in which they are pinned, what each kind of
 * memory comes to, and the time of a token. Everything here is arithmetic on numbers that are handed in, so
 * that tests can make up tables and machines.
 */
#ifndef BRIG_LAUNCHER_PLAN_PARTS_H
#define BRIG_LAUNCHER_PLAN_PARTS_H

#include "launcher/plan.h"

/* One tensor of the line. */
struct brig_plan_item {
    uint64_t bytes; /* read for a pass, what lies beside packed words included */
    uint64_t pages; /* what it takes in memory when it is pinned by itself: whole pages, at any offset */
    double core_s;  /* what one core needs to turn it over for one token */
    enum brig_role role;
    uint32_t cell, expert;
    bool vector; /* norms, biases: small, and always held */
    bool of_expert;
    double order; /* the least first */
};

struct brig_plan_line {
    unsigned n_items, n_cells;
    struct brig_plan_item *items; /* sorted by order */
    uint64_t *cell_pages;         /* [n_cells] of all items of a cell */
    uint64_t *cell_bytes;         /* [n_cells] what the line is cut by */
    uint64_t pages, vector_pages; /* of all items; of those that are always held */
    uint64_t expert_pages;        /* of all experts */
    uint64_t largest;             /* bytes of the largest item that is streamed */
    uint64_t ring_min;            /* the smallest ring that everything passes through, slow as it may be */
    uint64_t token_bytes, expert_token_bytes; /* read for a token; of these, of experts */
    double core_s;                            /* for a token, one core */
    uint64_t draft_pages;                     /* of all tensors of the draft model beside the line */
};

int brig_plan_line_make(struct brig_plan_line *ret, const struct brig_model *m, struct brig_fail *fail);
/* Fill in order, sums and those of cells, for items that have all else and are in the order of the line;
 * sorts them. experts and used: of a layer. The arrays of cells are zeroed. */
void brig_plan_line_settle(struct brig_plan_line *l, uint32_t experts, uint32_t used);
void brig_plan_line_release(struct brig_plan_line *l);

/* brig_plan_make for a line that is given; of the models only desc, path, n_tensors and the vocabulary's
 * numbers are looked at. */
int brig_plan_from_line(struct brig_plan *ret, const struct brig_plan_wish *wish,
                        const struct brig_plan_line *line, struct brig_fail *fail);

/* Of a plan that is being made: everything that decides about memory but the weights. */
struct brig_plan_shape {
    const struct brig_desc *desc;
    unsigned n_shards, n_alive;
    uint32_t ctx, slots, rows;
    unsigned threads;
    bool exact, whole_rows;
    enum brig_kv_id kv;
    bool streams; /* there are rings */
    uint64_t draft_pages;
};

/* Bytes of KV cache, scratch and frames; processes and driver without what depends on weights. */
void brig_plan_sizes(const struct brig_plan_shape *shape, const struct brig_plan_wish *wish,
                     uint64_t bytes[BRIG_PLAN_KINDS]);
/* Of all that belongs to a draft model beside a line of this shape. */
uint64_t brig_plan_draft(const struct brig_plan_shape *shape, const struct brig_model *draft);
/* Scratch of one shard's block, as shard/block cuts it (a test compares). */
uint64_t brig_plan_scratch(const struct brig_plan_shape *shape, bool layers, bool head);
uint64_t brig_plan_kv(const struct brig_plan_shape *shape);
/* Kernel memory for page tables of so many bytes. */
uint64_t brig_plan_page_tables(uint64_t bytes);

/* A row of many costs so much less computation than one alone; and rows that a frame may have in any case. */
#define BRIG_PLAN_ROWS_GAIN   3
#define BRIG_PLAN_ROWS_USEFUL 64u

/* Least and best ring of one shard, for a line. */
uint64_t brig_plan_ring_least(const struct brig_plan_line *l);
uint64_t brig_plan_ring_best(const struct brig_plan_line *l);

/* Fill token_bytes ... regime of p from what is held. starts: processes that are started for each token. */
void brig_plan_predict(struct brig_plan *p, const struct brig_plan_line *l, unsigned hops, unsigned starts);

#define BRIG_PLAN_PAGE ((uint64_t)4096)
uint64_t brig_plan_pages(uint64_t bytes); /* rounded up */

#endif
