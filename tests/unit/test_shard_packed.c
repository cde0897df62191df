/* Packed matrices on their way to a shard: the slice description and lies in it, page ranges, mapping. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base/size.h"
#include "shard/weights/weights.h"
#include "tests/unit/gguf_maker.h"
#include "tests/unit/packed_maker.h"

enum { MOST = 32, PAGE = 4096 };

/* The matrices of two layers as packed ones, which lie in a second file. */
struct setup {
    struct brig_model *model;
    struct brig_slice slice;
    struct brig_buf file;
    struct pack *packs[MOST]; /* by tensor; NULL: as in the model */
    int fds[2];
};

static struct brig_side add(struct setup *s, const void *data, uint64_t bytes)
{
    struct brig_side side = {1, s->file.len, bytes};
    assert_int_equal(brig_buf_add(&s->file, data, (size_t)bytes), 0);
    assert_int_equal(brig_buf_add(&s->file, "???", 3), 0); /* nothing is aligned */
    return side;
}

static void make_packed(struct setup *s, unsigned i)
{
    static const char *const types[] = {"GPTQ4", "GPTQ8", "AWQ4"};
    struct brig_slice_tensor *t = &s->slice.tensors[i];
    struct pack *p = s->packs[i] = pack_new((struct pack_shape){.type = types[i % 3],
                                                                .scale_type = i % 2 ? "F16" : "BF16",
                                                                .rows = (uint32_t)t->rows,
                                                                .cols = (uint32_t)t->cols,
                                                                .group_cols = 8,
                                                                .zero_bias = i % 3 != 2,
                                                                .ordered = i % 3 != 2});
    struct brig_side words = add(s, p->words.data, 4 * p->n_words);
    uint64_t scales = (uint64_t)p->n_groups * t->rows;
    t->type = brig_type_by_name(types[i % 3]);
    t->file = words.file;
    t->offset = words.offset;
    t->bytes = words.bytes;
    t->sides = (struct brig_sides){
        .group_cols = 8,
        .zero_bias = p->shape.zero_bias,
        .scale_type = p->packed.scale_type,
        .side = {add(s, p->scales.data, 2 * scales), add(s, p->zeros.data, scales * p->bits / 8)}};
    if (p->shape.ordered)
        t->sides.side[BRIG_SIDE_GROUPS] = add(s, p->groups, 4 * t->cols);
}

static int file_of(const void *bytes, size_t n)
{
    int fd = memfd_create("packed", MFD_CLOEXEC);
    assert_true(fd >= 0 && write(fd, bytes, n) == (ssize_t)n);
    return fd;
}

static void start(struct setup *s)
{
    struct brig_fail fail;
    struct maker *k = maker_llama(2);
    *s = (struct setup){0};
    if (maker_open(k, &s->model, &fail) < 0 ||
        brig_slice_build(&s->slice, s->model, (struct brig_cells){0, 3}, &fail) < 0)
        fail_msg("%s", fail.text);
    maker_release(k);
    assert_in_range(s->slice.n_tensors, 20, MOST);
    for (unsigned i = 0; i < s->slice.n_tensors; i++)
        if (s->slice.tensors[i].rows > 1 && s->slice.tensors[i].role != BRIG_ROLE_OUTPUT)
            make_packed(s, i);
    uint64_t first = s->slice.file_bytes[0];
    brig_free(s->slice.file_bytes);
    s->slice.n_files = 2;
    s->slice.file_bytes = brig_alloc(2, sizeof *s->slice.file_bytes);
    s->slice.file_bytes[0] = first;
    s->slice.file_bytes[1] = s->file.len;
    s->fds[0] = s->model->files[0].fd;
    s->fds[1] = file_of(s->file.data, s->file.len);
}

static void finish(struct setup *s)
{
    for (unsigned i = 0; i < MOST; i++)
        if (s->packs[i] != NULL)
            pack_free(s->packs[i]);
    close(s->fds[1]);
    brig_buf_release(&s->file);
    brig_slice_release(&s->slice);
    brig_model_close(s->model);
}

