/* config.json and tensor names of the hub in GGUF's words: every fixture in both spellings, the defaults of
 * classes, the kinds of rope scaling, and what is refused. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "proto/base/mem.h"
#include "proto/model/family.h"
#include "proto/model/json.h"
#include "proto/model/safetensors.h"

static const char *const folders[] = {"gemma3", "gptneo", "mistral", "mixtral", "olmoe", "phi3", "qwen2"};
#define N_FOLDERS (sizeof folders / sizeof folders[0])

static int read_text(const char *text, struct brig_hub_config *c, struct brig_fail *fail)
{
    json_t *config = NULL;
    *c = (struct brig_hub_config){0};
    int r = brig_json_parse(&config, text, strlen(text), fail);
    if (r < 0)
        fail_msg("the test's own JSON: %s", fail->text);
    r = brig_hub_config_read(c, config, fail);
    json_decref(config);
    return r;
}

static struct brig_hub_config read_ok(const char *text)
{
    struct brig_hub_config c;
    struct brig_fail fail;
    if (read_text(text, &c, &fail) < 0)
        fail_msg("%s\n%s", fail.text, text);
    return c;
}

static void refuse(const char *text, const char *word, const char *word_too)
{
    struct brig_hub_config c;
    struct brig_fail fail;
    if (read_text(text, &c, &fail) == 0)
        fail_msg("taken, although it should say '%s': %s", word, text);
    if (strstr(fail.text, word) == NULL || strstr(fail.text, word_too) == NULL)
        fail_msg("'%s' does not say '%s' and '%s'", fail.text, word, word_too);
    brig_meta_make_release(&c.make);
}

static void release(struct brig_hub_config *c)
{
    brig_meta_make_release(&c->make);
}

static void has_u64(const struct brig_hub_config *c, const char *key, uint64_t want)
{
    uint64_t v;
    if (!brig_meta_u64(&c->make.meta, key, &v))
        fail_msg("%s is missing", key);
    if (v != want)
        fail_msg("%s is %llu, not %llu", key, (unsigned long long)v, (unsigned long long)want);
}

static void has_f64(const struct brig_hub_config *c, const char *key, double want)
{
    double v;
    if (!brig_meta_f64(&c->make.meta, key, &v))
        fail_msg("%s is missing", key);
    if (v != (double)(float)want)
        fail_msg("%s is %.9g, not %.9g", key, v, want);
}

static void has_str(const struct brig_hub_config *c, const char *key, const char *want)
{
    struct brig_str s;
    if (!brig_meta_str(&c->make.meta, key, &s))
        fail_msg("%s is missing", key);
    if (!brig_str_eq(s, want))
        fail_msg("%s is '%.*s', not '%s'", key, (int)s.len, s.ptr, want);
}

static void has_bool(const struct brig_hub_config *c, const char *key, bool want)
{
    bool b;
    if (!brig_meta_bool(&c->make.meta, key, &b) || b != want)
        fail_msg("%s is missing or not %d", key, want);
}

static void has_no(const struct brig_hub_config *c, const char *key)
{
    if (brig_meta_kind(&c->make.meta, key) != NULL)
        fail_msg("%s is there", key);
}

/* All entries as one text, sorted by key. */
static void print_all(const struct brig_meta *meta, struct brig_buf *out)
{
    struct brig_buf key = {0}, value = {0};
    for (unsigned i = 0; i < meta->n; i++) {
        struct brig_meta one = {.n = 1, .entries = (struct brig_meta_entry *)(uintptr_t)meta->by_key[i]};
        assert_true(brig_meta_text(&one, 0, &key, &value));
        assert_int_equal(brig_buf_printf(out, "%s = %s\n", key.data, value.data), 0);
    }
    brig_buf_release(&key);
    brig_buf_release(&value);
}

static struct brig_hub_config read_fixture(const char *folder, const char *name)
{
    char path[256];
    json_t *config = NULL;
    struct brig_hub_config c = {0};
    struct brig_fail fail;
    snprintf(path, sizeof path, "tests/fixtures/%s/hub/%s", folder, name);
    if (brig_json_open(&config, path, 1 << 20, &fail) < 0 || brig_hub_config_read(&c, config, &fail) < 0)
        fail_msg("%s: %s", path, fail.text);
    json_decref(config);
    return c;
}

