/* The description of a block: every word of it on the wire, what a layer has, and what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "proto/base/buf.h"
#include "proto/model/desc_wire.h"

static int add(void *buf, const char *bytes, size_t n)
{
    return brig_buf_add(buf, bytes, n);
}

/* Each byte of the fields that the wire carries is given a value of its own, so a field that is forgotten, or
 * read into another's place, shows. */
static struct brig_desc full(void)
{
    struct brig_desc d = {
        .arch = "llama",
        .n_layers = 3,
        .hidden = 64,
        .n_heads = 4,
        .n_kv_heads = 2,
        .head_dim = 16,
        .ffn = 96,
        .vocab = 500,
        .ctx_trained = 1000,
        .norm = BRIG_NORM_LAYER,
        .norm_eps = 0.25f,
        .attn_scale = 0.5f,
        .tied = true,
        .qkv_bias = true,
        .out_bias = true,
        .mlp_bias = true,
        .post_norms = true,
        .qk_norm = BRIG_QK_NORM_WHOLE,
        .clip_qkv = 8.0f,
        .mlp = BRIG_MLP_GEGLU,
        .embed_scale = 3.0f,
        .learned_positions = true,
        .window = 9,
        .layer_flags = {BRIG_LAYER_WINDOWED, 0, BRIG_LAYER_WINDOWED | BRIG_LAYER_DENSE},
        .rope = BRIG_ROPE_HALVES,
        .rope_dims = 6,
        .rope_base = 10000.0f,
        .rope_linear = 2.0f,
        .rope_windowed_base = 500.0f,
        .rope_mscale = 1.5f,
        .n_rope_factors = 3,
        .rope_factors = {1.0f, 2.0f, 4.0f},
        .rope_long_from = 77,
        .rope_long_factors = {5.0f, 6.0f, 7.0f},
        .n_experts = 8,
        .n_experts_used = 3,
        .expert_ffn = 32,
        .expert_norm = BRIG_EXPERTS_SUM_TO_ONE,
    };
    return d;
}

static void pack(const struct brig_desc *d, struct brig_buf *b)
{
    msgpack_packer p;
    msgpack_packer_init(&p, b, add);
    b->len = 0;
    assert_int_equal(brig_desc_pack(&p, d), 0);
}

static void assert_same(const struct brig_desc *a, const struct brig_desc *b)
{
#define SAME(f) assert_true(a->f == b->f)
    SAME(n_layers), SAME(hidden), SAME(n_heads), SAME(n_kv_heads), SAME(head_dim), SAME(ffn), SAME(vocab);
    SAME(ctx_trained), SAME(norm), SAME(norm_eps), SAME(attn_scale), SAME(tied), SAME(qkv_bias);
    SAME(out_bias), SAME(mlp_bias), SAME(post_norms), SAME(qk_norm), SAME(clip_qkv), SAME(mlp);
    SAME(embed_scale), SAME(learned_positions), SAME(window), SAME(rope), SAME(rope_dims), SAME(rope_base);
    SAME(rope_linear), SAME(rope_windowed_base), SAME(rope_mscale), SAME(n_rope_factors),
        SAME(rope_long_from);
    SAME(n_experts), SAME(n_experts_used), SAME(expert_ffn), SAME(expert_norm);
#undef SAME
    assert_string_equal(a->arch, b->arch);
    assert_memory_equal(a->layer_flags, b->layer_flags, sizeof a->layer_flags);
    assert_memory_equal(a->rope_factors, b->rope_factors, sizeof a->rope_factors);
    assert_memory_equal(a->rope_long_factors, b->rope_long_factors, sizeof a->rope_long_factors);
}

static void test_wire(void **state)
{
    (void)state;
    struct brig_buf b = {0};
    struct brig_desc d = full(), back;
    for (int all = 0; all < 2; all++) {
        pack(&d, &b);
        struct brig_unpack u = brig_unpack_of(b.data, b.len);
        assert_true(brig_desc_unpack(&u, &back) && brig_unpack_done(&u));
        assert_same(&d, &back);
        for (size_t n = 0; n < b.len; n++) { /* cut short anywhere, it is refused */
            u = brig_unpack_of(b.data, n);
            assert_false(brig_desc_unpack(&u, &back));
        }
        d = (struct brig_desc){.arch = "x", .n_layers = 1}; /* then with nothing set */
    }
    brig_buf_release(&b);
}

