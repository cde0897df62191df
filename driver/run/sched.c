/*
 * Sequences to frames. A slot's ids are all tokens of its sequence; the first `held` are in the cache, the
 * first `sent` are in it or on their way. The line answers frames in order, so a frame may carry the piece of
 * a prompt that follows one still under way; a drawn token can only follow its answer.
 *
 * A draft stands behind the ids of its slot and goes as further rows of the same run. What was drafted
 * wrongly has been written into the cache, where no row looks before it is written again: a row sees the
 * positions up to its own.
 */
#include "driver/run/sched.h"

#include <string.h>

#include "proto/base/mem.h"
#include "proto/base/size.h"

struct slot {
    struct brig_seq seq;
    bool active, ending; /* ending: its owner has left it, rows are still under way */
    bool cut;            /* the cache may hold more than `sent`: the next frame truncates it */
    uint32_t *ids;       /* [ctx] */
    uint32_t n_ids, sent, held;
    unsigned n_flying; /* frames under way with rows of it */
};

/* A frame under way. */
struct flight {
    struct brig_run runs[BRIG_FRAME_MAX_RUNS];
    uint32_t
        wants[BRIG_FRAME_MAX_RUNS]; /* so many last rows of the run want answers; all but one are a draft */
    unsigned n_runs;
};

/* A frame that is being put together. */
struct making {
    struct flight *f;
    struct brig_want wants[BRIG_FRAME_MAX_WANTS];
    struct brig_cache_op ops[BRIG_FRAME_MAX_OPS];
    unsigned n_wants, n_ops;
    uint32_t n_rows, top;
    bool whole;        /* its answers are whole rows, with n_wants > 0 */
    uint32_t left_out; /* the first slot whose answer is of the other form; o.slots: none */
};

struct brig_sched {
    struct brig_sched_opts o;
    struct slot *slots;     /* [o.slots] */
    uint32_t *ids;          /* [o.slots, o.ctx] */
    struct flight *flights; /* [o.flights], oldest at `oldest` */
    unsigned oldest, n_flights;
    struct making making;
    float *h;      /* [frame_rows, hidden] */
    uint32_t turn; /* the slot that comes first in the next frame */
    uint64_t frames;
};

static int allocate(struct brig_sched *s, struct brig_fail *fail)
{
    const struct brig_sched_opts *o = &s->o;
    uint64_t elems, ids;
    bool ok = brig_mul_u64(o->frame_rows, o->model->desc.hidden, &elems) &&
              brig_mul_u64(o->slots, o->ctx, &ids) && (s->h = brig_alloc(elems, sizeof *s->h)) != NULL &&
              (s->ids = brig_alloc(ids, sizeof *s->ids)) != NULL &&
              (s->slots = brig_alloc(o->slots, sizeof *s->slots)) != NULL &&
              (s->flights = brig_alloc(o->flights, sizeof *s->flights)) != NULL;
    if (!ok)
        return brig_fail_set(fail, BRIG_ENOMEM, "out of memory for %u sequences of %u tokens", o->slots,
                             o->ctx);
    for (uint32_t i = 0; i < o->slots; i++)
        s->slots[i].ids = s->ids + (size_t)i * o->ctx;
    return 0;
}

/* One frame for each stage that can work at the same time as others: those of one machine share its cores. */
static unsigned choose_flights(struct brig_line *line)
{
    struct brig_line_stats l;
    unsigned n = 0;
    brig_line_stats(line, &l);
    for (unsigned i = 0; i < l.n_stages; i++) {
        bool seen = false;
        for (unsigned k = 0; k < i && !seen; k++)
            seen = strcmp(l.stages[k].host, l.stages[i].host) == 0;
        n += !seen;
    }
    return n > 0 ? n : 1;
}

int brig_sched_new(struct brig_sched **ret, const struct brig_sched_opts *opts, struct brig_fail *fail)
{
    const struct brig_desc *d = &opts->model->desc;
    struct brig_sched *s = brig_alloc(1, sizeof *s);
    if (s == NULL)
        return brig_fail_set(fail, BRIG_ENOMEM, "out of memory for sequences");
    s->o = *opts;
    if (d->learned_positions && d->ctx_trained < s->o.ctx)
        s->o.ctx = d->ctx_trained; /* no position after these has a row */
    if (s->o.flights == 0)
        s->o.flights = choose_flights(opts->line);
    if (s->o.flights > brig_line_room(opts->line))
        s->o.flights = brig_line_room(opts->line);
    int r = allocate(s, fail);
    if (r < 0) {
        brig_sched_free(s);
        return r;
    }
    *ret = s;
    return 0;
}

