/* Bad checkpoints: each gets one line that names what is wrong, and nothing crashes, hangs or leaks. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "proto/base/mem.h"
#include "tests/unit/gguf_maker.h"

/* The recipe must be refused with every one of the words. Releases it. */
static void refuse(struct maker *k, const char *word, const char *word_too)
{
    struct brig_model *m = NULL;
    struct brig_fail fail = {0};
    int r = maker_open(k, &m, &fail);
    if (r == 0)
        fail_msg("opened, although it should say '%s'", word);
    assert_int_equal(r, -(int)fail.code);
    if (strncmp(fail.text, "/proc/self/fd/", 14) != 0)
        fail_msg("'%s' does not begin with the path", fail.text);
    if (strstr(fail.text, word) == NULL || strstr(fail.text, word_too) == NULL)
        fail_msg("'%s' does not say '%s' and '%s'", fail.text, word, word_too);
    if (strchr(fail.text, '\n') != NULL)
        fail_msg("'%s' is not one line", fail.text);
    assert_null(m);
    maker_release(k);
}

static void refuse_u32(const char *key, uint32_t value, const char *word, const char *word_too)
{
    struct maker *k = maker_llama(2);
    maker_set_u32(k, key, value);
    refuse(k, word, word_too);
}

static void refuse_f32(const char *key, float value, const char *word)
{
    struct maker *k = maker_llama(2);
    maker_set_f32(k, key, value);
    refuse(k, word, "");
}

static void test_start(void **state)
{
    (void)state;
    static const struct {
        uint32_t version;
        const char *word;
    } versions[] = {{1, "version 1"}, {4, "version 4"}, {0, "version 0"}, {0x03000000, "big-endian"}};
    for (unsigned i = 0; i < sizeof versions / sizeof versions[0]; i++) {
        struct maker *k = maker_llama(1);
        k->version = versions[i].version;
        refuse(k, versions[i].word, "");
    }
    static const uint64_t counts[] = {1ull << 17, 1ull << 32, UINT64_MAX - 1};
    for (unsigned i = 0; i < 3; i++) {
        struct maker *k = maker_llama(1);
        k->n_keys_said = counts[i];
        refuse(k, "metadata keys", "more than fit");
        k = maker_llama(1);
        k->n_tensors_said = counts[i];
        refuse(k, "tensors", "more than fit");
    }
    struct maker *k = maker_llama(1);
    k->n_keys_said = 30;
    refuse(k, "metadata key", "of 30 ");
}

static void test_not_a_model(void **state)
{
    (void)state;
    struct brig_model *m = NULL;
    struct brig_fail fail;
    static const char *const rows[] = {"",
                                       "G",
                                       "GGU",
                                       "FUGG0000000000000000000000000000000000",
                                       "ggml",
                                       "\x7f"
                                       "ELF and so on"};
    for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_true(maker_open_bytes(rows[i], strlen(rows[i]), &m, &fail) < 0);
        assert_non_null(strstr(fail.text, "no model file"));
    }
    assert_true(brig_model_open(&m, "tests", &fail) < 0);
    assert_non_null(strstr(fail.text, "tests: a folder that holds no model"));
    assert_true(brig_model_open(&m, "tests/nobody.gguf", &fail) < 0);
    assert_non_null(strstr(fail.text, "tests/nobody.gguf: cannot open it: No such file"));
    assert_true(brig_model_open(&m, "/dev/zero", &fail) < 0);
    assert_non_null(strstr(fail.text, "not a regular file"));
    assert_true(brig_model_open(&m, "tests/nobody.gguf", NULL) < 0);

    char dir[] = "/tmp/brigade-test-XXXXXX", fifo[64];
    assert_non_null(mkdtemp(dir));
    snprintf(fifo, sizeof fifo, "%s/fifo", dir);
    assert_int_equal(mkfifo(fifo, 0600), 0);
    int r = brig_model_open(&m, fifo, &fail); /* must not wait for a writer */
    unlink(fifo);
    rmdir(dir);
    assert_true(r < 0);
    assert_non_null(strstr(fail.text, "not a regular file"));
}

