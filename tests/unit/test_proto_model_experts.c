/* Tensors that hold several: stacked experts, joined projections; what files say about experts; slices. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "proto/model/slice.h"
#include "tests/unit/gguf_maker.h"

enum { EXPERTS = 4, WIDTH = 64, Q8_0 = 8 };

static const char *const PARTS[] = {"ffn_gate", "ffn_up", "ffn_down"};
static const enum brig_role ROLES[] = {BRIG_ROLE_EXPERT_GATE, BRIG_ROLE_EXPERT_UP, BRIG_ROLE_EXPERT_DOWN};

static void drop_mlp(struct maker *k, unsigned layer)
{
    char name[80];
    for (unsigned i = 0; i < 3; i++) {
        snprintf(name, sizeof name, "blk.%u.%s.weight", layer, PARTS[i]);
        maker_drop_tensor(k, name);
    }
}

static void add_part(struct maker *k, unsigned layer, unsigned part, bool stacked)
{
    char name[80];
    uint64_t cols = part == 2 ? WIDTH : 32, rows = part == 2 ? 32 : WIDTH;
    if (stacked) {
        snprintf(name, sizeof name, "blk.%u.%s_exps.weight", layer, PARTS[part]);
        struct maker_tensor *t = maker_add(k, name, Q8_0, cols, rows);
        t->dims[2] = EXPERTS;
        t->n_dims = 3;
    }
    for (unsigned e = 0; !stacked && e < EXPERTS; e++) {
        snprintf(name, sizeof name, "blk.%u.%s.%u.weight", layer, PARTS[part], e);
        maker_add(k, name, Q8_0, cols, rows);
    }
}

static void add_experts(struct maker *k, unsigned layer, bool stacked)
{
    char name[80];
    drop_mlp(k, layer);
    for (unsigned i = 0; i < 3; i++)
        add_part(k, layer, i, stacked);
    snprintf(name, sizeof name, "blk.%u.ffn_gate_inp.weight", layer);
    maker_add(k, name, 0, 32, EXPERTS);
}

/* Layers whose digit is '1' keep their MLP. */
static struct maker *mixture(const char *dense, bool stacked)
{
    struct maker *k = maker_llama((unsigned)strlen(dense));
    maker_set_u32(k, "llama.expert_count", EXPERTS);
    maker_set_u32(k, "llama.expert_used_count", 2);
    if (strchr(dense, '1') != NULL)
        maker_set_str(k, "brigade.dense_layers", dense);
    for (unsigned i = 0; dense[i] != '\0'; i++)
        if (dense[i] == '0')
            add_experts(k, i, stacked);
    return k;
}

static void refuse(struct maker *k, const char *word)
{
    struct brig_model *m = NULL;
    struct brig_fail fail = {0};
    int r = maker_open(k, &m, &fail);
    if (r == 0)
        fail_msg("opened, although it should say '%s'", word);
    assert_int_equal(r, -(int)fail.code);
    if (strstr(fail.text, word) == NULL || strchr(fail.text, '\n') != NULL)
        fail_msg("'%s' does not say '%s' in one line", fail.text, word);
    maker_release(k);
}

static void check_expert(const struct brig_model *m, uint32_t layer, unsigned part, uint32_t e)
{
    char name[80];
    const struct brig_tensor *t = brig_model_expert(m, ROLES[part], layer, e);
    const struct brig_tensor *first = brig_model_tensor(m, ROLES[part], layer);
    snprintf(name, sizeof name, "blk.%u.%s.%u.weight", layer, PARTS[part], e);
    assert_non_null(t);
    assert_true(brig_str_eq(t->name, name));
    assert_true(t->role == ROLES[part] && t->layer == layer && t->expert == e);
    assert_int_equal(t->dims[0], part == 2 ? WIDTH : 32);
    assert_int_equal(t->dims[1], part == 2 ? 32 : WIDTH);
    assert_true(t->dims[2] == 1 && t->n_dims == 2);
    assert_int_equal(t->bytes, WIDTH * 34);
    assert_int_equal(t->offset,
                     first->offset + e * t->bytes); /* a multiple of 32: the same when one by one */
}

