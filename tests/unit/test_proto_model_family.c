/* What families make of metadata: windows, norms, scales, and the scaling of the rotary embedding against its
 * formulas, written out once more with the C library's functions. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>
#include <math.h>

#include "tests/unit/gguf_maker.h"

static struct brig_model *opened(const char *path)
{
    struct brig_model *m = NULL;
    struct brig_fail fail;
    if (brig_model_open(&m, path, &fail) < 0)
        fail_msg("%s", fail.text);
    return m;
}

static bool windowed(const struct brig_model *m, uint32_t layer)
{
    return (m->desc.layer_flags[layer] & BRIG_LAYER_WINDOWED) != 0;
}

/* ---- gemma3 ---- */

static void check_gemma3(const struct brig_model *m, enum brig_norm norm)
{
    const struct brig_desc *d = &m->desc;
    assert_int_equal(d->norm, norm);
    assert_int_equal(d->mlp, BRIG_MLP_GEGLU);
    assert_int_equal(d->qk_norm, BRIG_QK_NORM_HEAD);
    assert_int_equal(d->rope, BRIG_ROPE_HALVES);
    assert_int_equal(d->window, 8);
    for (uint32_t i = 0; i < d->n_layers; i++)
        assert_int_equal(windowed(m, i), i != 5);
    assert_true(d->post_norms && d->tied && d->embed_scale == 8.0f);
    assert_true(d->rope_base == 1e6f && d->rope_windowed_base == 1e4f);
    assert_true(fabsf(d->attn_scale - 0.17677669f) < 1e-7f);
}

static void gemma3_says_the_same_in_both_formats(void **state)
{
    (void)state;
    struct brig_model *gguf = opened("tests/fixtures/gemma3/q4_0.gguf");
    struct brig_model *hub = opened("tests/fixtures/gemma3/hub");
    check_gemma3(gguf, BRIG_NORM_RMS);
    check_gemma3(hub, BRIG_NORM_RMS_PLUS_ONE);
    brig_model_close(gguf);
    brig_model_close(hub);
}

static struct maker *gemma3(unsigned n_layers)
{
    static const struct {
        const char *name;
        uint32_t value;
    } numbers[] = {{"block_count", 0},
                   {"context_length", 64},
                   {"embedding_length", 32},
                   {"feed_forward_length", 64},
                   {"attention.head_count", 2},
                   {"attention.head_count_kv", 1},
                   {"attention.sliding_window", 4}};
    static const char *const norms[] = {"post_attention_norm", "post_ffw_norm", "attn_q_norm", "attn_k_norm"};
    struct maker *k = maker_llama(n_layers);
    char name[80];
    maker_set_str(k, "general.architecture", "gemma3");
    for (unsigned i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        snprintf(name, sizeof name, "gemma3.%s", numbers[i].name);
        maker_set_u32(k, name, i == 0 ? n_layers : numbers[i].value);
    }
    maker_set_f32(k, "gemma3.attention.layer_norm_rms_epsilon", 1e-6f);
    for (unsigned i = 0; i < n_layers * 4; i++) {
        snprintf(name, sizeof name, "blk.%u.%s.weight", i / 4, norms[i % 4]);
        maker_add(k, name, 0, i % 4 < 2 ? 32 : 16, 1);
    }
    return k;
}

static void gemma3_pattern_and_scale(void **state)
{
    (void)state;
    struct brig_model *m = maker_open_ok(gemma3(13));
    for (uint32_t i = 0; i < 13; i++)
        assert_int_equal(windowed(m, i), i != 5 && i != 11);
    assert_true(m->desc.attn_scale == 0.25f && m->desc.rope_windowed_base == 1e4f);
    brig_model_close(m);

    struct maker *k = gemma3(4);
    maker_set_u32(k, "gemma3.attention.sliding_window_pattern", 2);
    maker_set_f32(k, "gemma3.rope.freq_base_swa", 5000.0f);
    m = maker_open_ok(k);
    for (uint32_t i = 0; i < 4; i++)
        assert_int_equal(windowed(m, i), i % 2 == 0);
    assert_true(m->desc.rope_windowed_base == 5000.0f);
    brig_model_close(m);

    k = gemma3(7); /* all windowed, by the checkpoint's own word */
    maker_set_str(k, "brigade.layer_types", "wwwwwww");
    m = maker_open_ok(k);
    assert_true(windowed(m, 5));
    brig_model_close(m);

    k = gemma3(62); /* hidden / heads instead of the width of a head */
    for (unsigned i = 0; i < 62; i++) {
        char name[80];
        snprintf(name, sizeof name, "blk.%u.attn_q.weight", i);
        maker_tensor(k, name)->dims[1] = 64;
        snprintf(name, sizeof name, "blk.%u.attn_k.weight", i);
        maker_tensor(k, name)->dims[1] = 32;
        snprintf(name, sizeof name, "blk.%u.attn_v.weight", i);
        maker_tensor(k, name)->dims[1] = 32;
        snprintf(name, sizeof name, "blk.%u.attn_output.weight", i);
        maker_tensor(k, name)->dims[0] = 64;
        snprintf(name, sizeof name, "blk.%u.attn_q_norm.weight", i);
        maker_tensor(k, name)->dims[0] = 32;
        snprintf(name, sizeof name, "blk.%u.attn_k_norm.weight", i);
        maker_tensor(k, name)->dims[0] = 32;
    }
    maker_set_u32(k, "gemma3.attention.key_length", 32);
    maker_set_u32(k, "gemma3.attention.value_length", 32);
    m = maker_open_ok(k);
    assert_true(m->desc.head_dim == 32 && m->desc.attn_scale == 0.25f);
    brig_model_close(m);
}

