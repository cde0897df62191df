/*
 * Sessions and answers over a line and a checkpoint that are played by this file: what is sent, what is cut
 * from the cache, and what ends an answer.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include <cmocka.h>

#include "driver/run/generate.h"
#include "driver/run/session.h"
#include "proto/base/mem.h"
#include "tests/unit/table_util.h"

enum { HIDDEN = 4, VOCAB = 8, END = 6, CTX = 16 };

/* Tokens a b c d e, one that ends inside a character, the end token, one without text of its own. */
static const struct brig_str tokens[VOCAB] = {{"a", 1}, {"b", 1},        {"c", 1},           {"d", 1},
                                              {"e", 1}, {"\xc3\x83", 2}, {"<|im_end|>", 10}, {"\xc2\xa9", 2}};
static const int32_t types[VOCAB] = {1, 1, 1, 1, 1, 1, 3, 1};

/* ---- the line that plays along ---- */

static struct played {
    uint32_t cache[CTX];      /* the id at each position, read back from its embedding row */
    uint32_t script[CTX + 1]; /* the token that follows n tokens */
    unsigned n_passes;
    uint32_t rows[CTX], ops[CTX];
    uint32_t cut_at;
    unsigned fail_pass; /* fail this pass, counted from 1 */
    int fail_with;
    volatile sig_atomic_t cancel;
    unsigned cancel_pass;
    uint32_t ids[CTX], n[CTX];
    float logits[VOCAB + CTX], lse[CTX];
    /* between send and receive */
    struct brig_answer answer;
    struct brig_fail fail;
    int r;
} play;

int brig_line_pass(struct brig_line *l, const struct brig_pass *pass, struct brig_answer *ret,
                   struct brig_fail *fail)
{
    (void)l;
    assert_int_equal(pass->n_runs, 1);
    assert_int_equal(pass->runs[0].slot, 0);
    uint32_t pos = pass->runs[0].pos, count = pass->runs[0].count;
    play.rows[play.n_passes] = count;
    play.ops[play.n_passes] = pass->n_ops;
    play.n_passes++;
    if (play.n_passes == play.cancel_pass)
        play.cancel = SIGINT;
    if (play.n_passes == play.fail_pass)
        return brig_fail_set(fail, (enum brig_err)play.fail_with, "as the test wants");
    if (pass->n_ops == 1) {
        assert_int_equal(pass->ops[0].kind, BRIG_CACHE_TRUNCATE);
        assert_int_equal(pass->ops[0].arg, pos);
        play.cut_at = pos;
    }
    for (uint32_t i = 0; i < count; i++) {
        assert_float_equal(pass->h[i * HIDDEN + 1], 0.5, 0);
        play.cache[pos + i] = (uint32_t)pass->h[i * HIDDEN];
    }
    *ret = (struct brig_answer){.n_wants = pass->n_wants};
    if (pass->n_wants == 0)
        return 0;
    if (pass->sink != NULL) {
        ret->n_wants = 0;
        for (uint32_t i = 0; i < pass->wants[0].count; i++) {
            play.logits[0] = (float)(pos + i);
            int r = pass->sink(pass->sink_ctx, i, play.logits);
            if (r < 0)
                return r;
        }
        return 0;
    }
    ret->n_wants = pass->wants[0].count;
    assert_int_equal(pass->wants[0].first, count - ret->n_wants);
    for (uint32_t i = 0; i < ret->n_wants; i++) {
        play.ids[i] = play.script[pos + count - ret->n_wants + i + 1];
        play.n[i] = 1;
        play.logits[i] = 1;
    }
    ret->cols = 1;
    ret->ids = play.ids;
    ret->n = play.n;
    ret->logits = play.logits;
    ret->lse = play.lse;
    return 0;
}

int brig_line_send(struct brig_line *l, const struct brig_pass *pass, struct brig_fail *fail)
{
    (void)fail;
    play.r = brig_line_pass(l, pass, &play.answer, &play.fail);
    return 0;
}

