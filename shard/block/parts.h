/*
 * Inside shard/block: the struct behind brig_block and the steps that its files share. Everything is
 * allocated once, for max_rows rows; all steps run on the thread team, cut by row, by head or by panel of
 * weight rows, and no row's arithmetic depends on another row.
 */
#ifndef BRIG_SHARD_BLOCK_PARTS_H
#define BRIG_SHARD_BLOCK_PARTS_H

#include "shard/block/block.h"

/* Activations on their way into a product: always as floats, and quantised unless the block is exact. */
struct brig_acts {
    float *f;     /* [rows_cap, cols] */
    int8_t *q;    /* [rows_cap, cols], NULL when exact */
    float *d;     /* [rows_cap, cols / 32] */
    int32_t *sum; /* [rows_cap, cols / 16] */
};

/* A norm of the description's kind. weight NULL: none. */
struct brig_norm_of {
    const float *weight, *bias; /* [hidden]; a bias with LayerNorm only */
};

/* Sines and cosines of the frame's rows, for the layers that turn with one base. */
struct brig_turns {
    float base, linear, mscale; /* as in the description */
    const float *factors;       /* NULL: none */
    float *inv_freq;            /* [rope_dims / 2] angle of position 1 */
    float *sines, *cosines;     /* [rows_cap, rope_dims / 2] */
};

struct brig_layer {
    struct brig_norm_of attn_norm, ffn_norm;
    struct brig_norm_of attn_post, ffn_post; /* of what the branches add */
    const float *q_norm, *k_norm;            /* NULL: none, as those below */
    const float *q_bias, *k_bias, *v_bias;   /* [rows of q], [rows of k], [rows of v] */
    const float *gate_bias, *up_bias;        /* [ffn] */
    const float *out_bias, *down_bias;       /* [hidden] */
    struct brig_matrix q, k, v, out, gate, up, down;
    struct brig_matrix router;                     /* type NULL: the layer has no experts */
    bool experts_take_floats, experts_take_quants; /* some of their gates, ups and downs do */
};

/* A product on its way: w times the rows of x. */
struct brig_task {
    struct brig_matrix w;
    struct brig_act x;
    float *y; /* [x.n_rows, y_stride], w.rows of each row are written */
    size_t y_stride;
    uint32_t first_piece; /* set by brig_tasks_run */
};

/* The best candidates so far: a heap with the last in order at its root. */
struct brig_best {
    struct brig_candidate *v; /* [BRIG_FRAME_MAX_TOP] */
    uint32_t n;
};

/* Which rows go to which experts, in a layer that has some. A seat is a pair of a row and one of its experts;
 * seats are in the order of experts, then of rows. */
struct brig_routing {
    float *logits;           /* [rows_cap, n_experts] */
    uint32_t *expert;        /* [rows_cap, used] ascending */
    float *weight;           /* [rows_cap, used] */
    uint32_t *seat;          /* [rows_cap, used] */
    uint32_t *row;           /* [seats] */
    uint32_t *first;         /* [n_experts + 1] the first seat of each expert */
    struct brig_acts rows;   /* [seats, hidden] the normed row of each seat */
    float *y;                /* [seats, hidden] what the expert makes of it */
    struct brig_task *tasks; /* [2 * n_experts] */
    uint32_t *active;        /* [n_experts] those that have seats, ascending */
};

struct brig_block {
    struct brig_block_setup setup;
    const struct brig_desc *desc;
    unsigned n_threads;
    uint32_t rows_cap; /* rows that the buffers hold */
    uint32_t first_layer, n_layers;
    struct brig_layer *layers;       /* [n_layers] */
    struct brig_norm_of output_norm; /* no weight: no head */
    struct brig_matrix output;

    /* Scratch, one mapping: untouched pages cost nothing, which keeps a start cheap. */
    uint8_t *memory;
    uint64_t memory_bytes;
    struct brig_acts norm; /* [rows_cap, hidden] normed rows */
    struct brig_acts wide; /* [rows_cap, max(attention width, mlp)] attention output; gated MLP rows */
    float *q, *k, *v;      /* [rows_cap, heads * head_dim], [rows_cap, kv heads * head_dim] twice */
    float *gate, *up;      /* [rows_cap, mlp]: ffn, or expert_ffn for each expert used if that is more */
    float *y;              /* [rows_cap, hidden] what a residual branch adds */
    float *visits;         /* activations that visit.c has gathered for one run of products */
    struct brig_routing routing; /* all NULL without experts */
    float *logits;               /* [BRIG_HEAD_ROWS, vocab], NULL without a head, as the next three */
    struct brig_best *best;      /* [n_threads, BRIG_HEAD_ROWS] */
    float *strip_lse;            /* [rows at work, n_strips] of each BRIG_LSE_BLOCK entries */
    atomic_uint *strip_done;     /* [n_strips] rows that are made */
    uint32_t n_strips;
    struct brig_turns turns[2];   /* of most layers; of windowed ones with a base of their own */
    float *scores;                /* [n_threads, BRIG_ATTN_QUERIES, ctx rounded up to 16] */
    uint32_t *row_slot, *row_pos; /* [rows_cap] */

