/* Slices: the cut against brute force, bytes, description and back, hostile descriptions, page ranges. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "proto/base/mem.h"
#include "proto/model/slice.h"
#include "tests/unit/gguf_maker.h"

static uint64_t seed = 0x9e3779b97f4a7c15ull;

static uint32_t random_below(uint32_t n)
{
    seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
    return (uint32_t)((seed >> 32) % n);
}

static uint64_t run_cost(const uint64_t *bytes, struct brig_cells run)
{
    uint64_t sum = 0;
    for (unsigned c = run.first; c < run.last; c++)
        sum += bytes[c];
    return sum;
}

static uint64_t largest(const uint64_t *bytes, const struct brig_cells *cells, unsigned n)
{
    uint64_t max = 0;
    for (unsigned i = 0; i < n; i++) {
        uint64_t c = run_cost(bytes, cells[i]);
        max = c > max ? c : max;
    }
    return max;
}

/* The same over the runs of more than one cell. */
static uint64_t largest_joined(const uint64_t *bytes, const struct brig_cells *cells, unsigned n)
{
    uint64_t max = 0;
    for (unsigned i = 0; i < n; i++)
        if (cells[i].last - cells[i].first > 1) {
            uint64_t c = run_cost(bytes, cells[i]);
            max = c > max ? c : max;
        }
    return max;
}

/* All ways to cut, in the order of their cuts: the first with the least maximum, and of those with the least
 * maximum of joined cells, is kept. */
struct brute {
    const uint64_t *bytes;
    unsigned n_cells, n;
    uint64_t best, best_joined;
    struct brig_cells now[16], cells[16];
};

static void brute(struct brute *b, unsigned k, unsigned first)
{
    if (k + 1 == b->n) {
        b->now[k] = (struct brig_cells){first, b->n_cells};
        uint64_t max = largest(b->bytes, b->now, b->n);
        uint64_t joined = largest_joined(b->bytes, b->now, b->n);
        if (max < b->best || (max == b->best && joined < b->best_joined)) {
            b->best = max;
            b->best_joined = joined;
            memcpy(b->cells, b->now, sizeof b->cells);
        }
        return;
    }
    for (unsigned last = first + 1; last + (b->n - k - 1) <= b->n_cells; last++) {
        b->now[k] = (struct brig_cells){first, last};
        brute(b, k + 1, last);
    }
}

static void test_cut_brute_force(void **state)
{
    (void)state;
    for (unsigned round = 0; round < 1500; round++) {
        unsigned n_cells = 1 + random_below(9);
        uint64_t bytes[9];
        uint32_t spread = 1 + random_below(3) * random_below(100);
        for (unsigned i = 0; i < n_cells; i++)
            bytes[i] = 1 + random_below(spread);
        if (random_below(2) == 0)
            bytes[n_cells - 1] *= 5; /* a heavy head, as real models have */
        for (unsigned n = 1; n <= n_cells; n++) {
            struct brute b = {bytes, n_cells, n, UINT64_MAX, UINT64_MAX, {{0, 0}}, {{0, 0}}};
            struct brig_cells cells[16];
            brute(&b, 0, 0);
            assert_int_equal(brig_slice_cut_sizes(bytes, n_cells, n, cells, NULL), 0);
            assert_int_equal(largest(bytes, cells, n), b.best);
            assert_memory_equal(cells, b.cells, n * sizeof cells[0]);
        }
    }
}