static void test_both_spellings_are_one(void **state)
{
    (void)state;
    for (unsigned i = 0; i < N_FOLDERS; i++) {
        struct brig_hub_config a = read_fixture(folders[i], "config.json");
        struct brig_hub_config b = read_fixture(folders[i], "config_hub.json");
        struct brig_buf x = {0}, y = {0};
        print_all(&a.make.meta, &x);
        print_all(&b.make.meta, &y);
        assert_string_equal(x.data, y.data);
        assert_true(a.tied == b.tied && a.vocab == 517 && b.vocab == 517);
        brig_buf_release(&x);
        brig_buf_release(&y);
        release(&a);
        release(&b);
    }
}

static void test_gemma3(void **state)
{
    (void)state;
    struct brig_hub_config c = read_fixture("gemma3", "config.json");
    has_str(&c, "general.architecture", "gemma3");
    has_bool(&c, "brigade.hub_layout", true);
    has_u64(&c, "gemma3.block_count", 7);
    has_u64(&c, "gemma3.embedding_length", 64);
    has_u64(&c, "gemma3.feed_forward_length", 128);
    has_u64(&c, "gemma3.context_length", 256);
    has_u64(&c, "gemma3.attention.head_count", 4);
    has_u64(&c, "gemma3.attention.head_count_kv", 1);
    has_u64(&c, "gemma3.attention.key_length", 32);
    has_u64(&c, "gemma3.attention.sliding_window", 8);
    has_str(&c, "brigade.layer_types", "wwwwwgw");
    has_f64(&c, "gemma3.attention.layer_norm_rms_epsilon", 1e-6);
    has_f64(&c, "gemma3.rope.freq_base", 1e6);
    has_f64(&c, "gemma3.rope.freq_base_swa", 1e4);
    has_f64(&c, "brigade.attn_scale", 1 / sqrt(32.0));
    has_no(&c, "gemma3.rope.scaling.type");
    assert_true(c.tied);
    release(&c);
}

static void test_gpt_neo(void **state)
{
    (void)state;
    struct brig_hub_config c = read_fixture("gptneo", "config.json");
    has_str(&c, "general.architecture", "gpt-neo");
    has_u64(&c, "gpt-neo.block_count", 5);
    has_u64(&c, "gpt-neo.feed_forward_length", 256);
    has_u64(&c, "gpt-neo.attention.sliding_window", 7);
    has_str(&c, "brigade.layer_types", "gwgwg");
    has_f64(&c, "gpt-neo.attention.layer_norm_epsilon", 1e-5);
    has_f64(&c, "brigade.attn_scale", 1);
    has_no(&c, "gpt-neo.rope.freq_base");
    assert_true(c.tied);
    release(&c);
    /* Without attention_layers the groups are expanded. */
    c = read_ok("{\"model_type\":\"gpt_neo\",\"hidden_size\":8,\"num_layers\":6,\"num_heads\":2,"
                "\"attention_types\":[[[\"local\",\"global\"],2],[[\"global\"],2]]}");
    has_str(&c, "brigade.layer_types", "wgwggg");
    has_u64(&c, "gpt-neo.attention.sliding_window", 256);
    release(&c);
    c = read_ok("{\"model_type\":\"gpt_neo\",\"hidden_size\":8,\"num_layers\":3,\"num_heads\":2}");
    has_str(&c, "brigade.layer_types", "gwg");
    release(&c);
#define NEO "{\"model_type\":\"gpt_neo\",\"hidden_size\":8,\"num_layers\":3,\"num_heads\":2,"
    refuse(NEO "\"attention_types\":[[[\"local\"],4000000000]]}", "attention_types", "more kinds");
    refuse(NEO "\"attention_types\":[[[],4000000000]]}", "attention_types", "without kinds");
    refuse(NEO "\"attention_types\":[[[\"local\"],2]]}", "attention_types has 2 kinds", "3 layers");
    refuse(NEO "\"attention_types\":[3]}", "attention_types", "");
    refuse(NEO "\"attention_layers\":[\"global\",\"far\",\"local\"]}", "attention_layers", "'far'");
}

