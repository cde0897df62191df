/* Plans: over made-up tables and machines, and what they say of memory held against the code that allocates
 * it. */
#include "tests/unit/shard_util.h"

#include <ftw.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>

#include "launcher/launcher.h"
#include "launcher/plan_parts.h"

#define MIB ((uint64_t)1 << 20)

/* ---- a made-up model ---- */

struct made {
    struct brig_model model;
    struct brig_plan_line line;
};

static void add(struct made *m, uint32_t cell, enum brig_role role, uint32_t expert, uint64_t bytes)
{
    m->line.items[m->line.n_items++] = (struct brig_plan_item){
        .bytes = bytes,
        .pages = brig_plan_pages(bytes) + BRIG_PLAN_PAGE,
        .core_s = (double)bytes / 8e9,
        .role = role,
        .cell = cell,
        .expert = expert,
        .vector = bytes < 65536 && role != BRIG_ROLE_ROUTER,
        .of_expert = role >= BRIG_ROLE_EXPERT_FIRST && role < BRIG_ROLE_LAYER_COUNT,
    };
}

static void set_desc(struct brig_desc *d, uint32_t layers, uint32_t experts)
{
    *d = (struct brig_desc){.n_layers = layers,
                            .hidden = 4096,
                            .n_heads = 32,
                            .n_kv_heads = 8,
                            .head_dim = 128,
                            .ffn = 14336,
                            .vocab = 128256,
                            .ctx_trained = 131072,
                            .rope_dims = 128,
                            .n_experts = experts,
                            .n_experts_used = experts / 8,
                            .expert_ffn = experts > 0 ? 1024 : 0};
}

/* Layers of 8 to 44 MiB, each a little larger than the one before, and a head of 300 MiB. */
static void make_model(struct made *m, uint32_t layers, uint32_t experts)
{
    memset(m, 0, sizeof *m);
    set_desc(&m->model.desc, layers, experts);
    m->model.path = "made-up";
    m->line.n_cells = layers + 1;
    m->line.items = brig_alloc((size_t)layers * (8 + 3 * experts) + 2, sizeof *m->line.items);
    m->line.cell_pages = brig_alloc(layers + 1, sizeof(uint64_t));
    m->line.cell_bytes = brig_alloc(layers + 1, sizeof(uint64_t));
    for (uint32_t i = 0; i < layers; i++) {
        add(m, i, BRIG_ROLE_ATTN_NORM, 0, 16384);
        add(m, i, BRIG_ROLE_ATTN_Q, 0, 9 * MIB + i * 4099);
        add(m, i, BRIG_ROLE_ATTN_K, 0, 2 * MIB);
        add(m, i, BRIG_ROLE_ATTN_OUT, 0, 9 * MIB);
        if (experts == 0)
            add(m, i, BRIG_ROLE_FFN_DOWN, 0, 33 * MIB + i * 8191);
        else
            add(m, i, BRIG_ROLE_ROUTER, 0, MIB / 2);
        for (uint32_t k = 0; k < 3 * experts; k++)
            add(m, i, BRIG_ROLE_EXPERT_GATE + k / experts, k % experts, MIB);
    }
    add(m, layers, BRIG_ROLE_OUTPUT_NORM, 0, 16384);
    add(m, layers, BRIG_ROLE_OUTPUT, 0, 300 * MIB);
    brig_plan_line_settle(&m->line, experts, experts / 8);
}

static struct brig_plan_wish wish_of(const struct made *m, const char *mode, uint64_t budget)
{
    return (struct brig_plan_wish){.model = &m->model,
                                   .budget_bytes = budget,
                                   .mode = brig_mode_by_name(mode),
                                   .ctx = 512,
                                   .slots = 1,
                                   .max_rows = 512,
                                   .speed = {.memory_bytes_s = 12e9, .disk_bytes_s = 1.5e9, .threads = 2}};
}

static uint64_t check_sum(const struct brig_plan *p)
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < BRIG_PLAN_KINDS; i++)
        sum += p->bytes[i];
    assert_int_equal(sum, p->total_bytes);
    return sum;
}