/* The longest line: against the least limit that a greedy filling accepts. */
static void test_cut_long(void **state)
{
    (void)state;
    unsigned n_cells = BRIG_MAX_LAYERS + 1;
    uint64_t *bytes = brig_alloc(n_cells, sizeof *bytes);
    struct brig_cells *cells = brig_alloc(n_cells, sizeof *cells);
    for (unsigned i = 0; i < n_cells; i++)
        bytes[i] = ((uint64_t)1 << 40) + random_below(1u << 30);
    static const unsigned counts[] = {1, 2, 3, 64, 1000, 4096, 4097};
    for (unsigned k = 0; k < sizeof counts / sizeof counts[0]; k++) {
        unsigned n = counts[k], runs = 0, at = 0;
        assert_int_equal(brig_slice_cut_sizes(bytes, n_cells, n, cells, NULL), 0);
        uint64_t max = largest(bytes, cells, n), sum = 0;
        for (unsigned i = 0; i < n; i++) {
            assert_true(cells[i].first == at && cells[i].last > at);
            at = cells[i].last;
        }
        assert_int_equal(at, n_cells);
        for (unsigned i = 0; i < n_cells; i++) { /* with one byte less, more runs are needed */
            if (sum + bytes[i] > max - 1)
                runs++, sum = 0;
            sum += bytes[i];
        }
        assert_true(runs + 1 > n || n == n_cells);
    }
    struct brig_fail fail;
    assert_true(brig_slice_cut_sizes(bytes, n_cells, 0, cells, &fail) == -BRIG_EUSAGE);
    assert_true(brig_slice_cut_sizes(bytes, n_cells, n_cells + 1, cells, &fail) == -BRIG_EUSAGE);
    assert_non_null(strstr(fail.text, "4098 shards"));
    brig_free(bytes);
    brig_free(cells);
}

static struct brig_model *make_model(unsigned n_layers, bool tied)
{
    struct maker *k = maker_llama(n_layers);
    for (unsigned i = 0; i < k->n_tensors; i++) /* layers of different sizes, in a shuffled order */
        if (k->tensors[i].n_dims == 2 && i % 5 == 0)
            k->tensors[i].type = 1;
    for (unsigned i = 0; i < k->n_tensors; i++) {
        unsigned j = random_below(k->n_tensors);
        struct maker_tensor t = k->tensors[i];
        k->tensors[i] = k->tensors[j];
        k->tensors[j] = t;
    }
    if (!tied)
        maker_add(k, "output.weight", 2, 32, 8);
    return maker_open_ok(k);
}

static void test_cut_model(void **state)
{
    (void)state;
    struct brig_model *m = make_model(7, false);
    for (unsigned n = 1; n <= 8; n++) {
        struct brig_cells cells[8];
        uint64_t bytes[8], max = 0, want;
        struct brute b = {bytes, 8, n, UINT64_MAX, UINT64_MAX, {{0, 0}}, {{0, 0}}};
        for (uint32_t c = 0; c < 8; c++)
            bytes[c] = brig_slice_cells_bytes(m, (struct brig_cells){c, c + 1});
        brute(&b, 0, 0);
        assert_int_equal(brig_slice_cut(m, n, cells, NULL), 0);
        for (unsigned i = 0; i < n; i++) {
            want = brig_slice_cells_bytes(m, cells[i]);
            max = want > max ? want : max;
        }
        assert_int_equal(max, b.best);
        assert_memory_equal(cells, b.cells, n * sizeof cells[0]);
    }
    brig_model_close(m);
}

/* The same fields: the same bytes when encoded again. */
static void check_same(const struct brig_slice *s, const struct brig_buf *want)
{
    struct brig_buf again = {0};
    assert_int_equal(brig_slice_encode(s, &again), 0);
    assert_int_equal(again.len, want->len);
    assert_memory_equal(again.data, want->data, want->len);
    brig_buf_release(&again);
}

