/*
 * The real brigade-shard, started as people and launchers start it, and driven over its sockets.
 */
#include "serve_util.h"

#include <sys/stat.h>

#define N_ROWS 12u

static struct brig_model *model;
static char control[BRIG_URL_MAX];

static void start_by_hand(struct process *p)
{
    static unsigned count;
    snprintf(control, sizeof control, "abstract://brigade-test-shard-%d-%u", (int)getpid(), ++count);
    char *args[] = {(char *)FIXTURES "q4_0.gguf",
                    (char *)"--layers",
                    (char *)"all",
                    (char *)"--head",
                    (char *)"--control",
                    control,
                    (char *)"--ctx=64",
                    (char *)"--slots=2",
                    (char *)"--threads",
                    (char *)"2",
                    NULL};
    start(p, args, NULL, 0);
    if (!hear(p, "listening at abstract://"))
        fail_msg("brigade-shard is not ready: %s", p->text);
}

static void stop(struct process *p, struct driver *d)
{
    struct brig_reply reply = call(d, BRIG_CONTROL_STOP);
    assert_int_equal(reply.err, BRIG_OK);
    driver_close(d);
    assert_exit(p, 0);
}

static void tokens(uint32_t *ids)
{
    for (uint32_t i = 0; i < N_ROWS; i++)
        ids[i] = 3 + 29 * i;
}

static float *hidden_rows(void)
{
    uint32_t ids[N_ROWS];
    float *h = brig_alloc((size_t)N_ROWS * model->desc.hidden, sizeof *h);
    tokens(ids);
    embed(model, ids, N_ROWS, h);
    return h;
}

/* The logits of those rows, or the rows after the final norm, computed in this process by the definition. */
static float *answer_here(bool normed)
{
    struct rig g;
    struct rig_how how = {.kernel = "scalar", .threads = 1, .max_rows = N_ROWS, .ctx = 64, .slots = 2};
    struct brig_run run = {0, 0, N_ROWS};
    uint32_t rows[N_ROWS];
    float *h = hidden_rows(), *out = brig_alloc((size_t)N_ROWS * model->desc.vocab, sizeof *out);
    for (uint32_t i = 0; i < N_ROWS; i++)
        rows[i] = i;
    rig_open(&g, model, (struct brig_cells){0, model->desc.n_layers + 1}, how);
    rig_run(&g, h, &run, 1);
    if (normed)
        brig_head_normed(g.block, h, rows, N_ROWS, out);
    else
        assert_int_equal(brig_head_logits(g.block, h, rows, N_ROWS, out, NULL), 0);
    rig_close(&g);
    brig_free(h);
    return out;
}

/* N_ROWS rows of slot 0, an answer wanted of the last three. */
static struct brig_frame rows_frame(struct driver *d, uint32_t top)
{
    struct brig_frame f = frame_of(d);
    f.dtype = BRIG_DTYPE_HIDDEN;
    f.cols = model->desc.hidden;
    f.top = top;
    f.n_runs = f.n_wants = 1;
    f.runs[0] = (struct brig_run){0, 0, N_ROWS};
    f.wants[0] = (struct brig_want){N_ROWS - 3, 3};
    return f;
}

static struct brig_msg *pass(struct driver *d, struct brig_frame *f, const float *h)
{
    send_frame(d, f, h);
    struct brig_msg *m = receive(d, PATIENCE_MS);
    assert_non_null(m);
    assert_int_equal(d->got.run_id, d->run_id);
    assert_int_equal(d->got.frame_id, d->frame_id);
    assert_int_equal(d->got.stage, f->stage + 1);
    return m;
}

