/*
 * The scheduler over a line that is played by this file: what goes into which frame, what a slot keeps, and
 * what is lost when a frame is.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "driver/run/sched.h"
#include "proto/base/mem.h"
#include "tests/unit/table_util.h"

enum { HIDDEN = 2, VOCAB = 50, CTX = 12, SLOTS = 4, ROOM = 3, ROWS = 8, MAX_FRAMES = 256 };

/* ---- the line: each row's answer is made of the whole of its slot's cache, so no mistake stays unseen ----
 */

struct sent {
    struct brig_run runs[SLOTS];
    unsigned n_runs, n_wants, n_ops, n_rows, n_answers;
    uint32_t top;
    uint32_t next[ROWS]; /* of each wanted row */
    bool draft[SLOTS];   /* the run ends in one */
};

static struct {
    uint32_t cache[SLOTS][CTX];
    uint32_t length[SLOTS]; /* positions that may hold something */
    uint32_t least[SLOTS];  /* those of them that are no draft */
    struct sent frames[MAX_FRAMES];
    unsigned n_sent, n_received, most_under_way;
    unsigned fail_receive, fail_send; /* the n-th of them fails, counted from 1; 0: none */
    unsigned n_receives, n_sends;
} play;

/* What follows these tokens. */
static uint32_t follows(const uint32_t *ids, uint32_t n)
{
    uint32_t x = 7;
    for (uint32_t i = 0; i < n; i++)
        x = x * 31 + ids[i] + 1;
    return (x >> 3) % VOCAB;
}

unsigned brig_line_room(const struct brig_line *l)
{
    (void)l;
    return ROOM;
}

void brig_line_stats(struct brig_line *l, struct brig_line_stats *ret)
{
    static struct brig_stage_stats stages[3] = {{.host = "a"}, {.host = "b"}, {.host = "a"}};
    (void)l;
    *ret = (struct brig_line_stats){.n_stages = 3, .stages = stages};
}

static void write_rows(const struct brig_pass *pass, struct sent *f)
{
    const float *h = pass->h;
    unsigned want = 0, row = 0;
    for (unsigned i = 0; i < pass->n_ops; i++) {
        assert_int_equal(pass->ops[i].kind, BRIG_CACHE_TRUNCATE);
        play.length[pass->ops[i].slot] = play.least[pass->ops[i].slot] = pass->ops[i].arg;
    }
    for (unsigned i = 0; i < pass->n_runs; i++) {
        const struct brig_run *r = &pass->runs[i];
        assert_in_range(r->slot, 0, SLOTS - 1);
        /* Nothing is left out, and nothing old stays behind but a draft that did not hold. */
        assert_in_range(r->pos, play.least[r->slot], play.length[r->slot]);
        uint32_t drafted = want < pass->n_wants && pass->wants[want].first < row + r->count
                               ? pass->wants[want].count - 1
                               : 0;
        f->draft[i] = drafted > 0;
        for (uint32_t k = 0; k < r->count; k++, row++, h += HIDDEN) {
            assert_in_range(r->pos + k, 0, CTX - 1);
            play.cache[r->slot][r->pos + k] = (uint32_t)h[0];
            if (want == pass->n_wants || row < pass->wants[want].first)
                continue;
            f->next[f->n_answers++] = follows(play.cache[r->slot], r->pos + k + 1);
            want += row + 1 == pass->wants[want].first + pass->wants[want].count;
        }
        play.length[r->slot] = r->pos + r->count;
        play.least[r->slot] = play.length[r->slot] - drafted;
        f->runs[i] = *r;
    }
    assert_int_equal(want, pass->n_wants);
    f->n_rows = row;
}

int brig_line_send(struct brig_line *l, const struct brig_pass *pass, struct brig_fail *fail)
{
    (void)l;
    assert_in_range(pass->n_runs, 1, SLOTS);
    assert_in_range(play.n_sent, 0, MAX_FRAMES - 1);
    struct sent *f = &play.frames[play.n_sent];
    *f = (struct sent){
        .n_runs = pass->n_runs, .n_wants = pass->n_wants, .n_ops = pass->n_ops, .top = pass->top};
    write_rows(pass, f);
    if (++play.n_sends == play.fail_send) {
        play.n_received = play.n_sent;
        return brig_fail_set(fail, BRIG_EDEAD, "as the test wants");
    }
    play.n_sent++;
    unsigned under_way = play.n_sent - play.n_received;
    assert_in_range(under_way, 1, ROOM);
    play.most_under_way = under_way > play.most_under_way ? under_way : play.most_under_way;
    return 0;
}