/* Every range of cells: its tensors, its bytes, and the way through the encoder. */
static void check_cells(const struct brig_model *m, struct brig_cells cells)
{
    struct brig_slice s, back;
    struct brig_buf b = {0};
    struct brig_fail fail;
    assert_int_equal(brig_slice_build(&s, m, cells, &fail), 0);
    uint64_t bytes = 0;
    for (unsigned i = 0; i < s.n_tensors; i++) {
        const struct brig_slice_tensor *t = &s.tensors[i];
        const struct brig_tensor *of = brig_model_tensor(m, t->role, t->layer);
        assert_true(of->offset == t->offset && of->bytes == t->bytes && of->type == t->type);
        assert_ptr_equal(brig_slice_tensor_of(&s, t->role, t->layer), t);
        bytes += t->bytes;
    }
    assert_int_equal(bytes, brig_slice_cells_bytes(m, cells));
    bool head = brig_cells_has_head(cells, m->desc.n_layers);
    assert_int_equal(brig_slice_tensor_of(&s, BRIG_ROLE_OUTPUT, 0) != NULL, head);
    assert_int_equal(brig_slice_tensor_of(&s, BRIG_ROLE_OUTPUT_NORM, 0) != NULL, head);
    for (uint32_t layer = 0; layer < m->desc.n_layers; layer++)
        for (unsigned role = 0; role < BRIG_ROLE_LAYER_COUNT; role++)
            assert_int_equal(brig_slice_tensor_of(&s, (enum brig_role)role, layer) != NULL,
                             role <= BRIG_ROLE_FFN_DOWN && layer >= cells.first && layer < cells.last);
    brig_slice_hold(&s, cells.first % 2 == 0 ? BRIG_HOLD_STREAM : BRIG_HOLD_LOCK);
    s.stream = (struct brig_stream_set){"threads", true, 1u << 20, 4, 123456789, (uint64_t)1 << 40};
    assert_int_equal(brig_slice_encode(&s, &b), 0);
    if (brig_slice_decode(&back, b.data, b.len, &fail) < 0)
        fail_msg("%s", fail.text);
    check_same(&back, &b);
    for (unsigned i = 0; i < s.n_tensors; i++)
        assert_true(back.tensors[i].offset == s.tensors[i].offset &&
                    back.tensors[i].type == s.tensors[i].type && back.tensors[i].hold == s.tensors[i].hold &&
                    back.tensors[i].hold ==
                        (cells.first % 2 == 0 && s.tensors[i].rows > 1 ? BRIG_HOLD_STREAM : BRIG_HOLD_LOCK));
    assert_string_equal(back.stream.reader, "threads");
    assert_true(back.stream.buffered && back.stream.request_bytes == 1u << 20 && back.stream.depth == 4 &&
                back.stream.ring_bytes == 123456789 && back.stream.expert_cache_bytes == (uint64_t)1 << 40);
    assert_true(back.desc.norm_eps == m->desc.norm_eps && back.desc.vocab == m->desc.vocab &&
                back.desc.tied == m->desc.tied && strcmp(back.desc.arch, "llama") == 0);
    brig_slice_release(&s);
    brig_slice_release(&back);
    brig_buf_release(&b);
}

static void test_build_and_back(void **state)
{
    (void)state;
    for (unsigned kind = 0; kind < 2; kind++) {
        struct brig_model *m = make_model(4, kind == 1);
        for (uint32_t first = 0; first < 5; first++)
            for (uint32_t last = first + 1; last <= 5; last++)
                check_cells(m, (struct brig_cells){first, last});
        struct brig_slice s;
        struct brig_fail fail;
        assert_true(brig_slice_build(&s, m, (struct brig_cells){2, 2}, &fail) == -BRIG_EUSAGE);
        assert_true(brig_slice_build(&s, m, (struct brig_cells){0, 6}, &fail) == -BRIG_EUSAGE);
        assert_non_null(strstr(fail.text, "0:6"));
        brig_model_close(m);
    }
}

static void encoded(struct brig_buf *b, struct brig_cells cells)
{
    struct brig_slice s;
    struct brig_model *m = make_model(2, true);
    assert_int_equal(brig_slice_build(&s, m, cells, NULL), 0);
    assert_int_equal(brig_slice_encode(&s, b), 0);
    brig_slice_release(&s);
    brig_model_close(m);
}

/* A copy of exactly n bytes, so that a sanitizer sees one byte too many being read. */
static int decode_exact(const char *bytes, size_t n, struct brig_slice *ret, struct brig_fail *fail)
{
    char *copy = malloc(n == 0 ? 1 : n);
    assert_non_null(copy);
    memcpy(copy, bytes, n);
    int r = brig_slice_decode(ret, copy, n, fail);
    free(copy);
    return r;
}