static void says_what_it_holds(void **state)
{
    (void)state;
    struct process p;
    struct driver d;
    start_by_hand(&p);
    assert_non_null(strstr(p.text, "q4_0.gguf"));
    driver_open(&d, model, control);
    struct brig_reply r = call(&d, BRIG_CONTROL_HELLO);
    assert_int_equal(r.err, BRIG_OK);
    assert_memory_equal(r.identity, model->identity, sizeof r.identity);
    assert_int_equal(r.n_layers, model->desc.n_layers);
    assert_int_equal(r.cells_first, 0);
    assert_int_equal(r.cells_last, model->desc.n_layers + 1);
    assert_int_equal(r.vocab, model->desc.vocab);
    assert_int_equal(r.ctx, 64);
    assert_int_equal(r.slots, 2);
    assert_int_equal(r.threads, 2);
    assert_int_equal(r.pid, p.pid);
    assert_int_equal(r.state, BRIG_SHARD_FREE);
    assert_true(r.mapped_bytes > 0);
    stop(&p, &d);
}

static void refuses_what_does_not_fit(void **state)
{
    (void)state;
    struct process p;
    struct driver d;
    start_by_hand(&p);
    driver_open(&d, model, control);
    struct brig_request good = attach_request(&d), wrong[7];
    for (unsigned i = 0; i < 7; i++)
        wrong[i] = good;
    wrong[0].identity[5] ^= 1;
    brig_numeric_class(wrong[1].numeric_class, true, "f16");
    wrong[2].ctx = 65;
    wrong[3].slots = 3;
    wrong[4].max_rows = BRIG_FRAME_MAX_ROWS + 1;
    wrong[5].stage = 1;
    snprintf(wrong[6].next_url, BRIG_URL_MAX, "tcp://192.0.2.1:5000");
    for (unsigned i = 0; i < 7; i++) {
        struct brig_reply r = ask(&d, &wrong[i]);
        if (i < 4) /* the others are faults of form, which may be found when the request is decoded */
            assert_int_equal(r.err, BRIG_EMISMATCH);
        assert_int_not_equal(r.err, BRIG_OK);
        assert_true(strlen(r.text) > 10);
    }
    assert_int_equal(call(&d, BRIG_CONTROL_STATUS).err, BRIG_EMISMATCH);
    assert_int_equal(call(&d, BRIG_CONTROL_DRAIN).err, BRIG_EMISMATCH);
    assert_int_equal(ask(&d, &good).err, BRIG_OK);
    stop(&p, &d);
}

/* The rows after the final norm, when a frame asks for them. */
static void check_normed(struct driver *d, const float *h)
{
    struct brig_frame f = rows_frame(d, 0);
    uint32_t hidden = model->desc.hidden;
    float *want = answer_here(true);
    f.flags = BRIG_FRAME_NORMED;
    struct brig_msg *m = pass(d, &f, h);
    assert_int_equal(d->got.dtype, BRIG_DTYPE_NORMED);
    assert_int_equal(d->got.cols, hidden);
    assert_int_equal(d->got.payload_bytes, 3 * 4 * hidden);
    assert_memory_equal(payload_of(d, m), want + (size_t)(N_ROWS - 3) * hidden, d->got.payload_bytes);
    brig_free(want);
    brig_msg_free(m);
}