static void experts_have_the_same_places_however_they_lie(void **state)
{
    (void)state;
    for (int stacked = 0; stacked < 2; stacked++) {
        struct brig_model *m = maker_open_ok(mixture("00", stacked));
        assert_int_equal(m->desc.n_experts, EXPERTS);
        assert_int_equal(m->desc.n_experts_used, 2);
        assert_int_equal(m->desc.expert_ffn, WIDTH);
        assert_int_equal(m->desc.expert_norm, BRIG_EXPERTS_SUM_TO_ONE);
        assert_int_equal(m->n_tensors, 2 + 2 * (7 + 3 * EXPERTS));
        assert_int_equal(m->n_params,
                         8 * 32 + 32 + 2 * (64 + 2 * 32 * 32 + 2 * 32 * 16 + 4 * 32 + 12 * 2048));
        for (uint32_t layer = 0; layer < 2; layer++)
            for (unsigned part = 0; part < 3; part++)
                for (uint32_t e = 0; e < EXPERTS; e++)
                    check_expert(m, layer, part, e);
        assert_null(brig_model_expert(m, BRIG_ROLE_EXPERT_UP, 0, EXPERTS));
        assert_null(brig_model_tensor(m, BRIG_ROLE_FFN_UP, 0));
        brig_model_close(m);
    }
}

static void layers_may_be_dense_and_forms_mixed(void **state)
{
    (void)state;
    struct maker *k = mixture("010", true);
    maker_drop_tensor(k, "blk.2.ffn_up_exps.weight");
    add_part(k, 2, 1, false);
    struct brig_model *m = maker_open_ok(k);
    assert_null(brig_model_tensor(m, BRIG_ROLE_ROUTER, 1));
    assert_null(brig_model_tensor(m, BRIG_ROLE_EXPERT_UP, 1));
    assert_non_null(brig_model_tensor(m, BRIG_ROLE_FFN_UP, 1));
    check_expert(m, 2, 1, 3);
    check_expert(m, 2, 2, 3);
    brig_model_close(m);
}

/* To bytes and back, with every expert at its place. */
static void slices_hold_their_experts(void **state)
{
    (void)state;
    struct brig_model *m = maker_open_ok(mixture("010", true));
    struct brig_slice s, back;
    struct brig_buf b = {0};
    struct brig_fail fail;
    assert_int_equal(brig_slice_build(&s, m, (struct brig_cells){1, 4}, &fail), 0);
    assert_int_equal(s.n_tensors, 9 + 7 + 3 * EXPERTS + 2);
    assert_int_equal(brig_slice_encode(&s, &b), 0);
    if (brig_slice_decode(&back, b.data, b.len, &fail) < 0)
        fail_msg("%s", fail.text);
    assert_int_equal(back.n_tensors, s.n_tensors);
    for (unsigned i = 0; i < s.n_tensors; i++) {
        const struct brig_slice_tensor *t = &back.tensors[i];
        const struct brig_tensor *want = brig_model_expert(m, t->role, t->layer, t->expert);
        assert_true(t->offset == want->offset && t->bytes == want->bytes && t->rows == want->dims[1]);
        assert_int_equal(t->expert, s.tensors[i].expert);
    }
    brig_slice_release(&back);
    brig_slice_release(&s);
    brig_buf_release(&b);
    brig_model_close(m);
}

static struct maker *with_u32(const char *key, uint32_t v)
{
    struct maker *k = mixture("00", true);
    maker_set_u32(k, key, v);
    return k;
}

static struct maker *with_dense(const char *digits)
{
    struct maker *k = mixture("00", true);
    maker_set_str(k, "brigade.dense_layers", digits);
    return k;
}

static void bad_numbers_are_named(void **state)
{
    (void)state;
    refuse(with_u32("llama.expert_used_count", 0), "experts that a token uses is 0");
    refuse(with_u32("llama.expert_used_count", 5), "experts that a token uses is 5");
    refuse(with_u32("llama.expert_count", 1025), "number of experts is 1025");
    refuse(with_u32("llama.expert_count", UINT32_MAX), "number of experts");
    refuse(with_u32("llama.expert_count", 5), "blk.0.ffn_gate_exps.weight' has the shape 32 x 64 x 4");
    refuse(with_u32("llama.expert_count", 0), "blk.0.ffn_gate_exps.weight' is not supported");
    refuse(with_u32("llama.expert_feed_forward_length", 0), "size of an expert is 0");
    refuse(with_u32("llama.expert_feed_forward_length", UINT32_MAX), "size of an expert");
    refuse(with_u32("llama.expert_feed_forward_length", 32), "blk.0.ffn_gate_exps.weight' has the shape");
    refuse(with_u32("llama.expert_shared_count", 1), "shared experts");
    refuse(with_u32("llama.expert_gating_func", 2), "expert_gating_func is 2");
    refuse(with_u32("llama.expert_weights_scale", 3), "expert_weights_scale is 3");
    refuse(with_u32("brigade.norm_topk_prob", 1), "brigade.norm_topk_prob is");
    refuse(with_u32("brigade.dense_layers", 1), "brigade.dense_layers is");
    refuse(with_dense("0"), "has 1 digits for 2 layers");
    refuse(with_dense("000"), "has 3 digits for 2 layers");
    refuse(with_dense("0x"), "digits 0 and 1");
    refuse(with_dense("01"), "blk.1.ffn_gate_exps.weight' is not supported");
}