static bool inside(const struct brig_slice *s, uint32_t file, uint64_t offset, uint64_t bytes)
{
    return file < s->n_files && brig_range_ok(offset, bytes, s->file_bytes[file]);
}

static void check_sound(const struct brig_slice *s)
{
    for (unsigned i = 0; i < s->n_tensors; i++) {
        const struct brig_slice_tensor *t = &s->tensors[i];
        assert_true(inside(s, t->file, t->offset, t->bytes));
        assert_int_equal(brig_sides_check(&t->sides, t->type, t->rows, t->cols, NULL), 0);
        for (unsigned k = 0; k < BRIG_SIDE_COUNT; k++)
            assert_true(t->sides.side[k].bytes == 0 ||
                        inside(s, t->sides.side[k].file, t->sides.side[k].offset, t->sides.side[k].bytes));
    }
}

static void there_and_back(void **state)
{
    (void)state;
    struct setup s;
    struct brig_slice back;
    struct brig_buf b = {0}, again = {0};
    struct brig_fail fail;
    start(&s);
    assert_int_equal(brig_slice_encode(&s.slice, &b), 0);
    if (brig_slice_decode(&back, b.data, b.len, &fail) < 0)
        fail_msg("%s", fail.text);
    assert_int_equal(brig_slice_encode(&back, &again), 0);
    assert_int_equal(again.len, b.len);
    assert_memory_equal(again.data, b.data, b.len);
    for (unsigned i = 0; i < back.n_tensors; i++)
        assert_memory_equal(&back.tensors[i].sides, &s.slice.tensors[i].sides, sizeof back.tensors[i].sides);
    brig_slice_release(&back);
    unsigned n_good = 0;
    for (unsigned i = 0; i < 40000; i++) {
        size_t at = random_below((uint32_t)b.len);
        char old = b.data[at];
        b.data[at] = (char)random_u32();
        if (brig_slice_decode(&back, b.data, b.len, &fail) == 0) {
            check_sound(&back);
            brig_slice_release(&back);
            n_good++;
        }
        b.data[at] = old;
    }
    assert_true(n_good > 0 && n_good < 40000);
    brig_buf_release(&b);
    brig_buf_release(&again);
    finish(&s);
}

static void tell_lie(struct brig_slice_tensor *t, unsigned lie)
{
    struct brig_side *side = t->sides.side;
    switch (lie) {
    case 0:
        side[BRIG_SIDE_SCALES].offset = UINT64_MAX - 3;
        break;
    case 1:
        side[BRIG_SIDE_ZEROS].file = 2;
        break;
    case 2:
        side[BRIG_SIDE_GROUPS].offset = 1 << 30;
        break;
    case 3:
        side[BRIG_SIDE_SCALES].bytes -= 2;
        break;
    case 4:
        side[BRIG_SIDE_ZEROS].bytes = 0;
        break;
    case 5:
        side[BRIG_SIDE_GROUPS].bytes -= 4;
        break;
    case 6:
        t->sides.group_cols = 16;
        break;
    case 7:
        t->sides.zero_bias = 2;
        break;
    case 8:
        t->sides.scale_type = brig_type_by_name("F32");
        break;
    case 9:
        t->sides.scale_type = brig_type_by_name("Q8_0");
        break;
    case 10:
        t->type = brig_type_by_name("GPTQ8");
        break;
    case 11:
        t->type = brig_type_by_name("F32");
        break;
    default:
        t->sides = (struct brig_sides){0};
        break;
    }
}