static void answers_with_the_bits_of_the_definition(void **state)
{
    (void)state;
    struct process p;
    struct driver d;
    char url[BRIG_URL_MAX];
    float *h = hidden_rows(), *want = answer_here(false);
    uint32_t vocab = model->desc.vocab;
    start_by_hand(&p);
    driver_open(&d, model, control);
    attach(&d, url);

    struct brig_frame f = rows_frame(&d, 0);
    struct brig_msg *m = pass(&d, &f, h);
    assert_int_equal(d.got.dtype, BRIG_DTYPE_LOGITS);
    assert_int_equal(d.got.n_parts, 1);
    assert_int_equal(d.got.part_wants, 3);
    assert_memory_equal(payload_of(&d, m), want + (size_t)(N_ROWS - 3) * vocab, 3 * vocab * sizeof *want);
    struct brig_stage_timing t;
    brig_frame_get_timing(&d.got, brig_msg_data(m), 0, &t);
    assert_true(t.compute_ns > 0 && t.mapped_bytes > 0);
    brig_msg_free(m);

    f = rows_frame(&d, 5);
    f.flags = BRIG_FRAME_PSS;
    m = pass(&d, &f, h);
    assert_int_equal(d.got.dtype, BRIG_DTYPE_CANDIDATES);
    brig_frame_get_timing(&d.got, brig_msg_data(m), 0, &t);
    assert_true(t.pss_bytes > 0);
    const struct brig_kernel *scalar = brig_kernel_by_name("scalar");
    for (uint32_t i = 0; i < 3; i++) {
        const float *row = want + (size_t)(N_ROWS - 3 + i) * vocab;
        struct {
            float lse;
            uint32_t n;
            struct brig_candidate best[5];
        } got;
        struct brig_candidate best[5];
        memcpy(&got, payload_of(&d, m) + i * sizeof got, sizeof got);
        assert_int_equal(top_of(row, vocab, 5, best), 5);
        assert_int_equal(got.n, 5);
        assert_memory_equal(got.best, best, sizeof best);
        float lse = scalar->log_sum_exp(row, vocab);
        assert_memory_equal(&got.lse, &lse, sizeof lse);
    }
    brig_msg_free(m);

    check_normed(&d, h);
    f = rows_frame(&d, 5);
    f.n_wants = 0;
    m = pass(&d, &f, h);
    assert_int_equal(d.got.dtype, BRIG_DTYPE_NONE);
    brig_msg_free(m);

    f = frame_of(&d);
    m = pass(&d, &f, NULL);
    assert_int_equal(d.got.dtype, BRIG_DTYPE_NONE);
    brig_msg_free(m);
    assert_int_equal(call(&d, BRIG_CONTROL_DRAIN).err, BRIG_OK);
    stop(&p, &d);
    brig_free(h);
    brig_free(want);
}

/* A frame whose rows do not fit is answered by an ERROR frame that names the shard, and the run goes on. */
static void a_wrong_frame_is_an_error_in_words(void **state)
{
    (void)state;
    struct process p;
    struct driver d;
    char url[BRIG_URL_MAX];
    float *h = hidden_rows();
    start_by_hand(&p);
    driver_open(&d, model, control);
    attach(&d, url);
    for (unsigned i = 0; i < 6; i++) {
        struct brig_frame f = rows_frame(&d, 5);
        if (i == 0)
            f.runs[0].slot = 2;
        else if (i == 1)
            f.runs[0].pos = 60;
        else if (i == 2)
            f.cols /= 2;
        else if (i == 3)
            f.n_stages = 2;
        else if (i == 4) {
            f.n_runs = 2; /* the same positions twice */
            f.runs[0].count = N_ROWS - 2;
            f.runs[1] = (struct brig_run){0, 4, 2};
        } else {
            f.n_ops = 1;
            f.ops[0] = (struct brig_cache_op){BRIG_CACHE_COPY, 0, 2};
        }
        struct brig_msg *m = pass(&d, &f, h);
        assert_int_equal(d.got.dtype, BRIG_DTYPE_ERROR);
        char text[512] = "";
        memcpy(text, payload_of(&d, m), d.got.payload_bytes);
        if (strncmp(text, "shard 0 (layers 0:", 18) != 0)
            fail_msg("case %u: %s", i, text);
        brig_msg_free(m);
    }
    struct brig_frame f = rows_frame(&d, 5);
    struct brig_msg *m = pass(&d, &f, h);
    assert_int_equal(d.got.dtype, BRIG_DTYPE_CANDIDATES);
    brig_msg_free(m);
    /* A frame of another run is dropped, not answered. */
    f = rows_frame(&d, 5);
    f.run_id++;
    send_frame(&d, &f, h);
    assert_null(receive(&d, 300));
    struct brig_reply r = call(&d, BRIG_CONTROL_STATUS);
    assert_int_equal(r.err, BRIG_OK);
    assert_int_equal(r.state, BRIG_SHARD_ATTACHED);
    assert_true(r.progress > 0);
    stop(&p, &d);
    brig_free(h);
}

