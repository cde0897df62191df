/*
 * Drafts: what prompt lookup finds, and how long a draft the rule allows, over a model that is played by this
 * file: it knows the text, and a frame takes the time that the test says, on a clock that is the test's too.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "driver/run/sched.h"
#include "driver/run/spec.h"
#include "driver/token/same.h"

enum { VOCAB = 1000, MAX_TEXT = 8192 };

/* ---- the clock ---- */

static uint64_t now_ns = 1;

int clock_gettime(clockid_t id, struct timespec *t)
{
    (void)id;
    *t = (struct timespec){.tv_sec = (time_t)(now_ns / 1000000000), .tv_nsec = (long)(now_ns % 1000000000)};
    return 0;
}

static uint32_t random_state;

static uint32_t random_below(uint32_t n)
{
    random_state = random_state * 1664525u + 1013904223u;
    return (random_state >> 8) % n;
}

/* ---- prompt lookup ---- */

/* What is proposed after ids; the number of tokens, and the class. */
static uint32_t guesses(const uint32_t *ids, size_t n, uint32_t most, uint32_t *out, unsigned *class)
{
    const struct brig_draft *d = brig_draft_at(0);
    const struct brig_draft_seq seq = {ids, n, 0};
    const struct brig_draft_opts none = {0};
    uint32_t can, got = 0;
    void *state;
    assert_string_equal(d->name, "lookup");
    assert_int_equal(d->open(&state, &none, NULL), 0);
    *class = d->look(state, &seq, &can);
    assert_in_range(*class, 0, BRIG_DRAFT_CLASSES - 1);
    if (can > 0)
        assert_int_equal(d->propose(state, &seq, most, out, &got, NULL), 0);
    d->close(state);
    return got;
}

static void lookup_takes_the_longest_match_and_of_those_the_newest(void **state)
{
    (void)state;
    unsigned class;
    uint32_t out[64];
    const uint32_t longest[] = {1, 2, 3, 7, 8, 5, 3, 9, 2, 3, 4, 1, 2, 3};
    assert_int_equal(guesses(longest, 14, 3, out, &class), 3);
    assert_int_equal(class, 3);
    assert_memory_equal(out, ((uint32_t[]){7, 8, 5}), 12);
    const uint32_t newest[] = {3, 7, 3, 8, 3, 9, 3};
    assert_int_equal(guesses(newest, 7, 2, out, &class), 2);
    assert_int_equal(class, 1);
    assert_memory_equal(out, ((uint32_t[]){9, 3}), 8);
}

static void lookup_finds_nothing_where_nothing_was(void **state)
{
    (void)state;
    unsigned class;
    uint32_t out[64];
    const uint32_t ids[] = {1, 2, 3, 4};
    assert_int_equal(guesses(ids, 4, 8, out, &class), 0);
    assert_int_equal(guesses(ids, 1, 8, out, &class), 0);
}

static void lookup_goes_round_in_circles_with_the_text(void **state)
{
    (void)state;
    unsigned class;
    uint32_t out[64], ids[100];
    const uint32_t circle[] = {1, 2, 3, 1, 2, 3, 1};
    assert_int_equal(guesses(circle, 7, 8, out, &class), 8);
    assert_int_equal(class, 4);
    assert_memory_equal(out, ((uint32_t[]){2, 3, 1, 2, 3, 1, 2, 3}), 32);
    for (unsigned i = 0; i < 100; i++)
        ids[i] = 5;
    assert_int_equal(guesses(ids, 100, 64, out, &class), 64);
    for (unsigned i = 0; i < 64; i++)
        assert_int_equal(out[i], 5);
}

/* ---- the rule ---- */

/* A text, and what a frame of its model takes: one row, and each further one a share of that. */
struct played {
    uint32_t ids[MAX_TEXT];
    uint32_t n_prompt, n;
    double one_ns, share;
    bool busy; /* the machine: each sixth frame, about, takes five times as long */
    struct brig_spec *spec;
    double plain_ns; /* token by token */
    double work_ns;  /* with drafts, on a machine that is not busy */
    uint64_t took_ns, frames, longest;
};

