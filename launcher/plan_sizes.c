/*
 * What each kind of memory comes to, weights apart. The formulas follow the code that allocates: shard/block
 * (scratch), shard/cache (KV), proto/link and proto/wire (frames); a test holds them against it. What cannot
 * be counted from here, the memory of processes as such, was measured in memory cgroups (docs/memory.md).
 */
#include "launcher/plan_parts.h"

#include <string.h>

#include "proto/base/size.h"
#include "proto/wire/frame.h"

/* Measured, page tables of weights apart; see docs/memory.md. */
#define SHARD_BYTES  ((uint64_t)5 << 19) /* a shard: 14 threads, tables of symbols, kernel memory */
#define TENSOR_BYTES ((uint64_t)256)     /* of a shard's tables, for each tensor */
#define DRIVER_BYTES                                                                                         \
    ((uint64_t)11 << 20)                /* brigade, likewise, and the text of both programs and libraries    \
                                         */
#define TOKEN_BYTES     ((uint64_t)80)  /* tokenizer, for each token or merge */
#define FOLDER_BYTES    ((uint64_t)120) /* the same, read from a tokenizer.json */
#define LINK_RING_BYTES ((uint64_t)576 << 10) /* shared memory between two neighbours of a line */

/* More than any budget; a cache of this size is refused elsewhere. */
#define KV_MOST ((uint64_t)1 << 56)

/* As in shard/kernels and shard/block, which this room may not include. */
#define ACT_GROUP    32u
#define ATTN_QUERIES 16u
#define HEAD_ROWS    16u
#define LSE_BLOCK    4096u
#define TASK_BYTES   160u