static void test_experts(void **state)
{
    (void)state;
    struct brig_hub_config c = read_fixture("olmoe", "config.json");
    has_u64(&c, "olmoe.expert_count", 16);
    has_u64(&c, "olmoe.expert_used_count", 4);
    has_u64(&c, "olmoe.expert_feed_forward_length", 32);
    has_bool(&c, "brigade.norm_topk_prob", false);
    has_no(&c, "brigade.clip_qkv");
    has_no(&c, "brigade.dense_layers");
    release(&c);
    c = read_fixture("mixtral", "config.json");
    has_u64(&c, "mixtral.expert_count", 4);
    has_u64(&c, "mixtral.expert_used_count", 2);
    has_u64(&c, "mixtral.expert_feed_forward_length", 64);
    has_u64(&c, "mixtral.attention.key_length", 16);
    has_bool(&c, "brigade.norm_topk_prob", true);
    has_no(&c, "mixtral.attention.sliding_window");
    release(&c);
#define QWEN3MOE                                                                                             \
    "{\"model_type\":\"qwen3_moe\",\"hidden_size\":64,\"num_hidden_layers\":6,\"num_attention_heads\":4,"    \
    "\"intermediate_size\":96,\"moe_intermediate_size\":32,"
    c = read_ok(QWEN3MOE "\"num_local_experts\":8,\"num_experts_per_tok\":3,\"norm_topk_prob\":true,"
                         "\"mlp_only_layers\":[0,99],\"decoder_sparse_step\":2}");
    has_u64(&c, "qwen3moe.expert_count", 8);
    has_u64(&c, "qwen3moe.expert_used_count", 3);
    has_u64(&c, "qwen3moe.expert_feed_forward_length", 32);
    has_u64(&c, "qwen3moe.feed_forward_length", 96);
    has_bool(&c, "brigade.norm_topk_prob", true);
    has_str(&c, "brigade.dense_layers", "101010");
    release(&c);
    c = read_ok(QWEN3MOE "\"num_experts\":8,\"use_sliding_window\":true,\"sliding_window\":5}");
    has_u64(&c, "qwen3moe.expert_used_count", 8); /* the default of its class */
    has_bool(&c, "brigade.norm_topk_prob", false);
    has_u64(&c, "qwen3moe.attention.sliding_window", 5);
    has_no(&c, "brigade.layer_types");
    release(&c);
    refuse(QWEN3MOE "\"num_experts\":4,\"num_experts_per_tok\":5}", "5 of 4 experts", "");
    refuse(QWEN3MOE "\"decoder_sparse_step\":0}", "decoder_sparse_step", "");
    refuse(QWEN3MOE "\"mlp_only_layers\":[\"a\"]}", "mlp_only_layers", "a string");
}

#define LLAMA                                                                                                \
    "{\"model_type\":\"llama\",\"hidden_size\":64,\"num_hidden_layers\":2,\"num_attention_heads\":4,"        \
    "\"intermediate_size\":96"
#define AS(type)                                                                                             \
    "{\"model_type\":\"" type "\",\"hidden_size\":64,\"num_hidden_layers\":4,\"num_attention_heads\":4,"     \
    "\"intermediate_size\":96"