static double frame_ns(const struct played *p, uint32_t rows)
{
    return p->one_ns * (1 + p->share * (rows - 1));
}

static void open_spec(struct played *p, uint32_t length, bool disk_bound)
{
    const struct brig_spec_opts o = {
        .lookup = true, .length = length, .vocab = VOCAB, .disk_bound = disk_bound};
    assert_int_equal(brig_spec_new(&p->spec, &o, NULL), 0);
}

/* The answer, from where it is up to token `end`. */
static void play(struct played *p, uint32_t *at, uint32_t end)
{
    uint32_t draft[BRIG_SCHED_MAX_DRAFT], n;
    while (*at < end) {
        const struct brig_draft_seq seq = {p->ids, *at, *at - p->n_prompt};
        uint32_t most = end - *at - 1 < BRIG_SCHED_MAX_DRAFT ? end - *at - 1 : BRIG_SCHED_MAX_DRAFT;
        uint64_t begin = now_ns;
        assert_int_equal(brig_spec_propose(p->spec, &seq, most, draft, &n, NULL), 0);
        assert_in_range(n, 0, most);
        double slower = p->busy && random_below(6) == 0 ? 5 : 1;
        now_ns += (uint64_t)(slower * frame_ns(p, 1 + n));
        p->work_ns += frame_ns(p, 1 + n);
        p->frames++;
        p->longest = n > p->longest ? n : p->longest;
        for (uint32_t i = 0;; i++) {
            uint32_t id = p->ids[(*at)++];
            brig_spec_drawn(p->spec, id);
            p->plain_ns += p->one_ns;
            if (i == n || draft[i] != id)
                break;
        }
        p->took_ns += now_ns - begin;
    }
}

static void close_spec(struct played *p)
{
    struct brig_spec_stats stats;
    assert_true(brig_spec_stats(p->spec, 0, &stats));
    assert_string_equal(stats.kind->name, "lookup");
    assert_in_range(stats.accepted, 0, stats.drafted);
    assert_int_equal(p->frames + stats.accepted, (uint64_t)(p->plain_ns / p->one_ns + 0.5));
    assert_false(brig_spec_stats(p->spec, 1, &stats));
    brig_spec_free(p->spec);
}

/* A prompt and an answer of n tokens: words of a language of n_words, in which nothing holds for long. */
static void noise(struct played *p, uint32_t n_words, uint32_t from, uint32_t to)
{
    for (uint32_t i = from; i < to; i++)
        p->ids[i] = random_below(n_words);
}

/* The answer repeats the prompt, but for each `every`-th token. */
static void echo(struct played *p, uint32_t every)
{
    for (uint32_t i = 0; p->n_prompt + i < p->n; i++)
        p->ids[p->n_prompt + i] = i % every == every - 1 ? VOCAB - 1 : p->ids[i % p->n_prompt];
}

static struct played make(double share, uint32_t n_prompt, uint32_t n)
{
    struct played p = {.n_prompt = n_prompt, .n = n, .one_ns = 8e6, .share = share};
    random_state = 7;
    return p;
}

static const double shares[] = {0, 0.02, 0.1, 0.3, 0.7, 1, 1.5};
#define N_SHARES (sizeof shares / sizeof *shares)

/* No loss beyond 3 % where nothing holds, whatever the machine and whatever the prompt made believe. */
static void nothing_holds_and_little_is_lost(void **state)
{
    (void)state;
    for (size_t k = 0; k < N_SHARES; k++)
        for (uint32_t n_words = 10; n_words <= VOCAB; n_words *= 10)
            for (unsigned lie = 0; lie < 3; lie++) {
                struct played p = make(shares[k], 200, 800);
                uint32_t at = p.n_prompt;
                noise(&p, n_words, 0, p.n);
                open_spec(&p, 0, lie == 2 && shares[k] < 0.1);
                if (lie < 2)
                    brig_spec_prompt(p.spec, 200, (uint64_t)(lie ? p.one_ns : frame_ns(&p, 200)));
                play(&p, &at, p.n);
                if ((double)p.took_ns > 1.03 * p.plain_ns)
                    fail_msg("share %g, %u words, lie %u: %g", shares[k], n_words, lie,
                             (double)p.took_ns / p.plain_ns);
                close_spec(&p);
            }
}