void brig_sched_free(struct brig_sched *s)
{
    if (s == NULL)
        return;
    brig_free(s->h);
    brig_free(s->ids);
    brig_free(s->slots);
    brig_free(s->flights);
    brig_free(s);
}

/* ---- admission ---- */

static uint32_t same_beginning(const struct slot *t, const struct brig_seq *seq)
{
    uint32_t same = 0;
    /* One must be sent to get an answer. */
    while (same + 1 < seq->n_prompt && same < t->held && t->ids[same] == seq->prompt[same])
        same++;
    return same;
}

static int check_prompt(const struct brig_sched *s, const struct brig_seq *seq, struct brig_fail *fail)
{
    uint32_t vocab = s->o.model->desc.vocab;
    if (seq->n_prompt == 0)
        return brig_fail_set(fail, BRIG_EUSAGE, "the prompt is empty");
    if (seq->n_prompt > s->o.ctx)
        return brig_fail_set(fail, BRIG_ELIMIT, "the prompt has %zu tokens, the context %u", seq->n_prompt,
                             s->o.ctx);
    for (size_t i = 0; i < seq->n_prompt; i++)
        if (seq->prompt[i] >= vocab)
            return brig_fail_set(fail, BRIG_EUSAGE, "token id %u is outside the vocabulary of %u",
                                 seq->prompt[i], vocab);
    return 0;
}

int brig_sched_add(struct brig_sched *s, const struct brig_seq *seq, uint32_t *slot, size_t *kept,
                   struct brig_fail *fail)
{
    int r = check_prompt(s, seq, fail);
    struct slot *best = NULL;
    uint32_t best_same = 0;
    for (uint32_t i = 0; r == 0 && i < s->o.slots; i++) {
        struct slot *t = &s->slots[i];
        uint32_t same = t->active ? 0 : same_beginning(t, seq);
        /* Of slots that help alike, the one that holds least: others keep what a later prompt may want. */
        if (!t->active && (best == NULL || same > best_same || (same == best_same && t->held < best->held))) {
            best = t;
            best_same = same;
        }
    }
    if (r < 0)
        return r;
    if (best == NULL)
        return brig_fail_set(fail, BRIG_ELIMIT, "all %u slots are taken", s->o.slots);
    best->seq = *seq;
    best->active = true;
    best->cut |= best->held > best_same;
    best->sent = best->held = best_same;
    best->n_ids = (uint32_t)seq->n_prompt;
    memcpy(best->ids, seq->prompt, seq->n_prompt * sizeof *best->ids);
    *slot = (uint32_t)(best - s->slots);
    *kept = best_same;
    return 0;
}

void brig_sched_end(struct brig_sched *s, uint32_t slot)
{
    struct slot *t = &s->slots[slot];
    t->ending = t->active && t->n_flying > 0;
    t->active = t->ending;
}

uint32_t brig_sched_free_slots(const struct brig_sched *s)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < s->o.slots; i++)
        n += !s->slots[i].active;
    return n;
}

bool brig_sched_busy(const struct brig_sched *s)
{
    return brig_sched_free_slots(s) < s->o.slots;
}

unsigned brig_sched_flights(const struct brig_sched *s)
{
    return s->o.flights;
}

uint32_t brig_sched_ctx(const struct brig_sched *s)
{
    return s->o.ctx;
}

uint32_t brig_sched_held(const struct brig_sched *s, uint32_t slot)
{
    return s->slots[slot].held;
}

uint64_t brig_sched_frames(const struct brig_sched *s)
{
    return s->frames;
}

/* ---- putting a frame together ---- */

static bool can_go(const struct slot *t)
{
    return t->active && !t->ending && t->sent < t->n_ids;
}

/* `count` rows of a slot into the frame, unless its answer would be of another form than those in it. So many
 * of them as are a draft stand behind its newest token. */
static void take_rows(struct brig_sched *s, struct making *d, uint32_t slot, uint32_t count, uint32_t draft)
{
    struct slot *t = &s->slots[slot];
    uint32_t wants = t->sent + count - draft == t->n_ids ? 1 + draft : 0;
    uint32_t top = wants > 0 ? t->seq.top(t->seq.ctx, draft) : 0;
    if (wants > 0 && d->n_wants > 0 && d->whole != (top == 0)) {
        d->left_out = d->left_out < s->o.slots ? d->left_out : slot;
        return;
    }
    if (wants > 0) {
        d->whole = top == 0;
        d->top = top > d->top ? top : d->top;
        d->wants[d->n_wants++] = (struct brig_want){.first = d->n_rows + count - wants, .count = wants};
    }
    if (t->cut)
        d->ops[d->n_ops++] =
            (struct brig_cache_op){.kind = BRIG_CACHE_TRUNCATE, .slot = slot, .arg = t->sent};
    d->f->wants[d->f->n_runs] = wants;
    d->f->runs[d->f->n_runs++] = (struct brig_run){.slot = slot, .pos = t->sent, .count = count};
    d->n_rows += count;
}