/* What a class takes for granted when its keys are absent, and what null means. */
static void test_defaults(void **state)
{
    (void)state;
    struct brig_hub_config c = read_ok(LLAMA "}");
    has_u64(&c, "llama.attention.head_count_kv", 4);
    has_u64(&c, "llama.attention.key_length", 16);
    has_u64(&c, "llama.context_length", 2048);
    has_f64(&c, "llama.rope.freq_base", 1e4);
    has_f64(&c, "llama.attention.layer_norm_rms_epsilon", 1e-6);
    has_u64(&c, "llama.rope.dimension_count", 16);
    has_no(&c, "llama.vocab_size");
    assert_true(!c.tied && !c.untied && c.attn_bias == -1 && c.mlp_bias == -1);
    release(&c);
    c = read_ok(AS("mistral") "}");
    has_u64(&c, "mistral.attention.head_count_kv", 8);
    has_u64(&c, "mistral.attention.sliding_window", 4096);
    release(&c);
    c = read_ok(AS("mistral") ",\"num_key_value_heads\":null,\"sliding_window\":null,\"head_dim\":null}");
    has_u64(&c, "mistral.attention.head_count_kv", 4);
    has_u64(&c, "mistral.attention.key_length", 16);
    has_no(&c, "mistral.attention.sliding_window");
    release(&c);
    c = read_ok(AS("qwen3") "}");
    has_u64(&c, "qwen3.attention.key_length", 128);
    has_no(&c, "qwen3.attention.sliding_window");
    release(&c);
    c = read_ok(AS("qwen2") ",\"use_sliding_window\":true,\"sliding_window\":9,\"max_window_layers\":3}");
    has_u64(&c, "qwen2.attention.sliding_window", 9);
    has_str(&c, "brigade.layer_types", "gggw");
    release(&c);
    c = read_ok(
        AS("qwen2") ",\"use_sliding_window\":true,\"sliding_window\":9,\"layer_types\":"
                    "[\"sliding_attention\",\"full_attention\",\"full_attention\",\"full_attention\"]}");
    has_str(&c, "brigade.layer_types", "wggg");
    release(&c);
    c = read_ok(AS("qwen2") ",\"use_sliding_window\":true,\"max_window_layers\":28}");
    has_no(&c, "qwen2.attention.sliding_window");
    release(&c);
    c = read_ok(AS("olmoe") ",\"clip_qkv\":8}");
    has_f64(&c, "brigade.clip_qkv", 8);
    has_u64(&c, "olmoe.expert_count", 64);
    release(&c);
    c = read_ok(LLAMA ",\"tie_word_embeddings\":false,\"attention_bias\":true,\"mlp_bias\":false}");
    assert_true(c.untied && c.attn_bias == 1 && c.mlp_bias == 0);
    release(&c);
}

/* A model that sees pictures: the text model's keys in an object, most of them left to the class. */
static void test_gemma3_with_pictures(void **state)
{
    (void)state;
    struct brig_hub_config c =
        read_ok("{\"model_type\":\"gemma3\",\"vision_config\":{},\"text_config\":{\"hidden_size\":2560,"
                "\"intermediate_size\":10240,\"model_type\":\"gemma3_text\",\"num_hidden_layers\":34,\"rope_"
                "scaling\":"
                "{\"factor\":8.0,\"rope_type\":\"linear\"},\"sliding_window\":1024}}");
    has_u64(&c, "gemma3.attention.head_count", 8);
    has_u64(&c, "gemma3.attention.head_count_kv", 4);
    has_u64(&c, "gemma3.attention.key_length", 256);
    has_u64(&c, "gemma3.context_length", 131072);
    has_u64(&c, "gemma3.attention.sliding_window", 1024);
    has_str(&c, "brigade.layer_types", "wwwwwgwwwwwgwwwwwgwwwwwgwwwwwgwwww");
    has_str(&c, "gemma3.rope.scaling.type", "linear");
    has_f64(&c, "gemma3.rope.scaling.factor", 8);
    has_f64(&c, "gemma3.rope.freq_base", 1e6);
    has_f64(&c, "gemma3.rope.freq_base_swa", 1e4);
    has_f64(&c, "brigade.attn_scale", 1.0 / 16);
    assert_true(c.tied);
    release(&c);
    refuse("{\"model_type\":\"gemma3\"}", "text_config", "missing");
}