int brig_line_receive(struct brig_line *l, struct brig_answer *ret, struct brig_fail *fail)
{
    (void)l;
    *ret = play.answer;
    if (play.r < 0)
        *fail = play.fail;
    return play.r;
}

unsigned brig_line_room(const struct brig_line *l)
{
    (void)l;
    return 1;
}

void brig_line_stats(struct brig_line *l, struct brig_line_stats *ret)
{
    (void)l;
    *ret = (struct brig_line_stats){0};
}

/* ---- the checkpoint: one table in memory ---- */

const struct brig_tensor *brig_model_tensor(const struct brig_model *m, enum brig_role role, uint32_t layer)
{
    (void)layer;
    return role == m->tensors[0].role ? &m->tensors[0] : NULL;
}

/* ---- what an answer needs ---- */

struct bench {
    struct table_model table;
    struct brig_embed *embed;
    struct brig_session *session; /* for given rows */
    struct brig_sched *sched;     /* for answers */
    struct brig_tokenizer *tokenizer;
    struct brig_sampler *sampler;
    struct brig_buf text;
};

static int keep_text(void *ctx, const char *bytes, size_t n, struct brig_fail *fail)
{
    (void)fail;
    return brig_buf_add(ctx, bytes, n);
}

static void open_bench(struct bench *b, uint32_t batch_rows)
{
    struct brig_fail fail;
    float rows[VOCAB][HIDDEN];
    memset(b, 0, sizeof *b);
    memset(&play, 0, sizeof play);
    for (unsigned i = 0; i < VOCAB; i++)
        for (unsigned k = 0; k < HIDDEN; k++)
            rows[i][k] = k == 0 ? (float)i : 0.5f;
    table_model_open(&b->table, rows, VOCAB, HIDDEN);
    b->table.model.vocab = (struct brig_vocab){.model = {"gpt2", 4},
                                               .pre = {"gpt-2", 5},
                                               .n_tokens = VOCAB,
                                               .tokens = tokens,
                                               .types = types,
                                               .bos = -1,
                                               .eos = END,
                                               .eot = -1,
                                               .pad = -1,
                                               .unk = -1};
    assert_int_equal(brig_embed_open(&b->embed, &b->table.model, &fail), 0);
    struct brig_session_opts o = {
        .model = &b->table.model, .embed = b->embed, .ctx = CTX, .batch_rows = batch_rows};
    assert_int_equal(brig_session_new(&b->session, &o, &fail), 0);
    struct brig_sched_opts many = {
        .model = &b->table.model, .embed = b->embed, .ctx = CTX, .slots = 1, .frame_rows = batch_rows};
    assert_int_equal(brig_sched_new(&b->sched, &many, &fail), 0);
    assert_int_equal(brig_tokenizer_new(&b->tokenizer, &b->table.model.vocab, NULL, &fail), 0);
    struct brig_sample_opts greedy = brig_sample_defaults();
    greedy.temp = 0;
    assert_int_equal(brig_sampler_new(&b->sampler, &greedy, VOCAB, &fail), 0);
}

static void close_bench(struct bench *b)
{
    brig_session_free(b->session);
    brig_sched_free(b->sched);
    brig_embed_close(b->embed);
    brig_tokenizer_free(b->tokenizer);
    brig_sampler_free(b->sampler);
    brig_buf_release(&b->text);
    table_model_close(&b->table);
}

/* The line answers with these tokens after a prompt of n_prompt. */
static void script(size_t n_prompt, const uint32_t *v, size_t n)
{
    for (size_t i = 0; i < n && n_prompt + i <= CTX; i++)
        play.script[n_prompt + i] = v[i];
}

