/*
 * Scratch of a block: one anonymous mapping cut into its buffers, each at a multiple of 64 bytes. Called by
 * brig_block_new and brig_block_free.
 */
#include "shard/block/parts.h"

#include <sys/mman.h>

#include "proto/base/size.h"
#include "shard/kernels/kernel.h"

#define SCRATCH_MAX_BYTES ((uint64_t)1 << 40)

/* Walked twice: first to add up, then, with a base, to hand out. */
struct cutter {
    uint8_t *base; /* NULL: adding up */
    uint64_t at;
    bool fits;
};

static void *cut(struct cutter *c, uint64_t rows, uint64_t cols, uint64_t size)
{
    uint64_t bytes = 0, end = 0;
    void *p = c->base != NULL ? c->base + c->at : NULL;
    c->fits = c->fits && brig_mul_u64(rows, cols, &bytes) && brig_mul_u64(bytes, size, &bytes) &&
              bytes <= SCRATCH_MAX_BYTES && brig_add_u64(c->at, brig_align_up(bytes, 64), &end) &&
              end <= SCRATCH_MAX_BYTES;
    if (c->fits)
        c->at = end;
    return p;
}

/* stride: of the quantised form. */
static void cut_acts(struct cutter *c, struct brig_acts *x, bool exact, uint64_t rows, uint64_t cols,
                     uint64_t stride)
{
    x->f = cut(c, rows, cols, sizeof *x->f);
    if (exact)
        return;
    x->q = cut(c, rows, stride, sizeof *x->q);
    x->d = cut(c, rows, stride / BRIG_ACT_GROUP, sizeof *x->d);
    x->sum = cut(c, rows, stride / 16, sizeof *x->sum);
}

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* Columns of all matrices that one run of products multiplies a row with, at most: qkv; gate and up of all
 * experts that are used; what leads back. */
static uint64_t visited_cols(const struct brig_desc *d)
{
    uint64_t used = d->n_experts > 0 ? d->n_experts_used : 1, attn = (uint64_t)d->n_heads * d->head_dim;
    uint64_t most = larger((uint64_t)3 * d->hidden, 2 * used * d->hidden);
    return larger(larger(most, attn), larger(d->ffn, used * d->expert_ffn));
}

static void cut_routing(struct brig_block *b, struct cutter *c)
{
    const struct brig_desc *d = b->desc;
    struct brig_routing *r = &b->routing;
    uint64_t rows = b->rows_cap, seats = rows * d->n_experts_used;
    if (d->n_experts == 0)
        return;
    r->logits = cut(c, rows, d->n_experts, sizeof *r->logits);
    r->expert = cut(c, seats, 1, sizeof *r->expert);
    r->weight = cut(c, seats, 1, sizeof *r->weight);
    r->seat = cut(c, seats, 1, sizeof *r->seat);
    r->row = cut(c, seats, 1, sizeof *r->row);
    r->first = cut(c, (uint64_t)d->n_experts + 1, 1, sizeof *r->first);
    cut_acts(c, &r->rows, b->setup.exact, seats, d->hidden, brig_act_stride(d->hidden));
    r->y = cut(c, seats, d->hidden, sizeof *r->y);
    r->tasks = cut(c, 2, d->n_experts, sizeof *r->tasks);
    r->active = cut(c, d->n_experts, 1, sizeof *r->active);
}

static void cut_head(struct brig_block *b, struct cutter *c)
{
    uint64_t n_best = (uint64_t)b->n_threads * BRIG_HEAD_ROWS;
    b->n_strips = b->desc->vocab / BRIG_LSE_BLOCK + (b->desc->vocab % BRIG_LSE_BLOCK != 0);
    b->logits = cut(c, BRIG_HEAD_ROWS, b->desc->vocab, sizeof(float));
    b->strip_lse = cut(c, BRIG_HEAD_ROWS, b->n_strips, sizeof(float));
    b->strip_done = cut(c, b->n_strips, 1, sizeof *b->strip_done);
    b->best = cut(c, n_best, 1, sizeof *b->best);
    struct brig_candidate *v = cut(c, n_best, BRIG_FRAME_MAX_TOP, sizeof *v);
    for (uint64_t i = 0; c->base != NULL && i < n_best; i++)
        b->best[i].v = v + i * BRIG_FRAME_MAX_TOP;
}

/* b->wide holds what attention gives, the rows of an MLP, or those of all experts that a row uses. */
static uint64_t wide_stride(const struct brig_desc *d)
{
    uint64_t rows = larger(brig_act_stride(d->n_heads * d->head_dim), brig_act_stride(d->ffn));
    return larger(rows, (uint64_t)d->n_experts_used * brig_act_stride(d->expert_ffn));
}

static void cut_all(struct brig_block *b, struct cutter *c)
{
    const struct brig_desc *d = b->desc;
    uint64_t rows = b->rows_cap, half = d->rope_dims / 2;
    uint64_t attn = (uint64_t)d->n_heads * d->head_dim, kv = (uint64_t)d->n_kv_heads * d->head_dim;
    uint64_t used = (uint64_t)d->n_experts_used * d->expert_ffn, mlp = d->ffn > used ? d->ffn : used;
    bool exact = b->setup.exact;
    cut_acts(c, &b->norm, exact, rows, d->hidden, brig_act_stride(d->hidden));
    b->visits = cut(c, rows, visited_cols(d), sizeof(float));
    if (b->output_norm.weight != NULL)
        cut_head(b, c);
    if (b->n_layers == 0)
        return;
    cut_acts(c, &b->wide, exact, rows, larger(attn, mlp), wide_stride(d));
    b->q = cut(c, rows, attn, sizeof(float));
    b->k = cut(c, rows, kv, sizeof(float));
    b->v = cut(c, rows, kv, sizeof(float));
    b->gate = cut(c, rows, mlp, sizeof(float));
    b->up = cut(c, rows, mlp, sizeof(float));
    b->y = cut(c, rows, d->hidden, sizeof(float));
    for (unsigned i = 0; i < 2; i++) {
        struct brig_turns *t = &b->turns[i];
        t->sines = cut(c, rows, half, sizeof(float));
        t->cosines = cut(c, rows, half, sizeof(float));
        t->inv_freq = cut(c, 1, half, sizeof(float));
    }
    b->scores =
        cut(c, (uint64_t)b->n_threads * BRIG_ATTN_QUERIES, brig_align_up(b->setup.ctx, 16), sizeof(float));
    cut_routing(b, c);
    b->row_slot = cut(c, rows, 1, sizeof(uint32_t));
    b->row_pos = cut(c, rows, 1, sizeof(uint32_t));
}

int brig_scratch_new(struct brig_block *b, struct brig_fail *fail)
{
    struct cutter c = {.fits = true};
    cut_all(b, &c);
    if (!c.fits)
        return brig_fail_set(fail, BRIG_ELIMIT, "buffers for %u rows would pass 1 TiB", b->rows_cap);
    void *p = mmap(NULL, c.at, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED)
        return brig_fail_errno(fail, BRIG_ENOMEM, "no memory for buffers of %u rows (%llu bytes)",
                               b->rows_cap, (unsigned long long)c.at);
    b->memory = p;
    b->memory_bytes = c.at;
    c = (struct cutter){.base = p, .fits = true};
    cut_all(b, &c);
    return 0;
}

void brig_scratch_free(struct brig_block *b)
{
    if (b->memory != NULL)
        munmap(b->memory, b->memory_bytes);
    b->memory = NULL;
}
