/* Makes small GGUF files in memory, good ones and bad ones: a recipe of keys and tensors that a test changes
 * before it is written. */
#ifndef BRIG_TESTS_UNIT_GGUF_MAKER_H
#define BRIG_TESTS_UNIT_GGUF_MAKER_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "proto/base/buf.h"
#include "proto/model/model.h"

#define MAKER_MAX_KEYS    40
#define MAKER_MAX_TENSORS 900

struct maker_key {
    char name[80];
    uint32_t kind;
    struct brig_buf value;
};

struct maker_tensor {
    char name[80];
    uint32_t n_dims;
    uint64_t dims[4];
    uint32_t type;
    uint64_t offset; /* UINT64_MAX: behind the one before */
};

struct maker {
    uint32_t version;
    uint64_t n_keys_said, n_tensors_said; /* UINT64_MAX: the true ones */
    unsigned n_keys, n_tensors;
    struct maker_key keys[MAKER_MAX_KEYS];
    struct maker_tensor tensors[MAKER_MAX_TENSORS];
    uint64_t alignment;
    uint64_t data_bytes; /* of tensor data, set by maker_write */
    uint64_t head_bytes; /* up to the end of the tensor table, the same */
};

static inline void maker_u32(struct brig_buf *b, uint32_t v)
{
    brig_buf_add(b, &v, sizeof v);
}

static inline void maker_u64(struct brig_buf *b, uint64_t v)
{
    brig_buf_add(b, &v, sizeof v);
}

static inline void maker_str(struct brig_buf *b, const char *s)
{
    maker_u64(b, strlen(s));
    brig_buf_add(b, s, strlen(s));
}

/* The key's value buffer, emptied; a new key when there was none of that name. */
static inline struct brig_buf *maker_set(struct maker *k, const char *name, uint32_t kind)
{
    unsigned i = 0;
    while (i < k->n_keys && strcmp(k->keys[i].name, name) != 0)
        i++;
    if (i == k->n_keys)
        k->n_keys++;
    if (i >= MAKER_MAX_KEYS)
        abort();
    snprintf(k->keys[i].name, sizeof k->keys[i].name, "%s", name);
    k->keys[i].kind = kind;
    brig_buf_clear(&k->keys[i].value);
    return &k->keys[i].value;
}

static inline void maker_set_u32(struct maker *k, const char *name, uint32_t v)
{
    maker_u32(maker_set(k, name, 4), v);
}

static inline void maker_set_f32(struct maker *k, const char *name, float v)
{
    brig_buf_add(maker_set(k, name, 6), &v, sizeof v);
}

static inline void maker_set_str(struct maker *k, const char *name, const char *v)
{
    maker_str(maker_set(k, name, 8), v);
}

static inline void maker_drop_key(struct maker *k, const char *name)
{
    for (unsigned i = 0; i < k->n_keys; i++)
        if (strcmp(k->keys[i].name, name) == 0) {
            brig_buf_release(&k->keys[i].value);
            k->keys[i] = k->keys[--k->n_keys];
            k->keys[k->n_keys] = (struct maker_key){0};
            return;
        }
    abort();
}

static inline struct maker_tensor *maker_add(struct maker *k, const char *name, uint32_t type, uint64_t cols,
                                             uint64_t rows)
{
    if (k->n_tensors >= MAKER_MAX_TENSORS)
        abort();
    struct maker_tensor *t = &k->tensors[k->n_tensors++];
    snprintf(t->name, sizeof t->name, "%s", name);
    t->type = type;
    t->dims[0] = cols;
    t->dims[1] = rows;
    t->dims[2] = t->dims[3] = 1;
    t->n_dims = rows == 1 ? 1 : 2;
    t->offset = UINT64_MAX;
    return t;
}

static inline struct maker_tensor *maker_tensor(struct maker *k, const char *name)
{
    for (unsigned i = 0; i < k->n_tensors; i++)
        if (strcmp(k->tensors[i].name, name) == 0)
            return &k->tensors[i];
    abort();
}

static inline void maker_drop_tensor(struct maker *k, const char *name)
{
    struct maker_tensor *t = maker_tensor(k, name), *last = &k->tensors[k->n_tensors - 1];
    memmove(t, t + 1, (size_t)(last - t) * sizeof *t);
    k->n_tensors--;
}

static inline void maker_release(struct maker *k)
{
    for (unsigned i = 0; i < k->n_keys; i++)
        brig_buf_release(&k->keys[i].value);
    free(k);
}

/* One layer, matrices of one type. hidden 32, 2 heads of 16, 1 KV head, ffn 64. */
static inline void maker_add_layer(struct maker *k, unsigned n, uint32_t type)
{
    static const struct {
        const char *name;
        uint64_t cols, rows;
    } rows[] = {
        {"attn_norm", 32, 1}, {"attn_q", 32, 32},      {"attn_k", 32, 16},
        {"attn_v", 32, 16},   {"attn_output", 32, 32}, {"ffn_norm", 32, 1},
        {"ffn_gate", 32, 64}, {"ffn_up", 32, 64},      {"ffn_down", 64, 32},
    };
    char name[80];
    for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        snprintf(name, sizeof name, "blk.%u.%s.weight", n, rows[i].name);
        maker_add(k, name, rows[i].rows == 1 ? 0 : type, rows[i].cols, rows[i].rows);
    }
}