static void lying_lengths_fail_the_run_and_not_the_shard(void **state)
{
    (void)state;
    struct process p;
    struct driver d;
    char url[BRIG_URL_MAX], second[BRIG_URL_MAX];
    float *h = hidden_rows();
    start_by_hand(&p);
    driver_open(&d, model, control);
    attach(&d, url);
    struct brig_msg *m = brig_msg_new(200);
    memset(brig_msg_data(m), 0xdd, 200); /* 0xdd: an array of 3.7 thousand million elements */
    send_message(&d, m);
    struct brig_reply r;
    uint64_t until = brig_clock_ns() + PATIENCE_MS * BRIG_NS_PER_MS;
    do {
        r = call(&d, BRIG_CONTROL_STATUS);
        poll(NULL, 0, 10);
    } while (r.state != BRIG_SHARD_FAILED && brig_clock_ns() < until);
    assert_int_equal(r.state, BRIG_SHARD_FAILED);
    assert_non_null(strstr(r.text, "message"));
    assert_int_equal(call(&d, BRIG_CONTROL_DRAIN).err, BRIG_OK);
    driver_close(&d);

    driver_open(&d, model, control);
    attach(&d, second);
    assert_string_not_equal(url, second); /* a data address is never used again */
    struct brig_frame f = rows_frame(&d, 5);
    m = pass(&d, &f, h);
    assert_int_equal(d.got.dtype, BRIG_DTYPE_CANDIDATES);
    brig_msg_free(m);
    stop(&p, &d);
    brig_free(h);
}

static void serves_one_driver_at_a_time(void **state)
{
    (void)state;
    struct process p;
    struct driver a, b;
    char url[BRIG_URL_MAX];
    start_by_hand(&p);
    driver_open(&a, model, control);
    driver_open(&b, model, control);
    attach(&a, url);
    struct brig_request req = attach_request(&b);
    struct brig_reply r = ask(&b, &req);
    assert_int_equal(r.err, BRIG_EBUSY);
    assert_int_equal(call(&b, BRIG_CONTROL_STOP).err, BRIG_EBUSY);
    assert_int_equal(call(&b, BRIG_CONTROL_HELLO).state, BRIG_SHARD_ATTACHED);
    driver_close(&a); /* without a word, as a killed one does */
    uint64_t until = brig_clock_ns() + PATIENCE_MS * BRIG_NS_PER_MS;
    do {
        r = ask(&b, &req);
        poll(NULL, 0, 10);
    } while (r.err == BRIG_EBUSY && brig_clock_ns() < until);
    assert_int_equal(r.err, BRIG_OK);
    stop(&p, &b);
}

static void signals_end_it_and_leave_no_socket_file(void **state)
{
    (void)state;
    const int signals[] = {SIGTERM, SIGINT};
    for (unsigned i = 0; i < 2; i++) {
        char dir[] = "/tmp/brigade-test-XXXXXX", path[64], url[BRIG_URL_MAX], data[BRIG_URL_MAX];
        struct process p;
        struct driver d;
        assert_non_null(mkdtemp(dir));
        snprintf(path, sizeof path, "%s/control", dir);
        snprintf(url, sizeof url, "ipc://%s", path);
        char *args[] = {(char *)FIXTURES "q4_0.gguf",
                        (char *)"--layers=all",
                        (char *)"--head",
                        (char *)"--control",
                        url,
                        (char *)"--ctx=64",
                        (char *)"--slots=2",
                        NULL};
        start(&p, args, NULL, 0);
        assert_true(hear(&p, "listening at ipc://"));
        assert_int_equal(access(path, F_OK), 0);
        driver_open(&d, model, url);
        attach(&d, data); /* the data address is a file too */
        kill(p.pid, signals[i]);
        assert_exit(&p, 0);
        driver_close(&d);
        assert_int_equal(rmdir(dir), 0); /* empty */
    }
}

