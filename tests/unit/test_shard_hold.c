/* Residencies: the same bits however weights are held, in any order of use, and what happens when reading
 * fails. */
#include "tests/unit/shard_util.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "proto/model/load.h"
#include "shard/weights/ring.h"

static const char *const TYPES[] = {"q4_0", "q8_0", "q5_0", "f16", "f32"};
#define N_IDS 23u

static struct rig_how how_of(unsigned threads)
{
    struct rig_how how = {.threads = threads, .max_rows = 64, .ctx = 64, .slots = 2};
    return how;
}

static uint64_t seed = 0x853c49e6748fea9bull;

static uint32_t random_below(uint32_t n)
{
    seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
    return (uint32_t)((seed >> 32) % n);
}

static uint64_t ring_min(const struct brig_model *m)
{
    struct brig_slice s;
    assert_int_equal(brig_slice_build(&s, m, (struct brig_cells){0, m->desc.n_layers + 1}, NULL), 0);
    brig_slice_hold(&s, BRIG_HOLD_STREAM);
    uint64_t n = brig_slice_ring_min(&s, 4096);
    brig_slice_release(&s);
    return n;
}

static void check_type(const char *type)
{
    struct brig_model *m = open_fixture(type);
    uint32_t ids[N_IDS];
    uint64_t least = ring_min(m);
    const struct {
        enum brig_hold hold;
        struct brig_stream_set set;
    } ways[] = {
        {BRIG_HOLD_LOCK, {"", false, 0, 0, 0, 0}},
        {BRIG_HOLD_LOCK, {"threads", true, 4096, 1, 0, 0}},
        {BRIG_HOLD_STREAM, {"", false, 0, 0, 0, 0}},
        {BRIG_HOLD_STREAM, {"", false, 4096, 2, least, 0}},
        {BRIG_HOLD_STREAM, {"threads", true, 8192, 3, least, 0}},
        {BRIG_HOLD_STREAM, {"threads", false, 65536, 1, least + 8192, 0}},
    };
    for (unsigned i = 0; i < N_IDS; i++)
        ids[i] = random_below(m->desc.vocab);
    uint32_t cut = 1;
    float *want = logits_of(m, ids, N_IDS, how_of(1), N_IDS, NULL, 0);
    for (unsigned w = 0; w < sizeof ways / sizeof *ways; w++) {
        struct rig_how how = how_of(1 + w % 2);
        how.hold = ways[w].hold;
        how.stream = ways[w].set;
        for (uint32_t batch = 1; batch <= N_IDS; batch += 11) {
            float *got = logits_of(m, ids, N_IDS, how, batch, &cut, w % 2);
            assert_same_bits(want, got, (size_t)N_IDS * m->desc.vocab);
            brig_free(got);
        }
    }
    brig_free(want);
    brig_model_close(m);
}

static void test_same_bits(void **state)
{
    (void)state;
    for (unsigned i = 0; i < sizeof TYPES / sizeof *TYPES; i++)
        check_type(TYPES[i]);
}

/* ---- the ring ---- */

/* Against a map of bytes: runs never overlap, never pass the end, and a ring with room gives some. */
static void test_ring(void **state)
{
    (void)state;
    for (unsigned round = 0; round < 200; round++) {
        struct brig_ring r = {.bytes = 8 + random_below(120)};
        uint64_t at[128], bytes[128];
        uint8_t used[128] = {0};
        uint32_t first = 0, n = 0;
        for (unsigned step = 0; step < 500; step++) {
            uint64_t want = 1 + random_below((uint32_t)r.bytes), got;
            if (n < 100 && brig_ring_take(&r, want, &got)) {
                assert_true(got + want <= r.bytes);
                for (uint64_t i = got; i < got + want; i++)
                    assert_int_equal(used[i]++, 0);
                at[(first + n) % 128] = got;
                bytes[(first + n++) % 128] = want;
            } else if (n > 0) {
                for (uint64_t i = 0; i < bytes[first]; i++)
                    used[at[first] + i] = 0;
                first = (first + 1) % 128;
                n--;
                brig_ring_give(&r, n > 0 ? at[first] : r.next);
            } else {
                fail_msg("an empty ring of %u has no room for %u", (unsigned)r.bytes, (unsigned)want);
            }
        }
    }
}