/* A good llama without a tokenizer: tied table of 8 rows. */
static inline struct maker *maker_llama(unsigned n_layers)
{
    struct maker *k = calloc(1, sizeof *k);
    if (k == NULL)
        abort();
    k->version = 3;
    k->n_keys_said = k->n_tensors_said = UINT64_MAX;
    k->alignment = 32;
    maker_set_str(k, "general.architecture", "llama");
    maker_set_u32(k, "llama.block_count", n_layers);
    maker_set_u32(k, "llama.context_length", 64);
    maker_set_u32(k, "llama.embedding_length", 32);
    maker_set_u32(k, "llama.feed_forward_length", 64);
    maker_set_u32(k, "llama.attention.head_count", 2);
    maker_set_u32(k, "llama.attention.head_count_kv", 1);
    maker_set_f32(k, "llama.attention.layer_norm_rms_epsilon", 1e-5f);
    maker_add(k, "token_embd.weight", 8, 32, 8);
    for (unsigned i = 0; i < n_layers; i++)
        maker_add_layer(k, i, 8);
    maker_add(k, "output_norm.weight", 0, 32, 1);
    return k;
}

/* A byte-level tokenizer of n tokens. */
static inline void maker_add_tokens(struct maker *k, unsigned n)
{
    char text[16];
    maker_set_str(k, "tokenizer.ggml.model", "gpt2");
    maker_set_str(k, "tokenizer.ggml.pre", "gpt-2");
    struct brig_buf *b = maker_set(k, "tokenizer.ggml.tokens", 9);
    maker_u32(b, 8);
    maker_u64(b, n);
    for (unsigned i = 0; i < n; i++) {
        snprintf(text, sizeof text, "t%u", i);
        maker_str(b, text);
    }
    b = maker_set(k, "tokenizer.ggml.token_type", 9);
    maker_u32(b, 5);
    maker_u64(b, n);
    for (unsigned i = 0; i < n; i++)
        maker_u32(b, 1);
    b = maker_set(k, "tokenizer.ggml.merges", 9);
    maker_u32(b, 8);
    maker_u64(b, 1);
    maker_str(b, "t 0");
    maker_set_u32(k, "tokenizer.ggml.bos_token_id", 1);
    maker_set_u32(k, "tokenizer.ggml.eos_token_id", 2);
}

static inline uint64_t maker_tensor_bytes(const struct maker_tensor *t)
{
    const struct brig_type *type = brig_type_by_gguf(t->type);
    uint64_t row = type != NULL ? t->dims[0] / type->block_elems * type->block_bytes : 4;
    uint64_t bytes = row * t->dims[1] * t->dims[2] * t->dims[3];
    return bytes > (1u << 20) ? 0 : bytes; /* absurd shapes get no data */
}

static inline void maker_write_table(struct maker *k, struct brig_buf *b)
{
    uint64_t at = 0;
    for (unsigned i = 0; i < k->n_tensors; i++) {
        const struct maker_tensor *t = &k->tensors[i];
        maker_str(b, t->name);
        maker_u32(b, t->n_dims);
        for (unsigned d = 0; d < t->n_dims && d < 8; d++) /* more is only ever claimed */
            maker_u64(b, d < 4 ? t->dims[d] : 1);
        maker_u32(b, t->type);
        maker_u64(b, t->offset != UINT64_MAX ? t->offset : at);
        at += (maker_tensor_bytes(t) + k->alignment - 1) / k->alignment * k->alignment;
    }
    k->data_bytes = at;
}

/* The file's bytes; data are a pattern. */
static inline void maker_write(struct maker *k, struct brig_buf *b)
{
    brig_buf_add(b, "GGUF", 4);
    maker_u32(b, k->version);
    maker_u64(b, k->n_tensors_said != UINT64_MAX ? k->n_tensors_said : k->n_tensors);
    maker_u64(b, k->n_keys_said != UINT64_MAX ? k->n_keys_said : k->n_keys);
    for (unsigned i = 0; i < k->n_keys; i++) {
        maker_str(b, k->keys[i].name);
        maker_u32(b, k->keys[i].kind);
        brig_buf_add(b, k->keys[i].value.data, k->keys[i].value.len);
    }
    maker_write_table(k, b);
    k->head_bytes = b->len;
    while (b->len % k->alignment != 0)
        brig_buf_add(b, "", 1);
    for (uint64_t i = 0; i < k->data_bytes; i++)
        brig_buf_add(b, &(char){(char)((i * 7 + 1) & 0x3f)}, 1); /* positive as floats too */
}

/* Open n bytes as a model, through a file that is gone afterwards. */
static inline int maker_open_bytes(const void *bytes, size_t n, struct brig_model **ret,
                                   struct brig_fail *fail)
{
    char path[40];
    int fd = memfd_create("gguf", MFD_CLOEXEC);
    if (fd < 0)
        abort();
    for (size_t at = 0; at < n;) {
        ssize_t wrote = write(fd, (const char *)bytes + at, n - at);
        if (wrote <= 0)
            abort();
        at += (size_t)wrote;
    }
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    int r = brig_model_open(ret, path, fail);
    close(fd);
    return r;
}

static inline int maker_open(struct maker *k, struct brig_model **ret, struct brig_fail *fail)
{
    struct brig_buf b = {0};
    maker_write(k, &b);
    int r = maker_open_bytes(b.data, b.len, ret, fail);
    brig_buf_release(&b);
    return r;
}

/* What must open. Releases the recipe. */
static inline struct brig_model *maker_open_ok(struct maker *k)
{
    struct brig_model *m = NULL;
    struct brig_fail fail;
    if (maker_open(k, &m, &fail) < 0)
        fail_msg("%s", fail.text);
    maker_release(k);
    return m;
}

#endif