static void gemma3_refuses_capped_logits(void **state)
{
    (void)state;
    struct brig_model *m = NULL;
    struct brig_fail fail;
    struct maker *k = gemma3(1);
    maker_set_f32(k, "gemma3.final_logit_softcapping", 30.0f);
    assert_int_equal(maker_open(k, &m, &fail), -BRIG_EUNSUPPORTED);
    assert_non_null(strstr(fail.text, "gemma3.final_logit_softcapping is 30"));
    maker_release(k);
}

/* ---- the others ---- */

static void gpt_neo_and_mistral(void **state)
{
    (void)state;
    struct brig_model *m = opened("tests/fixtures/gptneo/hub");
    const struct brig_desc *d = &m->desc;
    assert_string_equal(d->arch, "gpt-neo");
    assert_true(d->norm == BRIG_NORM_LAYER && d->mlp == BRIG_MLP_GELU && d->learned_positions);
    assert_true(d->attn_scale == 1.0f && d->rope_dims == 0 && d->ffn == 256 && d->norm_eps == 1e-5f);
    assert_true(!d->qkv_bias && d->out_bias && d->mlp_bias && d->tied);
    assert_int_equal(d->window, 7);
    for (uint32_t i = 0; i < d->n_layers; i++)
        assert_int_equal(windowed(m, i), i % 2 == 1);
    assert_non_null(brig_model_tensor(m, BRIG_ROLE_POSITION_TABLE, 0));
    brig_model_close(m);
    m = opened("tests/fixtures/mistral/hub");
    d = &m->desc;
    assert_string_equal(d->arch, "mistral");
    assert_true(d->window == 9 && windowed(m, 0) && windowed(m, d->n_layers - 1));
    assert_true(d->rope == BRIG_ROPE_HALVES && d->rope_windowed_base == 0.0f && !d->tied);
    brig_model_close(m);
}

static void llama_reads_windows_and_layouts(void **state)
{
    (void)state;
    struct maker *k = maker_llama(2);
    maker_set_u32(k, "llama.attention.sliding_window", 16);
    struct brig_model *m = maker_open_ok(k);
    assert_true(m->desc.window == 16 && windowed(m, 0) && windowed(m, 1) && m->desc.rope == BRIG_ROPE_PAIRS);
    brig_model_close(m);
    k = maker_llama(2);
    maker_set_u32(k, "llama.attention.sliding_window", 16);
    maker_set_str(k, "brigade.layer_types", "gw");
    maker_set_f32(k, "brigade.attn_scale", 0.5f);
    brig_buf_add(maker_set(k, "brigade.hub_layout", 7), "\1", 1);
    m = maker_open_ok(k);
    assert_true(!windowed(m, 0) && windowed(m, 1) && m->desc.rope == BRIG_ROPE_HALVES);
    assert_true(m->desc.attn_scale == 0.5f);
    brig_model_close(m);
}

/* ---- rotary scaling: heads of 16, base 10,000 ---- */

static double wanted_frequency(unsigned i)
{
    return pow(10000.0, -2.0 * i / 16);
}

static struct maker *scaled(const char *type, float factor, uint32_t original)
{
    struct maker *k = maker_llama(1);
    maker_set_str(k, "llama.rope.scaling.type", type);
    maker_set_f32(k, "llama.rope.scaling.factor", factor);
    maker_set_u32(k, "llama.rope.scaling.original_context_length", original);
    return k;
}

static void near(float got, double want)
{
    if (!(fabs((double)got - want) <= 1e-6 * fabs(want)))
        fail_msg("%.9g instead of %.9g", (double)got, want);
}