/* ---- tests ---- */

static uint64_t least_of(const struct made *m, const struct brig_plan_wish *wish)
{
    struct brig_plan_wish none = *wish;
    struct brig_plan p;
    struct brig_fail fail = {0};
    none.budget_bytes = 0;
    if (brig_plan_from_line(&p, &none, &m->line, &fail) < 0)
        fail_msg("%s", fail.text);
    uint64_t least = p.least_bytes;
    check_sum(&p);
    brig_plan_release(&p);
    return least;
}

/* All budgets from the smallest up: never over, never slower, and in the end everything is held. */
static void sweep(const struct made *m, struct brig_plan_wish wish, uint64_t step)
{
    struct brig_fail fail = {0};
    struct brig_plan p = {0};
    uint64_t least = least_of(m, &wish), held = 0;
    double before = INFINITY;
    bool all = false;
    for (uint64_t budget = least; !all; budget += step) {
        wish.budget_bytes = budget;
        if (brig_plan_from_line(&p, &wish, &m->line, &fail) < 0)
            fail_msg("%llu: %s", (unsigned long long)budget, fail.text);
        assert_int_equal(p.least_bytes, least);
        assert_true(check_sum(&p) <= budget);
        assert_true(p.held_bytes >= held);
        assert_true(p.seconds_a_token <= before);
        assert_in_range(p.max_rows, BRIG_PLAN_ROWS, 512);
        held = p.held_bytes;
        before = p.seconds_a_token;
        all = p.hold != BRIG_HOLD_STREAM && p.held_bytes == p.token_bytes;
        brig_plan_release(&p);
        assert_true(budget < ((uint64_t)1 << 40));
    }
    wish.budget_bytes = least - BRIG_PLAN_PAGE;
    assert_int_equal(brig_plan_from_line(&p, &wish, &m->line, &fail), -BRIG_ELIMIT);
    assert_int_equal(p.least_bytes, least);
    assert_non_null(strstr(fail.text, "would do"));
}

static void free_model(struct made *m)
{
    brig_plan_line_release(&m->line);
}

static void more_memory_is_never_slower(void **state)
{
    struct made m;
    (void)state;
    make_model(&m, 23, 0);
    sweep(&m, wish_of(&m, "warm", 0), 3 * MIB + 4096);
    struct brig_plan_wish w = wish_of(&m, "warm", 0);
    w.n_shards = 5;
    sweep(&m, w, 7 * MIB);
    free_model(&m);
}

static void more_memory_is_never_slower_with_experts(void **state)
{
    struct made m;
    (void)state;
    make_model(&m, 4, 64);
    sweep(&m, wish_of(&m, "warm", 0), 3 * MIB + 4096);
    free_model(&m);
}

static void cold_takes_more_processes_where_that_fits(void **state)
{
    struct made m;
    struct brig_plan p;
    struct brig_fail fail;
    (void)state;
    make_model(&m, 23, 0);
    struct brig_plan_wish w = wish_of(&m, "cold", (uint64_t)700 * MIB);
    assert_int_equal(brig_plan_from_line(&p, &w, &m.line, &fail), 0);
    assert_true(p.n_shards > 3 && p.n_alive == 3 && p.hold != BRIG_HOLD_STREAM);
    assert_int_equal(p.held_bytes, 0);
    assert_int_equal(p.regime, BRIG_PLAN_DISK_BOUND);
    brig_plan_release(&p);
    w.budget_bytes = (uint64_t)200 * MIB; /* the head alone is larger */
    assert_int_equal(brig_plan_from_line(&p, &w, &m.line, &fail), 0);
    assert_int_equal(p.hold, BRIG_HOLD_STREAM);
    assert_int_equal(p.held_bytes, 0);
    brig_plan_release(&p);
    free_model(&m);
}

/* Of a line that is cut: fewer are started early the smaller the budget is, none at the smallest, and what is
 * counted is what can be there at once. */