static struct brig_generate job(struct bench *b, const uint32_t *prompt, size_t n)
{
    return (struct brig_generate){.sched = b->sched,
                                  .tokenizer = b->tokenizer,
                                  .sampler = b->sampler,
                                  .prompt = prompt,
                                  .n_prompt = n,
                                  .text = keep_text,
                                  .ctx = &b->text,
                                  .cancel = &play.cancel};
}

static void ends(struct bench *b, const struct brig_generate *g, enum brig_stop_reason reason, size_t n_ids,
                 const char *text)
{
    struct brig_generated out;
    struct brig_fail fail;
    brig_buf_clear(&b->text);
    assert_int_equal(brig_generate_run(g, &out, &fail), 0);
    assert_string_equal(brig_stop_reason_name(out.reason), brig_stop_reason_name(reason));
    assert_int_equal(out.ids.n, n_ids);
    assert_string_equal(b->text.data == NULL ? "" : b->text.data, text);
    brig_generated_release(&out);
}

static const uint32_t prompt[] = {0, 1, 2};

static void an_end_token_ends_and_is_not_counted(void **state)
{
    (void)state;
    struct bench b;
    open_bench(&b, 8);
    script(3, (uint32_t[]){3, 4, END, 0}, 4);
    struct brig_generate g = job(&b, prompt, 3);
    ends(&b, &g, BRIG_STOP_REASON_EOS, 2, "de");
    assert_int_equal(brig_sched_held(b.sched, 0), 5);
    close_bench(&b);
}

static void ignored_end_tokens_have_no_text(void **state)
{
    (void)state;
    struct bench b;
    open_bench(&b, 8);
    script(3, (uint32_t[]){3, END, 4}, 3);
    struct brig_generate g = job(&b, prompt, 3);
    g.ignore_eos = true;
    g.max_new = 3;
    ends(&b, &g, BRIG_STOP_REASON_LENGTH, 3, "de");
    close_bench(&b);
}

static void a_stop_string_may_span_tokens(void **state)
{
    (void)state;
    struct bench b;
    const char *stops[] = {"bcd"};
    open_bench(&b, 8);
    script(3, (uint32_t[]){0, 1, 1, 2, 3, 4}, 6);
    struct brig_generate g = job(&b, prompt, 3);
    g.stops = stops;
    g.n_stops = 1;
    ends(&b, &g, BRIG_STOP_REASON_STOP, 5, "ab");
    close_bench(&b);
}

static void characters_are_whole_and_held_text_comes_at_the_end(void **state)
{
    (void)state;
    struct bench b;
    const char *stops[] = {"ax"};
    open_bench(&b, 8);
    script(3, (uint32_t[]){5, 7, 0},
           3); /* the two bytes of one character, then what may begin a stop string */
    struct brig_generate g = job(&b, prompt, 3);
    g.stops = stops;
    g.n_stops = 1;
    g.max_new = 3;
    ends(&b, &g, BRIG_STOP_REASON_LENGTH, 3,
         "\xc3\xa9"
         "a");
    close_bench(&b);
}

/* The same ends with tokens that were drafted: nothing is drawn, said or counted behind the end. */
static void drafts_end_where_plain_answers_do(void **state)
{
    (void)state;
    struct bench b;
    struct brig_fail fail;
    const struct brig_spec_opts o = {.lookup = true, .length = 5, .vocab = VOCAB};
    const uint32_t circle[] = {0, 1, 2, 3, 0};
    const char *stops[] = {"da"};
    uint32_t long_prompt[CTX] = {0};
    open_bench(&b, 8);
    struct brig_generate g = job(&b, circle, 5);
    assert_int_equal(brig_spec_new(&g.spec, &o, &fail), 0);
    script(5, (uint32_t[]){1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0}, 12);
    ends(&b, &g, BRIG_STOP_REASON_CONTEXT, CTX - 5 + 1, "bcdabcdabcda");
    assert_in_range(play.n_passes, 2, 4);
    g.max_new = 4; /* a draft is no longer than what may still come */
    ends(&b, &g, BRIG_STOP_REASON_LENGTH, 4, "bcda");
    assert_in_range(play.rows[play.n_passes - 1], 1, 4);
    g.max_new = 0;
    g.stops = stops;
    g.n_stops = 1;
    ends(&b, &g, BRIG_STOP_REASON_STOP, 4, "bc");
    g.n_stops = 0;
    script(5, (uint32_t[]){1, 2, END, 0}, 4);
    ends(&b, &g, BRIG_STOP_REASON_EOS, 2, "bc");
    g = (struct brig_generate){.spec = g.spec};
    struct brig_generate full = job(&b, long_prompt, CTX);
    full.spec = g.spec;
    ends(&b, &full, BRIG_STOP_REASON_CONTEXT, 1, "a");
    brig_spec_free(g.spec);
    close_bench(&b);
}