static void bad_tensors_are_named(void **state)
{
    (void)state;
    struct maker *k = mixture("00", true);
    maker_drop_tensor(k, "blk.1.ffn_up_exps.weight");
    refuse(k, "tensor 'blk.1.ffn_up.0.weight' is missing");
    k = mixture("00", true);
    maker_drop_tensor(k, "blk.1.ffn_gate_inp.weight");
    refuse(k, "tensor 'blk.1.ffn_gate_inp.weight' is missing");
    k = mixture("00", false);
    maker_drop_tensor(k, "blk.1.ffn_down.3.weight");
    refuse(k, "tensor 'blk.1.ffn_down.3.weight' is missing");
    k = mixture("00", false);
    maker_add(k, "blk.1.ffn_down.4.weight", Q8_0, WIDTH, 32);
    refuse(k, "'blk.1.ffn_down.4.weight' belongs to no expert: the layer has 4");
    k = mixture("00", false);
    maker_add(k, "blk.1.ffn_down.03.weight", Q8_0, WIDTH, 32);
    refuse(k, "'blk.1.ffn_down.03.weight' is not supported");
    k = mixture("00", false);
    add_part(k, 0, 2, true);
    refuse(k, "have the same place");
    k = mixture("00", true);
    maker_tensor(k, "blk.0.ffn_up_exps.weight")->dims[0] = 64;
    refuse(k, "'blk.0.ffn_up_exps.weight' has the shape 64 x 64");
    k = mixture("00", true);
    struct maker_tensor *t = maker_tensor(k, "blk.0.ffn_up_exps.weight");
    t->dims[3] = 2;
    t->n_dims = 4;
    refuse(k, "has the shape 32 x 64 x 4 x 2");
    k = mixture("0", true);
    maker_add(k, "blk.0.ffn_gate_shexp.weight", Q8_0, 32, WIDTH);
    refuse(k, "'blk.0.ffn_gate_shexp.weight' is not supported");
    k = mixture("0", true);
    maker_add(k, "blk.0.ffn_up.weight", Q8_0, 32, WIDTH);
    refuse(k, "'blk.0.ffn_up.weight' is not supported");
}

/* The llama of maker_llama as a phi3. */
static struct maker *phi3(unsigned n_layers)
{
    static const char *const keys[] = {"context_length", "embedding_length", "feed_forward_length",
                                       "attention.head_count", "attention.head_count_kv"};
    static const uint32_t values[] = {64, 32, 64, 2, 1};
    struct maker *k = maker_llama(n_layers);
    char name[80];
    maker_set_str(k, "general.architecture", "phi3");
    maker_set_u32(k, "phi3.block_count", n_layers);
    maker_set_u32(k, "phi3.rope.dimension_count", 8);
    maker_set_f32(k, "phi3.attention.layer_norm_rms_epsilon", 1e-5f);
    for (unsigned i = 0; i < 5; i++) {
        snprintf(name, sizeof name, "phi3.%s", keys[i]);
        maker_set_u32(k, name, values[i]);
    }
    for (unsigned i = 0; i < n_layers; i++) {
        static const char *const parts[] = {"attn_q", "attn_k", "attn_v", "ffn_gate", "ffn_up"};
        for (unsigned p = 0; p < 5; p++) {
            snprintf(name, sizeof name, "blk.%u.%s.weight", i, parts[p]);
            maker_drop_tensor(k, name);
        }
        snprintf(name, sizeof name, "blk.%u.attn_qkv.weight", i);
        maker_add(k, name, Q8_0, 32, 32 + 16 + 16);
        snprintf(name, sizeof name, "blk.%u.ffn_up.weight", i);
        maker_add(k, name, Q8_0, 32, 128);
    }
    return k;
}