/* A draft for a slot whose newest token goes next, as long as fits into so many rows. */
static int ask_draft(struct brig_sched *s, uint32_t slot, uint32_t rows, uint32_t *n, struct brig_fail *fail)
{
    struct slot *t = &s->slots[slot];
    uint32_t most = s->o.ctx - t->n_ids;
    if (most > BRIG_SCHED_MAX_DRAFT)
        most = BRIG_SCHED_MAX_DRAFT;
    if (rows <= most)
        most = rows > 0 ? rows - 1 : 0;
    if (t->seq.draft == NULL || most == 0)
        return 0;
    int r = t->seq.draft(t->seq.ctx, t->ids, t->n_ids, most, n, fail);
    if (r == 0 && *n > most)
        return brig_fail_set(fail, BRIG_EINTERNAL, "a draft of %u tokens where %u were asked", *n, most);
    return r;
}

/* Sequences that are past their prompt share the frames evenly, so that every one of several frames under way
 * has some; pieces of prompts fill what is left. */
static int fill_frame(struct brig_sched *s, struct making *d, struct brig_fail *fail)
{
    uint32_t n_decoding = 0, share;
    for (uint32_t i = 0; i < s->o.slots; i++)
        n_decoding += s->slots[i].active && s->slots[i].n_ids - s->slots[i].sent <= 1;
    share = (n_decoding + s->o.flights - 1) / s->o.flights;
    for (unsigned prompts = 0; prompts < 2; prompts++)
        for (uint32_t i = 0; i < s->o.slots; i++) {
            uint32_t slot = (s->turn + i) % s->o.slots;
            const struct slot *t = &s->slots[slot];
            uint32_t left = can_go(t) ? t->n_ids - t->sent : 0, room = s->o.frame_rows - d->n_rows;
            if (left == 0 || (left > 1) != (prompts == 1) || room == 0 ||
                d->f->n_runs == BRIG_FRAME_MAX_RUNS || (prompts == 0 && d->f->n_runs >= share))
                continue;
            uint32_t draft = 0;
            /* Of the first round each sequence is one that decodes: there is no division by 0. */
            uint32_t rows = prompts == 0 ? s->o.frame_rows / n_decoding : 0;
            int r = prompts == 0 ? ask_draft(s, slot, rows < room ? rows : room, &draft, fail) : 0;
            if (r < 0)
                return r;
            take_rows(s, d, slot, left + draft < room ? left + draft : room, draft);
        }
    return 0;
}

static int embed(struct brig_sched *s, const struct flight *f, struct brig_fail *fail)
{
    float *h = s->h;
    int r = 0;
    for (unsigned i = 0; r == 0 && i < f->n_runs; i++) {
        const struct brig_run *run = &f->runs[i];
        r = brig_embed_rows(s->o.embed, s->slots[run->slot].ids + run->pos, run->count, run->pos, h, fail);
        h += (size_t)run->count * s->o.model->desc.hidden;
    }
    return r;
}

/* What was under way is lost: as if it had never been sent. */
static void roll_back(struct brig_sched *s)
{
    s->n_flights = 0;
    for (uint32_t i = 0; i < s->o.slots; i++) {
        struct slot *t = &s->slots[i];
        if (t->n_flying == 0)
            continue;
        t->n_flying = 0;
        t->sent = t->held;
        t->cut = true; /* the rows may or may not have been written */
        t->active = !t->ending;
        t->ending = false;
    }
}

static void note_sent(struct brig_sched *s, const struct making *d)
{
    const struct flight *f = d->f;
    for (unsigned i = 0; i < f->n_runs; i++) {
        struct slot *t = &s->slots[f->runs[i].slot];
        t->sent = f->runs[i].pos + f->runs[i].count - (f->wants[i] > 1 ? f->wants[i] - 1 : 0);
        t->cut = false;
        t->n_flying++;
    }
    s->turn = d->left_out < s->o.slots ? d->left_out : (f->runs[f->n_runs - 1].slot + 1) % s->o.slots;
    s->n_flights++;
}