static void a_full_context_ends(void **state)
{
    (void)state;
    struct bench b;
    uint32_t long_prompt[CTX + 1] = {0};
    struct brig_generated out;
    struct brig_fail fail;
    open_bench(&b, 8);
    struct brig_generate g = job(&b, long_prompt, CTX - 2);
    ends(&b, &g, BRIG_STOP_REASON_CONTEXT, 3, "aaa");
    g = job(&b, long_prompt, CTX);
    ends(&b, &g, BRIG_STOP_REASON_CONTEXT, 1, "a");
    g = job(&b, long_prompt, CTX + 1);
    assert_int_equal(brig_generate_run(&g, &out, &fail), -BRIG_ELIMIT);
    brig_generated_release(&out);
    close_bench(&b);
}

static void a_prompt_goes_in_batches_and_wants_one_answer(void **state)
{
    (void)state;
    struct bench b;
    const uint32_t five[] = {4, 3, 2, 1, 0};
    open_bench(&b, 2);
    script(5, (uint32_t[]){END}, 1);
    struct brig_generate g = job(&b, five, 5);
    ends(&b, &g, BRIG_STOP_REASON_EOS, 0, "");
    assert_int_equal(play.n_passes, 3);
    assert_int_equal(play.rows[0], 2);
    assert_int_equal(play.rows[1], 2);
    assert_int_equal(play.rows[2], 1);
    for (unsigned i = 0; i < 5; i++)
        assert_int_equal(play.cache[i], five[i]);
    close_bench(&b);
}

static void a_second_turn_sends_only_what_is_new(void **state)
{
    (void)state;
    struct bench b;
    const uint32_t longer[] = {0, 1, 2, 3, 0, 0}, other[] = {0, 1, 4};
    open_bench(&b, 8);
    script(3, (uint32_t[]){3, END}, 2);
    struct brig_generate g = job(&b, prompt, 3);
    ends(&b, &g, BRIG_STOP_REASON_EOS, 1, "d");
    play.n_passes = 0;
    script(6, (uint32_t[]){END}, 1);
    g = job(&b, longer, 6); /* goes on where the cache ends */
    ends(&b, &g, BRIG_STOP_REASON_EOS, 0, "");
    assert_int_equal(play.rows[0], 2);
    assert_int_equal(play.ops[0], 0);
    play.n_passes = 0;
    script(3, (uint32_t[]){END}, 1);
    g = job(&b, other, 3); /* differs in the last token: the rest of the cache is cut */
    ends(&b, &g, BRIG_STOP_REASON_EOS, 0, "");
    assert_int_equal(play.rows[0], 1);
    assert_int_equal(play.ops[0], 1);
    assert_int_equal(play.cut_at, 2);
    play.n_passes = 0;
    ends(&b, &g, BRIG_STOP_REASON_EOS, 0, ""); /* the same again: one token must be sent to get an answer */
    assert_int_equal(play.rows[0], 1);
    assert_int_equal(play.cut_at, 2);
    close_bench(&b);
}