int brig_line_receive(struct brig_line *l, struct brig_answer *ret, struct brig_fail *fail)
{
    static uint32_t ids[ROWS * VOCAB], n[ROWS];
    static float logits[ROWS * VOCAB], lse[ROWS];
    (void)l;
    assert_true(play.n_received < play.n_sent);
    if (++play.n_receives == play.fail_receive) {
        play.n_received = play.n_sent;
        return brig_fail_set(fail, BRIG_EDEAD, "as the test wants");
    }
    const struct sent *f = &play.frames[play.n_received++];
    bool whole = f->top == 0;
    uint32_t cols = whole ? VOCAB : f->top;
    memset(logits, 0, sizeof logits);
    for (unsigned i = 0; i < f->n_answers; i++) {
        n[i] = cols;
        ids[i * cols] = f->next[i];
        logits[i * cols + (whole ? f->next[i] : 0)] = 1;
    }
    *ret = (struct brig_answer){.n_wants = f->n_answers,
                                .cols = cols,
                                .whole = whole,
                                .lse = lse,
                                .n = n,
                                .ids = ids,
                                .logits = logits};
    return 0;
}

const struct brig_tensor *brig_model_tensor(const struct brig_model *m, enum brig_role role, uint32_t layer)
{
    (void)layer;
    return role == m->tensors[0].role ? &m->tensors[0] : NULL;
}

/* ---- sequences ---- */

struct owner {
    uint32_t ids[CTX + 1], n_prompt, n, want; /* prompt and what was drawn; as many in all */
    uint32_t top;
    bool give_up, fail;
    uint32_t slot;
    size_t kept;
    /* Drafts: how many tokens; the first that is wrong, counted from 1 (0: none, they always hold). */
    uint32_t draft, wrong, ahead, drafted, held;
    bool draft_fails;
};

struct bench {
    struct table_model table;
    struct brig_embed *embed;
    struct brig_sched *sched;
    struct owner o[6];
};

static uint32_t owner_top(void *ctx, uint32_t ahead)
{
    struct owner *o = ctx;
    o->ahead = ahead;
    return o->top;
}

static int owner_draft(void *ctx, uint32_t *ids, uint32_t n, uint32_t most, uint32_t *n_draft,
                       struct brig_fail *fail)
{
    struct owner *o = ctx;
    if (o->draft_fails)
        return brig_fail_set(fail, BRIG_EDEAD, "no draft for %u", o->ids[0]);
    assert_int_equal(n, o->n);
    assert_memory_equal(ids, o->ids, n * sizeof *ids);
    assert_in_range(most, 1, CTX - n);
    *n_draft = o->draft < most ? o->draft : most;
    for (uint32_t i = 0; i < *n_draft; i++)
        ids[n + i] = (follows(ids, n + i) + (i + 1 == o->wrong)) % VOCAB;
    o->drafted += *n_draft;
    return 0;
}

static int owner_answer(void *ctx, const struct brig_row *row, uint32_t *next, bool *goes_on,
                        struct brig_fail *fail)
{
    struct owner *o = ctx;
    assert_int_equal(row->ids == NULL, o->top == 0);
    assert_int_equal(row->room, CTX - o->n);
    assert_in_range(row->nth, 0, o->ahead);
    o->held += row->nth > 0;
    uint32_t id = row->ids != NULL ? row->ids[0] : 0;
    for (uint32_t i = 0; row->ids == NULL && i < row->n; i++)
        id = row->logits[i] > 0 ? i : id;
    assert_false(o->give_up);
    if (o->fail)
        return brig_fail_set(fail, BRIG_EFORMAT, "owner %u", o->ids[0]);
    o->ids[o->n++] = *next = id;
    *goes_on = o->n < o->want;
    return 0;
}

static void open_bench(struct bench *b, uint32_t frame_rows, unsigned flights)
{
    struct brig_fail fail;
    float rows[VOCAB][HIDDEN];
    memset(b, 0, sizeof *b);
    memset(&play, 0, sizeof play);
    for (unsigned i = 0; i < VOCAB; i++)
        rows[i][0] = rows[i][1] = (float)i;
    table_model_open(&b->table, rows, VOCAB, HIDDEN);
    assert_int_equal(brig_embed_open(&b->embed, &b->table.model, &fail), 0);
    struct brig_sched_opts o = {.model = &b->table.model,
                                .embed = b->embed,
                                .ctx = CTX,
                                .slots = SLOTS,
                                .frame_rows = frame_rows,
                                .flights = flights};
    assert_int_equal(brig_sched_new(&b->sched, &o, &fail), 0);
    for (unsigned i = 0; i < 6; i++) { /* prompts of different lengths */
        struct owner *w = &b->o[i];
        w->n = w->n_prompt = i % 3 + 1;
        for (uint32_t k = 0; k < w->n; k++)
            w->ids[k] = 10 * i % VOCAB + k;
        w->want = CTX + 1 - i % 2;
        w->top = 1;
    }
}

