/* What comes back: candidates or whole rows, and the timings of all stages. */
#include "driver/run/line_parts.h"

#include <string.h>

#include "proto/base/clock.h"
#include "proto/base/mem.h"
#include "proto/base/size.h"

/* Room for rows x cols; grows, and then stays: a token of a running answer allocates nothing, though
 * penalties make it ask for more candidates. */
static int reserve(struct brig_line *l, uint32_t rows, uint32_t cols, struct brig_fail *fail)
{
    uint64_t cells;
    if (!brig_mul_u64(rows, cols > BRIG_FRAME_MAX_TOP ? cols : BRIG_FRAME_MAX_TOP, &cells))
        return brig_fail_set(fail, BRIG_ELIMIT, "an answer of %u rows of %u does not fit", rows, cols);
    if (rows > l->cap_rows) {
        brig_free(l->lse);
        brig_free(l->n);
        l->lse = brig_alloc(rows, sizeof *l->lse);
        l->n = brig_alloc(rows, sizeof *l->n);
        l->cap_rows = l->lse != NULL && l->n != NULL ? rows : 0;
    }
    if (cells > l->cap_cells) {
        brig_free(l->ids);
        brig_free(l->logits);
        l->ids = brig_alloc(cells, sizeof *l->ids);
        l->logits = brig_alloc(cells, sizeof *l->logits);
        l->cap_cells = l->ids != NULL && l->logits != NULL ? cells : 0;
    }
    if (rows > l->cap_rows || cells > l->cap_cells)
        return brig_fail_set(fail, BRIG_ENOMEM, "out of memory for an answer of %u rows of %u", rows, cols);
    l->answer = (struct brig_answer){
        .n_wants = rows, .cols = cols, .lse = l->lse, .n = l->n, .ids = l->ids, .logits = l->logits};
    return 0;
}

static int take_candidates(struct brig_line *l, const uint8_t *p, struct brig_fail *fail)
{
    const struct brig_frame *f = &l->got;
    int r = reserve(l, f->part_wants, f->cols, fail);
    if (r < 0)
        return r;
    for (uint32_t row = 0; row < f->part_wants; row++) {
        memcpy(&l->lse[row], p, 4);
        memcpy(&l->n[row], p + 4, 4);
        p += 8;
        if (l->n[row] > f->cols)
            return brig_fail_set(fail, BRIG_EPROTO, "the head states %u candidates of %u", l->n[row],
                                 f->cols);
        for (uint32_t i = 0; i < f->cols; i++, p += 8) {
            size_t at = (size_t)row * f->cols + i;
            memcpy(&l->ids[at], p, 4);
            memcpy(&l->logits[at], p + 4, 4);
            if (l->ids[at] >= l->opts.model->desc.vocab)
                return brig_fail_set(fail, BRIG_EPROTO, "the head names token %u of %u", l->ids[at],
                                     l->opts.model->desc.vocab);
        }
    }
    return 0;
}

static int take_rows(struct brig_line *l, const struct brig_pass *pass, const uint8_t *p,
                     struct brig_fail *fail)
{
    const struct brig_frame *f = &l->got;
    uint32_t vocab = l->opts.model->desc.vocab;
    if (f->cols != vocab)
        return brig_fail_set(fail, BRIG_EPROTO, "the head answers rows of %u, the vocabulary has %u", f->cols,
                             vocab);
    uint32_t rows = pass->sink != NULL ? 1 : f->n_want_rows;
    if (f->part == 0 || pass->sink != NULL) {
        int r = reserve(l, rows, vocab, fail);
        if (r < 0)
            return r;
    }
    l->answer.whole = true;
    for (uint32_t i = 0; i < f->part_wants; i++, p += 4 * (size_t)vocab) {
        size_t at = pass->sink != NULL ? 0 : (size_t)(f->part_first_want + i) * vocab;
        memcpy(l->logits + at, p,
               4 * (size_t)vocab); /* the message is only 16-byte aligned and will go away */
        int r = pass->sink == NULL ? 0 : pass->sink(pass->sink_ctx, f->part_first_want + i, l->logits);
        if (r < 0)
            return brig_fail_set(fail, (enum brig_err) - r, "an answer could not be stored");
    }
    return 0;
}

static int take_normed(struct brig_line *l, const struct brig_pass *pass, const uint8_t *p,
                       struct brig_fail *fail)
{
    uint32_t hidden = l->opts.model->desc.hidden;
    int r = l->got.cols == hidden
                ? reserve(l, 1, hidden, fail)
                : brig_fail_set(fail, BRIG_EPROTO, "the head answers rows of %u, hidden rows have %u",
                                l->got.cols, hidden);
    for (uint32_t i = 0; r == 0 && i < l->got.n_want_rows; i++, p += 4 * (size_t)hidden) {
        memcpy(l->logits, p, 4 * (size_t)hidden);
        r = pass->sink(pass->sink_ctx, i, l->logits);
        if (r < 0)
            return brig_fail_set(fail, (enum brig_err) - r, "an answer could not be stored");
    }
    return r;
}