static void lies_are_refused(void **state)
{
    (void)state;
    struct setup s;
    start(&s);
    unsigned i = 0;
    while (s.packs[i] == NULL || strcmp(s.packs[i]->shape.type, "GPTQ4") != 0)
        i++;
    const struct brig_slice_tensor honest = s.slice.tensors[i];
    for (unsigned lie = 0; lie < 13; lie++) {
        struct brig_slice back;
        struct brig_buf b = {0};
        struct brig_fail fail = {0};
        tell_lie(&s.slice.tensors[i], lie);
        assert_int_equal(brig_slice_encode(&s.slice, &b), 0);
        if (brig_slice_decode(&back, b.data, b.len, &fail) == 0)
            fail_msg("lie %u was believed", lie);
        assert_non_null(strstr(fail.text, "slice description: "));
        assert_non_null(strstr(fail.text, brig_role_name(honest.role)));
        brig_buf_release(&b);
        s.slice.tensors[i] = honest;
    }
    finish(&s);
}

static bool covered(const struct brig_range *ranges, unsigned n, struct brig_side side)
{
    for (unsigned i = 0; i < n; i++)
        if (ranges[i].file == side.file && side.offset >= ranges[i].offset &&
            side.offset + side.bytes <= ranges[i].offset + ranges[i].bytes)
            return true;
    return side.bytes == 0;
}

static void all_is_mapped_and_means_the_weights(void **state)
{
    (void)state;
    struct setup s;
    struct brig_range *ranges;
    struct brig_weights *w;
    struct brig_fail fail;
    unsigned n;
    float got[64];
    start(&s);
    assert_int_equal(brig_slice_ranges(&s.slice, PAGE, &ranges, &n), 0);
    if (brig_weights_open(&w, &s.slice, s.fds, 2, &fail) < 0)
        fail_msg("%s", fail.text);
    for (unsigned i = 0; i < s.slice.n_tensors; i++) {
        const struct brig_slice_tensor *t = &s.slice.tensors[i];
        const struct pack *p = s.packs[i];
        struct brig_matrix m;
        assert_true(brig_weights_matrix(w, t->role, t->layer, &m));
        assert_int_equal(m.packed != NULL, p != NULL);
        for (unsigned k = 0; k < BRIG_SIDE_COUNT; k++)
            assert_true(covered(ranges, n, t->sides.side[k]));
        for (uint32_t r = 0; p != NULL && r < m.rows; r++) {
            assert_true(m.cols <= 64);
            brig_packed_dequant(m.packed, r, 0, m.cols, got);
            for (uint32_t c = 0; c < m.cols; c++)
                assert_true(got[c] == p->weights[(size_t)r * m.cols + p->visits[c]]);
        }
    }
    brig_weights_close(w);
    brig_free(ranges);
    finish(&s);
}

/* The file may have changed since it was described. */
static void a_group_that_there_is_not(void **state)
{
    (void)state;
    struct setup s;
    struct brig_weights *w;
    start(&s);
    for (unsigned i = 0; i < s.slice.n_tensors; i++) {
        const struct brig_slice_tensor *t = &s.slice.tensors[i];
        const struct brig_side *groups = &t->sides.side[BRIG_SIDE_GROUPS];
        struct brig_fail fail = {0};
        const uint32_t bad[] = {(uint32_t)(t->cols / 8), UINT32_MAX};
        for (unsigned k = 0; groups->bytes != 0 && k < 2; k++) {
            uint32_t good;
            off_t at = (off_t)groups->offset + 4 * 5;
            assert_int_equal(pread(s.fds[1], &good, 4, at), 4);
            assert_int_equal(pwrite(s.fds[1], &bad[k], 4, at), 4);
            assert_int_equal(brig_weights_open(&w, &s.slice, s.fds, 2, &fail), -BRIG_EFORMAT);
            assert_non_null(strstr(fail.text, "column 5"));
            assert_non_null(strstr(fail.text, brig_role_name(t->role)));
            assert_int_equal(pwrite(s.fds[1], &good, 4, at), 4);
        }
    }
    finish(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(there_and_back),
        cmocka_unit_test(lies_are_refused),
        cmocka_unit_test(all_is_mapped_and_means_the_weights),
        cmocka_unit_test(a_group_that_there_is_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
