/*
 * A block: the layers of a slice run one after another over the rows of a frame.
 */
#include "shard/block/parts.h"

#include "proto/base/mem.h"

static bool shaped(const struct brig_matrix *m, uint64_t rows, uint64_t cols)
{
    return m->rows == rows && m->cols == cols;
}

/* Norms and biases: all that the description has. */
static int find_vectors(const struct brig_block *b, struct brig_layer *l, uint32_t layer,
                        struct brig_fail *fail)
{
    const struct {
        enum brig_role role;
        const float **ret;
    } wanted[] = {
        {BRIG_ROLE_ATTN_NORM, &l->attn_norm.weight},
        {BRIG_ROLE_ATTN_NORM_BIAS, &l->attn_norm.bias},
        {BRIG_ROLE_FFN_NORM, &l->ffn_norm.weight},
        {BRIG_ROLE_FFN_NORM_BIAS, &l->ffn_norm.bias},
        {BRIG_ROLE_ATTN_POST_NORM, &l->attn_post.weight},
        {BRIG_ROLE_FFN_POST_NORM, &l->ffn_post.weight},
        {BRIG_ROLE_ATTN_Q_NORM, &l->q_norm},
        {BRIG_ROLE_ATTN_K_NORM, &l->k_norm},
        {BRIG_ROLE_ATTN_Q_BIAS, &l->q_bias},
        {BRIG_ROLE_ATTN_K_BIAS, &l->k_bias},
        {BRIG_ROLE_ATTN_V_BIAS, &l->v_bias},
        {BRIG_ROLE_ATTN_OUT_BIAS, &l->out_bias},
        {BRIG_ROLE_FFN_GATE_BIAS, &l->gate_bias},
        {BRIG_ROLE_FFN_UP_BIAS, &l->up_bias},
        {BRIG_ROLE_FFN_DOWN_BIAS, &l->down_bias},
    };
    for (unsigned i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
        *wanted[i].ret = brig_weights_vector(b->setup.weights, wanted[i].role, layer);
        if (*wanted[i].ret == NULL && brig_desc_count(b->desc, wanted[i].role, layer) > 0)
            return brig_fail_set(fail, BRIG_EFORMAT, "tensor %s of layer %u is missing",
                                 brig_role_name(wanted[i].role), layer);
    }
    return 0;
}

static int find_layer(struct brig_block *b, uint32_t layer, struct brig_fail *fail)
{
    const struct brig_weights *w = b->setup.weights;
    const struct brig_desc *d = b->desc;
    struct brig_layer *l = &b->layers[layer - b->first_layer];
    uint64_t attn = (uint64_t)d->n_heads * d->head_dim, kv = (uint64_t)d->n_kv_heads * d->head_dim;
    const struct {
        enum brig_role role;
        struct brig_matrix *ret;
        uint64_t rows, cols;
    } wanted[] = {
        {BRIG_ROLE_ATTN_Q, &l->q, attn, d->hidden},
        {BRIG_ROLE_ATTN_K, &l->k, kv, d->hidden},
        {BRIG_ROLE_ATTN_V, &l->v, kv, d->hidden},
        {BRIG_ROLE_ATTN_OUT, &l->out, d->hidden, attn},
        {BRIG_ROLE_FFN_GATE, &l->gate, d->ffn, d->hidden},
        {BRIG_ROLE_FFN_UP, &l->up, d->ffn, d->hidden},
        {BRIG_ROLE_FFN_DOWN, &l->down, d->hidden, d->ffn},
        {BRIG_ROLE_ROUTER, &l->router, d->n_experts, d->hidden},
    };
    for (unsigned i = 0; i < sizeof wanted / sizeof wanted[0]; i++)
        if (brig_desc_count(d, wanted[i].role, layer) > 0 &&
            (!brig_weights_matrix(w, wanted[i].role, layer, wanted[i].ret) ||
             !shaped(wanted[i].ret, wanted[i].rows, wanted[i].cols)))
            return brig_fail_set(fail, BRIG_EFORMAT, "tensor %s of layer %u is missing or has another shape",
                                 brig_role_name(wanted[i].role), layer);
    int r = find_vectors(b, l, layer, fail);
    return r < 0 ? r : brig_experts_find(b, layer, fail);
}

static int find_head(struct brig_block *b, struct brig_fail *fail)
{
    b->output_norm.weight = brig_weights_vector(b->setup.weights, BRIG_ROLE_OUTPUT_NORM, 0);
    b->output_norm.bias = brig_weights_vector(b->setup.weights, BRIG_ROLE_OUTPUT_NORM_BIAS, 0);
    if (b->output_norm.weight == NULL || (b->desc->norm == BRIG_NORM_LAYER && b->output_norm.bias == NULL) ||
        !brig_weights_matrix(b->setup.weights, BRIG_ROLE_OUTPUT, 0, &b->output) ||
        !shaped(&b->output, b->desc->vocab, b->desc->hidden))
        return brig_fail_set(fail, BRIG_EFORMAT, "the head's norm or table is missing or has another shape");
    return 0;
}