static double gain(double share, uint32_t every, bool disk_bound, bool busy)
{
    struct played p = make(share, 400, 800);
    uint32_t at = p.n_prompt;
    p.busy = busy;
    noise(&p, VOCAB - 1, 0, p.n_prompt);
    echo(&p, every);
    open_spec(&p, 0, disk_bound);
    brig_spec_prompt(p.spec, 400, (uint64_t)frame_ns(&p, 400));
    play(&p, &at, p.n);
    close_spec(&p);
    return p.plain_ns * (busy ? 10. / 6 : 1) / (double)p.took_ns;
}

static void a_text_that_repeats_is_several_times_as_fast(void **state)
{
    (void)state;
    assert_true(gain(0.02, 1000, true, false) > 10);
    assert_true(gain(0.02, 1000, false, false) > 8);
    assert_true(gain(0.02, 20, true, false) > 4); /* each 20th token is another */
    assert_true(gain(0.1, 1000, false, false) > 4);
    assert_true(gain(0.3, 1000, false, false) > 2);
    assert_true(gain(0.3, 20, false, false) > 1.5);
    assert_true(gain(1, 1000, false, false) >
                0.97); /* each row costs as much as a frame: nothing can be won */
    assert_true(gain(1, 1000, false, false) < 1.03);
}

/* A frame that took long for another reason is no reason to give up. */
static void a_busy_machine_hides_no_gain(void **state)
{
    (void)state;
    assert_true(gain(0.02, 1000, true, true) > 6);
    assert_true(gain(0.1, 1000, false, true) > 3);
    assert_true(gain(0.3, 1000, false, true) > 1.7);
    for (size_t k = 0; k < N_SHARES; k++) {
        double lost = 0;
        for (unsigned seed = 0; seed < 20; seed++) {
            struct played p = make(shares[k], 200, 1000);
            uint32_t at = p.n_prompt;
            p.busy = true;
            random_state = seed;
            noise(&p, 50, 0, p.n);
            open_spec(&p, 0, false);
            brig_spec_prompt(p.spec, 200, (uint64_t)frame_ns(&p, 200));
            play(&p, &at, p.n);
            if (p.work_ns >= 1.05 * p.plain_ns)
                fail_msg("share %g seed %u: %g", shares[k], seed, p.work_ns / p.plain_ns);
            lost += p.work_ns / p.plain_ns - 1;
            close_spec(&p);
        }
        assert_true(lost / 20 < 0.025);
    }
}

/* What was won before may be risked again, but not all of it: the whole is never slower than 3 %. */
static void a_text_that_stops_repeating_loses_little(void **state)
{
    (void)state;
    for (size_t k = 0; k < N_SHARES; k++) {
        struct played p = make(shares[k], 200, 1200);
        uint32_t at = p.n_prompt;
        noise(&p, 50, 0, p.n_prompt);
        echo(&p, 1000);
        noise(&p, 50, 400, p.n);
        open_spec(&p, 0, false);
        brig_spec_prompt(p.spec, 200, (uint64_t)frame_ns(&p, 200));
        play(&p, &at, 400);
        uint64_t then = p.took_ns;
        double plain = p.plain_ns;
        play(&p, &at, p.n);
        assert_true((double)p.took_ns < 1.03 * p.plain_ns);
        /* Of the 800 tokens after the change: what the account held, and 2 %. */
        assert_true((double)(p.took_ns - then) < 1.03 * (p.plain_ns - plain) + 17 * p.one_ns);
        close_spec(&p);
    }
}

static void a_fixed_length_is_kept(void **state)
{
    (void)state;
    struct played p = make(0.5, 200, 600);
    uint32_t at = p.n_prompt;
    noise(&p, VOCAB - 1, 0, p.n_prompt);
    echo(&p, 1000);
    open_spec(&p, 7, false);
    play(&p, &at, p.n);
    assert_int_equal(p.longest, 7);
    assert_in_range(p.frames, 50, 54); /* 8 tokens each, but for the first match */
    close_spec(&p);
}

