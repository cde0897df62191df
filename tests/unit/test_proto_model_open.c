/* Opening good checkpoints: the llama fixtures in five types, made files, metadata, vocabulary, identity. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "proto/base/mem.h"
#include "proto/model/family.h"
#include "tests/unit/gguf_maker.h"

static struct brig_model *open_ok(const char *path)
{
    struct brig_model *m = NULL;
    struct brig_fail fail;
    if (brig_model_open(&m, path, &fail) < 0)
        fail_msg("%s", fail.text);
    return m;
}

static struct brig_model *make_ok(struct maker *k)
{
    struct brig_model *m = NULL;
    struct brig_fail fail;
    if (maker_open(k, &m, &fail) < 0)
        fail_msg("%s", fail.text);
    return m;
}

static void check_llama(const struct brig_model *m, const char *type)
{
    const struct brig_desc *d = &m->desc;
    assert_string_equal(d->arch, "llama");
    assert_string_equal(m->format, "gguf");
    assert_true(brig_str_eq(m->name, "tiny-llama_gqa_tied"));
    assert_int_equal(d->n_layers, 5);
    assert_int_equal(d->hidden, 96);
    assert_int_equal(d->n_heads, 6);
    assert_int_equal(d->n_kv_heads, 2);
    assert_int_equal(d->head_dim, 16);
    assert_int_equal(d->ffn, 160);
    assert_int_equal(d->vocab, 517);
    assert_int_equal(d->ctx_trained, 256);
    assert_int_equal(d->rope_dims, 16);
    assert_true(d->norm_eps == 1e-5f && d->attn_scale == 0.25f && d->rope_base == 100000.0f);
    assert_true(d->rope_linear == 1.0f && d->rope == BRIG_ROPE_PAIRS && d->tied);
    assert_int_equal(m->n_tensors, 47);
    assert_int_equal(m->n_params, 403968);
    const struct brig_tensor *table = brig_model_tensor(m, BRIG_ROLE_TOKEN_TABLE, 0);
    assert_ptr_equal(brig_model_tensor(m, BRIG_ROLE_OUTPUT, 0), table);
    for (uint32_t layer = 0; layer < 5; layer++)
        for (unsigned role = 0; role < BRIG_ROLE_LAYER_COUNT; role++) {
            const struct brig_tensor *t = brig_model_tensor(m, (enum brig_role)role, layer);
            assert_int_equal(t != NULL, role <= BRIG_ROLE_FFN_DOWN);
            if (t == NULL)
                continue;
            assert_true(t != NULL && t->role == role && t->layer == layer);
            if (t->dims[1] > 1)
                assert_string_equal(t->type->name, type);
            assert_true(t->offset % 32 == 0 && t->offset + t->bytes <= m->files[0].bytes);
        }
    assert_null(brig_model_tensor(m, BRIG_ROLE_ATTN_Q, 5));
    assert_int_equal(d->n_rope_factors, 0);
    assert_null(brig_model_tensor(m, BRIG_ROLE_COUNT, 0));
}

static void test_fixtures(void **state)
{
    (void)state;
    static const struct {
        const char *path, *type;
    } rows[] = {
        {"tests/fixtures/llama/f32.gguf", "F32"},   {"tests/fixtures/llama/f16.gguf", "F16"},
        {"tests/fixtures/llama/q8_0.gguf", "Q8_0"}, {"tests/fixtures/llama/q5_0.gguf", "Q5_0"},
        {"tests/fixtures/llama/q4_0.gguf", "Q4_0"},
    };
    uint8_t seen[5][BRIG_IDENTITY_BYTES];
    for (unsigned i = 0; i < 5; i++) {
        struct brig_model *m = open_ok(rows[i].path), *again = open_ok(rows[i].path);
        check_llama(m, rows[i].type);
        assert_memory_equal(m->identity, again->identity, BRIG_IDENTITY_BYTES);
        memcpy(seen[i], m->identity, BRIG_IDENTITY_BYTES);
        for (unsigned j = 0; j < i; j++)
            assert_memory_not_equal(seen[i], seen[j], BRIG_IDENTITY_BYTES);
        brig_model_close(m);
        brig_model_close(again);
    }
}

static void test_vocab(void **state)
{
    (void)state;
    struct brig_model *m = open_ok("tests/fixtures/llama/q8_0.gguf");
    const struct brig_vocab *v = &m->vocab;
    assert_true(brig_str_eq(v->model, "gpt2") && brig_str_eq(v->pre, "qwen2"));
    assert_int_equal(v->n_tokens, 517);
    assert_int_equal(v->n_merges, 256);
    assert_true(brig_str_eq(v->tokens[0], "<|endoftext|>") && brig_str_eq(v->tokens[3], "<|im_start|>"));
    assert_true(brig_str_eq(v->merges[0], "\xc4\xa0 \xc4\xa0"));
    assert_int_equal(v->types[0], 3);
    assert_int_equal(v->bos, 1);
    assert_int_equal(v->eos, 2);
    assert_int_equal(v->pad, 0);
    assert_int_equal(v->eot, -1);
    assert_int_equal(v->unk, -1);
    assert_false(v->add_bos || v->add_eos);
    assert_true(v->chat_template.len > 20 && memcmp(v->chat_template.ptr, "{% for m", 8) == 0);
    brig_model_close(m);
}

/* What inspect prints: every key once, in order, printable. */
static void test_meta(void **state)
{
    (void)state;
    struct maker *k = maker_llama(1);
    const char *key, *value;
    maker_add_tokens(k, 8);
    maker_set_str(k, "general.name", "two\nlines \x1b[31m \xff \xe2\x82\xac");
    struct brig_buf *b = maker_set(k, "x.nested", 9);
    maker_u32(b, 9);
    maker_u64(b, 1);
    maker_u32(b, 4);
    maker_u64(b, 1);
    maker_u32(b, 77);
    brig_buf_add(maker_set(k, "x.i8", 1), "\xfe", 1);
    brig_buf_add(maker_set(k, "x.bool", 7), "\1", 1);
    brig_buf_add(maker_set(k, "x.f64", 12), &(double){0.1}, 8);
    b = maker_set(k, "x.bad_bools", 9);
    maker_u32(b, 7);
    maker_u64(b, 2);
    brig_buf_add(b, "\1\7", 2);
    struct brig_model *m = make_ok(k);
    unsigned n = 0, n_seen = 0;
    static const struct {
        const char *key, *value;
    } want[] = {
        {"general.name", "two\\nlines \\x1b[31m \\xff \xe2\x82\xac"},
        {"llama.attention.layer_norm_rms_epsilon", "1e-05"},
        {"tokenizer.ggml.token_type", "[1, 1, 1, 1, 1, 1, 1, 1]"},
        {"x.nested", "[[...]]"},
        {"x.i8", "-2"},
        {"x.bool", "true"},
        {"x.f64", "0.1"},
        {"x.bad_bools", "[true, ?]"},
    };
    for (; brig_model_meta(m, n, &key, &value); n++) {
        assert_string_equal(key, k->keys[n].name);
        for (unsigned i = 0; i < sizeof want / sizeof want[0]; i++)
            if (strcmp(key, want[i].key) == 0) {
                assert_string_equal(value, want[i].value);
                n_seen++;
            }
    }
    assert_int_equal(n, k->n_keys);
    assert_int_equal(n_seen, sizeof want / sizeof want[0]);
    brig_model_close(m);
    maker_release(k);
}

