/*
 * A model whose matrices have all stored types, against its twin whose matrices are the same numbers as F32:
 * the logits of exact shards are the same bits. And the mixed model gives the same bits whatever the way.
 */
#include "shard_util.h"

#include "proto/base/size.h"
#include "tests/unit/blocks_util.h"
#include "tests/unit/kernels_util.h"
#include "tests/unit/gguf_maker.h"

enum {
    HIDDEN = 256,
    HEADS = 8,
    HEAD_DIM = 64,
    ATTN = HEADS * HEAD_DIM,
    FFN = 256,
    VOCAB = 40,
    LAYERS = 5,
    N = 9
};

static const uint32_t ids[N] = {3, 39, 0, 17, 17, 21, 8, 30, 1};

static const struct brig_type *next_type(unsigned *n)
{
    const struct brig_type *t;
    do
        t = brig_type_at((*n)++ % BRIG_TYPE_COUNT);
    while (!brig_type_has_rows(t)); /* GGUF does not hold those, or their rows come by the 16 */
    return t;
}

/* Every type stands somewhere. n_kv: KV heads; with two, the query heads of one are a whole block wide. */
static struct maker *mixed(unsigned n_kv)
{
    const struct {
        const char *name;
        uint64_t cols, rows;
    } parts[] = {
        {"attn_norm", HIDDEN, 1},
        {"attn_q", HIDDEN, ATTN},
        {"attn_k", HIDDEN, n_kv * HEAD_DIM},
        {"attn_v", HIDDEN, n_kv * HEAD_DIM},
        {"attn_output", ATTN, HIDDEN},
        {"ffn_norm", HIDDEN, 1},
        {"ffn_gate", HIDDEN, FFN},
        {"ffn_up", HIDDEN, FFN},
        {"ffn_down", FFN, HIDDEN},
    };
    struct maker *k = maker_llama(0);
    unsigned n = 0;
    char name[80];
    maker_set_u32(k, "llama.block_count", LAYERS);
    maker_set_u32(k, "llama.embedding_length", HIDDEN);
    maker_set_u32(k, "llama.feed_forward_length", FFN);
    maker_set_u32(k, "llama.attention.head_count", HEADS);
    maker_set_u32(k, "llama.attention.head_count_kv", n_kv);
    maker_set_u32(k, "llama.attention.key_length", HEAD_DIM);
    maker_set_u32(k, "llama.attention.value_length", HEAD_DIM);
    k->n_tensors = 0;
    for (unsigned layer = 0; layer < LAYERS; layer++)
        for (unsigned i = 0; i < sizeof parts / sizeof parts[0]; i++) {
            snprintf(name, sizeof name, "blk.%u.%s.weight", layer, parts[i].name);
            maker_add(k, name, parts[i].rows == 1 ? 0 : next_type(&n)->gguf_id, parts[i].cols, parts[i].rows);
        }
    maker_add(k, "token_embd.weight", next_type(&n)->gguf_id, HIDDEN, VOCAB);
    maker_add(k, "output.weight", next_type(&n)->gguf_id, HIDDEN, VOCAB);
    maker_add(k, "output_norm.weight", 0, HIDDEN, 1);
    assert_true(n >= BRIG_TYPE_COUNT);
    return k;
}

static char *data_of(const struct maker *k, struct brig_buf *b)
{
    return (char *)b->data + brig_align_up(k->head_bytes, k->alignment);
}

static uint64_t padded(const struct maker *k, uint64_t bytes)
{
    return brig_align_up(bytes, k->alignment);
}

/* Random weights: norms around 1, others of a size that keeps the rows' size. */
static void fill(const struct maker *k, struct brig_buf *b)
{
    char *p = data_of(k, b);
    for (unsigned i = 0; i < k->n_tensors; i++) {
        const struct maker_tensor *t = &k->tensors[i];
        const struct brig_type *type = brig_type_by_gguf(t->type);
        uint64_t bytes = maker_tensor_bytes(t);
        for (uint64_t at = 0; at < bytes; at += type->block_bytes) {
            block_of_size(type, (uint8_t *)p + at, 0.06f);
            if (t->n_dims == 1) {
                float one = 1.0f + random_f32() * 0.2f;
                memcpy(p + at, &one, sizeof one);
            }
        }
        p += padded(k, bytes);
    }
}

