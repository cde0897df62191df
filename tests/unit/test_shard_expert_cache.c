/* The cache of streamed experts: the same bits with any number of slots, what stays in it, and what happens
 * when reading fails. */
#include "tests/unit/shard_util.h"

#include <string.h>

#include "proto/model/experts.h"

#define OLMOE "tests/fixtures/olmoe/q4_0.gguf" /* 3 layers, 4 of 16 experts */
#define N_IDS 21u

static struct brig_model *open_model(const char *path)
{
    struct brig_model *m;
    struct brig_fail fail;
    if (brig_model_open(&m, path, &fail) < 0)
        fail_msg("%s", fail.text);
    return m;
}

static uint64_t slot_bytes(const struct brig_model *m)
{
    struct brig_slice s;
    struct brig_expert_sizes sizes;
    assert_int_equal(brig_slice_build(&s, m, (struct brig_cells){0, m->desc.n_layers + 1}, NULL), 0);
    assert_false(brig_slice_expert_sizes(&s, 4096, &sizes)); /* all is mapped */
    brig_slice_hold(&s, BRIG_HOLD_STREAM);
    assert_true(brig_slice_expert_sizes(&s, 4096, &sizes));
    assert_int_equal(sizes.n_experts, m->desc.n_layers * m->desc.n_experts);
    brig_slice_release(&s);
    return sizes.slot_bytes;
}

/* ---- the same bits ---- */

static void check_model(const char *path, bool exact)
{
    struct brig_model *m = open_model(path);
    uint32_t used = m->desc.n_experts_used, all = m->desc.n_layers * m->desc.n_experts;
    const uint32_t slots[] = {1, used, used + 1, 2 * used + 3, all, 10 * all};
    uint32_t ids[N_IDS], cut = 1;
    uint64_t one = slot_bytes(m);
    for (unsigned i = 0; i < N_IDS; i++)
        ids[i] = (i * 7919 + 13) % m->desc.vocab;
    struct rig_how how = {.threads = 1,
                          .max_rows = 64,
                          .ctx = 64,
                          .slots = 2,
                          .exact = exact,
                          .kv = exact ? BRIG_KV_F32 : BRIG_KV_F16};
    float *want = logits_of(m, ids, N_IDS, how, N_IDS, NULL, 0);
    how.hold = BRIG_HOLD_STREAM;
    for (unsigned i = 0; i < sizeof slots / sizeof *slots; i++) {
        how.threads = 1 + i % 2;
        how.stream.expert_cache_bytes = slots[i] * one + 17;
        for (uint32_t batch = 1; batch <= N_IDS; batch += 10) {
            float *got = logits_of(m, ids, N_IDS, how, batch, &cut, i % 2);
            assert_memory_equal(want, got, (size_t)N_IDS * m->desc.vocab * sizeof *got);
            brig_free(got);
        }
    }
    brig_free(want);
    brig_model_close(m);
}

static void same_bits(void **state)
{
    (void)state;
    check_model(OLMOE, false);
    check_model(OLMOE, true);
    check_model("tests/fixtures/mixtral/hub", false);
}

/* ---- what stays ---- */

struct held {
    struct brig_slice slice;
    struct brig_weights *weights;
    int fd;
};

/* The experts of the model streamed, all else mapped. */
static int open_held(struct held *h, const struct brig_model *m, int fd, uint64_t cache_bytes,
                     struct brig_fail *fail)
{
    h->fd = fd;
    assert_int_equal(brig_slice_build(&h->slice, m, (struct brig_cells){0, m->desc.n_layers + 1}, fail), 0);
    for (unsigned i = 0; i < h->slice.n_tensors; i++)
        if (h->slice.tensors[i].role >= BRIG_ROLE_EXPERT_FIRST &&
            h->slice.tensors[i].role < BRIG_ROLE_LAYER_COUNT)
            h->slice.tensors[i].hold = BRIG_HOLD_STREAM;
    h->slice.stream.expert_cache_bytes = cache_bytes;
    return brig_weights_open(&h->weights, &h->slice, &h->fd, 1, fail);
}

static void close_held(struct held *h)
{
    brig_weights_close(h->weights);
    brig_slice_release(&h->slice);
}