static void a_cancelled_answer_is_a_result(void **state)
{
    (void)state;
    struct bench b;
    open_bench(&b, 8);
    script(3, (uint32_t[]){3, 4, 0, 1}, 4);
    struct brig_generate g = job(&b, prompt, 3);
    play.cancel_pass = 2; /* between tokens */
    ends(&b, &g, BRIG_STOP_REASON_CANCELLED, 2, "de");
    play.cancel = 0;
    play.n_passes = 0;
    play.cancel_pass = play.fail_pass = 2; /* in the middle of a pass */
    play.fail_with = BRIG_ECANCELLED;
    ends(&b, &g, BRIG_STOP_REASON_CANCELLED, 1, "d");
    play.cancel = 0;
    play.n_passes = 0;
    play.cancel_pass = play.fail_pass = 0;
    g.max_new = 1;
    ends(&b, &g, BRIG_STOP_REASON_LENGTH, 1, "d");
    assert_int_equal(play.ops[0], 1); /* what the broken pass wrote is cut */
    close_bench(&b);
}

static void a_failure_is_passed_on(void **state)
{
    (void)state;
    struct bench b;
    struct brig_generated out;
    struct brig_fail fail;
    open_bench(&b, 8);
    struct brig_generate g = job(&b, prompt, 3);
    play.fail_pass = 1;
    play.fail_with = BRIG_EDEAD;
    assert_int_equal(brig_generate_run(&g, &out, &fail), -BRIG_EDEAD);
    assert_string_equal(fail.text, "as the test wants");
    brig_generated_release(&out);
    const uint32_t outside[] = {VOCAB};
    g = job(&b, outside, 1);
    assert_int_equal(brig_generate_run(&g, &out, &fail), -BRIG_EUSAGE);
    brig_generated_release(&out);
    close_bench(&b);
}

static void a_table_that_shrank_is_named(void **state)
{
    (void)state;
    struct bench b;
    struct brig_fail fail;
    float h[HIDDEN];
    const uint32_t last[] = {VOCAB - 1};
    open_bench(&b, 8);
    assert_int_equal(ftruncate(b.table.file.fd, 20), 0);
    assert_int_equal(brig_embed_rows(b.embed, last, 1, 0, h, &fail), -BRIG_EIO);
    assert_non_null(strstr(fail.text, "became shorter"));
    close_bench(&b);
}

static int count_rows(void *ctx, uint32_t row, const float *logits)
{
    unsigned *n = ctx;
    assert_int_equal(row, *n % 2); /* counted within a batch of two */
    assert_float_equal(logits[0], (double)*n, 0);
    ++*n;
    return 0;
}

static void logits_come_for_every_position_in_order(void **state)
{
    (void)state;
    struct bench b;
    struct brig_fail fail;
    unsigned n = 0;
    const uint32_t five[] = {4, 3, 2, 1, 0};
    open_bench(&b, 2);
    assert_int_equal(brig_session_logits(b.session, five, 5, count_rows, &n, NULL, NULL, &fail), 0);
    assert_int_equal(n, 5);
    close_bench(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_end_token_ends_and_is_not_counted),
        cmocka_unit_test(ignored_end_tokens_have_no_text),
        cmocka_unit_test(a_stop_string_may_span_tokens),
        cmocka_unit_test(characters_are_whole_and_held_text_comes_at_the_end),
        cmocka_unit_test(drafts_end_where_plain_answers_do),
        cmocka_unit_test(a_full_context_ends),
        cmocka_unit_test(a_prompt_goes_in_batches_and_wants_one_answer),
        cmocka_unit_test(a_second_turn_sends_only_what_is_new),
        cmocka_unit_test(a_cancelled_answer_is_a_result),
        cmocka_unit_test(a_failure_is_passed_on),
        cmocka_unit_test(a_table_that_shrank_is_named),
        cmocka_unit_test(logits_come_for_every_position_in_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