/* Tokens that the model does not know are not sent to it. */
static void ids_outside_the_vocabulary_are_not_proposed(void **state)
{
    (void)state;
    struct brig_spec *s;
    const struct brig_spec_opts o = {.lookup = true, .length = 4, .vocab = 9};
    const uint32_t ids[] = {1, 2, 9, 3, 1}, first[] = {1, 9, 3, 1};
    uint32_t out[4], n;
    assert_int_equal(brig_spec_new(&s, &o, NULL), 0);
    assert_int_equal(brig_spec_propose(s, &(struct brig_draft_seq){ids, 5, 0}, 4, out, &n, NULL), 0);
    assert_int_equal(n, 1);
    assert_int_equal(out[0], 2);
    assert_int_equal(brig_spec_propose(s, &(struct brig_draft_seq){first, 4, 0}, 4, out, &n, NULL), 0);
    assert_int_equal(n, 0);
    brig_spec_free(s);
}

static void nobody_drafts_when_nobody_is_asked(void **state)
{
    (void)state;
    struct brig_spec *s;
    struct brig_spec_stats stats;
    const struct brig_spec_opts o = {.vocab = 9};
    uint32_t out[4], n = 9;
    assert_int_equal(brig_spec_new(&s, &o, NULL), 0);
    assert_int_equal(
        brig_spec_propose(s, &(struct brig_draft_seq){(uint32_t[]){1, 1}, 2, 0}, 4, out, &n, NULL), 0);
    assert_int_equal(n, 0);
    assert_false(brig_spec_stats(s, 0, &stats));
    brig_spec_free(s);
    brig_spec_free(NULL);
}

/* ---- the same tokens ---- */

static void the_first_difference_of_two_vocabularies_is_told(void **state)
{
    (void)state;
    const struct brig_str a[] = {{"x", 1}, {"yy", 2}, {"", 0}}, b[] = {{"x", 1}, {"yz", 2}, {"", 0}};
    const int32_t normal[] = {1, 1, 1}, control[] = {1, 1, 3};
    const char *const names[] = {"one", "two"};
    const struct brig_vocab v = {.n_tokens = 3, .tokens = a, .types = normal, .bos = 0, .eos = 1, .eot = -1};
    struct brig_vocab w = v;
    struct brig_fail fail;
    assert_int_equal(brig_vocab_same(&v, &w, names, &fail), 0);
    w.types = NULL; /* not stated is no difference */
    w.eot = 2;
    assert_int_equal(brig_vocab_same(&v, &w, names, &fail), 0);
    w.eos = 0;
    assert_int_equal(brig_vocab_same(&v, &w, names, &fail), -BRIG_EMISMATCH);
    assert_string_equal(fail.text, "token 1 ends a text in one, token 0 in two");
    w.types = control;
    assert_int_equal(brig_vocab_same(&v, &w, names, &fail), -BRIG_EMISMATCH);
    assert_non_null(strstr(fail.text, "another type"));
    w.tokens = b;
    assert_int_equal(brig_vocab_same(&v, &w, names, &fail), -BRIG_EMISMATCH);
    assert_string_equal(fail.text, "token 1 is 'yy' in one and 'yz' in two");
    w.n_tokens = 2;
    assert_int_equal(brig_vocab_same(&v, &w, names, &fail), -BRIG_EMISMATCH);
    assert_string_equal(fail.text, "one has 3 tokens, two has 2");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lookup_takes_the_longest_match_and_of_those_the_newest),
        cmocka_unit_test(lookup_finds_nothing_where_nothing_was),
        cmocka_unit_test(lookup_goes_round_in_circles_with_the_text),
        cmocka_unit_test(nothing_holds_and_little_is_lost),
        cmocka_unit_test(a_text_that_repeats_is_several_times_as_fast),
        cmocka_unit_test(a_busy_machine_hides_no_gain),
        cmocka_unit_test(a_text_that_stops_repeating_loses_little),
        cmocka_unit_test(a_fixed_length_is_kept),
        cmocka_unit_test(ids_outside_the_vocabulary_are_not_proposed),
        cmocka_unit_test(nobody_drafts_when_nobody_is_asked),
        cmocka_unit_test(the_first_difference_of_two_vocabularies_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