static void llama3_is_its_formula(void **state)
{
    (void)state;
    struct maker *k = scaled("llama3", 8.0f, 4096);
    maker_set_f32(k, "brigade.rope.low_freq_factor", 1.0f);
    maker_set_f32(k, "brigade.rope.high_freq_factor", 4.0f);
    struct brig_model *m = maker_open_ok(k);
    unsigned kept = 0, between = 0, divided = 0;
    assert_int_equal(m->desc.n_rope_factors, 8);
    for (unsigned i = 0; i < 8; i++) {
        double f = wanted_frequency(i), length = 2 * M_PI / f, smooth = (4096 / length - 1) / (4 - 1);
        double scaled_f = length < 4096.0 / 4   ? f
                          : length > 4096.0 / 1 ? f / 8
                                                : (1 - smooth) * f / 8 + smooth * f;
        kept += length < 4096.0 / 4;
        divided += length > 4096.0;
        between += length >= 4096.0 / 4 && length <= 4096.0;
        near(m->desc.rope_factors[i], f / scaled_f);
    }
    assert_true(kept > 0 && divided > 0 && between > 0);
    assert_true(m->desc.rope_mscale == 1.0f && m->desc.rope_linear == 1.0f);
    brig_model_close(m);
}

/* As the paper has it: a ramp between the pairs that turn beta_fast and beta_slow times in the original
 * context. */
static double yarn_factor(unsigned i, double factor, double original, bool truncate)
{
    double low = 16 * log(original / (32.0 * 2 * M_PI)) / (2 * log(10000.0));
    double high = 16 * log(original / (1.0 * 2 * M_PI)) / (2 * log(10000.0));
    if (truncate) {
        low = floor(low);
        high = ceil(high);
    }
    low = fmax(low, 0);
    high = fmin(high, 15);
    double ramp = fmin(fmax((i - low) / (high - low), 0), 1), f = wanted_frequency(i);
    return f / (f / factor * ramp + f * (1 - ramp));
}

static void yarn_is_its_formula(void **state)
{
    (void)state;
    for (unsigned n = 0; n < 4; n++) {
        struct maker *k = scaled("yarn", 4.0f, 2048);
        bool truncate = n % 2 == 0;
        if (!truncate)
            brig_buf_add(maker_set(k, "brigade.rope.yarn_truncate", 7), "\0", 1);
        if (n == 2)
            maker_set_f32(k, "llama.rope.scaling.attn_factor", 0.5f);
        if (n == 3)
            maker_set_f32(k, "brigade.rope.attention_factor", 1.25f);
        struct brig_model *m = maker_open_ok(k);
        for (unsigned i = 0; i < 8; i++)
            near(m->desc.rope_factors[i], yarn_factor(i, 4.0, 2048.0, truncate));
        assert_true(m->desc.rope_factors[0] == 1.0f && m->desc.rope_factors[7] == 4.0f);
        near(m->desc.rope_mscale, n == 3 ? 1.25 : (0.1 * log(4.0) + 1) * (n == 2 ? 0.5 : 1.0));
        assert_true(m->desc.rope_linear == 1.0f && m->desc.rope_long_from == 0);
        brig_model_close(m);
    }
}

/* Phi-3's GGUF files: two tensors and no word about a kind of scaling. */
static void longrope_by_tensors(void **state)
{
    (void)state;
    for (unsigned n = 0; n < 2; n++) {
        struct maker *k = maker_llama(1);
        maker_set_u32(k, "llama.rope.scaling.original_context_length", 16);
        if (n == 1)
            maker_set_f32(k, "llama.rope.scaling.attn_factor", 1.19f);
        maker_add(k, "rope_factors_short.weight", 0, 8, 1);
        maker_add(k, "rope_factors_long.weight", 0, 8, 1);
        struct brig_model *m = maker_open_ok(k);
        assert_true(m->desc.n_rope_factors == 8 && m->desc.rope_long_from == 16);
        assert_true(m->desc.rope_factors[3] > 0.0f && m->desc.rope_long_factors[3] > 0.0f);
        near(m->desc.rope_mscale, n == 1 ? (double)1.19f : sqrt(1 + log(64.0 / 16) / log(16.0)));
        brig_model_close(m);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gemma3_says_the_same_in_both_formats),
        cmocka_unit_test(gemma3_pattern_and_scale),
        cmocka_unit_test(gemma3_refuses_capped_logits),
        cmocka_unit_test(gpt_neo_and_mistral),
        cmocka_unit_test(llama_reads_windows_and_layouts),
        cmocka_unit_test(llama3_is_its_formula),
        cmocka_unit_test(yarn_is_its_formula),
        cmocka_unit_test(longrope_by_tensors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