static void wrong_usage_names_the_flag(void **state)
{
    (void)state;
    char *const cases[][6] = {
        {(char *)"x.gguf", (char *)"--layers", (char *)"3:3", (char *)"--control=abstract://x", NULL,
         (char *)"3:3"},
        {(char *)"x.gguf", (char *)"--layers", (char *)"0:1", NULL, NULL, (char *)"--control"},
        {(char *)"x.gguf", (char *)"--control=abstract://x", NULL, NULL, NULL, (char *)"--layers"},
        {(char *)"--head", (char *)"--control=abstract://x", NULL, NULL, NULL, (char *)"MODEL"},
        {(char *)"x.gguf", (char *)"--head", (char *)"--ctx=0", NULL, NULL, (char *)"--ctx"},
        {(char *)"x.gguf", (char *)"--head", (char *)"--threads=-1", NULL, NULL, (char *)"--threads"},
        {(char *)"x.gguf", (char *)"--head", (char *)"--kv=q3", NULL, NULL, (char *)"q3"},
        {(char *)"x.gguf", (char *)"--frobnicate", NULL, NULL, NULL, (char *)"--frobnicate"},
        {(char *)"x.gguf", (char *)"--ctx", NULL, NULL, NULL, (char *)"--ctx"},
        {(char *)"--slice=fd:77", (char *)"--control=abstract://x", NULL, NULL, NULL, (char *)"77"},
        {(char *)"--slice=77", (char *)"--control=abstract://x", NULL, NULL, NULL, (char *)"fd:N"},
        {(char *)FIXTURES "q4_0.gguf", (char *)"--layers=0:99", (char *)"--control=abstract://x", NULL, NULL,
         (char *)"0:99"},
        {(char *)FIXTURES "q4_0.gguf", (char *)"--layers=0:1", (char *)"--head",
         (char *)"--control=abstract://x", NULL, (char *)"--head"},
    };
    for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct process p;
        start(&p, cases[i], NULL, 0);
        assert_exit(&p, 2);
        if (strstr(p.text, cases[i][5]) == NULL || strchr(p.text, '\n') != p.text + p.n - 1)
            fail_msg("case %u: %s", i, p.text);
    }
}

static void bad_starts_say_why(void **state)
{
    (void)state;
    char *const cases[][4] = {
        {(char *)"/nonexistent/model.gguf", (char *)"--control=abstract://x", NULL,
         (char *)"/nonexistent/model.gguf"},
        {(char *)FIXTURES "q4_0.gguf", (char *)"--control=tcp://192.0.2.1:1", NULL, (char *)"--insecure"},
        {(char *)FIXTURES "q4_0.gguf", (char *)"--control=carrier://pigeon", NULL, (char *)"carrier"},
    };
    for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char *args[] = {cases[i][0], (char *)"--layers=all", cases[i][1], NULL};
        struct process p;
        start(&p, args, NULL, 0);
        int status = wait_end(&p);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) != 0);
        if (strstr(p.text, cases[i][3]) == NULL || strchr(p.text, '\n') != p.text + p.n - 1)
            fail_msg("case %u: %s", i, p.text);
    }
}

static void copy_file(const char *from, const char *to)
{
    char bytes[65536];
    size_t n;
    FILE *in = fopen(from, "rb"), *out = fopen(to, "wb");
    assert_true(in != NULL && out != NULL);
    while ((n = fread(bytes, 1, sizeof bytes, in)) > 0)
        assert_int_equal(fwrite(bytes, 1, n, out), n);
    fclose(in);
    assert_int_equal(fclose(out), 0);
}

/* A model file that is cut while a shard has it mapped: one line, not a silent death. */
static void a_file_cut_short_is_a_line_of_text(void **state)
{
    (void)state;
    char dir[] = "/tmp/brigade-test-XXXXXX", path[64], url[BRIG_URL_MAX], data[BRIG_URL_MAX];
    struct process p;
    struct driver d;
    float *h = hidden_rows();
    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof path, "%s/model.gguf", dir);
    snprintf(url, sizeof url, "abstract://brigade-test-cut-%d", (int)getpid());
    copy_file(FIXTURES "q4_0.gguf", path);
    char *args[] = {path, (char *)"--layers=all", (char *)"--head",    (char *)"--control",
                    url,  (char *)"--ctx=64",     (char *)"--slots=2", (char *)"--threads=2",
                    NULL};
    start(&p, args, NULL, 0);
    assert_true(hear(&p, "listening at"));
    assert_int_equal(truncate(path, 4096), 0);
    driver_open(&d, model, url);
    attach(&d, data);
    struct brig_frame f = rows_frame(&d, 5);
    send_frame(&d, &f, h);
    assert_exit(&p, 1);
    assert_non_null(strstr(p.text, "became shorter"));
    driver_close(&d);
    unlink(path);
    rmdir(dir);
    brig_free(h);
}