static void as_many_are_started_early_as_fit(void **state)
{
    struct made m;
    struct brig_plan p;
    struct brig_fail fail;
    unsigned seen[3] = {0}, limited = 0, last = 0;
    (void)state;
    make_model(&m, 23, 0);
    for (unsigned way = 0; way < 3; way++) {
        struct brig_plan_wish w = wish_of(&m, way == 2 ? "pool" : "cold", 0);
        w.n_shards = 12;
        w.residency = brig_residency_by_name(way == 1 ? "stream" : "lock");
        uint64_t least = least_of(&m, &w);
        last = 0;
        for (uint64_t more = 0; more < 700 * MIB; more += 5 * MIB) {
            w.budget_bytes = least + more;
            assert_int_equal(brig_plan_from_line(&p, &w, &m.line, &fail), 0);
            if (more == 0)
                assert_int_equal(p.n_ahead, 0);
            assert_int_equal(p.least_bytes, least);
            assert_true(check_sum(&p) <= w.budget_bytes && p.n_ahead >= last);
            assert_int_equal(p.n_alive, (way == 2 ? 6 : 0) + 1 + p.n_ahead);
            assert_true(p.turn_bytes <= p.bytes[BRIG_PLAN_WEIGHTS]);
            seen[p.n_ahead]++;
            limited += p.turn_bytes != 0;
            last = p.turn_bytes == 0 ? p.n_ahead : last; /* one that may be there is less than one that is */
            brig_plan_release(&p);
        }
        assert_int_equal(p.n_ahead, 2);
    }
    assert_true(seen[0] > 0 && seen[1] > 0 && seen[2] > 0 && limited > 0);
    struct brig_plan_wish w = wish_of(&m, "cold", 0);
    w.n_shards = 5;
    w.residency = brig_residency_by_name("map");
    sweep(&m, w, 50 * MIB);
    free_model(&m);
}

static void a_pool_holds_what_lives(void **state)
{
    struct made m;
    struct brig_plan p;
    struct brig_fail fail;
    uint64_t before = 0;
    (void)state;
    make_model(&m, 23, 0);
    for (unsigned keep = 1; keep <= 12; keep++) {
        struct brig_plan_wish w = wish_of(&m, "pool", 0);
        w.n_shards = 12;
        w.keep = keep;
        w.residency = brig_residency_by_name("lock");
        assert_int_equal(brig_plan_from_line(&p, &w, &m.line, &fail), 0);
        assert_int_equal(p.n_alive, keep + 3 < 12 ? keep + 3 : 12);
        assert_true(p.held_bytes > before && p.bytes[BRIG_PLAN_WEIGHTS] >= p.held_bytes);
        before = p.held_bytes;
        brig_plan_release(&p);
        w.residency = brig_residency_by_name("stream");
        w.budget_bytes = 1200 * MIB;
        assert_int_equal(brig_plan_from_line(&p, &w, &m.line, &fail), 0);
        assert_true(p.held_bytes <= before && check_sum(&p) <= w.budget_bytes);
        brig_plan_release(&p);
    }
    assert_int_equal(before, p.token_bytes);
    free_model(&m);
}

/* However much is pinned, any few neighbouring layers have about their part of it. */
static void pins_are_spread_evenly(void **state)
{
    struct made m;
    struct brig_plan p;
    struct brig_fail fail;
    (void)state;
    make_model(&m, 32, 0);
    for (uint64_t budget = 700; budget <= 1900; budget += 100) {
        struct brig_plan_wish w = wish_of(&m, "warm", budget * MIB);
        uint64_t held[32] = {0}, all = 0;
        assert_int_equal(brig_plan_from_line(&p, &w, &m.line, &fail), 0);
        if (p.hold != BRIG_HOLD_STREAM)
            fail_msg("%llu MiB: nothing streams", (unsigned long long)budget);
        for (unsigned i = 0; i < m.line.n_items; i++) {
            const struct brig_plan_item *t = &m.line.items[i];
            assert_true(brig_plan_holds(&p, BRIG_ROLE_OUTPUT, 32, 0));
            if (t->cell < 32 && brig_plan_holds(&p, t->role, t->cell, t->expert)) {
                held[t->cell] += t->bytes;
                all += t->bytes;
            }
        }
        for (unsigned first = 0; first + 8 <= 32; first++) {
            uint64_t sum = 0;
            for (unsigned i = first; i < first + 8; i++)
                sum += held[i];
            double part = (double)sum * 4, largest = 4.0 * 2 * 34 * (double)MIB;
            assert_true(part < (double)all + largest && part > (double)all - largest);
        }
        brig_plan_release(&p);
    }
    free_model(&m);
}