/* ---- loads ---- */

/* Every row of every matrix is in one piece, in the order of use, inside of its load, which is no larger than
 * asked for where a cut is possible, and inside of its file. */
static void check_loads(const struct brig_slice *s, enum brig_hold hold, uint64_t align, uint64_t max)
{
    struct brig_loads l;
    struct brig_fail fail;
    if (brig_loads_build(&l, s, hold, align, max, &fail) < 0)
        fail_msg("%s", fail.text);
    uint32_t n_pieces = 0, last_load = 0;
    for (uint32_t i = 0; i < l.n_loads; i++) {
        const struct brig_load *x = &l.loads[i];
        assert_true(x->offset % align == 0 && x->bytes % align == 0 && x->bytes > 0 && x->bytes <= l.most);
        assert_true(x->offset + x->bytes < s->file_bytes[x->file] + align);
    }
    for (uint32_t i = 0; i < s->n_tensors; i++) {
        const struct brig_slice_tensor *t = &s->tensors[i];
        uint64_t row = 0;
        if (t->rows == 1 || t->hold != hold)
            continue;
        for (uint32_t k = l.first[i]; row < t->rows; k++, n_pieces++) {
            const struct brig_load_piece *p = &l.pieces[k];
            const struct brig_load *x = &l.loads[p->load];
            assert_true(p->tensor == i && p->first_row == row && p->n_rows > 0 && x->file == t->file);
            assert_int_equal(x->offset + p->at, t->offset + row * (t->bytes / t->rows));
            assert_true(p->at + p->n_rows * (t->bytes / t->rows) <= x->bytes && k <= x->last_piece);
            row += p->n_rows;
            assert_true(row == t->rows || row % 16 == 0);
            assert_true(hold == BRIG_HOLD_STREAM || p->n_rows == t->rows);
            assert_true(hold == BRIG_HOLD_LOCK || p->n_rows <= 16 || x->bytes <= max);
            bool head = t->role >= BRIG_ROLE_LAYER_COUNT;
            assert_true(head == (p->load >= l.head_load) && head == (k >= l.head_piece));
        }
        assert_int_equal(row, t->rows);
    }
    assert_int_equal(n_pieces, l.n_pieces);
    for (uint32_t i = 0; i < l.n_pieces; i++) /* loads by their first pieces */
        if (l.pieces[i].load >= last_load) {
            assert_true(l.pieces[i].load - last_load <= 1);
            last_load = l.pieces[i].load;
        }
    assert_int_equal(l.n_loads > 0 ? last_load + 1 : 0, l.n_loads);
    brig_loads_release(&l);
}

static void test_loads(void **state)
{
    (void)state;
    for (unsigned i = 0; i < sizeof TYPES / sizeof *TYPES; i++) {
        struct brig_model *m = open_fixture(TYPES[i]);
        for (uint32_t first = 0; first <= m->desc.n_layers; first += 2)
            for (uint64_t align = 512; align <= 8192; align *= 4) {
                struct brig_slice s;
                struct brig_cells cells = {first, m->desc.n_layers + (first % 4 == 0 ? 1u : 0u)};
                if (cells.first >= cells.last)
                    continue;
                assert_int_equal(brig_slice_build(&s, m, cells, NULL), 0);
                check_loads(&s, BRIG_HOLD_LOCK, align, BRIG_LOAD_MAX_BYTES);
                brig_slice_hold(&s, BRIG_HOLD_LOCK);
                check_loads(&s, BRIG_HOLD_LOCK, align, BRIG_LOAD_MAX_BYTES);
                brig_slice_hold(&s, BRIG_HOLD_STREAM);
                for (uint64_t max = 4 * align; max < 2u << 20; max *= 3)
                    check_loads(&s, BRIG_HOLD_STREAM, align, max);
                assert_true(brig_slice_ring_min(&s, align) <= brig_slice_ring_default(&s, align));
                brig_slice_release(&s);
            }
        brig_model_close(m);
    }
}