/* ---- the launched form ---- */

struct launch {
    int slice, cache, ready[2], watch[2];
    char parent[32];
    struct process p;
};

static void launch(struct launch *l, pid_t parent)
{
    struct brig_slice slice;
    struct brig_buf bytes = {0};
    struct brig_fail fail;
    assert_int_equal(brig_slice_build(&slice, model, (struct brig_cells){1, 2}, &fail), 0);
    assert_int_equal(brig_slice_encode(&slice, &bytes), 0);
    brig_slice_release(&slice);
    l->slice = memfd_create("test-slice", MFD_CLOEXEC);
    l->cache = memfd_create("test-kv", MFD_CLOEXEC);
    assert_int_equal(write(l->slice, bytes.data, bytes.len), bytes.len);
    brig_buf_release(&bytes);
    assert_int_equal(pipe2(l->ready, O_CLOEXEC), 0);
    assert_int_equal(pipe2(l->watch, O_CLOEXEC), 0);
    snprintf(l->parent, sizeof l->parent, "--parent=%d", (int)parent);
    snprintf(control, sizeof control, "--control=abstract://brigade-test-launched-%d", (int)getpid());
    /* out of the way of the numbers that the child gets */
    int keep[] = {fcntl(l->slice, F_DUPFD_CLOEXEC, 50), fcntl(l->cache, F_DUPFD_CLOEXEC, 50),
                  fcntl(l->ready[1], F_DUPFD_CLOEXEC, 50), fcntl(l->watch[0], F_DUPFD_CLOEXEC, 50),
                  fcntl(model->files[0].fd, F_DUPFD_CLOEXEC, 50)};
    char *args[] = {(char *)"--slice=fd:3",
                    (char *)"--cache=fd:4",
                    (char *)"--ready=fd:5",
                    (char *)"--watch=fd:6",
                    (char *)"--file=fd:7",
                    l->parent,
                    control,
                    (char *)"--ctx=64",
                    (char *)"--slots=2",
                    (char *)"--once",
                    NULL};
    start(&l->p, args, keep, 5);
    for (unsigned i = 0; i < 5; i++)
        close(keep[i]);
    close(l->ready[1]);
    close(l->watch[0]);
}

static void read_ready(struct launch *l, char *line, size_t cap)
{
    size_t n = 0;
    ssize_t got;
    while (memchr(line, '\n', n) == NULL && (got = read(l->ready[0], line + n, cap - 1 - n)) > 0)
        n += (size_t)got;
    line[n] = '\0';
    close(l->ready[0]);
}

static void launch_end(struct launch *l)
{
    close(l->slice);
    close(l->cache);
}

/* Bytes of a process's mappings whose file has this name. */
static uint64_t mapped_of(pid_t pid, const char *name)
{
    char path[64], line[PATH_MAX + 128];
    unsigned long long from, to;
    uint64_t sum = 0;
    snprintf(path, sizeof path, "/proc/%d/maps", (int)pid);
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    while (fgets(line, sizeof line, f) != NULL)
        if (strstr(line, name) != NULL && sscanf(line, "%llx-%llx", &from, &to) == 2)
            sum += to - from;
    fclose(f);
    return sum;
}