static void open_bytes(struct brig_model **ret, const struct brig_buf *b)
{
    struct brig_fail fail;
    if (maker_open_bytes(b->data, b->len, ret, &fail) < 0)
        fail_msg("%s", fail.text);
}

/* The mixed model and its twin; both are the caller's. */
static void open_pair(unsigned n_kv, struct brig_model **ret_mixed, struct brig_model **ret_twin)
{
    struct maker *k = mixed(n_kv), *twin = mixed(n_kv);
    struct brig_buf a = {0}, b = {0};
    for (unsigned i = 0; i < twin->n_tensors; i++)
        twin->tensors[i].type = 0;
    maker_write(k, &a);
    maker_write(twin, &b);
    fill(k, &a);
    const char *from = data_of(k, &a);
    char *to = data_of(twin, &b);
    for (unsigned i = 0; i < k->n_tensors; i++) {
        const struct brig_type *type = brig_type_by_gguf(k->tensors[i].type);
        uint64_t bytes = maker_tensor_bytes(&k->tensors[i]), floats = maker_tensor_bytes(&twin->tensors[i]);
        assert_true(bytes > 0 && floats > 0);
        type->dequant(from, (float *)(void *)to, floats / sizeof(float));
        from += padded(k, bytes);
        to += padded(twin, floats);
    }
    open_bytes(ret_mixed, &a);
    open_bytes(ret_twin, &b);
    brig_buf_release(&a);
    brig_buf_release(&b);
    maker_release(k);
    maker_release(twin);
}

static void exact_is_the_twin(void **state)
{
    (void)state;
    struct brig_model *m, *twin;
    open_pair(2, &m, &twin);
    float *want = logits_of(twin, ids, N, rig_exact(), N, NULL, 0);
    float *got = logits_of(m, ids, N, rig_exact(), N, NULL, 0);
    float size = 0;
    for (size_t i = 0; i < N * VOCAB; i++)
        size = fmaxf(size, fabsf(want[i]));
    assert_true(size > 0.1f && size < 100.0f);
    assert_same_bits(got, want, N * VOCAB);
    brig_free(want);
    brig_free(got);
    brig_model_close(m);
    brig_model_close(twin);
}

/* The query heads of one KV head are half a block: the unit of the attention output joins two, where the
 * twin's does not, so the sums differ in their order and the logits in their last bits. */
static void joined_units_are_near_the_twin(void **state)
{
    (void)state;
    struct brig_model *m, *twin;
    open_pair(4, &m, &twin);
    float *want = logits_of(twin, ids, N, rig_exact(), N, NULL, 0);
    float *got = logits_of(m, ids, N, rig_exact(), N, NULL, 0);
    for (size_t i = 0; i < N * VOCAB; i++)
        if (!(fabsf(got[i] - want[i]) <= 1e-5f))
            fail_msg("logit %zu is %.9g, the twin's %.9g", i, (double)got[i], (double)want[i]);
    brig_free(want);
    brig_free(got);
    brig_model_close(m);
    brig_model_close(twin);
}

static void bits_do_not_depend_on_the_way(void **state)
{
    (void)state;
    struct brig_model *m, *twin;
    const uint32_t cuts[] = {1, 2, 4};
    open_pair(4, &m, &twin);
    for (unsigned exact = 0; exact < 2; exact++) {
        struct rig_how how = rig_exact();
        how.exact = exact != 0;
        how.kv = how.exact ? BRIG_KV_F32 : BRIG_KV_F16;
        float *want = logits_of(m, ids, N, how, N, NULL, 0);
        for (unsigned i = 0; brig_kernel_at(i) != NULL; i++) {
            how.kernel = brig_kernel_at(i)->name;
            if (!brig_kernel_at(i)->usable()) {
                print_message("%s: this CPU lacks it, skipped\n", how.kernel);
                continue;
            }
            for (unsigned threads = 1; threads <= 2; threads++) {
                how.threads = threads;
                float *got = logits_of(m, ids, N, how, threads == 1 ? 1 : 4, cuts, threads == 1 ? 3 : 0);
                assert_same_bits(got, want, N * VOCAB);
                brig_free(got);
            }
        }
        brig_free(want);
    }
    brig_model_close(m);
    brig_model_close(twin);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exact_is_the_twin),
        cmocka_unit_test(joined_units_are_near_the_twin),
        cmocka_unit_test(bits_do_not_depend_on_the_way),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