/* What a file may leave out, and what it may say in another way. */
static void test_defaults(void **state)
{
    (void)state;
    struct maker *k = maker_llama(2);
    struct brig_model *m = make_ok(k);
    assert_true(m->desc.rope_base == 10000.0f && m->desc.rope_dims == 16 && m->desc.tied);
    assert_true(m->name.len > 0 && m->vocab.n_tokens == 0 && m->vocab.types == NULL && m->vocab.bos == -1);
    brig_model_close(m);

    k->version = 2;
    maker_drop_key(k, "llama.attention.head_count_kv");
    for (unsigned i = 0; i < 2; i++) {
        char name[40];
        snprintf(name, sizeof name, "blk.%u.attn_k.weight", i);
        maker_tensor(k, name)->dims[1] = 32;
        snprintf(name, sizeof name, "blk.%u.attn_v.weight", i);
        maker_tensor(k, name)->dims[1] = 32;
    }
    maker_add(k, "output.weight", 1, 32, 8);
    maker_add(k, "rope_freqs.weight", 0, 8, 1);
    maker_add(k, "vision.something", 0, 5, 1); /* aside of the path */
    brig_buf_add(maker_set(k, "llama.context_length", 11), &(int64_t){100}, 8);
    maker_set_u32(k, "llama.rope.freq_base", 500000);
    maker_set_str(k, "llama.rope.scaling.type", "linear");
    maker_set_f32(k, "llama.rope.scaling.factor", 4.0f);
    maker_set_u32(k, "tokenizer.ggml.padding_token_id", UINT32_MAX);
    maker_set_str(k, "tokenizer.ggml.pre", "llama-bpe");
    m = make_ok(k);
    assert_true(m->desc.n_kv_heads == 2 && !m->desc.tied && m->desc.ctx_trained == 100);
    assert_true(m->desc.rope_base == 500000.0f && m->desc.rope_linear == 4.0f);
    assert_int_equal(m->vocab.pad, -1);
    assert_true(m->vocab.add_bos);
    assert_int_equal(m->tensors[m->n_tensors - 1].role, BRIG_ROLE_COUNT);
    const struct brig_tensor *out = brig_model_tensor(m, BRIG_ROLE_OUTPUT, 0);
    assert_true(brig_str_eq(out->name, "output.weight"));
    assert_true(m->desc.n_rope_factors == 8 && m->desc.rope_factors[7] > 0.0f);
    brig_model_close(m);

    maker_set_str(k, "llama.rope.scaling.type", "none");
    k->alignment = 4096;
    maker_set_u32(k, "general.alignment", 4096);
    m = make_ok(k);
    assert_true(m->desc.rope_linear == 1.0f && m->tensors[1].offset % 4096 == 0);
    brig_model_close(m);
    maker_release(k);
}