static void joined_projections_are_taken_apart(void **state)
{
    (void)state;
    static const struct {
        enum brig_role role;
        const char *name;
        uint64_t rows, before; /* rows before it in the same tensor */
        enum brig_role first;
    } parts[] = {
        {BRIG_ROLE_ATTN_Q, "blk.1.attn_q.weight", 32, 0, BRIG_ROLE_ATTN_Q},
        {BRIG_ROLE_ATTN_K, "blk.1.attn_k.weight", 16, 32, BRIG_ROLE_ATTN_Q},
        {BRIG_ROLE_ATTN_V, "blk.1.attn_v.weight", 16, 48, BRIG_ROLE_ATTN_Q},
        {BRIG_ROLE_FFN_GATE, "blk.1.ffn_gate.weight", 64, 0, BRIG_ROLE_FFN_GATE},
        {BRIG_ROLE_FFN_UP, "blk.1.ffn_up.weight", 64, 64, BRIG_ROLE_FFN_GATE},
    };
    struct brig_model *m = maker_open_ok(phi3(2));
    assert_int_equal(m->desc.rope_dims, 8);
    for (unsigned i = 0; i < 5; i++) {
        const struct brig_tensor *t = brig_model_tensor(m, parts[i].role, 1);
        const struct brig_tensor *first = brig_model_tensor(m, parts[i].first, 1);
        assert_non_null(t);
        assert_true(brig_str_eq(t->name, parts[i].name));
        assert_true(t->dims[0] == 32 && t->dims[1] == parts[i].rows && t->bytes == 34 * parts[i].rows);
        assert_int_equal(t->offset, first->offset + 34 * parts[i].before);
    }
    brig_model_close(m);
    struct maker *k = phi3(1);
    maker_tensor(k, "blk.0.attn_qkv.weight")->dims[1] = 63;
    refuse(k, "needs 64 rows");
    k = phi3(1);
    maker_tensor(k, "blk.0.ffn_up.weight")->dims[1] = 64;
    refuse(k, "needs 128 rows");
    k = phi3(1);
    maker_drop_tensor(k, "blk.0.attn_qkv.weight");
    refuse(k, "'blk.0.attn_q.weight' is missing");
    k = phi3(2); /* one layer as a program may write it: all apart */
    maker_drop_tensor(k, "blk.1.attn_qkv.weight");
    maker_add(k, "blk.1.attn_q.weight", Q8_0, 32, 32);
    maker_add(k, "blk.1.attn_k.weight", Q8_0, 32, 16);
    maker_add(k, "blk.1.attn_v.weight", Q8_0, 32, 16);
    maker_tensor(k, "blk.1.ffn_up.weight")->dims[1] = 64;
    maker_add(k, "blk.1.ffn_gate.weight", Q8_0, 32, 64);
    m = maker_open_ok(k);
    assert_true(brig_model_tensor(m, BRIG_ROLE_FFN_UP, 1)->offset <
                brig_model_tensor(m, BRIG_ROLE_FFN_GATE, 1)->offset);
    brig_model_close(m);
    k = phi3(1);
    maker_add(k, "blk.0.attn_q.weight", Q8_0, 32, 32);
    refuse(k, "'blk.0.attn_qkv.weight' is not supported");
    k = phi3(1);
    maker_add(k, "blk.0.attn_k.weight", Q8_0, 32, 16);
    refuse(k, "have the same place");
    k = phi3(1);
    maker_set_u32(k, "phi3.attention.head_count", UINT32_MAX);
    refuse(k, "attention heads");
    k = maker_llama(1);
    maker_drop_tensor(k, "blk.0.ffn_gate.weight");
    maker_tensor(k, "blk.0.ffn_up.weight")->dims[1] = 128; /* not in a llama */
    refuse(k, "blk.0.ffn_");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(experts_have_the_same_places_however_they_lie),
        cmocka_unit_test(layers_may_be_dense_and_forms_mixed),
        cmocka_unit_test(slices_hold_their_experts),
        cmocka_unit_test(bad_numbers_are_named),
        cmocka_unit_test(bad_tensors_are_named),
        cmocka_unit_test(joined_projections_are_taken_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