static void test_rope_scaling(void **state)
{
    (void)state;
    struct brig_hub_config c =
        read_ok(LLAMA ",\"rope_scaling\":{\"type\":\"linear\",\"factor\":4},\"rope_theta\":5e5}");
    has_str(&c, "llama.rope.scaling.type", "linear");
    has_f64(&c, "llama.rope.scaling.factor", 4);
    has_f64(&c, "llama.rope.freq_base", 5e5);
    release(&c);
    c = read_ok(LLAMA
                ",\"rope_parameters\":{\"rope_type\":\"llama3\",\"factor\":8.0,\"low_freq_factor\":1.0,"
                "\"high_freq_factor\":4.0,\"original_max_position_embeddings\":8192,\"rope_theta\":5e5},"
                "\"rope_theta\":1.0}");
    has_str(&c, "llama.rope.scaling.type", "llama3");
    has_u64(&c, "llama.rope.scaling.original_context_length", 8192);
    has_f64(&c, "brigade.rope.low_freq_factor", 1);
    has_f64(&c, "brigade.rope.high_freq_factor", 4);
    has_f64(&c, "llama.rope.freq_base", 5e5);
    release(&c);
    c = read_ok(LLAMA ",\"rope_scaling\":{\"rope_type\":\"yarn\",\"factor\":4.0,\"beta_fast\":16,"
                      "\"original_max_position_embeddings\":32768,\"truncate\":false}}");
    has_str(&c, "llama.rope.scaling.type", "yarn");
    has_f64(&c, "llama.rope.scaling.yarn_beta_fast", 16);
    has_no(&c, "llama.rope.scaling.yarn_beta_slow");
    has_no(&c, "brigade.rope.attention_factor");
    has_bool(&c, "brigade.rope.yarn_truncate", false);
    release(&c);
    c = read_ok(LLAMA ",\"rope_scaling\":{\"rope_type\":\"yarn\",\"factor\":40,\"mscale\":0.707,"
                      "\"mscale_all_dim\":1.0}}");
    has_f64(&c, "brigade.rope.attention_factor", (0.0707 * log(40) + 1) / (0.1 * log(40) + 1));
    release(&c);
    c = read_ok(
        AS("phi3") ",\"rope_scaling\":{\"type\":\"su\",\"short_factor\":[1,1.5],\"long_factor\":[2,3]},"
                   "\"original_max_position_embeddings\":4096,\"max_position_embeddings\":131072,"
                   "\"partial_rotary_factor\":0.25}");
    has_str(&c, "phi3.rope.scaling.type", "longrope");
    has_u64(&c, "phi3.rope.scaling.original_context_length", 4096);
    has_u64(&c, "phi3.rope.dimension_count", 4);
    has_no(&c, "phi3.rope.scaling.factor");
    const struct brig_meta_entry *e = brig_meta_find(&c.make.meta, "brigade.rope.short_factor");
    assert_true(e != NULL && e->kind == BRIG_META_ARRAY && e->array.n == 2);
    static const float want[] = {1.0f, 1.5f};
    assert_memory_equal(e->array.bytes.ptr, want, sizeof want);
    release(&c);
    refuse(LLAMA ",\"rope_scaling\":{\"type\":\"dynamic\",\"factor\":2}}", "'dynamic'", "not supported");
    refuse(LLAMA ",\"rope_scaling\":{\"type\":\"linear\"}}", "factor", "missing");
    refuse(LLAMA ",\"rope_scaling\":{\"type\":\"llama3\",\"factor\":8}}", "original_max_position", "missing");
    refuse(LLAMA ",\"rope_scaling\":{\"type\":7}}", "type", "a string");
    refuse(LLAMA ",\"rope_scaling\":[1]}", "rope_scaling", "an array");
    refuse(LLAMA ",\"rope_theta\":\"big\"}", "rope_theta", "a string");
    refuse(LLAMA ",\"partial_rotary_factor\":1.5}", "partial_rotary_factor", "1.5");
    refuse(AS("phi3") ",\"original_max_position_embeddings\":4096,\"rope_scaling\":{\"type\":\"longrope\","
                      "\"short_factor\":[1],\"long_factor\":[]}}",
           "long_factor", "0 numbers");
    refuse(AS("phi3") ",\"original_max_position_embeddings\":4096,\"rope_scaling\":{\"type\":\"longrope\","
                      "\"short_factor\":[1,null],\"long_factor\":[1]}}",
           "short_factor", "null");
}