static void close_bench(struct bench *b)
{
    brig_sched_free(b->sched);
    brig_embed_close(b->embed);
    table_model_close(&b->table);
}

static int add(struct bench *b, unsigned i)
{
    struct owner *w = &b->o[i];
    struct brig_fail fail;
    struct brig_seq seq = {
        .prompt = w->ids, .n_prompt = w->n, .top = owner_top, .answer = owner_answer, .ctx = w};
    if (w->draft > 0 || w->draft_fails)
        seq.draft = owner_draft;
    return brig_sched_add(b->sched, &seq, &w->slot, &w->kept, &fail);
}

static void run(struct bench *b)
{
    struct brig_fail fail;
    while (brig_sched_busy(b->sched))
        assert_int_equal(brig_sched_step(b->sched, &fail), 0);
}

/* What a sequence gets alone is known: each token follows from those before it. */
static void assert_right(const struct owner *w, uint32_t n)
{
    assert_int_equal(w->n, n);
    for (uint32_t k = w->n_prompt; k < n; k++)
        assert_int_equal(w->ids[k], follows(w->ids, k));
}

/* ---- tests ---- */

static void test_same_tokens_however_they_go(void **state)
{
    (void)state;
    for (uint32_t rows = 1; rows <= ROWS; rows += rows < 4 ? 1 : 4)
        for (unsigned flights = 0; flights <= ROOM + 1; flights++) {
            struct bench b;
            open_bench(&b, rows, flights);
            b.o[1].top = b.o[3].top = 0; /* whole rows for two, candidates for two */
            b.o[2].top = 5;
            for (unsigned i = 0; i < SLOTS; i++)
                assert_int_equal(add(&b, i), 0);
            assert_int_equal(brig_sched_free_slots(b.sched), 0);
            assert_int_equal(add(&b, 4), -BRIG_ELIMIT);
            run(&b);
            for (unsigned i = 0; i < SLOTS; i++)
                assert_right(&b.o[i], b.o[i].want);
            unsigned limit = flights == 0 ? 2 : flights > ROOM ? ROOM : flights; /* 2 machines */
            assert_int_equal(brig_sched_flights(b.sched), limit);
            assert_in_range(play.most_under_way, 1, limit);
            assert_int_equal(brig_sched_frames(b.sched), play.n_sent);
            for (unsigned k = 0; k < play.n_sent; k++)
                assert_in_range(play.frames[k].n_rows, 1, rows);
            close_bench(&b);
        }
}

static void test_frames_are_shared(void **state)
{
    (void)state;
    struct bench b;
    open_bench(&b, ROWS, 2);
    for (unsigned i = 0; i < SLOTS; i++) {
        b.o[i].want = CTX;
        b.o[i].n = b.o[i].n_prompt = 1;
        assert_int_equal(add(&b, i), 0);
    }
    run(&b);
    for (unsigned k = 0; k < play.n_sent; k++) /* two of four in each of two */
        assert_int_equal(play.frames[k].n_runs, 2);
    close_bench(&b);
}

static void test_pieces_of_a_prompt_follow_each_other(void **state)
{
    (void)state;
    struct bench b;
    open_bench(&b, 2, 3);
    for (b.o[0].n = 0; b.o[0].n < 7; b.o[0].n++)
        b.o[0].ids[b.o[0].n] = b.o[0].n;
    b.o[0].n_prompt = 7;
    b.o[0].want = 8;
    assert_int_equal(add(&b, 0), 0);
    run(&b);
    assert_right(&b.o[0], 8);
    assert_int_equal(play.n_sent, 4);
    assert_int_equal(play.most_under_way, 3);
    assert_int_equal(play.frames[2].n_wants, 0);
    assert_int_equal(play.frames[3].n_wants, 1);
    close_bench(&b);
}