/* The identity sees metadata, table, size and both ends of each tensor; it does not read their middles. */
static void test_identity(void **state)
{
    (void)state;
    struct maker *k = maker_llama(1);
    struct brig_buf b = {0};
    maker_tensor(k, "token_embd.weight")->dims[1] = 600; /* 20,400 bytes: more than two ends */
    maker_write(k, &b);
    size_t table = (k->head_bytes + 31) / 32 * 32;
    struct brig_model *m = NULL;
    struct brig_fail fail;
    assert_int_equal(maker_open_bytes(b.data, b.len, &m, &fail), 0);
    uint8_t first[BRIG_IDENTITY_BYTES];
    memcpy(first, m->identity, sizeof first);
    uint64_t bytes = m->tensors[0].bytes;
    brig_model_close(m);
    const struct {
        size_t at;
        bool same;
    } rows[] = {{table, false},
                {table + 4095, false},
                {table + 4096, true},
                {table + 10000, true},
                {table + bytes - 4097, true},
                {table + bytes - 4096, false},
                {table + bytes - 1, false},
                {b.len - 200, false}};
    for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        b.data[rows[i].at] ^= 1;
        assert_int_equal(maker_open_bytes(b.data, b.len, &m, &fail), 0);
        assert_int_equal(memcmp(first, m->identity, sizeof first) == 0, rows[i].same);
        brig_model_close(m);
        b.data[rows[i].at] ^= 1;
    }
    brig_buf_add(&b, "x", 1);
    assert_int_equal(maker_open_bytes(b.data, b.len, &m, &fail), 0);
    assert_memory_not_equal(first, m->identity, sizeof first);
    brig_model_close(m);
    brig_buf_release(&b);
    maker_release(k);
}

static void test_tables(void **state)
{
    (void)state;
    const struct brig_format *format;
    const struct brig_family *family;
    unsigned n = 0;
    for (; (format = brig_format_at(n)) != NULL; n++)
        assert_true(format->name[0] != '\0' && format->help[0] != '\0' && format->probe != NULL &&
                    format->open != NULL && format->close != NULL && format->meta_at != NULL);
    assert_true(n >= 1);
    for (n = 0; (family = brig_family_at(n)) != NULL; n++) {
        struct brig_str name = {family->name, strlen(family->name)};
        assert_ptr_equal(brig_family_by_name(name), family);
        assert_true(family->help[0] != '\0' && family->describe != NULL);
    }
    assert_true(n >= 1);
    assert_null(brig_family_by_name((struct brig_str){"nobody", 6}));
    for (unsigned role = 0; role < BRIG_ROLE_COUNT; role++)
        assert_true(strlen(brig_role_name((enum brig_role)role)) > 0);
    assert_string_equal(brig_role_name(BRIG_ROLE_ATTN_Q), "attn_q");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fixtures), cmocka_unit_test(test_vocab),    cmocka_unit_test(test_meta),
        cmocka_unit_test(test_defaults), cmocka_unit_test(test_identity), cmocka_unit_test(test_tables),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