static void test_lengths(void **state)
{
    (void)state;
    static const uint64_t lengths[] = {100000, 1ull << 40, UINT64_MAX, UINT64_MAX - 7};
    for (unsigned i = 0; i < 4; i++) {
        struct maker *k = maker_llama(1);
        maker_u64(maker_set(k, "x.string", 8), lengths[i]);
        refuse(k, "truncated or malformed", "metadata key 9 of 9");
        for (uint32_t elem = 4; elem <= 10; elem += 2) { /* u32, f32, string, u64 */
            k = maker_llama(1);
            struct brig_buf *b = maker_set(k, "x.array", 9);
            maker_u32(b, elem);
            maker_u64(b, lengths[i]);
            refuse(k, "truncated or malformed", "metadata key 9 of 9");
        }
        k = maker_llama(1);
        struct brig_buf *b = maker_set(k, "x.array", 9);
        maker_u32(b, 9);
        maker_u64(b, lengths[i]);
        refuse(k, "truncated or malformed", "");
    }
    struct maker *k = maker_llama(1);
    maker_set(k, "x.kind", 13);
    refuse(k, "kind 13", "metadata key 9");
    k = maker_llama(1);
    struct brig_buf *b = maker_set(k, "x.array", 9);
    maker_u32(b, 99);
    maker_u64(b, 0);
    refuse(k, "kind 99", "");
    k = maker_llama(1);
    b = maker_set(k, "x.deep", 9);
    for (unsigned i = 0; i < 1000; i++) {
        maker_u32(b, 9);
        maker_u64(b, 1);
    }
    refuse(k, "arrays inside arrays", "deep");
    k = maker_llama(1);
    brig_buf_add(maker_set(k, "x.bool", 7), "\2", 1);
    refuse(k, "x.bool", "bool");
}

static void test_keys(void **state)
{
    (void)state;
    struct maker *k = maker_llama(1);
    maker_set_u32(k, "x.a", 1);
    maker_set_u32(k, "x.b", 1);
    snprintf(k->keys[k->n_keys - 1].name, sizeof k->keys[0].name, "x.a");
    refuse(k, "'x.a'", "comes twice");
    k = maker_llama(1);
    maker_set_u32(k, "x.\x01", 1);
    refuse(k, "not ASCII", "");
    k = maker_llama(1);
    maker_set_u32(k, "", 1);
    refuse(k, "name of 0 bytes", "");
    k = maker_llama(1);
    maker_drop_key(k, "general.architecture");
    refuse(k, "general.architecture is missing", "");
    k = maker_llama(1);
    maker_set_u32(k, "general.architecture", 3);
    refuse(k, "general.architecture is an integer", "");
    k = maker_llama(1);
    maker_set_str(k, "general.architecture", "mamba9\n\x1b[2J");
    refuse(k, "mamba9??[2J", "brigade list families");
    refuse_u32("general.alignment", 0, "general.alignment", "power of two");
    refuse_u32("general.alignment", 33, "general.alignment", "power of two");
    refuse_u32("general.alignment", 1u << 31, "general.alignment", "power of two");
    refuse_f32("general.alignment", 32.0f, "general.alignment is a float");
}

