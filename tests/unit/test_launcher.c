/* The launcher against programs that are no shards: what it says of a process that dies, lies or does
 * nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "launcher/launcher.h"
#include "proto/base/clock.h"

#define FIXTURE "tests/fixtures/llama/q8_0.gguf"

struct state {
    struct brig_model *model;
    char script[64];
};

static int set_up(void **state)
{
    static struct state s;
    struct brig_fail fail;
    if (brig_model_open(&s.model, FIXTURE, &fail) < 0)
        return -1;
    snprintf(s.script, sizeof s.script, "/tmp/brigade-test-%ld", (long)getpid());
    *state = &s;
    return 0;
}

static int tear_down(void **state)
{
    struct state *s = *state;
    brig_model_close(s->model);
    unlink(s->script);
    return 0;
}

static struct brig_launcher *launcher_of(struct state *s, const char *text, uint32_t timeout_ms)
{
    struct brig_fail fail = {0};
    struct brig_launcher *l = NULL;
    struct brig_launch_opts o = {.model = s->model,
                                 .link = brig_link_plain(),
                                 .n_shards = 2,
                                 .mode = brig_mode_by_name("warm"),
                                 .ctx = 64,
                                 .slots = 1,
                                 .timeout_ms = timeout_ms,
                                 .program = s->script};
    unlink(s->script);
    FILE *f = fopen(s->script, "w");
    assert_non_null(f);
    fprintf(f, "#!/bin/sh\n%s\n", text);
    fclose(f);
    assert_int_equal(chmod(s->script, 0700), 0);
    assert_int_equal(brig_launcher_open(&l, &o, &fail), 0);
    return l;
}

static int start_and_wait(struct brig_launcher *l, unsigned stage, char url[BRIG_URL_MAX],
                          struct brig_fail *fail)
{
    assert_int_equal(brig_launcher_start(l, stage, fail), 0);
    return brig_launcher_ready(l, stage, url, fail);
}

static void ready_process_is_found_and_reaped(void **state)
{
    struct brig_launcher *l = launcher_of(*state, "echo 'ready abstract://x 1' >&5; exec sleep 30", 5000);
    struct brig_fail fail = {0};
    char url[BRIG_URL_MAX];
    assert_int_equal(brig_launcher_stages(l), 2);
    assert_int_equal(brig_launcher_cells(l, 0).first, 0);
    assert_int_equal(brig_launcher_cells(l, 1).last, 6);
    assert_false(brig_launcher_alive(l, 1));
    assert_int_equal(start_and_wait(l, 1, url, &fail), 0);
    assert_string_equal(url, "abstract://x");
    assert_true(brig_launcher_alive(l, 1));
    assert_false(brig_launcher_post_mortem(l, 1, &fail));
    pid_t pid = brig_launcher_pid(l, 1);
    brig_launcher_close(l);
    assert_int_equal(kill(pid, 0), -1);
}

static void killed_process_is_named_with_its_signal(void **state)
{
    struct brig_launcher *l = launcher_of(*state, "echo 'ready abstract://x 1' >&5; exec sleep 30", 5000);
    struct brig_fail fail = {0};
    char url[BRIG_URL_MAX];
    assert_int_equal(start_and_wait(l, 1, url, &fail), 0);
    kill(brig_launcher_pid(l, 1), SIGKILL);
    int status = brig_launcher_reap(l, 1, 5000);
    assert_true(WIFSIGNALED(status));
    assert_true(brig_launcher_post_mortem(l, 1, &fail));
    assert_int_equal(fail.code, BRIG_EDEAD);
    assert_non_null(strstr(fail.text, "shard 1 (layers "));
    assert_non_null(strstr(fail.text, "head) was killed by signal 9"));
    brig_launcher_close(l);
}

static void last_words_are_passed_on(void **state)
{
    struct brig_launcher *l = launcher_of(*state, "echo 'error no such luck' >&5; exit 1", 5000);
    struct brig_fail fail = {0};
    char url[BRIG_URL_MAX];
    assert_int_equal(start_and_wait(l, 0, url, &fail), -BRIG_EDEAD);
    assert_non_null(strstr(fail.text, "shard 0"));
    assert_non_null(strstr(fail.text, ": no such luck"));
    assert_false(brig_launcher_alive(l, 0));
    brig_launcher_close(l);
}

static void silent_exit_and_nonsense_are_failures(void **state)
{
    const char *const scripts[] = {"exit 3", "echo ready >&5; exit 3",
                                   "echo 'ready abstract://x' >&5; exit 3",
                                   "head -c 5000 /dev/zero >&5; exit 3"};
    for (unsigned i = 0; i < sizeof scripts / sizeof scripts[0]; i++) {
        struct brig_launcher *l = launcher_of(*state, scripts[i], 5000);
        struct brig_fail fail = {0};
        char url[BRIG_URL_MAX];
        assert_int_equal(start_and_wait(l, 0, url, &fail), -BRIG_EDEAD);
        assert_non_null(strstr(fail.text, "shard 0"));
        brig_launcher_close(l);
    }
}

static void deadline_ends_a_process_that_does_nothing(void **state)
{
    struct brig_launcher *l = launcher_of(*state, "exec sleep 30", 300);
    struct brig_fail fail = {0};
    char url[BRIG_URL_MAX];
    uint64_t begin = brig_clock_ns();
    assert_int_equal(start_and_wait(l, 0, url, &fail), -BRIG_ETIMEOUT);
    assert_true(brig_clock_ns() - begin < 10 * BRIG_NS_PER_S);
    assert_false(brig_launcher_alive(l, 0));
    brig_launcher_close(l);
}

static void missing_program_is_named(void **state)
{
    struct brig_launcher *l = launcher_of(*state, "exit 0", 300);
    struct state *s = *state;
    struct brig_fail fail = {0};
    unlink(s->script);
    assert_int_equal(brig_launcher_start(l, 0, &fail), -BRIG_EIO);
    assert_non_null(strstr(fail.text, s->script));
    brig_launcher_close(l);
}

/* What a child inherits: descriptors 0 to 7 and no other, a group of its own, no blocked or ignored signal.
 */