static void test_hostile_cut(void **state)
{
    (void)state;
    struct brig_buf b = {0};
    struct brig_slice s;
    struct brig_fail fail;
    encoded(&b, (struct brig_cells){0, 3});
    for (size_t n = 0; n < b.len; n++) {
        fail.text[0] = '\0';
        assert_true(decode_exact(b.data, n, &s, &fail) < 0);
        assert_non_null(strstr(fail.text, "slice description: "));
    }
    brig_buf_add(&b, "", 1);
    assert_true(decode_exact(b.data, b.len, &s, &fail) < 0);
    assert_non_null(strstr(fail.text, "more bytes"));
    static const char liars[] = "\xdd\xff\xff\xff\xff";
    assert_true(decode_exact(liars, 5, &s, &fail) == -BRIG_EPROTO);
    brig_buf_release(&b);
}

/* What decodes is whole and lies inside its files, whatever the bytes were. */
static void check_sound(const struct brig_slice *s)
{
    assert_true(s->cells.first < s->cells.last && s->cells.last <= s->desc.n_layers + 1);
    assert_true(s->desc.n_heads % s->desc.n_kv_heads == 0 && s->desc.head_dim % 2 == 0);
    for (unsigned i = 0; i < s->n_tensors; i++) {
        const struct brig_slice_tensor *t = &s->tensors[i];
        assert_true(t->file < s->n_files && t->offset + t->bytes <= s->file_bytes[t->file]);
        assert_int_equal(t->bytes, t->rows * brig_type_row_bytes(t->type, t->cols));
    }
    for (uint32_t c = s->cells.first; c < s->cells.last && c < s->desc.n_layers; c++)
        for (unsigned role = 0; role < BRIG_ROLE_LAYER_COUNT; role++)
            assert_int_equal(brig_slice_tensor_of(s, (enum brig_role)role, c) != NULL,
                             brig_desc_count(&s->desc, (enum brig_role)role, c) > 0);
    if (brig_cells_has_head(s->cells, s->desc.n_layers))
        assert_true(brig_slice_tensor_of(s, BRIG_ROLE_OUTPUT, 0) &&
                    brig_slice_tensor_of(s, BRIG_ROLE_OUTPUT_NORM, 0));
}

static void test_hostile_flips(void **state)
{
    (void)state;
    struct brig_buf b = {0};
    unsigned n_good = 0;
    encoded(&b, (struct brig_cells){0, 3});
    for (unsigned i = 0; i < 60000; i++) {
        struct brig_slice s;
        struct brig_fail fail = {0};
        size_t at = random_below((uint32_t)b.len), at2 = random_below((uint32_t)b.len);
        char old = b.data[at], old2 = b.data[at2];
        b.data[at2] = random_below(4) == 0 ? (char)random_below(256) : old2;
        b.data[at] = (char)random_below(256);
        if (decode_exact(b.data, b.len, &s, &fail) == 0) {
            check_sound(&s);
            brig_slice_release(&s);
            n_good++;
        } else {
            assert_true(strlen(fail.text) > 0);
        }
        b.data[at] = old;
        b.data[at2] = old2;
        if (at == at2)
            b.data[at] = old2;
    }
    assert_true(n_good > 0 && n_good < 60000);
    brig_buf_release(&b);
}

static void tell_lie_of_holding(struct brig_slice *s, unsigned lie)
{
    switch (lie) {
    case 15: /* a vector */
        assert_int_equal(s->tensors[0].rows, 1);
        s->tensors[0].hold = BRIG_HOLD_STREAM;
        break;
    case 16:
        s->stream.request_bytes = 4095;
        break;
    case 17:
        s->stream.request_bytes = BRIG_STREAM_MAX_REQUEST + 4096;
        break;
    case 18:
        s->stream.depth = BRIG_STREAM_MAX_DEPTH + 1;
        break;
    case 19:
        s->stream.ring_bytes = BRIG_STREAM_MAX_MEMORY + 1;
        break;
    case 20:
        s->tensors[1].hold = BRIG_HOLD_COUNT;
        break;
    default:
        s->stream.expert_cache_bytes = UINT64_MAX;
        break;
    }
}