static void test_numbers(void **state)
{
    (void)state;
    static const char *const required[] = {"block_count",          "context_length",
                                           "embedding_length",     "feed_forward_length",
                                           "attention.head_count", "attention.layer_norm_rms_epsilon"};
    char key[80];
    for (unsigned i = 0; i < sizeof required / sizeof required[0]; i++) {
        struct maker *k = maker_llama(1);
        snprintf(key, sizeof key, "llama.%s", required[i]);
        maker_drop_key(k, key);
        refuse(k, key, "is missing");
        k = maker_llama(1);
        maker_set_str(k, key, "many");
        refuse(k, key, "is a string");
    }
    static const uint32_t absurd[] = {0, UINT32_MAX, 1u << 30};
    for (unsigned i = 0; i < 3; i++) {
        refuse_u32("llama.block_count", absurd[i], "number of layers", "must be from 1");
        refuse_u32("llama.context_length", absurd[i], "trained context", "must be from 1");
        refuse_u32("llama.embedding_length", absurd[i], "", "");
        refuse_u32("llama.feed_forward_length", absurd[i], "feed-forward size", "must be from 1");
        refuse_u32("llama.attention.head_count", absurd[i], "head", "");
        refuse_u32("llama.attention.head_count_kv", absurd[i], "KV heads", "must be from 1");
        refuse_u32("llama.attention.key_length", absurd[i], "", "");
        refuse_u32("llama.rope.dimension_count", absurd[i], "rotary dimensions", "");
    }
    refuse_u32("llama.attention.head_count", 3, "do not divide among 3", "");
    refuse_u32("llama.attention.key_length", 15, "width of a head is 15", "even");
    refuse_u32("llama.attention.value_length", 8, "equally wide", "");
    refuse_u32("llama.rope.dimension_count", 7, "7 rotary dimensions", "even");
    refuse_u32("llama.rope.dimension_count", 18, "18 rotary dimensions", "");
    refuse_u32("llama.expert_count", 8, "llama.expert_used_count is missing", "");
    static const float bad_floats[] = {-1.0f, 1e30f, (float)1e300, 0.0f / 0.0f};
    for (unsigned i = 0; i < 4; i++)
        refuse_f32("llama.attention.layer_norm_rms_epsilon", bad_floats[i], "epsilon");
    refuse_f32("llama.rope.freq_base", 0.0f, "rotary base");
    refuse_f32("llama.rope.freq_base", 0.0f / 0.0f, "rotary base");
    refuse_f32("llama.rope.scaling.factor", -2.0f, "rotary scaling");
    struct maker *k = maker_llama(2);
    struct brig_buf *b = maker_set(k, "llama.attention.head_count", 9);
    maker_u32(b, 4);
    maker_u64(b, 2);
    maker_u32(b, 2);
    maker_u32(b, 2);
    refuse(k, "llama.attention.head_count is an array", "for all layers");
    k = maker_llama(1);
    maker_set_u32(k, "llama.attention.head_count", 32);
    maker_set_u32(k, "llama.attention.head_count_kv", 32);
    refuse(k, "width of a head", "even");
}

/* A rope scaling of this kind, with a factor unless it is 0, must be refused with these words. */
static void refuse_scaling(const char *type, float factor, const char *key, float value, const char *word)
{
    struct maker *k = maker_llama(1);
    maker_set_str(k, "llama.rope.scaling.type", type);
    if (factor != 0.0f)
        maker_set_f32(k, "llama.rope.scaling.factor", factor);
    if (key != NULL)
        maker_set_f32(k, key, value);
    refuse(k, word, "");
}

static void test_rope_scaling(void **state)
{
    (void)state;
    refuse_scaling("dynamic", 2.0f, NULL, 0.0f, "'dynamic' is not supported");
    refuse_scaling("yarn", 0.0f, NULL, 0.0f, "yarn needs one above 0");
    refuse_scaling("yarn", -1.0f, NULL, 0.0f, "yarn needs one above 0");
    refuse_scaling("yarn", 4.0f, "llama.rope.scaling.yarn_beta_slow", 0.0f, "beta_slow 0");
    refuse_scaling("yarn", 4.0f, "llama.rope.scaling.yarn_beta_fast", 0.5f, "beta_fast 0.5");
    refuse_scaling("yarn", 4.0f, "llama.rope.scaling.attn_factor", 0.0f, "rotary magnitude");
    refuse_scaling("yarn", 4.0f, "brigade.rope.attention_factor", (float)1e300, "rotary magnitude");
    refuse_scaling("llama3", 8.0f, NULL, 0.0f, "low_freq_factor is missing");
    refuse_scaling("llama3", 8.0f, "brigade.rope.low_freq_factor", 1.0f, "high_freq_factor is missing");
    refuse_scaling("longrope", 0.0f, NULL, 0.0f, "longrope needs 8 numbers");
    struct maker *k = maker_llama(1);
    maker_set_str(k, "llama.rope.scaling.type", "llama3");
    maker_set_f32(k, "llama.rope.scaling.factor", 8.0f);
    maker_set_f32(k, "brigade.rope.low_freq_factor", 4.0f);
    maker_set_f32(k, "brigade.rope.high_freq_factor", 4.0f);
    refuse(k, "low_freq_factor 4 and high_freq_factor 4", "");
    k = maker_llama(1);
    maker_add(k, "rope_factors_short.weight", 0, 8, 1);
    refuse(k, "rope_factors_long.weight", "longrope needs 8");
    k = maker_llama(1);
    maker_add(k, "rope_factors_short.weight", 0, 7, 1);
    refuse(k, "rope_factors_short.weight", "8 numbers are wanted");
    k = maker_llama(1);
    maker_add(k, "rope_freqs.weight", 0, 8, 1);
    maker_set_str(k, "llama.rope.scaling.type", "yarn");
    maker_set_f32(k, "llama.rope.scaling.factor", 4.0f);
    refuse(k, "rope_freqs.weight", "beside rope scaling 'yarn'");
}