static void child_inherits_what_is_named(void **state)
{
    struct state *s = *state;
    char text[400];
    snprintf(
        text, sizeof text,
        "n=$(sleep 0.2; ls /proc/$$/fd | tr '\\n' ' ')\n"
        "blk=$((0x$(sed -n 's/SigBlk:.//p' /proc/$$/status)))\n"
        "ign=$((0x$(sed -n 's/SigIgn:.//p' /proc/$$/status) & 0x7fffffff))\n" /* libc's own two lie above */
        "pg=$(cut -d' ' -f5 /proc/$$/stat)\n"
        "echo \"error fds=$n blk=$blk ign=$ign own=$((pg == $$))\" >&5\n");
    struct brig_launcher *l = launcher_of(s, text, 5000);
    struct brig_fail fail = {0};
    char url[BRIG_URL_MAX];
    assert_int_equal(start_and_wait(l, 0, url, &fail), -BRIG_EDEAD);
    /* 8 and 10 are the shell's own: a pipe, and the script. It has closed the pipe's other end while it
     * slept. */
    assert_non_null(strstr(fail.text, "fds=0 1 10 2 3 4 5 6 7 8  blk=0 ign=0 own=1"));
    brig_launcher_close(l);
}

/* As many live as the mode says; of a pool as many as asked for, two of them never further apart than need
 * be.
 */
static void check_lives(const struct brig_mode *m)
{
    for (unsigned n = 1; n <= 40; n++)
        for (unsigned keep = 1; keep <= n; keep++) {
            unsigned count = 0, gap = 0, widest = 0;
            for (unsigned i = 0; i < n; i++) {
                bool alive = m->lives(i, n, keep);
                count += alive;
                gap = alive ? 0 : gap + 1;
                widest = gap > widest ? gap : widest;
            }
            assert_int_equal(count, m->keeps ? n : m->picks ? keep : 0);
            if (m->picks)
                assert_true(m->lives(n - 1, n, keep) && widest + 1 <= (n + keep - 1) / keep);
        }
}

static void modes_and_places_have_rows(void **state)
{
    (void)state;
    assert_ptr_equal(brig_mode_by_name("warm"), brig_mode_at(0));
    assert_null(brig_mode_by_name("tepid"));
    unsigned n = 0;
    for (; brig_mode_at(n) != NULL; n++) {
        assert_true(strlen(brig_mode_at(n)->name) > 0 && strlen(brig_mode_at(n)->help) > 0);
        assert_ptr_equal(brig_mode_by_name(brig_mode_at(n)->name), brig_mode_at(n));
        assert_true(brig_mode_at(n)->keeps || brig_mode_at(n)->ahead > 0);
        check_lives(brig_mode_at(n));
    }
    assert_int_equal(n, 3);
    assert_string_equal(brig_place_at(0)->name, "local");
    assert_null(brig_place_at(1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ready_process_is_found_and_reaped),
        cmocka_unit_test(killed_process_is_named_with_its_signal),
        cmocka_unit_test(last_words_are_passed_on),
        cmocka_unit_test(silent_exit_and_nonsense_are_failures),
        cmocka_unit_test(deadline_ends_a_process_that_does_nothing),
        cmocka_unit_test(missing_program_is_named),
        cmocka_unit_test(child_inherits_what_is_named),
        cmocka_unit_test(modes_and_places_have_rows),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