/* *sent false: no sequence can go on now. */
static int send_one(struct brig_sched *s, bool *sent, struct brig_fail *fail)
{
    struct making *d = &s->making;
    *d = (struct making){.f = &s->flights[(s->oldest + s->n_flights) % s->o.flights], .left_out = s->o.slots};
    d->f->n_runs = 0;
    int r = fill_frame(s, d, fail);
    *sent = r == 0 && d->f->n_runs > 0;
    if (!*sent)
        return r;
    const struct brig_pass pass = {.runs = d->f->runs,
                                   .n_runs = d->f->n_runs,
                                   .wants = d->wants,
                                   .n_wants = d->n_wants,
                                   .ops = d->ops,
                                   .n_ops = d->n_ops,
                                   .top = d->top,
                                   .h = s->h};
    r = embed(s, d->f, fail);
    if (r < 0)
        return r;
    r = brig_line_send(s->o.line, &pass, fail);
    note_sent(s, d); /* also when it failed: it may have been sent */
    if (r < 0)
        roll_back(s);
    return r;
}

/* ---- answers ---- */

/* *same: the token that follows is the one that stands behind the newest. */
static int ask_owner(struct brig_sched *s, struct slot *t, const struct brig_row *row, bool *same,
                     struct brig_fail *fail)
{
    uint32_t next = 0;
    bool goes_on = false;
    int r = t->seq.answer(t->seq.ctx, row, &next, &goes_on, fail);
    *same = false;
    if (r == 0 && goes_on && t->n_ids == s->o.ctx)
        r = brig_fail_set(fail, BRIG_ELIMIT, "a sequence goes on after the context of %u tokens", s->o.ctx);
    if (r == 0 && goes_on && next >= s->o.model->desc.vocab)
        r = brig_fail_set(fail, BRIG_EUSAGE, "token id %u is outside the vocabulary of %u", next,
                          s->o.model->desc.vocab);
    t->active = r == 0 && goes_on;
    if (!t->active)
        return r;
    *same = t->ids[t->n_ids] == next;
    t->ids[t->n_ids++] = next;
    return 0;
}

/* The answers for the newest token of a slot and for the draft behind it, as far as it holds. The first of
 * them is row `at` of the frame's answers. */
static int give_slot(struct brig_sched *s, struct slot *t, const struct brig_answer *a, uint32_t at,
                     uint32_t n, struct brig_fail *fail)
{
    bool goes_on = true;
    int r = 0;
    for (uint32_t i = 0; r == 0 && i < n && goes_on; i++) {
        size_t cell = (size_t)(at + i) * a->cols;
        const struct brig_row row = {.ids = a->whole ? NULL : a->ids + cell,
                                     .logits = a->logits + cell,
                                     .n = a->whole ? a->cols : a->n[at + i],
                                     .lse = a->whole ? 0 : a->lse[at + i],
                                     .room = s->o.ctx - t->n_ids,
                                     .nth = i};
        r = ask_owner(s, t, &row, &goes_on, fail);
        if (goes_on && i + 1 < n)
            t->sent = t->held = t->n_ids;
    }
    return r;
}

/* The answers of a frame; the first failure is kept, and the others still get theirs. */
static int give_out(struct brig_sched *s, const struct flight *f, const struct brig_answer *a,
                    struct brig_fail *fail)
{
    struct brig_fail other;
    uint32_t want = 0;
    int r = 0;
    for (unsigned i = 0; i < f->n_runs; i++) {
        const struct brig_run *run = &f->runs[i];
        struct slot *t = &s->slots[run->slot];
        t->held = run->pos + run->count - (f->wants[i] > 1 ? f->wants[i] - 1 : 0);
        t->n_flying--;
        if (f->wants[i] > 0 && !t->ending) {
            int one = give_slot(s, t, a, want, f->wants[i], r == 0 ? fail : &other);
            r = r == 0 ? one : r;
        }
        want += f->wants[i];
        if (t->ending && t->n_flying == 0)
            t->active = t->ending = false;
    }
    return r;
}

static int receive_one(struct brig_sched *s, struct brig_fail *fail)
{
    const struct flight *f = &s->flights[s->oldest];
    struct brig_answer a;
    int r = brig_line_receive(s->o.line, &a, fail);
    if (r < 0) {
        roll_back(s);
        return r;
    }
    s->oldest = (s->oldest + 1) % s->o.flights;
    s->n_flights--;
    s->frames++;
    return give_out(s, f, &a, fail);
}

int brig_sched_step(struct brig_sched *s, struct brig_fail *fail)
{
    bool sent = true;
    while (sent && s->n_flights < s->o.flights) {
        int r = send_one(s, &sent, fail);
        if (r < 0)
            return r;
    }
    return s->n_flights > 0 ? receive_one(s, fail) : 0;
}