static void refuse_kinds(unsigned n_layers, uint32_t window, const char *kinds, const char *word)
{
    struct maker *k = maker_llama(n_layers);
    if (window > 0)
        maker_set_u32(k, "llama.attention.sliding_window", window);
    maker_set_str(k, "brigade.layer_types", kinds);
    refuse(k, "brigade.layer_types", word);
}

static void test_layer_kinds(void **state)
{
    (void)state;
    refuse_kinds(2, 4, "w", "1 letters for 2 layers");
    refuse_kinds(2, 4, "wgw", "3 letters for 2 layers");
    refuse_kinds(2, 4, "wx", "layer 1");
    refuse_kinds(2, 0, "gw", "layer 1");
    struct maker *k = maker_llama(1);
    maker_set_u32(k, "brigade.layer_types", 1);
    refuse(k, "brigade.layer_types is an integer", "a string");
    k = maker_llama(1);
    maker_set_u32(k, "brigade.hub_layout", 1);
    refuse(k, "brigade.hub_layout is an integer", "true or false");
}

static struct maker *with(const char *name, struct maker_tensor **ret)
{
    struct maker *k = maker_llama(2);
    *ret = maker_tensor(k, name);
    return k;
}

static void test_tensor_missing_or_misshapen(void **state)
{
    (void)state;
    struct maker *probe = maker_llama(2);
    for (unsigned i = 0; i < probe->n_tensors; i++) {
        struct maker *k = maker_llama(2);
        maker_drop_tensor(k, probe->tensors[i].name);
        refuse(k, probe->tensors[i].name, "is missing");
        for (unsigned d = 0; d < probe->tensors[i].n_dims; d++) {
            k = maker_llama(2);
            k->tensors[i].dims[d] = 0;
            refuse(k, probe->tensors[i].name, "dimension of zero");
            k = maker_llama(2);
            k->tensors[i].dims[d] += 32;
            if (strcmp(probe->tensors[i].name, "token_embd.weight") != 0 || d == 0)
                refuse(k, probe->tensors[i].name, "the model needs");
            else
                maker_release(k); /* a larger vocabulary is right */
        }
    }
    maker_release(probe);
}

static void test_tensors(void **state)
{
    (void)state;
    struct maker_tensor *t;
    struct maker *k;
    static const char name[] = "blk.1.ffn_up.weight";
    static const uint64_t sizes[] = {1ull << 40, 1ull << 62, UINT64_MAX, UINT64_MAX - 31};
    for (unsigned i = 0; i < 4; i++) {
        k = with(name, &t);
        t->dims[1] = sizes[i];
        refuse(k, name, "");
        k = with(name, &t);
        t->dims[0] = sizes[i] & ~31ull;
        refuse(k, name, "");
        k = with(name, &t);
        t->offset = sizes[i] & ~31ull;
        refuse(k, name, "past the end");
    }
    k = with(name, &t);
    t->dims[0] = 33;
    refuse(k, name, "multiple of 32");
    k = with(name, &t);
    t->offset = 16;
    refuse(k, name, "alignment");
    k = with(name, &t);
    t->offset = 32;
    refuse(k, "overlaps", "tensor");
    k = with(name, &t);
    t->n_dims = 0;
    refuse(k, name, "0 dimensions");
    k = with(name, &t);
    t->n_dims = 5;
    refuse(k, name, "5 dimensions");
    k = with(name, &t);
    t->n_dims = UINT32_MAX;
    refuse(k, "truncated or malformed", "of the tensor table");
    k = with(name, &t);
    t->n_dims = 3;
    t->dims[2] = 2;
    refuse(k, name, "64 x 2");
    k = with(name, &t);
    t->type = 15;
    refuse(k, name, "Q8_K");
    for (unsigned i = 0; brig_type_at(i) != NULL; i++) {
        if (brig_type_at(i)->block_elems <= 32)
            continue;
        k = with(name, &t); /* 32 columns */
        t->type = brig_type_at(i)->gguf_id;
        refuse(k, name, brig_type_at(i)->name);
    }
    k = with(name, &t);
    t->type = 12345;
    refuse(k, name, "number 12345");
    k = with(name, &t);
    snprintf(t->name, sizeof t->name, "blk.0.ffn_up.weight");
    refuse(k, "blk.0.ffn_up.weight", "comes twice");
    k = with("blk.1.ffn_norm.weight", &t);
    t->type = 8;
    refuse(k, "blk.1.ffn_norm.weight", "must be F32, F16 or BF16");
}