static void test_a_slot_keeps_what_helps(void **state)
{
    (void)state;
    struct bench b;
    open_bench(&b, ROWS, 1);
    b.o[0].want = 6;
    b.o[2].want = 6;
    assert_int_equal(add(&b, 0), 0);
    assert_int_equal(add(&b, 2), 0);
    run(&b);
    uint32_t slot = b.o[2].slot;
    b.o[2].want = 9; /* goes on where it was; of the tokens it has, the last was never sent */
    assert_int_equal(add(&b, 2), 0);
    assert_int_equal(b.o[2].slot, slot);
    assert_int_equal(b.o[2].kept, 5);
    run(&b);
    assert_right(&b.o[2], 9);
    b.o[5] = b.o[2]; /* turns off after 4 tokens */
    b.o[5].n = b.o[5].n_prompt = 5;
    b.o[5].ids[4] = (b.o[5].ids[4] + 1) % VOCAB;
    assert_int_equal(add(&b, 5), 0);
    assert_int_equal(b.o[5].slot, slot);
    assert_int_equal(b.o[5].kept, 4);
    run(&b); /* the played line wants the cut */
    assert_right(&b.o[5], 9);
    b.o[1].want = 4; /* shares nothing: an empty slot, not one that may help later */
    assert_int_equal(add(&b, 1), 0);
    assert_int_not_equal(b.o[1].slot, b.o[0].slot);
    assert_int_not_equal(b.o[1].slot, slot);
    run(&b);
    close_bench(&b);
}

static void test_a_lost_frame_is_sent_again(void **state)
{
    (void)state;
    for (unsigned nth = 1; nth < 12; nth++)
        for (unsigned sending = 0; sending < 2; sending++) {
            struct bench b;
            struct brig_fail fail;
            unsigned failures = 0;
            open_bench(&b, 3, 3);
            play.fail_receive = sending ? 0 : nth;
            play.fail_send = sending ? nth : 0;
            b.o[1].draft = b.o[2].draft = 2;
            b.o[2].wrong = 2;
            for (unsigned i = 0; i < SLOTS; i++)
                assert_int_equal(add(&b, i), 0);
            while (brig_sched_busy(b.sched))
                failures += brig_sched_step(b.sched, &fail) == -BRIG_EDEAD;
            assert_int_equal(failures, 1);
            for (unsigned i = 0; i < SLOTS; i++)
                assert_right(&b.o[i], b.o[i].want);
            close_bench(&b);
        }
}

static void test_one_ends_alone(void **state)
{
    (void)state;
    struct bench b;
    struct brig_fail fail;
    unsigned failures = 0;
    open_bench(&b, ROWS, 2);
    b.o[2].fail = true;
    for (unsigned i = 0; i < SLOTS; i++)
        assert_int_equal(add(&b, i), 0);
    assert_int_equal(brig_sched_step(b.sched, &fail), -BRIG_EFORMAT);
    b.o[1].give_up = true; /* with a row under way, or without */
    brig_sched_end(b.sched, b.o[1].slot);
    while (brig_sched_busy(b.sched))
        failures += brig_sched_step(b.sched, &fail) != 0;
    assert_int_equal(failures, 0);
    assert_right(&b.o[0], b.o[0].want);
    assert_right(&b.o[3], b.o[3].want);
    assert_right(&b.o[1], b.o[1].n);
    /* Its slot can be used again, also by another. */
    b.o[5].want = CTX;
    for (unsigned i = 2; i < 6; i++) {
        b.o[i].fail = false;
        b.o[i].n = b.o[i].n_prompt;
        assert_int_equal(add(&b, i), 0);
    }
    run(&b);
    for (unsigned i = 2; i < 6; i++)
        assert_right(&b.o[i], b.o[i].want);
    close_bench(&b);
}

static void test_what_is_refused(void **state)
{
    (void)state;
    struct bench b;
    struct brig_fail fail;
    open_bench(&b, ROWS, 1);
    b.o[0].n = 0;
    assert_int_equal(add(&b, 0), -BRIG_EUSAGE);
    b.o[0].n = CTX + 1;
    assert_int_equal(add(&b, 0), -BRIG_ELIMIT);
    b.o[0].n = 1;
    b.o[0].ids[0] = VOCAB;
    assert_int_equal(add(&b, 0), -BRIG_EUSAGE);
    b.o[1].want = CTX + 2; /* goes on past the context */
    assert_int_equal(add(&b, 1), 0);
    int r = 0;
    while (r == 0 && brig_sched_busy(b.sched))
        r = brig_sched_step(b.sched, &fail);
    assert_int_equal(r, -BRIG_ELIMIT);
    assert_false(brig_sched_busy(b.sched));
    close_bench(&b);
}