static void regimes(void **state)
{
    struct made m;
    struct brig_plan p;
    struct brig_fail fail;
    (void)state;
    make_model(&m, 8, 0);
    struct brig_plan_wish w = wish_of(&m, "warm", 0);
    w.speed = (struct brig_plan_speed){.memory_bytes_s = 10e9, .disk_bytes_s = 1e9, .threads = 2};
    assert_int_equal(brig_plan_from_line(&p, &w, &m.line, &fail), 0);
    assert_int_equal(p.regime, BRIG_PLAN_MEMORY_BOUND);
    assert_float_equal(p.seconds_a_token, (double)p.token_bytes / 10e9, 1e-3);
    brig_plan_release(&p);
    w.speed = (struct brig_plan_speed){.memory_bytes_s = 100e9, .disk_bytes_s = 1e9, .threads = 2};
    assert_int_equal(brig_plan_from_line(&p, &w, &m.line, &fail), 0);
    assert_int_equal(p.regime, BRIG_PLAN_COMPUTE_BOUND);
    brig_plan_release(&p);
    w.budget_bytes = 300 * MIB;
    assert_int_equal(brig_plan_from_line(&p, &w, &m.line, &fail), 0);
    assert_int_equal(p.regime, BRIG_PLAN_DISK_BOUND);
    assert_float_equal(p.seconds_a_token, (double)brig_plan_read_bytes(&p) / 1e9, 1e-3);
    brig_plan_release(&p);
    /* Beside each other, half as fast: the one that takes longer goes on alone. */
    w.speed = (struct brig_plan_speed){.memory_bytes_s = 2e9,
                                       .disk_bytes_s = 1e9,
                                       .beside_memory_bytes_s = 1e9,
                                       .beside_disk_bytes_s = 0.5e9,
                                       .threads = 2};
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(brig_plan_from_line(&p, &w, &m.line, &fail), 0);
        double weights = (double)p.token_bytes / 1e9, read = (double)brig_plan_read_bytes(&p) / 1e9;
        double both = i == 0 ? weights / 1 : read / 0.5;
        assert_true((i == 0) == (weights / 1 < read / 0.5));
        double alone = i == 0 ? (read - 0.5 * both) / 1 : (weights - 1 * both) / 2;
        assert_float_equal(p.seconds_a_token, both + alone, 1e-3);
        brig_plan_release(&p);
        w.budget_bytes += (p.token_bytes + 2 * MIB) / 4 * 3;
    }
    w.budget_bytes = 300 * MIB;
    w.speed.disk_bytes_s = 0; /* then nobody knows */
    assert_int_equal(brig_plan_from_line(&p, &w, &m.line, &fail), 0);
    assert_true(p.seconds_a_token == 0);
    brig_plan_release(&p);
    free_model(&m);
}

static void a_context_is_chosen_that_fits(void **state)
{
    struct made m;
    struct brig_plan p;
    struct brig_fail fail;
    (void)state;
    make_model(&m, 23, 0);
    struct brig_plan_wish w = wish_of(&m, "warm", 0);
    w.ctx = 0;
    uint64_t least = least_of(&m, &w);
    w.budget_bytes = least;
    assert_int_equal(brig_plan_from_line(&p, &w, &m.line, &fail), 0);
    assert_int_equal(p.ctx, BRIG_PLAN_CTX_LEAST);
    brig_plan_release(&p);
    w.budget_bytes = 1024 * MIB;
    assert_int_equal(brig_plan_from_line(&p, &w, &m.line, &fail), 0);
    assert_in_range(p.ctx, BRIG_PLAN_CTX_LEAST + 1, BRIG_PLAN_CTX_MOST - 1);
    brig_plan_release(&p);
    w.budget_bytes = 16384 * MIB;
    assert_int_equal(brig_plan_from_line(&p, &w, &m.line, &fail), 0);
    assert_int_equal(p.ctx, BRIG_PLAN_CTX_MOST);
    assert_int_equal(p.hold, BRIG_HOLD_MAP);
    brig_plan_release(&p);
    free_model(&m);
}

