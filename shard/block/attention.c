/*
 * Attention over the cache. A row at position p reads positions 0 to p of its slot, or the last ones of them
 * in a windowed layer, as they are stored, those of the present frame too. A piece of work is a few rows and
 * a few of the heads that share a KV head: they share the reading of its cache.
 */
#include "shard/block/parts.h"

#include "proto/base/size.h"

#define PIECES_PER_THREAD 4u

struct job {
    struct brig_block *b;
    uint32_t layer;
    uint32_t window;      /* positions that a row sees; UINT32_MAX: all */
    uint32_t rows, heads; /* of a piece, at most */
    uint32_t parts;       /* pieces that the heads of one KV head make */
};

/* The same heads of the rows [row, end), rows of one slot at positions that follow one another. */
static void attend(const struct job *j, unsigned thread, uint32_t row, uint32_t end, uint32_t head,
                   uint32_t n_heads)
{
    struct brig_block *b = j->b;
    const struct brig_desc *d = b->desc;
    uint32_t slot = b->row_slot[row], kv_head = head / (d->n_heads / d->n_kv_heads);
    size_t ctx = (size_t)brig_align_up(b->setup.ctx, 16);
    struct brig_attention a = {.k = brig_kv_k(b->kv, slot, j->layer, kv_head),
                               .v = brig_kv_v(b->kv, slot, j->layer, kv_head),
                               .kv = brig_kv_shape_of(b->kv).type,
                               .stride = brig_kv_stride(b->kv),
                               .head_dim = d->head_dim,
                               .scale = d->attn_scale,
                               .scores = b->scores + thread * BRIG_ATTN_QUERIES * ctx,
                               .scores_stride = ctx};
    for (; row < end; row++) {
        uint32_t n_pos = b->row_pos[row] + 1, first = n_pos > j->window ? n_pos - j->window : 0;
        for (uint32_t i = 0; i < n_heads; i++, a.n++) {
            size_t at = ((size_t)row * d->n_heads + head + i) * d->head_dim;
            a.q[a.n] = b->q + at;
            a.out[a.n] = b->wide.f + at;
            a.n_pos[a.n] = n_pos;
            a.first[a.n] = first;
        }
    }
    b->setup.kernel->attention(&a);
}

static void attend_piece(void *ctx, unsigned thread, uint32_t piece)
{
    const struct job *j = ctx;
    const struct brig_block *b = j->b;
    uint32_t group = b->desc->n_heads / b->desc->n_kv_heads, per_rows = b->desc->n_kv_heads * j->parts;
    uint32_t part = piece % j->parts, kv_head = piece % per_rows / j->parts;
    uint32_t head = part * j->heads, n_heads = group - head < j->heads ? group - head : j->heads;
    uint32_t row = piece / per_rows * j->rows;
    uint32_t last = b->n_rows - row < j->rows ? b->n_rows : row + j->rows;
    while (row < last) {
        uint32_t end = row + 1;
        while (end < last && b->row_slot[end] == b->row_slot[row] &&
               b->row_pos[end] == b->row_pos[end - 1] + 1)
            end++;
        attend(j, thread, row, end, kv_head * group + head, n_heads);
        row = end;
    }
}

/* As many queries in a piece as still leave every thread some pieces. Rows by fours when there are enough:
 * kernels take queries so. */
static void cut(struct job *j)
{
    const struct brig_block *b = j->b;
    uint32_t group = b->desc->n_heads / b->desc->n_kv_heads;
    uint64_t n = (uint64_t)b->n_rows * b->desc->n_heads / (b->n_threads * PIECES_PER_THREAD);
    uint32_t most = n < 1 ? 1 : n < BRIG_ATTN_QUERIES ? (uint32_t)n : BRIG_ATTN_QUERIES;
    j->heads = group < most ? group : most;
    j->parts = (group + j->heads - 1) / j->heads;
    j->rows = most / j->heads;
    if (j->rows >= 4)
        j->rows = j->rows / 4 * 4;
}

static void quantize_piece(void *ctx, unsigned thread, uint32_t row)
{
    struct brig_block *b = ctx;
    (void)thread;
    brig_acts_quantize(b, &b->wide, row, b->desc->n_heads * b->desc->head_dim);
}

void brig_attention(struct brig_block *b, uint32_t layer, const struct brig_matrix *out)
{
    bool windowed = (b->desc->layer_flags[layer] & BRIG_LAYER_WINDOWED) != 0;
    struct job j = {.b = b, .layer = layer, .window = windowed ? b->desc->window : UINT32_MAX};
    cut(&j);
    brig_team_run(b->setup.team, (b->n_rows + j.rows - 1) / j.rows * b->desc->n_kv_heads * j.parts,
                  attend_piece, &j);
    if (!b->setup.exact && out->type->group != 0)
        brig_team_run(b->setup.team, b->n_rows, quantize_piece, b);
}