/* The bytes of a taken expert are those of the file. */
static void check_bytes(struct held *h, uint32_t layer, uint32_t expert)
{
    for (unsigned part = 0; part < BRIG_EXPERT_PARTS; part++) {
        struct brig_matrix m;
        const struct brig_slice_tensor *t = NULL;
        for (unsigned i = 0; t == NULL && i < h->slice.n_tensors; i++)
            if (h->slice.tensors[i].role == brig_expert_part_role(part) &&
                h->slice.tensors[i].layer == layer && h->slice.tensors[i].expert == expert)
                t = &h->slice.tensors[i];
        assert_non_null(t);
        assert_true(brig_weights_expert(h->weights, brig_expert_part_role(part), layer, expert, &m));
        assert_non_null(m.data);
        uint8_t *want = brig_alloc(t->bytes, 1);
        assert_int_equal(pread(h->fd, want, t->bytes, (off_t)t->offset), t->bytes);
        assert_memory_equal(m.data, want, t->bytes);
        brig_free(want);
    }
}

/* One turn of a layer with these experts. Returns how many of them needed no reading. */
static uint32_t turn(struct held *h, uint32_t layer, const uint32_t *experts, uint32_t n)
{
    struct brig_fail fail;
    uint32_t list[64], got;
    uint64_t before = brig_weights_stats(h->weights).expert_hits;
    memcpy(list, experts, n * sizeof *list);
    for (uint32_t at = 0; at < n; at += got) {
        if (brig_weights_experts_take(h->weights, layer, list + at, n - at, &got, &fail) < 0)
            fail_msg("%s", fail.text);
        assert_in_range(got, 1, n - at);
        for (uint32_t i = at; i < at + got; i++)
            check_bytes(h, layer, list[i]);
        brig_weights_experts_give(h->weights, layer);
    }
    for (uint32_t i = 0; i < n; i++) { /* the list is the same, in another order */
        uint32_t times = 0;
        for (uint32_t k = 0; k < n; k++)
            times += list[k] == experts[i];
        assert_int_equal(times, 1);
    }
    return (uint32_t)(brig_weights_stats(h->weights).expert_hits - before);
}

static void pass(struct held *h)
{
    brig_weights_begin(h->weights, BRIG_PART_LAYERS);
}

static void what_stays(void **state)
{
    (void)state;
    struct brig_model *m = open_model(OLMOE);
    struct brig_fail fail;
    struct held h;
    static const uint32_t a[] = {0, 1, 2, 3}, b[] = {4, 5, 6, 7}, c[] = {0, 1, 8, 9};
    assert_int_equal(open_held(&h, m, m->files[0].fd, 12 * slot_bytes(m), &fail), 0);
    pass(&h);
    for (uint32_t layer = 0; layer < 3; layer++)
        assert_int_equal(turn(&h, layer, a, 4), 0);
    pass(&h);
    for (uint32_t layer = 0; layer < 3;
         layer++) /* one pass has room: a cycle over more would find none with LRU */
        assert_int_equal(turn(&h, layer, a, 4), 4);
    pass(&h);
    assert_int_equal(turn(&h, 0, b, 4), 0);
    assert_int_equal(turn(&h, 1, a, 4), 4); /* the others' made room, of layer 0, whose turn is farthest */
    assert_int_equal(turn(&h, 2, a, 4), 4);
    pass(&h);
    assert_int_equal(turn(&h, 0, c, 4), 0);
    uint32_t hits = 4 * (3 + 2);
    for (unsigned i = 0; i < 6; i++) { /* often used ones outlast those that pass through */
        pass(&h);
        assert_int_equal(turn(&h, 1, a, 4), 4);
        hits += 4 + turn(&h, 2, i % 2 == 0 ? b : c, 4);
    }
    struct brig_weights_stats s = brig_weights_stats(h.weights);
    assert_int_equal(s.experts_used, 4 * (3 + 3 + 3 + 1 + 12));
    assert_int_equal(s.expert_hits, hits);
    assert_true(s.expert_read_bytes >= (s.experts_used - s.expert_hits) * 3 * 64 * 32 * 18 / 32);
    close_held(&h);
    brig_model_close(m);
}

static const uint32_t lists[][4] = {{0, 1, 2, 3}, {4, 5, 6, 7}, {8, 9, 10, 11}, {12, 13, 14, 15}};

/* A pass whose layers take list i, one after another all of them, so that what is guessed for layer 1 is
 * missing: whether it was read at once. */