/* A draft model takes its part of every budget, for the context that was chosen, and the rest is as it was.
 */
static void a_draft_model_is_counted(void **state)
{
    struct made m, draft;
    struct brig_plan p;
    struct brig_fail fail;
    (void)state;
    make_model(&m, 23, 0);
    make_model(&draft, 3, 0);
    draft.model.path = "small";
    struct brig_plan_wish w = wish_of(&m, "warm", 0);
    uint64_t alone = least_of(&m, &w);
    w.draft = &draft.model;
    m.line.draft_pages = draft.line.pages;
    uint64_t both = least_of(&m, &w);
    assert_true(both > alone + draft.line.pages && both < alone + draft.line.pages + 64 * MIB);
    sweep(&m, w, 9 * MIB);
    w.budget_bytes = both - BRIG_PLAN_PAGE;
    assert_int_equal(brig_plan_from_line(&p, &w, &m.line, &fail), -BRIG_ELIMIT);
    assert_non_null(strstr(fail.text, "made-up and the draft model small"));
    w.ctx = 0; /* a longer context is longer for both */
    uint64_t longest = 0;
    for (uint64_t budget = both; budget < 4096 * MIB; budget += 256 * MIB) {
        w.budget_bytes = budget;
        assert_int_equal(brig_plan_from_line(&p, &w, &m.line, &fail), 0);
        assert_true(p.draft_ctx == p.ctx && p.draft_rows == BRIG_PLAN_ROWS_USEFUL);
        const struct brig_plan_shape s = {
            .desc = &m.model.desc, .ctx = p.ctx, .threads = 2, .draft_pages = draft.line.pages};
        assert_int_equal(p.bytes[BRIG_PLAN_DRAFT], brig_plan_draft(&s, &draft.model));
        assert_true(check_sum(&p) <= budget);
        longest = p.ctx > longest ? p.ctx : longest;
        brig_plan_release(&p);
    }
    assert_true(longest > BRIG_PLAN_CTX_LEAST);
    draft.model.desc.learned_positions = true; /* which end before the model's */
    draft.model.desc.ctx_trained = 40;
    assert_int_equal(brig_plan_from_line(&p, &w, &m.line, &fail), 0);
    assert_true(p.draft_ctx == 40 && p.draft_rows == 40 && p.ctx > 40);
    brig_plan_release(&p);
    free_model(&draft);
    free_model(&m);
}

static void a_cache_of_absurd_size_is_refused(void **state)
{
    struct made m;
    struct brig_plan p;
    struct brig_fail fail;
    (void)state;
    make_model(&m, 4, 0);
    struct brig_plan_wish w = wish_of(&m, "warm", (uint64_t)1 << 45);
    w.ctx = BRIG_MAX_CTX;
    w.slots = UINT32_MAX;
    assert_int_equal(brig_plan_from_line(&p, &w, &m.line, &fail), -BRIG_ELIMIT);
    free_model(&m);
}

static uint64_t cache_bytes(const struct brig_model *m, struct brig_cells cells, struct rig_how how)
{
    struct brig_slice slice;
    struct brig_kv *kv;
    struct brig_fail fail;
    struct stat st;
    int fd = memfd_create("test-kv", MFD_CLOEXEC), copy = dup(fd);
    assert_int_equal(brig_slice_build(&slice, m, cells, &fail), 0);
    assert_int_equal(brig_kv_open(&kv, fd, &slice, (struct brig_kv_shape){how.kv, how.slots, how.ctx}, &fail),
                     0);
    assert_int_equal(fstat(copy, &st), 0);
    close(copy);
    brig_kv_close(kv);
    brig_slice_release(&slice);
    return (uint64_t)st.st_size;
}