static void test_interleaved(void **state)
{
    (void)state;
    struct maker_tensor *t;
    struct maker *k = with("blk.1.ffn_up.weight", &t);
    t->type = 1201;
    t->dims[1] = 72;
    refuse(k, "blk.1.ffn_up.weight", "has 72 rows, Q4_0_R16 needs a multiple of 16");
    k = with("token_embd.weight", &t);
    t->type = 1200;
    t->dims[1] = 16;
    refuse(k, "token_embd.weight", "single rows are read from it");
}

static void test_unknown_tensors(void **state)
{
    (void)state;
    static const char *const names[] = {"blk.1.attn_q.bias",
                                        "blk.1.attn_q_norm.weight",
                                        "blk.0.ffn_gate_exps.weight",
                                        "blk.00.attn_q.weight",
                                        "blk.0",
                                        "blk.",
                                        "blk.x.attn_q.weight",
                                        "output.bias",
                                        "output_norm.bias",
                                        "token_embd_norm.weight",
                                        "blk.99999999999999999999.attn_q.weight"};
    for (unsigned i = 0; i < sizeof names / sizeof names[0]; i++) {
        struct maker *k = maker_llama(2);
        maker_add(k, names[i], 0, 32, 1);
        refuse(k, names[i], "not supported");
    }
    struct maker *k = maker_llama(2);
    maker_add(k, "blk.2.attn_q.weight", 8, 32, 32);
    refuse(k, "blk.2.attn_q.weight", "the model has 2");
}

static void test_vocab(void **state)
{
    (void)state;
    struct maker *k = maker_llama(1);
    maker_add_tokens(k, 9);
    refuse(k, "a vocabulary that does not fit", "9 tokens");
    k = maker_llama(1);
    maker_add_tokens(k, 7);
    refuse(k, "a vocabulary that does not fit", "7 tokens");
    static const char *const ids[] = {"bos", "eos", "eot", "padding", "unknown"};
    for (unsigned i = 0; i < 5; i++) {
        char key[80];
        snprintf(key, sizeof key, "tokenizer.ggml.%s_token_id", ids[i]);
        k = maker_llama(1);
        maker_set_u32(k, key, 8);
        refuse(k, "a vocabulary that does not fit", ids[i]);
    }
    k = maker_llama(1);
    maker_add_tokens(k, 8);
    struct brig_buf *b = maker_set(k, "tokenizer.ggml.token_type", 9);
    maker_u32(b, 5);
    maker_u64(b, 1);
    maker_u32(b, 1);
    refuse(k, "a vocabulary that does not fit", "1 token types");
    k = maker_llama(1);
    maker_add_tokens(k, 8);
    b = maker_set(k, "tokenizer.ggml.scores", 9);
    maker_u32(b, 6);
    maker_u64(b, 1);
    maker_u32(b, 0);
    refuse(k, "a vocabulary that does not fit", "1 scores");
    k = maker_llama(1);
    b = maker_set(k, "tokenizer.ggml.tokens", 9);
    maker_u32(b, 5);
    maker_u64(b, 1);
    maker_u32(b, 1);
    refuse(k, "tokenizer.ggml.tokens", "array of i32");
    k = maker_llama(1);
    maker_set_str(k, "tokenizer.ggml.merges", "a b");
    refuse(k, "tokenizer.ggml.merges", "an array is wanted");
    k = maker_llama(1);
    maker_set_str(k, "tokenizer.ggml.bos_token_id", "one");
    refuse(k, "tokenizer.ggml.bos_token_id", "no token id");
}

/* Every cut of the head, and a stride over the data: refused with a line, but for a cut of the last padding.
 */