static bool guess_is_read(struct held *h, uint32_t i, bool right)
{
    pass(h);
    turn(h, 0, lists[i % 4], 4);
    uint64_t before = brig_weights_stats(h->weights).expert_read_bytes;
    brig_weights_experts_guess(h->weights, 1, lists[(right ? i : i + 2) % 4], 4);
    uint64_t after = brig_weights_stats(h->weights).expert_read_bytes;
    turn(h, 1, lists[i % 4], 4);
    return after > before;
}

static void guesses(void **state)
{
    (void)state;
    struct brig_model *m = open_model(OLMOE);
    struct brig_fail fail;
    struct held h;
    static const uint32_t a[] = {0, 1, 2, 3}, b[] = {2, 3, 4, 5}, all[] = {0, 1, 2, 3, 4, 5, 6, 7, 8};
    assert_int_equal(open_held(&h, m, m->files[0].fd, 9 * slot_bytes(m), &fail), 0);
    assert_false(guess_is_read(&h, 0, false));
    for (uint32_t i = 1; i < 20; i++) /* nothing is known at first */
        guess_is_read(&h, i, true);
    assert_true(guess_is_read(&h, 20, true));
    uint64_t bytes = brig_weights_stats(h.weights).expert_read_bytes;
    brig_weights_experts_guess(h.weights, 1, lists[0], 4); /* they are there */
    assert_int_equal(brig_weights_stats(h.weights).expert_read_bytes, bytes);
    for (uint32_t i = 21; i < 400; i++)
        guess_is_read(&h, i, false);
    assert_false(guess_is_read(&h, 400, false));
    brig_weights_experts_guess(h.weights, 2, all, 9); /* more than have room beside those guessed before */
    brig_weights_experts_guess(h.weights, 3, all, 9); /* no layer of these */
    turn(&h, 1, b, 4);
    turn(&h, 2, all, 9);
    pass(&h); /* a wrong guess does no harm */
    brig_weights_experts_guess(h.weights, 0, b, 4);
    brig_weights_experts_guess(h.weights, 1, a, 4);
    turn(&h, 0, all, 9);
    turn(&h, 1, all, 9);
    close_held(&h);
    brig_model_close(m);
}

/* ---- what fails ---- */

static void failures(void **state)
{
    (void)state;
    struct brig_model *m = open_model(OLMOE);
    struct brig_fail fail = {0};
    struct held h = {0};
    uint64_t bytes = m->files[0].bytes, one = slot_bytes(m);
    uint32_t list[] = {0, 15}, got;
    assert_int_equal(open_held(&h, m, m->files[0].fd, one - 1, &fail), -BRIG_EUSAGE);
    assert_non_null(strstr(fail.text, "no room for one"));
    brig_slice_release(&h.slice);

    char path[] = "/tmp/brigade-experts-XXXXXX";
    int fd = mkstemp(path);
    uint8_t *copy = brig_alloc(bytes, 1);
    assert_true(fd >= 0 && copy != NULL);
    assert_int_equal(pread(m->files[0].fd, copy, bytes, 0), bytes);
    assert_int_equal(write(fd, copy, bytes), bytes);
    assert_int_equal(open_held(&h, m, fd, 3 * one, &fail), 0);
    pass(&h);
    assert_int_equal(turn(&h, 2, list, 2), 0);
    assert_int_equal(ftruncate(fd, 8192), 0);
    pass(&h);
    assert_int_equal(brig_weights_experts_take(h.weights, 1, list, 2, &got, &fail), -BRIG_EIO);
    assert_non_null(strstr(fail.text, "expert "));
    assert_non_null(strstr(fail.text, " of layer 1: "));
    assert_non_null(strstr(fail.text, path));
    assert_int_equal(pwrite(fd, copy, bytes, 0), bytes); /* it is whole again: so is the cache */
    for (unsigned i = 0; i < 3; i++) {
        pass(&h);
        turn(&h, 0, list, 2);
        turn(&h, 1, list, 2);
        turn(&h, 2, list, 2);
    }
    close_held(&h);
    close(fd);
    unlink(path);
    brig_free(copy);
    brig_model_close(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_bits),
        cmocka_unit_test(what_stays),
        cmocka_unit_test(guesses),
        cmocka_unit_test(failures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
