/* Interleaved matrices: where each byte lies, and that the way there and back changes nothing. */
#include "proto/model/r16.h"

#include "proto/base/mem.h"
#include "tests/unit/kernels_util.h"

static const char *const names[] = {"Q8_0_R16", "Q4_0_R16", "Q4_1_R16"};
#define N_NAMES (sizeof names / sizeof *names)

/* The page's words, byte by byte: what of a native block's byte i of row r lies where in the block of 16
 * rows. */
static size_t place(unsigned n_halves, unsigned r, unsigned i)
{
    if (i < 2 * n_halves)
        return i / 2 * 32 + 2 * r + i % 2;
    i -= 2 * n_halves;
    return n_halves * 32 + i / 4 * 64 + 4 * r + i % 4;
}

static void bytes_lie_there(void **state)
{
    (void)state;
    for (unsigned k = 0; k < N_NAMES; k++) {
        const struct brig_type *t = brig_type_by_name(names[k]);
        unsigned n_halves = k == 2 ? 2 : 1, n = t->block_bytes;
        uint8_t block[16][BRIG_R16_BLOCK_MAX], joint[16 * BRIG_R16_BLOCK_MAX], back[BRIG_R16_BLOCK_MAX + 1];
        bool seen[16 * BRIG_R16_BLOCK_MAX] = {0};
        assert_true(n <= BRIG_R16_BLOCK_MAX);
        for (unsigned r = 0; r < 16; r++) {
            for (unsigned i = 0; i < n; i++)
                block[r][i] = (uint8_t)random_u32();
            brig_r16_put(t, block[r], r, joint);
        }
        for (unsigned r = 0; r < 16; r++) {
            for (unsigned i = 0; i < n; i++) {
                size_t at = place(n_halves, r, i);
                assert_true(at < 16 * n && !seen[at]);
                seen[at] = true;
                assert_int_equal(joint[at], block[r][i]);
            }
            back[n] = 0x77;
            brig_r16_get(t, joint, r, back);
            assert_memory_equal(back, block[r], n);
            assert_int_equal(back[n], 0x77);
        }
    }
}

static void there_and_back(void **state)
{
    (void)state;
    for (unsigned k = 0; k < 30; k++) {
        const struct brig_type *t = brig_type_by_name(names[k % N_NAMES]);
        uint32_t rows = 16 * (1 + random_below(3)), n_blocks = 1 + random_below(12), cols = 32 * n_blocks;
        uint64_t row_bytes = brig_type_row_bytes(t, cols), panel = 16 * row_bytes;
        struct edge native = edge_new(rows * row_bytes), joint = edge_new(rows * row_bytes);
        struct edge back = edge_new(rows * row_bytes);
        assert_int_equal(row_bytes, brig_type_row_bytes(t->native, cols));
        for (uint64_t i = 0; i < rows * row_bytes; i++)
            ((uint8_t *)native.data)[i] = (uint8_t)random_u32();
        for (uint64_t p = 0; p < rows / 16; p++) {
            brig_r16_join(t, (uint8_t *)native.data + p * panel, row_bytes,
                          (uint8_t *)joint.data + p * panel);
            brig_r16_split(t, (uint8_t *)joint.data + p * panel, row_bytes, (uint8_t *)back.data + p * panel);
        }
        assert_memory_equal(back.data, native.data, rows * row_bytes);
        for (uint32_t r = 0; r < rows; r++) {
            float want[384], got[384];
            uint32_t from = 32 * random_below(n_blocks), n = 32 * (1 + random_below(n_blocks - from / 32));
            t->native->dequant((uint8_t *)native.data + r * row_bytes, want, cols);
            brig_r16_dequant(t, joint.data, row_bytes, r, from, n, got);
            assert_memory_equal(got, want + from, n * sizeof *got);
        }
        edge_free(&native);
        edge_free(&joint);
        edge_free(&back);
    }
}

static void relations(void **state)
{
    (void)state;
    for (unsigned k = 0; k < N_NAMES; k++) {
        const struct brig_type *t = brig_type_by_name(names[k]);
        assert_ptr_equal(brig_type_interleaved(t->native), t);
        assert_ptr_equal(brig_type_native(t), t->native);
        assert_ptr_equal(brig_type_native(t->native), t->native);
        assert_int_equal(brig_type_panel_rows(t), 16);
        assert_int_equal(brig_type_panel_rows(t->native), 1);
        assert_false(brig_type_has_rows(t));
        assert_true(brig_type_has_rows(t->native));
        assert_int_equal(strncmp(t->name, t->native->name, 4), 0);
        assert_null(brig_type_interleaved(t));
    }
    assert_null(brig_type_interleaved(brig_type_by_name("Q6_K")));
    assert_false(brig_type_has_rows(brig_type_by_name("GPTQ4")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_lie_there),
        cmocka_unit_test(there_and_back),
        cmocka_unit_test(relations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