int brig_line_take_answer(struct brig_line *l, struct brig_msg *m, bool *complete, struct brig_fail *fail)
{
    const struct brig_pass *pass = &l->now->pass;
    const struct brig_frame *f = &l->got;
    const uint8_t *payload = (const uint8_t *)brig_msg_data(m) + f->payload_offset;
    uint32_t want = l->now->frame.n_want_rows;
    *complete = f->part + 1 >= f->n_parts;
    if (want == 0 || f->dtype == BRIG_DTYPE_NONE) {
        l->answer = (struct brig_answer){0};
        if (want != 0)
            return brig_fail_set(fail, BRIG_EPROTO, "the head did not answer");
        return 0;
    }
    if (f->n_want_rows != want)
        return brig_fail_set(fail, BRIG_EPROTO, "the head answers %u rows, %u were asked", f->n_want_rows,
                             want);
    if (pass->normed && f->dtype == BRIG_DTYPE_NORMED)
        return take_normed(l, pass, payload, fail);
    if (f->dtype == BRIG_DTYPE_CANDIDATES && pass->top != 0 && f->part_wants == want)
        return take_candidates(l, payload, fail);
    if (f->dtype == BRIG_DTYPE_LOGITS && pass->top == 0 && !pass->normed)
        return take_rows(l, pass, payload, fail);
    return brig_fail_set(fail, BRIG_EPROTO, "the head answers in another form than asked");
}

/* A row of events for people: the stages' lengths are their own; where they begin is not known (clocks of two
 * machines are never compared), so the time that is left over is spread evenly over the hops. */
static void trace_pass(struct brig_line *l, struct brig_msg *m, uint64_t hop_ns)
{
    uint64_t at = l->now->begin_ns;
    for (unsigned i = 0; i < l->n_stages; i++) {
        struct brig_stage_timing t;
        brig_frame_get_timing(&l->got, brig_msg_data(m), i, &t);
        at += hop_ns;
        brig_trace_event(l->opts.trace, i + 1, "work", at, t.compute_ns, l->now->frame.frame_id,
                         l->now->frame.n_rows);
        if (t.stall_ns > 0) /* in sum, wherever in its work the waits were */
            brig_trace_event(l->opts.trace, i + 1, "wait for the disk", at, t.stall_ns,
                             l->now->frame.frame_id, l->now->frame.n_rows);
        at += t.compute_ns;
    }
}

/* The largest sum of PSS over processes alive together: all that live, and of the others as many neighbours
 * as can be alive at once (one at work, the next ones started early). */
static uint64_t alive_pss(const struct brig_line *l, const uint64_t *pss, uint64_t own)
{
    uint64_t living = own, best = 0;
    for (unsigned first = 0; first < l->n_stages; first++) {
        struct brig_early early = brig_line_early_none(l, first);
        bool lives = brig_line_lives(l, first);
        uint64_t sum = lives ? 0 : pss[first];
        living += lives ? pss[first] : 0;
        for (unsigned i = first + 1; i < l->n_stages; i++) {
            if (brig_line_lives(l, i))
                continue;
            if (!brig_line_early(l, i, &early))
                break;
            sum += pss[i];
        }
        best = sum > best ? sum : best;
    }
    return living + best;
}

void brig_line_account(struct brig_line *l, struct brig_msg *m, uint64_t end_ns)
{
    uint64_t work = 0, round_trip = end_ns - l->now->begin_ns;
    uint64_t hops = l->star ? 2 * (uint64_t)l->n_stages : l->n_stages + 1;
    for (unsigned i = 0; i < l->n_stages; i++) {
        struct brig_stage_timing t;
        struct brig_stage_stats *s = &l->stages[i];
        brig_frame_get_timing(&l->got, brig_msg_data(m), i, &t);
        s->compute_ns += t.compute_ns;
        s->wait_ns += t.wait_ns;
        s->mapped_bytes = t.mapped_bytes;
        s->read_bytes += t.read_bytes;
        s->stall_ns += t.stall_ns;
        s->experts_used += t.experts_used;
        s->expert_hits += t.expert_hits;
        s->expert_read_bytes += t.expert_read_bytes;
        s->pss_peak_bytes = t.pss_bytes > s->pss_peak_bytes ? t.pss_bytes : s->pss_peak_bytes;
        l->pss_now[i] = t.pss_bytes;
        work += t.compute_ns;
    }
    if ((l->now->frame.flags & BRIG_FRAME_PSS) != 0) {
        uint64_t sum = alive_pss(l, l->pss_now, brig_pss_bytes());
        l->pss_peak_bytes = sum > l->pss_peak_bytes ? sum : l->pss_peak_bytes;
    }
    uint64_t hop_ns = round_trip > work ? (round_trip - work) / hops : 0;
    /* When processes are started on the way, this would be mostly their start. */
    if (l->opts.mode->keeps && l->now->alone)
        brig_samples_add(&l->hops, hop_ns);
    if (l->opts.trace != NULL)
        trace_pass(l, m, hop_ns);
}