    /* The frame at work. */
    uint32_t n_rows;
    float *h;         /* [n_rows, hidden] */
    uint8_t *choices; /* of brig_block_record, or NULL */
    struct brig_kv *kv;
};

/* memory.c: scratch for the setup, pointers set. brig_scratch_free accepts a half-built block. */
int brig_scratch_new(struct brig_block *b, struct brig_fail *fail);
void brig_scratch_free(struct brig_block *b);

/* product.c: y[i] = w[i] times the activations, for up to 3 matrices of the same input, in one run of the
 * team when all are there, else in one for each lot of rows that has come. Rows of y[i] are w[i].rows long.
 */
struct brig_product {
    const struct brig_matrix *w;
    float *y;
};
int brig_products(struct brig_block *b, const struct brig_product *p, unsigned n, const struct brig_acts *x,
                  uint32_t n_rows, struct brig_fail *fail);

/* The rows [first_row, first_row + n_rows) of x in the form that w is multiplied with. */
struct brig_act brig_acts_for(const struct brig_block *b, const struct brig_matrix *w,
                              const struct brig_acts *x, uint32_t first_row, uint32_t n_rows);
/* product.c: any number of products, n >= 1, each of its own input, in one run of the team. The weights are
 * there. */
void brig_tasks_run(struct brig_block *b, struct brig_task *tasks, unsigned n);

/* visit.c: when w visits its columns in an order of its own, x is gathered into that order, *used floats from
 * the start of b->visits on, and *used moves on. Only for a matrix that is computed as floats, as all those
 * are. */
void brig_acts_visit(struct brig_block *b, const struct brig_matrix *w, struct brig_act *x, size_t *used);

/* What a residual branch still needs when its last product lies in b->y. */
struct brig_branch {
    const float *bias;        /* [hidden], NULL: none */
    struct brig_norm_of norm; /* of the sum, before it is added */
};

/* rows.c: h += y with what the branch needs (unless NULL), then norm into b->norm (when it has a weight). */
void brig_rows_norm(struct brig_block *b, const struct brig_branch *branch, struct brig_norm_of norm);
/* rows.c: one row x [hidden] normed into out, which may be x. */
void brig_row_norm(const struct brig_block *b, const float *x, struct brig_norm_of norm, float *out);
/* rows.c: b->wide = gate and up through the MLP's activation function, biases added before, ready for a
 * product with `down`. */
struct brig_gating {
    uint32_t first_row, n_rows, cols; /* of b->gate, b->up and b->wide */
    const float *gate_bias, *up_bias; /* [cols], NULL: none */
    bool quantize;                    /* `down` takes quantised rows */
};
void brig_rows_gate(struct brig_block *b, const struct brig_gating *g);
/* rows.c: one row of activations into its quantised form; nothing to do when exact. */
void brig_acts_quantize(const struct brig_block *b, const struct brig_acts *x, uint64_t row, uint32_t cols);

/* rope.c */
int brig_rope_init(struct brig_block *b, struct brig_fail *fail);
void brig_rope_angles(struct brig_block *b); /* of all rows of the frame, once for all layers */
/* Biases, norms of q and k; q and k turn; k and v into the cache. */
void brig_rope_store(struct brig_block *b, uint32_t layer);

/* experts.c: b->y = the sum over the chosen experts of weight times what they make of b->norm. */
int brig_experts(struct brig_block *b, uint32_t layer, struct brig_fail *fail);
/* At the start: all experts of a layer are there. Sets what they take in the layer. */
int brig_experts_find(struct brig_block *b, uint32_t layer, struct brig_fail *fail);
/* From the router's logits [n_experts] of a row, which are overwritten: the chosen experts, ascending, and
 * their weights, [n_experts_used] each. */
void brig_experts_choose(const struct brig_desc *d, float *logits, uint32_t *chosen, float *weights);

/* head.c: one candidate, and n from id `first` on, into a heap of at most `top`; the heap in order, n of
 * them. */
void brig_best_add(struct brig_best *best, uint32_t top, struct brig_candidate c);
void brig_best_scan(struct brig_best *best, uint32_t top, const float *logits, uint32_t first, uint32_t n);
uint32_t brig_best_sort(struct brig_best *best);

/* attention.c: q over the cache into b->wide, ready for a product with `out` */
void brig_attention(struct brig_block *b, uint32_t layer, const struct brig_matrix *out);

#endif