static void maps_the_pages_of_its_slice_alone(void **state)
{
    (void)state;
    struct launch l;
    struct driver d;
    struct brig_slice slice;
    struct brig_range *ranges;
    struct brig_fail fail;
    char line[512], url[BRIG_URL_MAX];
    unsigned n;
    uint64_t want = 0;
    assert_int_equal(brig_slice_build(&slice, model, (struct brig_cells){1, 2}, &fail), 0);
    assert_int_equal(brig_slice_ranges(&slice, (uint64_t)sysconf(_SC_PAGESIZE), &ranges, &n), 0);
    for (unsigned i = 0; i < n; i++)
        want += ranges[i].bytes;
    brig_free(ranges);
    brig_slice_release(&slice);
    launch(&l, getpid());
    read_ready(&l, line, sizeof line);
    assert_int_equal(sscanf(line, "ready %255s", url), 1);
    driver_open(&d, model, url);
    assert_int_equal(call(&d, BRIG_CONTROL_HELLO).mapped_bytes, want);
    assert_int_equal(mapped_of(l.p.pid, "q4_0.gguf"), want);
    assert_true(want < model->files[0].bytes);
    assert_int_equal(call(&d, BRIG_CONTROL_STOP).err, BRIG_OK);
    driver_close(&d);
    assert_exit(&l.p, 0);
    close(l.watch[1]);
    launch_end(&l);
}

static void launched_works_once(void **state)
{
    (void)state;
    struct launch l;
    struct driver d;
    char line[512], url[BRIG_URL_MAX], data[BRIG_URL_MAX];
    unsigned long long ready_ns;
    float *h = hidden_rows();
    launch(&l, getpid());
    read_ready(&l, line, sizeof line);
    if (sscanf(line, "ready %255s %llu", url, &ready_ns) != 2)
        fail_msg("%s", line);
    assert_true(ready_ns <= brig_clock_ns());
    driver_open(&d, model, url);
    attach(&d, data);
    struct brig_frame f = frame_of(&d);
    brig_msg_free(pass(&d, &f, NULL)); /* no rows: it stays */
    f = rows_frame(&d, 5);
    struct brig_msg *m = pass(&d, &f, h);
    assert_int_equal(d.got.dtype, BRIG_DTYPE_HIDDEN); /* in place: no head here */
    assert_int_equal(d.got.n_rows, N_ROWS);
    assert_memory_not_equal(payload_of(&d, m), h, d.got.payload_bytes);
    brig_msg_free(m);
    assert_exit(&l.p, 0);
    assert_string_equal(l.p.text, "");
    close(l.watch[1]);
    driver_close(&d);
    launch_end(&l);
    brig_free(h);
}

static void launched_ends_with_its_launcher(void **state)
{
    (void)state;
    struct launch l;
    char line[512];
    launch(&l, getpid());
    read_ready(&l, line, sizeof line);
    assert_memory_equal(line, "ready ", 6);
    close(l.watch[1]);
    assert_exit(&l.p, 1);
    launch_end(&l);

    launch(&l, 1); /* its parent is not the one that it was told */
    read_ready(&l, line, sizeof line);
    assert_memory_equal(line, "error ", 6);
    assert_exit(&l.p, 1);
    assert_string_equal(l.p.text, "");
    close(l.watch[1]);
    launch_end(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(says_what_it_holds),
        cmocka_unit_test(refuses_what_does_not_fit),
        cmocka_unit_test(answers_with_the_bits_of_the_definition),
        cmocka_unit_test(a_wrong_frame_is_an_error_in_words),
        cmocka_unit_test(lying_lengths_fail_the_run_and_not_the_shard),
        cmocka_unit_test(serves_one_driver_at_a_time),
        cmocka_unit_test(signals_end_it_and_leave_no_socket_file),
        cmocka_unit_test(wrong_usage_names_the_flag),
        cmocka_unit_test(bad_starts_say_why),
        cmocka_unit_test(a_file_cut_short_is_a_line_of_text),
        cmocka_unit_test(maps_the_pages_of_its_slice_alone),
        cmocka_unit_test(launched_works_once),
        cmocka_unit_test(launched_ends_with_its_launcher),
    };
    atexit(kill_processes);
    model = open_fixture("q4_0");
    int r = cmocka_run_group_tests(tests, NULL, NULL);
    brig_model_close(model);
    brig_link_fini();
    return r;
}