/* What the plan says of a shard's scratch and cache, beside what the shard makes. */
static void check_shapes(const char *path)
{
    static const uint32_t rows_of[] = {1, 16, 112};
    struct brig_model *m;
    struct brig_fail fail;
    if (brig_model_open(&m, path, &fail) < 0)
        fail_msg("%s", fail.text);
    for (unsigned i = 0; i < 12; i++) {
        struct rig_how how = rig_exact();
        struct rig g;
        how.exact = (i & 1) != 0;
        how.kv = (enum brig_kv_id)(i % BRIG_KV_COUNT);
        how.max_rows = rows_of[i / 4];
        how.ctx = 100;
        how.threads = 1 + i % 3;
        bool head = (i & 2) != 0;
        struct brig_cells cells = {0, m->desc.n_layers + head};
        rig_open(&g, m, cells, how);
        const struct brig_plan_shape s = {.desc = &m->desc,
                                          .n_shards = 1,
                                          .n_alive = 1,
                                          .ctx = how.ctx,
                                          .slots = how.slots,
                                          .rows = how.max_rows,
                                          .threads = how.threads,
                                          .exact = how.exact,
                                          .kv = how.kv};
        uint64_t said = brig_plan_scratch(&s, true, head), real = g.block->memory_bytes;
        if (said < real || said > real + real / 16 + 8192)
            fail_msg("%s, %u rows: scratch of %llu bytes, planned %llu", path, how.max_rows,
                     (unsigned long long)real, (unsigned long long)said);
        rig_close(&g);
        assert_int_equal(brig_plan_kv(&s), cache_bytes(m, cells, how));
    }
    brig_model_close(m);
}

static void sizes_are_those_of_the_shard(void **state)
{
    (void)state;
    check_shapes("tests/fixtures/llama/q8_0.gguf");
    check_shapes("tests/fixtures/olmoe/q4_0.gguf");
}

/* Each tensor of each slice is held as the plan says, and what is counted as held is what is locked. */
static void check_slices(const struct brig_model *m, const struct brig_plan *p, unsigned n_shards)
{
    struct brig_cells cells[64];
    struct brig_fail fail;
    uint64_t locked = 0, streamed = 0;
    assert_int_equal(brig_slice_cut(m, n_shards, cells, &fail), 0);
    for (unsigned i = 0; i < n_shards; i++) {
        struct brig_slice s, copy;
        struct brig_buf bytes = {0};
        assert_int_equal(brig_slice_build(&s, m, cells[i], &fail), 0);
        brig_plan_apply(p, &s);
        for (unsigned k = 0; k < s.n_tensors; k++)
            *(s.tensors[k].hold == BRIG_HOLD_LOCK ? &locked : &streamed) += s.tensors[k].bytes;
        assert_string_equal(s.stream.reader, "threads");
        assert_true(s.stream.ring_bytes == 0 || s.stream.ring_bytes == p->ring_bytes);
        assert_int_equal(brig_slice_encode(&s, &bytes), 0); /* it is well formed */
        if (brig_slice_decode(&copy, bytes.data, bytes.len, &fail) < 0)
            fail_msg("%s", fail.text);
        brig_slice_release(&copy);
        brig_buf_release(&bytes);
        brig_slice_release(&s);
    }
    assert_int_equal(locked, p->held_bytes);
    assert_int_equal(streamed, brig_plan_read_bytes(p));
}

