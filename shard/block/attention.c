/*
 * Attention over the cache, one piece for each row and head. A row at position p reads positions 0 to p of
 * its slot, or the last ones of them in a windowed layer, as they are stored, those of the present frame too.
 */
#include "shard/block/parts.h"

#include "proto/base/size.h"

struct job {
    struct brig_block *b;
    uint32_t layer;
    uint32_t window; /* positions that a row sees; UINT32_MAX: all */
};

static void head_piece(void *ctx, unsigned thread, uint32_t piece)
{
    const struct job *j = ctx;
    struct brig_block *b = j->b;
    const struct brig_desc *d = b->desc;
    uint32_t row = piece / d->n_heads, head = piece % d->n_heads;
    uint32_t kv_head = head / (d->n_heads / d->n_kv_heads);
    uint32_t slot = b->row_slot[row];
    uint32_t n_pos = b->row_pos[row] + 1, first = n_pos > j->window ? n_pos - j->window : 0;
    size_t at = (size_t)piece * d->head_dim;
    float *scores = b->scores + thread * (size_t)brig_align_up(b->setup.ctx, 16);
    b->setup.kernel->attention(b->q + at, brig_kv_k(b->kv, slot, j->layer, kv_head),
                               brig_kv_v(b->kv, slot, j->layer, kv_head), brig_kv_shape_of(b->kv).f32,
                               brig_kv_stride(b->kv), first, n_pos, d->head_dim, d->attn_scale, scores,
                               b->wide.f + at);
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
    struct job j = {b, layer, windowed ? b->desc->window : UINT32_MAX};
    brig_team_run(b->setup.team, b->n_rows * b->desc->n_heads, head_piece, &j);
    if (!b->setup.exact && out->type->group != 0)
        brig_team_run(b->setup.team, b->n_rows, quantize_piece, b);
}
