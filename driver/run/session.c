/* One slot of a line: ids to passes. */
#include "driver/run/session.h"

#include <string.h>

#include "proto/base/mem.h"
#include "proto/base/size.h"

struct brig_session {
    struct brig_session_opts o;
    struct brig_ids cached;
    bool cut; /* the cache holds more than cached: the next pass truncates it */
    float *h; /* [batch_rows, hidden] */
};

int brig_session_new(struct brig_session **ret, const struct brig_session_opts *opts, struct brig_fail *fail)
{
    struct brig_session *s = brig_alloc(1, sizeof *s);
    uint64_t elems;
    if (s == NULL || !brig_mul_u64(opts->batch_rows, opts->model->desc.hidden, &elems) ||
        (s->h = brig_alloc(elems, sizeof *s->h)) == NULL || brig_ids_reserve(&s->cached, opts->ctx) < 0) {
        brig_session_free(s);
        return brig_fail_set(fail, BRIG_ENOMEM, "out of memory for %u rows of %u columns", opts->batch_rows,
                             opts->model->desc.hidden);
    }
    s->o = *opts;
    *ret = s;
    return 0;
}

void brig_session_free(struct brig_session *s)
{
    if (s == NULL)
        return;
    brig_ids_release(&s->cached);
    brig_free(s->h);
    brig_free(s);
}

size_t brig_session_rewind(struct brig_session *s, const uint32_t *ids, size_t n)
{
    size_t same = 0;
    while (same + 1 < n && same < s->cached.n && s->cached.v[same] == ids[same])
        same++;
    s->cut |= same < s->cached.n;
    s->cached.n = same;
    return same;
}

struct pass_plan {
    /* feed_all fills these in: */
    const uint32_t *ids;
    uint32_t count;
    size_t first;          /* number of ids[0] among all that are fed */
    struct brig_want want; /* count 0: none */
    /* the same in all passes of a feed: */
    bool last_only; /* the last row of all is wanted; else every one */
    uint32_t top;
    bool normed;
    int (*sink)(void *ctx, uint32_t row, const float *logits);
    int (*stage_sink)(void *ctx, unsigned stage, const float *h, uint32_t n_rows);
    void *sink_ctx;
};

static int one_pass(struct brig_session *s, const struct pass_plan *p, struct brig_answer *ret,
                    struct brig_fail *fail)
{
    size_t pos = s->cached.n;
    if (p->count > s->o.ctx || pos > s->o.ctx - p->count)
        return brig_fail_set(fail, BRIG_ELIMIT, "%zu tokens do not fit into a context of %u", pos + p->count,
                             s->o.ctx);
    int r = brig_embed_rows(s->o.embed, p->ids, p->count, (uint32_t)pos, s->h, fail);
    if (r < 0)
        return r;
    const struct brig_run run = {.slot = 0, .pos = (uint32_t)pos, .count = p->count};
    const struct brig_cache_op cut = {.kind = BRIG_CACHE_TRUNCATE, .slot = 0, .arg = (uint32_t)pos};
    const struct brig_pass pass = {
        .runs = &run,
        .n_runs = 1,
        .wants = &p->want,
        .n_wants = p->want.count > 0,
        .ops = &cut,
        .n_ops = s->cut,
        .top = p->top,
        .h = s->h,
        .normed = p->normed,
        .sink = p->sink,
        .stage_sink = p->stage_sink,
        .sink_ctx = p->sink_ctx,
    };
    r = brig_line_pass(s->o.line, &pass, ret, fail);
    if (r < 0) {
        s->cut = true; /* the rows may or may not have been written */
        return r;
    }
    s->cut = false;
    memcpy(s->cached.v + pos, p->ids, p->count * sizeof *p->ids); /* there is room for the whole context */
    s->cached.n += p->count;
    return 0;
}

/* Feed all ids in batches, each a pass as *p says. */
static int feed_all(struct brig_session *s, const uint32_t *ids, size_t n, struct pass_plan *p,
                    brig_session_progress_fn *progress, void *progress_ctx, struct brig_answer *ret,
                    struct brig_fail *fail)
{
    for (p->first = 0; p->first < n; p->first += p->count) {
        size_t left = n - p->first;
        p->ids = ids + p->first;
        p->count = left < s->o.batch_rows ? (uint32_t)left : s->o.batch_rows;
        p->want = (struct brig_want){.first = 0, .count = p->count};
        if (p->last_only)
            p->want = (struct brig_want){.first = p->count - 1, .count = p->count == left};
        int r = one_pass(s, p, ret, fail);
        if (r < 0)
            return r;
        if (progress != NULL)
            progress(progress_ctx, p->first + p->count, n);
    }
    return 0;
}

int brig_session_feed(struct brig_session *s, const uint32_t *ids, size_t n, uint32_t top,
                      brig_session_progress_fn *progress, void *progress_ctx, struct brig_answer *ret,
                      struct brig_fail *fail)
{
    struct pass_plan p = {.last_only = true, .top = top};
    int r = feed_all(s, ids, n, &p, progress, progress_ctx, ret, fail);
    if (r == 0 && ret->n_wants != 1)
        r = brig_fail_set(fail, BRIG_EPROTO, "the head answered %u rows where 1 was wanted", ret->n_wants);
    return r;
}

int brig_session_logits(struct brig_session *s, const uint32_t *ids, size_t n,
                        int (*sink)(void *ctx, uint32_t row, const float *logits), void *sink_ctx,
                        brig_session_progress_fn *progress, void *progress_ctx, struct brig_fail *fail)
{
    struct brig_answer unused;
    struct pass_plan p = {.sink = sink, .sink_ctx = sink_ctx};
    return feed_all(s, ids, n, &p, progress, progress_ctx, &unused, fail);
}

/* What comes out of a pass, told as a boundary of the line. */
struct boundaries {
    struct brig_session *s;
    const struct pass_plan *pass; /* that is on its way */
    brig_session_hidden_fn *sink;
    void *ctx;
};

static int after_stage(void *ctx, unsigned stage, const float *h, uint32_t n_rows)
{
    const struct boundaries *b = ctx;
    int r = stage == 0 ? b->sink(b->ctx, 0, b->pass->first, b->s->h, n_rows) : 0;
    return r < 0 ? r : b->sink(b->ctx, stage + 1, b->pass->first, h, n_rows);
}

static int after_norm(void *ctx, uint32_t row, const float *h)
{
    const struct boundaries *b = ctx;
    return b->sink(b->ctx, b->s->o.model->desc.n_layers + 1, b->pass->first + row, h, 1);
}

int brig_session_hidden(struct brig_session *s, const uint32_t *ids, size_t n, brig_session_hidden_fn *sink,
                        void *sink_ctx, brig_session_progress_fn *progress, void *progress_ctx,
                        struct brig_fail *fail)
{
    struct brig_answer unused;
    struct pass_plan p = {.normed = true, .sink = after_norm, .stage_sink = after_stage};
    struct boundaries b = {.s = s, .pass = &p, .sink = sink, .ctx = sink_ctx};
    p.sink_ctx = &b;
    return feed_all(s, ids, n, &p, progress, progress_ctx, &unused, fail);
}

size_t brig_session_length(const struct brig_session *s)
{
    return s->cached.n;
}

uint32_t brig_session_ctx(const struct brig_session *s)
{
    return s->o.ctx;
}