/* Drafts of every length, right, wrong from any place on, and all wrong: the same tokens. */
static void test_drafts_change_no_token(void **state)
{
    (void)state;
    for (uint32_t rows = 1; rows <= ROWS; rows++)
        for (uint32_t draft = 1; draft <= CTX; draft += draft < 4 ? 1 : 4)
            for (uint32_t wrong = 0; wrong <= 3; wrong++) {
                struct bench b;
                open_bench(&b, rows, 1 + wrong % 3);
                for (unsigned i = 0; i < SLOTS; i++) {
                    b.o[i].draft = i == 3 ? 0 : draft; /* one sequence among them has none */
                    b.o[i].wrong = i == 1 ? 0 : wrong;
                    b.o[i].top = i % 2;
                    assert_int_equal(add(&b, i), 0);
                }
                run(&b);
                for (unsigned i = 0; i < SLOTS; i++) {
                    assert_right(&b.o[i], b.o[i].want);
                    assert_true(wrong != 1 || i == 1 || b.o[i].held == 0);
                }
                for (unsigned k = 0; k < play.n_sent; k++)
                    assert_in_range(play.frames[k].n_rows, 1, rows);
                close_bench(&b);
            }
}

static void test_drafts_that_hold_save_frames(void **state)
{
    (void)state;
    struct bench b;
    open_bench(&b, ROWS, 1);
    b.o[0].draft = 3;
    b.o[0].want = 11; /* 1 of the prompt; 1, then 4, 4 and 1 */
    assert_int_equal(add(&b, 0), 0);
    run(&b);
    assert_right(&b.o[0], 11);
    assert_int_equal(play.n_sent, 3);
    assert_int_equal(b.o[0].held, 7);
    assert_int_equal(brig_sched_held(b.sched, b.o[0].slot), 10);
    close_bench(&b);
}

/* What a draft left behind in the cache is no part of what the slot holds for the next sequence. */
static void test_a_slot_forgets_a_wrong_draft(void **state)
{
    (void)state;
    struct bench b;
    open_bench(&b, ROWS, 1);
    b.o[0].draft = 4;
    b.o[0].wrong = 2;
    b.o[0].want = 5;
    assert_int_equal(add(&b, 0), 0);
    run(&b);
    b.o[0].want = CTX;
    assert_int_equal(add(&b, 0), 0);
    assert_in_range(b.o[0].kept, 3, 4);
    run(&b);
    assert_right(&b.o[0], CTX);
    close_bench(&b);
}

static void test_a_draft_that_fails_is_told(void **state)
{
    (void)state;
    struct bench b;
    struct brig_fail fail;
    open_bench(&b, ROWS, 1);
    b.o[0].draft_fails = true;
    assert_int_equal(add(&b, 0), 0);
    assert_int_equal(brig_sched_step(b.sched, &fail), -BRIG_EDEAD);
    assert_string_equal(fail.text, "no draft for 0");
    b.o[0].draft_fails = false; /* nothing has moved */
    b.o[0].draft = 2;
    run(&b);
    assert_right(&b.o[0], b.o[0].want);
    close_bench(&b);
}

static void test_a_step_allocates_nothing(void **state)
{
    (void)state;
    struct bench b;
    struct brig_fail fail;
    open_bench(&b, ROWS, 2);
    for (unsigned i = 0; i < SLOTS; i++)
        assert_int_equal(add(&b, i), 0);
    uint64_t before = brig_alloc_count();
    while (brig_sched_busy(b.sched))
        assert_int_equal(brig_sched_step(b.sched, &fail), 0);
    assert_int_equal(brig_alloc_count(), before);
    close_bench(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_tokens_however_they_go),
        cmocka_unit_test(test_frames_are_shared),
        cmocka_unit_test(test_pieces_of_a_prompt_follow_each_other),
        cmocka_unit_test(test_a_slot_keeps_what_helps),
        cmocka_unit_test(test_a_lost_frame_is_sent_again),
        cmocka_unit_test(test_one_ends_alone),
        cmocka_unit_test(test_what_is_refused),
        cmocka_unit_test(test_drafts_change_no_token),
        cmocka_unit_test(test_drafts_that_hold_save_frames),
        cmocka_unit_test(test_a_slot_forgets_a_wrong_draft),
        cmocka_unit_test(test_a_draft_that_fails_is_told),
        cmocka_unit_test(test_a_step_allocates_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