static void tell_lie(struct brig_slice *s, unsigned lie)
{
    switch (lie) {
    case 0:
        s->tensors[3].offset = UINT64_MAX - 10;
        break;
    case 1:
        s->tensors[3].bytes++;
        break;
    case 2:
        s->tensors[3].rows = 0;
        break;
    case 3:
        s->tensors[3].cols *= 2;
        break;
    case 4:
        s->tensors[3].file = 1;
        break;
    case 5:
        s->tensors[3] = s->tensors[4];
        break;
    case 6:
        s->n_tensors--;
        break;
    case 7:
        s->n_tensors = 0;
        break;
    case 8:
        s->file_bytes[0] = 100;
        break;
    case 9:
        s->tensors[0].type = brig_type_by_name("Q8_0");
        break;
    case 10:
        s->desc.head_dim = 15;
        break;
    case 11:
        s->desc.n_layers = BRIG_MAX_LAYERS + 1;
        break;
    case 12:
        s->cells.first = 1;
        break;
    case 13: /* 8 rows, no panel of 16 */
        assert_string_equal(s->tensors[s->n_tensors - 1].type->name, "Q4_0");
        assert_int_equal(s->tensors[s->n_tensors - 1].rows, 8);
        s->tensors[s->n_tensors - 1].type = brig_type_by_name("Q4_0_R16");
        break;
    case 14:
        s->tensors[s->n_tensors - 1].role = BRIG_ROLE_TOKEN_TABLE;
        break;
    default:
        tell_lie_of_holding(s, lie);
        break;
    }
}

/* Descriptions that are well formed and lie: changed in memory, then encoded. */
static void test_hostile_lies(void **state)
{
    (void)state;
    struct brig_model *m = make_model(2, false);
    for (unsigned lie = 0; lie < 22; lie++) {
        struct brig_slice s, back;
        struct brig_buf b = {0};
        struct brig_fail fail = {0};
        assert_int_equal(brig_slice_build(&s, m, (struct brig_cells){0, 3}, NULL), 0);
        tell_lie(&s, lie);
        assert_int_equal(brig_slice_encode(&s, &b), 0);
        if (decode_exact(b.data, b.len, &back, &fail) == 0)
            fail_msg("lie %u was believed", lie);
        assert_non_null(strstr(fail.text, "slice description: "));
        brig_buf_release(&b);
        brig_slice_release(&s);
    }
    brig_model_close(m);
}

/* Ranges against a map of pages. */
static void test_ranges(void **state)
{
    (void)state;
    struct brig_model *m = make_model(6, true);
    for (uint32_t first = 0; first < 7; first++)
        for (uint32_t last = first + 1; last <= 7; last++)
            for (uint64_t page = 64; page <= 16384; page *= 16) {
                struct brig_slice s;
                struct brig_range *ranges;
                unsigned n;
                assert_int_equal(brig_slice_build(&s, m, (struct brig_cells){first, last}, NULL), 0);
                assert_int_equal(brig_slice_ranges(&s, page, &ranges, &n), 0);
                size_t n_pages = m->files[0].bytes / page + 1;
                char *want = brig_alloc(n_pages, 1), *got = brig_alloc(n_pages, 1);
                for (unsigned i = 0; i < s.n_tensors; i++)
                    for (uint64_t p = s.tensors[i].offset / page;
                         p <= (s.tensors[i].offset + s.tensors[i].bytes - 1) / page; p++)
                        want[p] = 1;
                for (unsigned i = 0; i < n; i++) {
                    assert_true(ranges[i].offset % page == 0 && ranges[i].bytes % page == 0 &&
                                ranges[i].bytes > 0);
                    assert_true(ranges[i].offset + ranges[i].bytes < m->files[0].bytes + page);
                    if (i > 0) /* a gap between any two */
                        assert_true(ranges[i].offset > ranges[i - 1].offset + ranges[i - 1].bytes);
                    memset(got + ranges[i].offset / page, 1, ranges[i].bytes / page);
                }
                assert_memory_equal(want, got, n_pages);
                brig_free(want);
                brig_free(got);
                brig_free(ranges);
                brig_slice_release(&s);
            }
    brig_model_close(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cut_brute_force), cmocka_unit_test(test_cut_long),
        cmocka_unit_test(test_cut_model),       cmocka_unit_test(test_build_and_back),
        cmocka_unit_test(test_hostile_cut),     cmocka_unit_test(test_hostile_flips),
        cmocka_unit_test(test_hostile_lies),    cmocka_unit_test(test_ranges),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
