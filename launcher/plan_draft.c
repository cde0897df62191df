/*
 * A draft model's part of a plan. It runs in one process that lives, beside the line, and a draft that waited
 * for the disk would be no gain: its weights are in private memory, whole, whatever the model's are. Its
 * frames are small: what it reads at once, the prompt, costs it no disk.
 */
#include "launcher/plan_parts.h"

/* Of the driver, for the draft model: the list of its tokens, where its file carries one, with the text (once
 * compared with the model's, those of a tokenizer.json are given back); and a sampler. */
#define LISTED_TOKEN_BYTES ((uint64_t)56)
#define SAMPLED_ID_BYTES   ((uint64_t)24)

uint32_t brig_plan_draft_ctx(const struct brig_model *draft, uint32_t ctx)
{
    const struct brig_desc *d = &draft->desc;
    return d->learned_positions && d->ctx_trained < ctx ? d->ctx_trained
                                                        : ctx; /* none after these has a row */
}

uint32_t brig_plan_draft_rows(const struct brig_model *draft, uint32_t ctx)
{
    uint32_t most = brig_plan_draft_ctx(draft, ctx);
    return most < BRIG_PLAN_ROWS_USEFUL ? most : BRIG_PLAN_ROWS_USEFUL;
}

static uint64_t driver(const struct brig_model *m)
{
    uint64_t listed = m->vocab.rules == NULL ? (uint64_t)m->vocab.n_tokens + m->vocab.n_merges : 0;
    return brig_plan_pages(m->n_tensors * sizeof(struct brig_tensor) + listed * LISTED_TOKEN_BYTES +
                           m->desc.vocab * SAMPLED_ID_BYTES);
}

uint64_t brig_plan_draft(const struct brig_plan_shape *shape, const struct brig_model *draft)
{
    const struct brig_plan_wish alone = {.model = draft};
    const struct brig_plan_shape s = {.desc = &draft->desc,
                                      .n_shards = 1,
                                      .n_alive = 1,
                                      .ctx = brig_plan_draft_ctx(draft, shape->ctx),
                                      .slots = 1,
                                      .rows = brig_plan_draft_rows(draft, shape->ctx),
                                      .threads = shape->threads,
                                      .exact = shape->exact,
                                      .kv = shape->kv};
    uint64_t bytes[BRIG_PLAN_KINDS];
    brig_plan_sizes(&s, &alone, bytes);
    return shape->draft_pages + brig_plan_page_tables(shape->draft_pages) + bytes[BRIG_PLAN_KV] +
           bytes[BRIG_PLAN_SCRATCH] + bytes[BRIG_PLAN_FRAMES] + bytes[BRIG_PLAN_PROCESSES] + driver(draft);
}