static void test_refusals(void **state)
{
    (void)state;
    refuse("{}", "model_type", "missing");
    refuse("{\"model_type\":\"mamba\"}", "model_type", "'mamba'");
    refuse("{\"model_type\":3}", "model_type", "a whole number");
    refuse("{\"model_type\":\"llama\"}", "num_hidden_layers", "missing");
    refuse("{\"model_type\":\"llama\",\"num_hidden_layers\":4294967296}", "num_hidden_layers", "too large");
    refuse("{\"model_type\":\"llama\",\"num_hidden_layers\":-3}", "num_hidden_layers", "-3");
    refuse("{\"model_type\":\"llama\",\"num_hidden_layers\":4097,\"hidden_size\":8,\"intermediate_size\":8}",
           "4097 layers", "");
    refuse("{\"model_type\":\"llama\",\"num_hidden_layers\":1,\"hidden_size\":8}", "intermediate_size", "");
    refuse("{\"model_type\":\"llama\",\"num_hidden_layers\":1,\"hidden_size\":8,\"intermediate_size\":8}",
           "num_attention_heads", "missing");
    refuse("{\"model_type\":\"llama\",\"num_hidden_layers\":1,\"hidden_size\":8,\"intermediate_size\":8,"
           "\"num_attention_heads\":3}",
           "hidden_size 8", "3 attention heads");
    refuse(LLAMA ",\"hidden_act\":\"relu\"}", "hidden_act", "'relu'");
    refuse(AS("gemma3_text") ",\"hidden_activation\":\"silu\"}", "hidden_activation", "'silu'");
    refuse(AS("gemma3_text") ",\"attn_logit_softcapping\":50.0}", "attn_logit_softcapping", "not supported");
    refuse(AS("gemma3_text") ",\"use_bidirectional_attention\":true}", "use_bidirectional_attention", "");
    refuse(AS("gemma3_text") ",\"sliding_window_pattern\":0}", "sliding_window_pattern", "");
    refuse(AS("gemma3_text") ",\"layer_types\":[\"full_attention\"]}", "layer_types has 1 kinds", "4 layers");
    refuse(AS("gemma3_text") ",\"query_pre_attn_scalar\":-1}", "query_pre_attn_scalar", "-1");
    refuse(LLAMA ",\"quantization_config\":{\"quant_method\":\"bitsandbytes\"}}", "quantization_config",
           "'bitsandbytes'");
    refuse(LLAMA ",\"tie_word_embeddings\":1}", "tie_word_embeddings", "a whole number");
    refuse(LLAMA ",\"rms_norm_eps\":\"1e-5\"}", "rms_norm_eps", "a string");
}

static bool knows(const struct brig_hub_names *names, const char *name, const char *want)
{
    struct brig_hub_place p = {0};
    enum brig_hub_fate fate =
        brig_hub_translate(names, names->bases[0], (struct brig_str){name, strlen(name)}, &p);
    return want == NULL ? fate == BRIG_HUB_UNKNOWN : fate == BRIG_HUB_KNOWN && strcmp(p.name, want) == 0;
}

static void test_names(void **state)
{
    (void)state;
    const struct brig_hub_names *llama = brig_hub_arch_of((struct brig_str){"llama", 5})->names;
    const struct brig_hub_names *neo = brig_hub_arch_of((struct brig_str){"gpt_neo", 7})->names;
    struct brig_hub_place p;
    assert_true(knows(llama, "model.layers.12.self_attn.q_proj.weight", "blk.12.attn_q.weight"));
    assert_true(knows(llama, "model.layers.0.mlp.experts.117.down_proj.weight", "blk.0.ffn_down.117.weight"));
    assert_true(knows(llama, "lm_head.weight", "output.weight"));
    assert_true(knows(neo, "transformer.h.3.ln_2.bias", "blk.3.ffn_norm.bias"));
    static const char *const strange[] = {"model.layers.01.self_attn.q_proj.weight",
                                          "model.layers..self_attn.q_proj.weight",
                                          "model.layers.99999999999.self_attn.q_proj.weight",
                                          "model.layers.1.self_attn.q_proj.weightx",
                                          "model.layers.1.self_attn.q_proj",
                                          "model.layers.-1.self_attn.q_proj.weight",
                                          "model.",
                                          "model.layers.1.self_attn.q_proj.qweight",
                                          "model.layers.1.self_attn.q_proj.lora_A.weight"};
    for (unsigned i = 0; i < sizeof strange / sizeof strange[0]; i++)
        if (!knows(llama, strange[i], NULL))
            fail_msg("'%s' is not unknown", strange[i]);
    struct brig_str left[] = {{"model.layers.0.self_attn.rotary_emb.inv_freq", 44}, {"vision_tower.x", 14}};
    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(brig_hub_translate(llama, "model.", left[i], &p), BRIG_HUB_LEFT);
    assert_string_equal(
        brig_hub_base(llama, (struct brig_str){"language_model.model.embed_tokens.weight", 40}),
        "language_model.model.");
    assert_null(brig_hub_base(llama, (struct brig_str){"embed_tokens", 12}));
}