/* ---- use that was not foreseen ---- */

struct held {
    struct brig_model *m;
    struct brig_slice slice;
    struct brig_weights *w;
};

static void hold_open(struct held *h, struct brig_model *m, enum brig_hold hold, uint64_t ring)
{
    struct brig_fail fail;
    int fds[1] = {m->files[0].fd};
    h->m = m;
    assert_int_equal(brig_slice_build(&h->slice, m, (struct brig_cells){0, m->desc.n_layers + 1}, NULL), 0);
    brig_slice_hold(&h->slice, hold);
    h->slice.stream.ring_bytes = ring;
    if (brig_weights_open(&h->w, &h->slice, fds, 1, &fail) < 0)
        fail_msg("%s", fail.text);
}

static void hold_close(struct held *h)
{
    brig_weights_close(h->w);
    brig_slice_release(&h->slice);
}

/* Some rows of a matrix are those of the file. */
static void check_rows(struct held *h, uint32_t tensor, uint64_t row)
{
    const struct brig_slice_tensor *t = &h->slice.tensors[tensor];
    struct brig_matrix m, part;
    struct brig_fail fail;
    assert_true(brig_weights_matrix(h->w, t->role, t->layer, &m));
    if (brig_weights_take(h->w, &m, row, true, &part, &fail) != 1)
        fail_msg("%s", fail.text);
    uint64_t bytes = part.rows * m.row_bytes;
    uint8_t *want = brig_alloc(bytes, 1);
    assert_int_equal(pread(h->m->files[0].fd, want, bytes, (off_t)(t->offset + row * m.row_bytes)), bytes);
    assert_memory_equal(want, part.data, bytes);
    brig_free(want);
}

/* Passes that end early, parts in another order, matrices at random: the right bytes always. */
static void test_any_order(void **state)
{
    (void)state;
    struct brig_model *m = open_fixture("q8_0");
    const uint64_t rings[] = {ring_min(m), 2 * ring_min(m), 0, 64u << 20};
    for (unsigned i = 0; i < sizeof rings / sizeof *rings; i++) {
        struct held h;
        hold_open(&h, m, BRIG_HOLD_STREAM, rings[i]);
        for (unsigned step = 0; step < 400; step++) {
            uint32_t t = random_below(h.slice.n_tensors);
            if (random_below(8) == 0)
                brig_weights_expect(h.w, random_below(4));
            if (random_below(8) == 0)
                brig_weights_begin(h.w, random_below(3) == 0 ? BRIG_PART_HEAD : BRIG_PART_LAYERS);
            if (h.slice.tensors[t].hold == BRIG_HOLD_STREAM)
                check_rows(&h, t, 0);
            if (random_below(4) > 0)
                brig_weights_give(h.w);
        }
        hold_close(&h);
    }
    brig_model_close(m);
}

/* Passes as they are foreseen read each load once. */
static void test_reads_once(void **state)
{
    (void)state;
    struct brig_model *m = open_fixture("f32");
    struct held h;
    struct brig_loads l;
    hold_open(&h, m, BRIG_HOLD_STREAM, ring_min(m));
    uint64_t ring = ring_min(m);
    assert_int_equal(brig_loads_build(&l, &h.slice, BRIG_HOLD_STREAM, 4096, brig_ring_load_bytes(ring), NULL),
                     0);
    enum { PASSES = 5 };
    for (unsigned pass = 0; pass < PASSES; pass++) {
        unsigned n_heads = pass % 3;
        brig_weights_expect(h.w, n_heads);
        for (unsigned part = 0; part <= n_heads; part++) {
            brig_weights_begin(h.w, part == 0 ? BRIG_PART_LAYERS : BRIG_PART_HEAD);
            for (uint32_t i = part == 0 ? 0 : l.head_piece; i < (part == 0 ? l.head_piece : l.n_pieces);
                 i++) {
                check_rows(&h, l.pieces[i].tensor, l.pieces[i].first_row);
                brig_weights_give(h.w);
            }
        }
    }
    uint64_t head = 0;
    for (uint32_t i = l.head_load; i < l.n_loads; i++)
        head += l.loads[i].bytes;
    uint64_t used = PASSES * (l.bytes - head) + (0 + 1 + 2 + 0 + 1) * head;
    uint64_t read = brig_weights_stats(h.w).read_bytes;
    /* A load at the end of the file is shorter; and some of the next pass has been begun. */
    assert_in_range(read, used - 16 * 4096, used + ring + 4096);
    brig_loads_release(&l);
    hold_close(&h);
    brig_model_close(m);
}