static int find_weights(struct brig_block *b, struct brig_fail *fail)
{
    const struct brig_slice *s = b->setup.slice;
    int r = 0;
    b->layers = brig_alloc(b->n_layers, sizeof *b->layers);
    if (b->layers == NULL)
        return brig_fail_set(fail, BRIG_ENOMEM, "out of memory for %u layers", b->n_layers);
    for (uint32_t i = 0; r == 0 && i < b->n_layers; i++)
        r = find_layer(b, b->first_layer + i, fail);
    if (r == 0 && brig_cells_has_head(s->cells, b->desc->n_layers))
        r = find_head(b, fail);
    return r;
}

int brig_block_new(struct brig_block **ret, const struct brig_block_setup *setup, struct brig_fail *fail)
{
    struct brig_block *b = brig_alloc(1, sizeof *b);
    if (b == NULL)
        return brig_fail_set(fail, BRIG_ENOMEM, "out of memory for a block");
    b->setup = *setup;
    b->desc = &setup->slice->desc;
    b->n_threads = brig_team_threads(setup->team);
    b->rows_cap = setup->max_rows > BRIG_HEAD_ROWS ? setup->max_rows : BRIG_HEAD_ROWS;
    struct brig_cells cells = setup->slice->cells;
    uint32_t last = cells.last < b->desc->n_layers ? cells.last : b->desc->n_layers;
    b->first_layer = cells.first;
    b->n_layers = last > cells.first ? last - cells.first : 0;
    int r = find_weights(b, fail);
    if (r == 0)
        r = brig_scratch_new(b, fail);
    if (r == 0 && b->n_layers > 0)
        r = brig_rope_init(b, fail);
    if (r < 0) {
        brig_block_free(b);
        return r;
    }
    *ret = b;
    return 0;
}

void brig_block_free(struct brig_block *b)
{
    if (b == NULL)
        return;
    brig_scratch_free(b);
    brig_free(b->layers);
    brig_free(b);
}

static struct brig_branch attention_branch(const struct brig_layer *l)
{
    return (struct brig_branch){.bias = l->out_bias, .norm = l->attn_post};
}

static struct brig_branch mlp_branch(const struct brig_layer *l)
{
    return (struct brig_branch){.bias = l->down_bias, .norm = l->ffn_post};
}

static int run_mlp(struct brig_block *b, const struct brig_layer *l, struct brig_fail *fail)
{
    const struct brig_product up_gate[] = {{&l->up, b->up}, {&l->gate, b->gate}};
    const struct brig_product down[] = {{&l->down, b->y}};
    const struct brig_gating gating = {.n_rows = b->n_rows,
                                       .cols = b->desc->ffn,
                                       .gate_bias = l->gate_bias,
                                       .up_bias = l->up_bias,
                                       .quantize = !b->setup.exact && l->down.type->group != 0};
    int r = brig_products(b, up_gate, b->desc->mlp == BRIG_MLP_GELU ? 1 : 2, &b->norm, b->n_rows, fail);
    if (r < 0)
        return r;
    brig_rows_gate(b, &gating);
    return brig_products(b, down, 1, &b->wide, b->n_rows, fail);
}

/* before: the branch of the layer before, whose addition joins the norm of this one; NULL for the first. */
static int run_layer(struct brig_block *b, uint32_t layer, const struct brig_branch *before,
                     struct brig_fail *fail)
{
    const struct brig_layer *l = &b->layers[layer - b->first_layer];
    const struct brig_product qkv[] = {{&l->q, b->q}, {&l->k, b->k}, {&l->v, b->v}};
    const struct brig_product out[] = {{&l->out, b->y}};
    const struct brig_branch attention = attention_branch(l);
    brig_rows_norm(b, before, l->attn_norm);
    int r = brig_products(b, qkv, 3, &b->norm, b->n_rows, fail);
    if (r < 0)
        return r;
    brig_rope_store(b, layer);
    brig_attention(b, layer, &l->out);
    r = brig_products(b, out, 1, &b->wide, b->n_rows, fail);
    if (r < 0)
        return r;
    brig_rows_norm(b, &attention, l->ffn_norm);
    return l->router.type != NULL ? brig_experts(b, layer, fail) : run_mlp(b, l, fail);
}

int brig_block_run(struct brig_block *b, struct brig_kv *kv, float *h, const struct brig_run *runs,
                   unsigned n_runs, atomic_uint *layer_now, struct brig_fail *fail)
{
    if (b->n_layers == 0)
        return 0;
    b->kv = kv;
    b->h = h;
    b->n_rows = 0;
    for (unsigned i = 0; i < n_runs; i++)
        for (uint32_t k = 0; k < runs[i].count; k++) {
            b->row_slot[b->n_rows] = runs[i].slot;
            b->row_pos[b->n_rows++] = runs[i].pos + k;
        }
    brig_rope_angles(b);
    brig_weights_begin(b->setup.weights, BRIG_PART_LAYERS);
    struct brig_branch branch = {0};
    for (uint32_t i = 0; i < b->n_layers; i++) {
        atomic_store(layer_now, b->first_layer + i);
        int r = run_layer(b, b->first_layer + i, i > 0 ? &branch : NULL, fail);
        if (r < 0)
            return r;
        branch = mlp_branch(&b->layers[i]);
    }
    brig_rows_norm(b, &branch, (struct brig_norm_of){NULL, NULL});
    return 0;
}