static void cut_everywhere(const char *bytes, size_t n, size_t head, size_t end_of_data)
{
    char path[40];
    int fd = memfd_create("cut", MFD_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes, n), n);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    size_t n_cuts = 0;
    for (size_t cut = n; cut-- > 0; n_cuts++) {
        struct brig_model *m = NULL;
        struct brig_fail fail = {0};
        assert_int_equal(ftruncate(fd, (off_t)cut), 0);
        int r = brig_model_open(&m, path, &fail);
        if (cut >= end_of_data) {
            assert_int_equal(r, 0);
            brig_model_close(m);
        } else if (r == 0 || strlen(fail.text) < 30 || fail.code == BRIG_EINTERNAL) {
            fail_msg("cut to %zu bytes: %d '%s'", cut, r, fail.text);
        }
        if (cut > head + 1000) /* data: all cuts there fail in the same way */
            cut -= 997 < cut - head ? 997 : 0;
    }
    assert_true(n_cuts > head);
    close(fd);
}

static void test_truncated(void **state)
{
    (void)state;
    struct maker *k = maker_llama(2);
    struct brig_buf b = {0};
    maker_add_tokens(k, 8);
    maker_write(k, &b);
    cut_everywhere(b.data, b.len, k->head_bytes, b.len);
    brig_buf_add(&b, "padding", 7);
    cut_everywhere(b.data, b.len, k->head_bytes, b.len - 7);
    brig_buf_release(&b);
    maker_release(k);

    size_t n, most = 1 << 19;
    char *bytes = brig_alloc(most, 1);
    FILE *f = fopen("tests/fixtures/llama/q4_0.gguf", "rb");
    assert_non_null(f);
    n = fread(bytes, 1, most, f);
    fclose(f);
    assert_true(n < most);
    struct brig_model *m = NULL;
    assert_int_equal(maker_open_bytes(bytes, n, &m, NULL), 0);
    size_t head = m->files[0].bytes, end = 0;
    for (unsigned i = 0; i < m->n_tensors; i++) {
        const struct brig_tensor *t = &m->tensors[i];
        head = t->offset < head ? t->offset : head;
        end = t->offset + t->bytes > end ? t->offset + t->bytes : end;
    }
    brig_model_close(m);
    cut_everywhere(bytes, n, head, end);
    brig_free(bytes);
}

/* Random flips in the head: anything may come out, but no crash, and nothing that lies outside of the file.
 */
static void test_flips(void **state)
{
    (void)state;
    struct maker *k = maker_llama(1);
    struct brig_buf b = {0};
    uint64_t x = 88172645463325252ull;
    unsigned n_opened = 0;
    maker_add_tokens(k, 8);
    maker_write(k, &b);
    for (unsigned i = 0; i < 20000; i++) {
        struct brig_model *m = NULL;
        struct brig_fail fail = {0};
        size_t at[3];
        uint8_t old[3];
        for (unsigned j = 0; j < 3; j++) {
            x ^= x << 13, x ^= x >> 7, x ^= x << 17;
            at[j] = x % k->head_bytes;
            old[j] = (uint8_t)b.data[at[j]];
            b.data[at[j]] = (char)(x >> 40 & 1 ? old[j] ^ (1u << (x >> 32 & 7)) : x >> 48);
        }
        if (maker_open_bytes(b.data, b.len, &m, &fail) == 0) {
            for (unsigned t = 0; t < m->n_tensors; t++)
                assert_true(m->tensors[t].offset + m->tensors[t].bytes <= b.len);
            brig_model_close(m);
            n_opened++;
        } else {
            assert_true(strlen(fail.text) > 0);
        }
        for (unsigned j = 3; j-- > 0;)
            b.data[at[j]] = (char)old[j];
    }
    assert_true(n_opened > 0 && n_opened < 20000);
    brig_buf_release(&b);
    maker_release(k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_start),
        cmocka_unit_test(test_not_a_model),
        cmocka_unit_test(test_lengths),
        cmocka_unit_test(test_keys),
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_rope_scaling),
        cmocka_unit_test(test_layer_kinds),
        cmocka_unit_test(test_tensors),
        cmocka_unit_test(test_tensor_missing_or_misshapen),
        cmocka_unit_test(test_vocab),
        cmocka_unit_test(test_interleaved),
        cmocka_unit_test(test_unknown_tensors),
        cmocka_unit_test(test_truncated),
        cmocka_unit_test(test_flips),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