static void test_ring_too_small(void **state)
{
    (void)state;
    struct brig_model *m = open_fixture("f32");
    struct brig_slice s;
    struct brig_weights *w;
    struct brig_fail fail;
    int fds[1] = {m->files[0].fd};
    assert_int_equal(brig_slice_build(&s, m, (struct brig_cells){0, m->desc.n_layers + 1}, NULL), 0);
    brig_slice_hold(&s, BRIG_HOLD_STREAM);
    s.stream.ring_bytes = brig_slice_ring_min(&s, 4096) - 1;
    assert_int_equal(brig_weights_open(&w, &s, fds, 1, &fail), -BRIG_EUSAGE);
    assert_non_null(strstr(fail.text, "are needed"));
    snprintf(s.stream.reader, sizeof s.stream.reader, "none");
    assert_int_equal(brig_weights_open(&w, &s, fds, 1, &fail), -BRIG_EUNSUPPORTED);
    assert_non_null(strstr(fail.text, "no reader \"none\""));
    brig_slice_release(&s);
    brig_model_close(m);
}

/* ---- a file that changes its length ---- */

static void check_length(const struct held *h, int fd, uint64_t had, uint64_t has, const char *how)
{
    struct brig_fail fail = {0};
    char sizes[96];
    assert_int_equal(ftruncate(fd, (off_t)has), 0);
    assert_int_equal(brig_weights_check(h->w, &fail), -BRIG_EIO);
    snprintf(sizes, sizeof sizes, "became %s while it was in use: it has %llu bytes, it had %llu", how,
             (unsigned long long)has, (unsigned long long)had);
    if (strstr(fail.text, sizes) == NULL || strstr(fail.text, "test-length") == NULL)
        fail_msg("\"%s\" does not say that it %s", fail.text, sizes);
    assert_int_equal(ftruncate(fd, (off_t)had), 0);
    assert_int_equal(brig_weights_check(h->w, &fail), 0);
}

static void test_a_length_that_changes(void **state)
{
    (void)state;
    struct brig_model *fixture = open_fixture("q8_0"), *m;
    uint64_t had = fixture->files[0].bytes;
    uint8_t *bytes = brig_alloc(had, 1);
    char path[64];
    int fd = memfd_create("test-length", MFD_CLOEXEC);
    assert_int_equal(pread(fixture->files[0].fd, bytes, had, 0), had);
    assert_int_equal(pwrite(fd, bytes, had, 0), had);
    brig_free(bytes);
    brig_model_close(fixture);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    assert_int_equal(brig_model_open(&m, path, NULL), 0);
    for (unsigned hold = 0; hold < BRIG_HOLD_COUNT; hold++) {
        struct held h;
        hold_open(&h, m, (enum brig_hold)hold, 0);
        assert_int_equal(brig_weights_check(h.w, NULL), 0);
        check_length(&h, fd, had, had - 1, "shorter");
        check_length(&h, fd, had, 0, "shorter");
        check_length(&h, fd, had, had + 1, "longer");
        hold_close(&h);
    }
    brig_model_close(m);
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_bits),
        cmocka_unit_test(test_ring),
        cmocka_unit_test(test_loads),
        cmocka_unit_test(test_any_order),
        cmocka_unit_test(test_reads_once),
        cmocka_unit_test(test_ring_too_small),
        cmocka_unit_test(test_a_length_that_changes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