static void slices_are_told(void **state)
{
    struct brig_model *m = open_fixture("f32");
    const struct brig_residency *stream = brig_residency_by_name("stream");
    struct brig_plan p = {0};
    struct brig_fail fail;
    (void)state;
    for (unsigned n_shards = 1; n_shards <= 3; n_shards++)
        for (uint64_t more = 0; more < 16 * MIB; more += MIB / 2) {
            struct brig_plan_wish w = {.model = m,
                                       .mode = brig_mode_by_name("warm"),
                                       .n_shards = n_shards,
                                       .ctx = 64,
                                       .slots = 1,
                                       .max_rows = 64,
                                       .residency = stream,
                                       .speed = {.threads = 2, .reading = {.reader = "threads", .depth = 4}}};
            assert_int_equal(brig_plan_make(&p, &w, &fail), 0);
            w.budget_bytes = p.least_bytes + more;
            brig_plan_release(&p);
            assert_int_equal(brig_plan_make(&p, &w, &fail), 0);
            assert_int_equal(p.hold, BRIG_HOLD_STREAM);
            assert_true(more < 12 * MIB || p.held_bytes == p.token_bytes);
            check_slices(m, &p, n_shards);
            brig_plan_release(&p);
        }
    brig_model_close(m);
}

/* ---- sizes as people write them ---- */

static uint64_t bytes_of(const char *text)
{
    struct brig_ram ram;
    struct brig_fail fail;
    if (brig_ram_parse(text, &ram, &fail) < 0)
        return 0;
    return ram.kind == BRIG_RAM_BYTES ? ram.bytes : 1;
}

static void sizes_are_parsed(void **state)
{
    static const char *const wrong[] = {"",    "G",     "-1",  "0",   "1.2.3", "4GB",  "4 G",
                                        "1e9", "0%",    "%",   "nan", "inf",   "0x10", "1001%",
                                        "+1",  "2000T", " 4G", "4G ", "au",    "Auto"};
    struct brig_ram ram;
    struct brig_fail fail;
    (void)state;
    assert_int_equal(bytes_of("3000000"), 3000000);
    assert_int_equal(bytes_of("4G"), (uint64_t)4 << 30);
    assert_int_equal(bytes_of("1.5g"), (uint64_t)3 << 29);
    assert_int_equal(bytes_of("100K"), 102400);
    assert_int_equal(bytes_of("2M"), 2 * MIB);
    assert_int_equal(bytes_of("1T"), (uint64_t)1 << 40);
    assert_int_equal(brig_ram_parse("12.5%", &ram, &fail), 0);
    assert_true(ram.kind == BRIG_RAM_SHARE && ram.share == 0.125);
    assert_int_equal(brig_ram_parse("auto", &ram, &fail), 0);
    assert_int_equal(ram.kind, BRIG_RAM_AUTO);
    for (unsigned i = 0; i < sizeof wrong / sizeof *wrong; i++)
        if (brig_ram_parse(wrong[i], &ram, &fail) != -BRIG_EUSAGE)
            fail_msg("%s was taken", wrong[i]);
}

static void sizes_are_resolved(void **state)
{
    struct brig_model *m = open_fixture("q8_0");
    struct brig_ram ram;
    struct brig_fail fail;
    uint64_t v, all = m->files[0].bytes;
    (void)state;
    assert_int_equal(brig_ram_parse("50%", &ram, &fail), 0);
    assert_int_equal(brig_ram_resolve(&ram, m, &v, &fail), 0);
    assert_int_equal(v, all / 2 / 4096 * 4096);
    ram = (struct brig_ram){.kind = BRIG_RAM_NONE};
    assert_int_equal(brig_ram_resolve(&ram, m, &v, &fail), 0);
    assert_int_equal(v, 0);
    ram = (struct brig_ram){.kind = BRIG_RAM_AUTO};
    assert_int_equal(brig_ram_resolve(&ram, m, &v, &fail), 0);
    assert_true(v > MIB && v % 4096 == 0);
    brig_model_close(m);
}

/* ---- what is free, in made-up trees ---- */

struct tree {
    char root[64];
};