/* Every row of every table both ways, and every model_type's family exists under that name or says so. */
static void test_tables(void **state)
{
    (void)state;
    const struct brig_hub_arch *a;
    char own[BRIG_HUB_NAME_BYTES], name[BRIG_HUB_NAME_BYTES];
    for (unsigned i = 0; (a = brig_hub_arch_at(i)) != NULL; i++) {
        assert_ptr_equal(brig_hub_arch_of((struct brig_str){a->model_type, strlen(a->model_type)}), a);
        assert_true(strlen(a->arch) < sizeof((struct brig_desc *)0)->arch);
        for (unsigned row = 0; row < a->names->n; row++) {
            if (a->names->rows[row].name == NULL)
                continue;
            size_t n = 0;
            for (const char *p = a->names->rows[row].name; *p != '\0'; p++)
                n += (size_t)snprintf(name + n, sizeof name - n, *p == '*' ? "7" : "%c", *p);
            assert_true(brig_hub_own_name(a->names, "model.", name, own));
            struct brig_hub_place p;
            assert_int_equal(brig_hub_translate(a->names, "model.", (struct brig_str){own, strlen(own)}, &p),
                             BRIG_HUB_KNOWN);
            assert_string_equal(p.name, name);
        }
    }
    assert_false(brig_hub_own_name(brig_hub_arch_at(0)->names, "model.", "blk.0.nobody.weight", own));
}

/* All tensors of the fixtures have a name, and the name leads back. */
static void test_fixtures_names(void **state)
{
    (void)state;
    for (unsigned i = 0; i < N_FOLDERS; i++) {
        char path[128], own[BRIG_HUB_NAME_BYTES];
        struct brig_hub_config c = read_fixture(folders[i], "config.json");
        struct brig_st s = {0};
        struct brig_fail fail;
        json_t *index = NULL;
        snprintf(path, sizeof path, "tests/fixtures/%s/hub", folders[i]);
        struct brig_model m = {.path = path};
        assert_int_equal(brig_st_folder(&s, &m, &fail), 0);
        assert_int_equal(brig_st_open_files(&s, &m, &index, &fail), 0);
        for (unsigned f = 0; f < m.n_files; f++)
            assert_int_equal(brig_st_read_header(&s, &m, f, &fail), 0);
        assert_int_equal(brig_st_sort(&s, &m, &fail), 0);
        assert_int_equal(brig_st_check_index(&s, &m, index, &fail), 0);
        assert_true(s.n > 30 && (m.n_files == 1) == (index == NULL));
        const char *base = c.arch->names->bases[0];
        for (unsigned t = 0; t < s.n; t++) {
            struct brig_hub_place p = {0};
            struct brig_str name = {s.tensors[t].name, strlen(s.tensors[t].name)};
            if (brig_hub_translate(c.arch->names, base, name, &p) != BRIG_HUB_KNOWN)
                fail_msg("%s: '%s' has no name", folders[i], s.tensors[t].name);
            assert_true(brig_hub_own_name(c.arch->names, base, p.name, own));
            assert_string_equal(own, s.tensors[t].name);
            assert_ptr_equal(brig_st_find(&s, own), &s.tensors[t]);
        }
        for (unsigned t = 0; t < s.n; t++)
            brig_free(s.tensors[t].name);
        for (unsigned f = 0; f < m.n_files; f++) {
            close(m.files[f].fd);
            brig_free(m.files[f].path);
        }
        json_decref(index);
        brig_free(m.files);
        brig_free(s.tensors);
        brig_free(s.folder);
        brig_free(s.title);
        brig_buf_release(&s.head);
        release(&c);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_both_spellings_are_one),
        cmocka_unit_test(test_gemma3),
        cmocka_unit_test(test_gpt_neo),
        cmocka_unit_test(test_experts),
        cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_gemma3_with_pictures),
        cmocka_unit_test(test_rope_scaling),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_tables),
        cmocka_unit_test(test_fixtures_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