/* Lists longer than the description holds. */
static void test_wire_too_long(void **state)
{
    (void)state;
    struct brig_buf b = {0};
    struct brig_desc d = full(), back;
    const struct {
        uint32_t *field, value;
    } cases[] = {{&d.n_layers, BRIG_MAX_LAYERS}, {&d.n_rope_factors, BRIG_MAX_ROPE_PAIRS}};
    for (unsigned i = 0; i < 2; i++) {
        d = full();
        *cases[i].field = cases[i].value;
        pack(&d, &b);
        struct brig_unpack u = brig_unpack_of(b.data, b.len);
        assert_true(brig_desc_unpack(&u, &back));
        /* The number alone one higher: its list no longer fits, and is not read past the end of the array. */
        uint8_t *at = memmem(b.data, b.len, &(uint8_t[]){0xcd, (uint8_t)(cases[i].value >> 8), 0x00}, 3);
        assert_non_null(at);
        at[2] = 1;
        u = brig_unpack_of(b.data, b.len);
        assert_false(brig_desc_unpack(&u, &back));
    }
    brig_buf_release(&b);
}

static void test_counts(void **state)
{
    (void)state;
    struct brig_desc d = full();
    assert_int_equal(brig_desc_count(&d, BRIG_ROLE_EXPERT_UP, 0), 8);
    assert_int_equal(brig_desc_count(&d, BRIG_ROLE_FFN_UP, 0), 0);
    assert_int_equal(brig_desc_count(&d, BRIG_ROLE_ROUTER, 0), 1);
    assert_int_equal(brig_desc_count(&d, BRIG_ROLE_EXPERT_UP, 2), 0); /* dense */
    assert_int_equal(brig_desc_count(&d, BRIG_ROLE_FFN_UP, 2), 1);
    assert_int_equal(brig_desc_count(&d, BRIG_ROLE_FFN_UP_BIAS, 2), 1);
    assert_int_equal(brig_desc_count(&d, BRIG_ROLE_ROUTER, 2), 0);
    assert_int_equal(brig_desc_count(&d, BRIG_ROLE_OUTPUT, 2), 0);
    assert_int_equal(brig_desc_count(&d, BRIG_ROLE_OUTPUT, 3), 1); /* the head */
    assert_int_equal(brig_desc_count(&d, BRIG_ROLE_OUTPUT_NORM_BIAS, 3), 1);
    assert_int_equal(brig_desc_count(&d, BRIG_ROLE_ATTN_Q, 3), 0);
    assert_int_equal(brig_desc_count(&d, BRIG_ROLE_TOKEN_TABLE, 3), 0);
    d.mlp = BRIG_MLP_GELU;
    assert_int_equal(brig_desc_count(&d, BRIG_ROLE_FFN_GATE, 2), 0);
    assert_int_equal(brig_desc_count(&d, BRIG_ROLE_FFN_GATE_BIAS, 2), 0);
}

/* Every role that a layer may have has a place of its own. */
static void test_places(void **state)
{
    (void)state;
    struct brig_desc d = full();
    uint8_t taken[256] = {0};
    assert_int_equal(brig_desc_places(&d), BRIG_ROLE_EXPERT_FIRST + 3 * 8);
    for (unsigned role = 0; role < BRIG_ROLE_LAYER_COUNT; role++)
        for (uint32_t e = 0; e < (role >= BRIG_ROLE_EXPERT_FIRST ? d.n_experts : 1); e++) {
            uint32_t at = brig_desc_place(&d, (enum brig_role)role, e);
            assert_true(at < brig_desc_places(&d) && !taken[at]++);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_wire),
        cmocka_unit_test(test_wire_too_long),
        cmocka_unit_test(test_counts),
        cmocka_unit_test(test_places),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