static void put(const struct tree *t, const char *path, const char *text)
{
    char whole[512];
    snprintf(whole, sizeof whole, "%s%s", t->root, path);
    for (char *p = whole + strlen(t->root) + 1; (p = strchr(p, '/')) != NULL; p++) {
        *p = '\0';
        mkdir(whole, 0700);
        *p = '/';
    }
    FILE *f = fopen(whole, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *at)
{
    (void)st;
    (void)flag;
    (void)at;
    return remove(path);
}

static void tree_open(struct tree *t)
{
    snprintf(t->root, sizeof t->root, "/tmp/brigade-tree-XXXXXX");
    assert_non_null(mkdtemp(t->root));
    put(t, "/proc/meminfo", "MemTotal: 100 kB\nMemFree: 5 kB\nMemAvailable:       8000 kB\n");
}

static void tree_close(struct tree *t)
{
    assert_int_equal(nftw(t->root, remove_one, 8, FTW_DEPTH | FTW_PHYS), 0);
}

static void free_memory_is_the_least_of_all(void **state)
{
    struct tree t;
    (void)state;
    tree_open(&t);
    assert_int_equal(brig_ram_free(t.root), 8000 * 1024);
    put(&t, "/proc/self/cgroup", "4:memory:/a/b\n3:cpu:/z\n0::/\n");
    assert_int_equal(brig_ram_free(t.root), 8000 * 1024);
    put(&t, "/sys/fs/cgroup/memory/a/memory.limit_in_bytes", "5000000\n");
    put(&t, "/sys/fs/cgroup/memory/a/memory.usage_in_bytes", "2000000\n");
    assert_int_equal(brig_ram_free(t.root), 3000000);
    put(&t, "/sys/fs/cgroup/memory/a/memory.stat", "cache 9\ntotal_inactive_file 500000\n");
    assert_int_equal(brig_ram_free(t.root), 3500000);
    put(&t, "/sys/fs/cgroup/memory/a/b/memory.limit_in_bytes", "9223372036854771712\n");
    put(&t, "/sys/fs/cgroup/memory/a/b/memory.usage_in_bytes", "7\n");
    assert_int_equal(brig_ram_free(t.root), 3500000);
    put(&t, "/sys/fs/cgroup/memory/memory.limit_in_bytes", "3\n"); /* what a container sees at the mount */
    put(&t, "/sys/fs/cgroup/memory/memory.usage_in_bytes", "1\n");
    assert_int_equal(brig_ram_free(t.root), 2);
    tree_close(&t);
}

static void free_memory_of_the_second_version(void **state)
{
    struct tree t;
    (void)state;
    tree_open(&t);
    put(&t, "/proc/self/cgroup", "0::/user.slice/x.scope\n");
    put(&t, "/sys/fs/cgroup/user.slice/x.scope/memory.max", "max\n");
    put(&t, "/sys/fs/cgroup/user.slice/x.scope/memory.current", "100\n");
    assert_int_equal(brig_ram_free(t.root), 8000 * 1024);
    put(&t, "/sys/fs/cgroup/user.slice/memory.max", "1000000\n");
    put(&t, "/sys/fs/cgroup/user.slice/memory.current", "400000\n");
    put(&t, "/sys/fs/cgroup/user.slice/memory.stat", "anon 5\ninactive_file 1000\n");
    assert_int_equal(brig_ram_free(t.root), 601000);
    put(&t, "/sys/fs/cgroup/user.slice/x.scope/memory.max", "50\n"); /* over its limit already */
    assert_int_equal(brig_ram_free(t.root), 0);
    tree_close(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(more_memory_is_never_slower),
        cmocka_unit_test(more_memory_is_never_slower_with_experts),
        cmocka_unit_test(cold_takes_more_processes_where_that_fits),
        cmocka_unit_test(as_many_are_started_early_as_fit),
        cmocka_unit_test(a_pool_holds_what_lives),
        cmocka_unit_test(pins_are_spread_evenly),
        cmocka_unit_test(regimes),
        cmocka_unit_test(a_context_is_chosen_that_fits),
        cmocka_unit_test(a_draft_model_is_counted),
        cmocka_unit_test(a_cache_of_absurd_size_is_refused),
        cmocka_unit_test(sizes_are_those_of_the_shard),
        cmocka_unit_test(slices_are_told),
        cmocka_unit_test(sizes_are_parsed),
        cmocka_unit_test(sizes_are_resolved),
        cmocka_unit_test(free_memory_is_the_least_of_all),
        cmocka_unit_test(free_memory_of_the_second_version),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