uint64_t brig_plan_page_tables(uint64_t bytes)
{
    return brig_plan_pages(bytes / 512 + bytes / (512 * 512));
}

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static uint64_t smaller(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t lines(uint64_t bytes)
{
    return brig_align_up(bytes, 64);
}

/* From row to row of quantised activations: an odd number of lines. */
static uint64_t act_stride(uint64_t cols)
{
    return (lines(cols) / 64 | 1) * 64;
}

/* Rows of activations on their way into a product; stride: of their quantised form. */
static uint64_t acts(uint64_t rows, uint64_t cols, uint64_t stride, bool exact)
{
    uint64_t floats = lines(rows * cols * 4);
    if (exact)
        return floats;
    return floats + lines(rows * stride) + lines(rows * (stride / ACT_GROUP) * 4) +
           lines(rows * (stride / 16) * 4);
}

/* Of what comes before the product that leads back from attention, an MLP or experts. */
static uint64_t wide_stride(const struct brig_desc *d)
{
    uint64_t rows = larger(act_stride((uint64_t)d->n_heads * d->head_dim), act_stride(d->ffn));
    return larger(rows, d->n_experts_used * act_stride(d->expert_ffn));
}

static uint64_t routing(const struct brig_plan_shape *s)
{
    const struct brig_desc *d = s->desc;
    uint64_t rows = larger(s->rows, HEAD_ROWS), seats = rows * d->n_experts_used;
    if (d->n_experts == 0)
        return 0;
    return lines(rows * d->n_experts * 4) + 4 * lines(seats * 4) + lines(4 * (uint64_t)d->n_experts + 4) +
           acts(seats, d->hidden, act_stride(d->hidden), s->exact) + lines(seats * d->hidden * 4) +
           lines((uint64_t)2 * d->n_experts * TASK_BYTES);
}

static uint64_t visited_cols(const struct brig_desc *d)
{
    uint64_t used = d->n_experts > 0 ? d->n_experts_used : 1, attn = (uint64_t)d->n_heads * d->head_dim;
    uint64_t most = larger((uint64_t)3 * d->hidden, 2 * used * d->hidden);
    return larger(larger(most, attn), larger(d->ffn, used * d->expert_ffn));
}

static uint64_t head_scratch(const struct brig_plan_shape *s)
{
    uint64_t vocab = s->desc->vocab, strips = vocab / LSE_BLOCK + 1;
    uint64_t best = (uint64_t)s->threads * HEAD_ROWS;
    return lines(HEAD_ROWS * vocab * 4) + lines(HEAD_ROWS * strips * 4) + lines(strips * 4) +
           lines(best * 16) + lines(best * BRIG_FRAME_MAX_TOP * 8);
}

uint64_t brig_plan_scratch(const struct brig_plan_shape *s, bool layers, bool head)
{
    const struct brig_desc *d = s->desc;
    uint64_t rows = larger(s->rows, HEAD_ROWS), attn = (uint64_t)d->n_heads * d->head_dim;
    uint64_t kv = (uint64_t)d->n_kv_heads * d->head_dim, used = (uint64_t)d->n_experts_used * d->expert_ffn;
    uint64_t mlp = larger(d->ffn, used), half = d->rope_dims / 2;
    uint64_t sum = acts(rows, d->hidden, act_stride(d->hidden), s->exact) + lines(rows * visited_cols(d) * 4);
    if (head)
        sum += head_scratch(s);
    if (!layers)
        return brig_plan_pages(sum);
    sum += acts(rows, larger(attn, mlp), wide_stride(d), s->exact) + lines(rows * attn * 4) +
           2 * lines(rows * kv * 4) + 2 * lines(rows * mlp * 4) + lines(rows * d->hidden * 4) +
           4 * lines(rows * half * 4) + 2 * lines(half * 4);
    sum += lines((uint64_t)s->threads * ATTN_QUERIES * brig_align_up(s->ctx, 16) * 4);
    return brig_plan_pages(sum + routing(s) + 2 * lines(rows * 4));
}

uint64_t brig_plan_kv(const struct brig_plan_shape *s)
{
    const struct brig_desc *d = s->desc;
    uint64_t plane = brig_plan_pages(brig_kv_row_bytes(s->kv, d->head_dim) * s->ctx);
    uint64_t planes = (uint64_t)2 * d->n_layers * d->n_kv_heads, all;
    if (!brig_mul_u64(plane, planes, &all) || !brig_mul_u64(all, s->slots, &all) || all > KV_MOST)
        return KV_MOST;
    return all + s->n_shards * BRIG_PLAN_PAGE;
}

/* A frame's rows are in the session and in the driver's message, in the message that a shard has received and
 * in the one that it sends; an answer likewise, on both sides. */
static uint64_t frames(const struct brig_plan_shape *s)
{
    const struct brig_desc *d = s->desc;
    uint64_t rows = brig_plan_pages((uint64_t)s->rows * d->hidden * 4 + 4096);
    uint64_t answers = (s->whole_rows ? s->rows : 1) * (uint64_t)d->vocab * 4;
    answers = brig_plan_pages(smaller(answers, larger(BRIG_FRAME_MAX_PART, (uint64_t)d->vocab * 4)));
    return 2 * rows + 2 * rows * s->n_alive + 2 * answers + (s->n_alive + 1) * LINK_RING_BYTES;
}

static uint64_t driver(const struct brig_plan_wish *w)
{
    const struct brig_vocab *v = &w->model->vocab;
    uint64_t sum = DRIVER_BYTES + w->model->n_tensors * sizeof(struct brig_tensor);
    if (w->tokenizer)
        sum += (v->rules != NULL ? FOLDER_BYTES : TOKEN_BYTES) * ((uint64_t)v->n_tokens + v->n_merges);
    return brig_plan_pages(sum);
}

void brig_plan_sizes(const struct brig_plan_shape *s, const struct brig_plan_wish *wish,
                     uint64_t bytes[BRIG_PLAN_KINDS])
{
    const struct brig_desc *d = s->desc;
    uint64_t tensors = (uint64_t)d->n_layers * brig_desc_places(d) + BRIG_ROLE_COUNT;
    uint64_t with_layers = s->n_alive < d->n_layers ? s->n_alive : d->n_layers;
    uint64_t both = brig_plan_scratch(s, true, true), layers = brig_plan_scratch(s, true, false);
    memset(bytes, 0, BRIG_PLAN_KINDS * sizeof *bytes);
    bytes[BRIG_PLAN_KV] = brig_plan_kv(s);
    bytes[BRIG_PLAN_SCRATCH] = both + (with_layers - 1) * layers;
    bytes[BRIG_PLAN_FRAMES] = frames(s);
    bytes[BRIG_PLAN_PROCESSES] = brig_plan_pages(s->n_alive * SHARD_BYTES + tensors * TENSOR_BYTES) +
                                 brig_plan_page_tables(bytes[BRIG_PLAN_KV] + bytes[BRIG_PLAN_SCRATCH]);
    bytes[BRIG_PLAN_DRIVER] = driver(wish);
}
