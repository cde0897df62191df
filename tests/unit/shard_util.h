/* Shared by the tests of shard/: a slice of a fixture in this process, token rows, references. */
#ifndef BRIG_TESTS_UNIT_SHARD_UTIL_H
#define BRIG_TESTS_UNIT_SHARD_UTIL_H

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>
#include <jansson.h>

#include "proto/base/mem.h"
#include "shard/block/parts.h"

#define FIXTURES "tests/fixtures/llama/"

static inline struct brig_model *open_fixture(const char *type)
{
    char path[128];
    struct brig_model *m;
    struct brig_fail fail;
    snprintf(path, sizeof path, FIXTURES "%s.gguf", type);
    if (brig_model_open(&m, path, &fail) < 0)
        fail_msg("%s", fail.text);
    return m;
}

/* How a rig computes. */
struct rig_how {
    const char *kernel; /* NULL: the best one */
    bool exact;
    enum brig_kv_id kv;
    unsigned threads;
    uint32_t max_rows, ctx, slots;
    enum brig_hold hold;
    struct brig_stream_set stream;
};

static inline struct rig_how rig_exact(void)
{
    return (struct rig_how){.kernel = "scalar",
                            .exact = true,
                            .kv = BRIG_KV_F32,
                            .threads = 1,
                            .max_rows = 64,
                            .ctx = 64,
                            .slots = 2};
}

/* One slice with all that it needs. */
struct rig {
    struct brig_slice slice;
    struct brig_weights *weights;
    struct brig_kv *kv;
    struct brig_team *team;
    struct brig_block *block;
};

static inline void rig_open(struct rig *g, const struct brig_model *m, struct brig_cells cells,
                            struct rig_how how)
{
    struct brig_fail fail = {.text = "no kernel"};
    int fds[4];
    memset(g, 0, sizeof *g);
    assert_in_range(m->n_files, 1, 4);
    for (unsigned i = 0; i < m->n_files; i++)
        fds[i] = m->files[i].fd;
    int fd = memfd_create("test-kv", MFD_CLOEXEC);
    const struct brig_kernel *kernel =
        how.kernel != NULL ? brig_kernel_by_name(how.kernel) : brig_kernel_choose();
    bool ok = kernel != NULL && brig_slice_build(&g->slice, m, cells, &fail) == 0;
    if (ok)
        brig_slice_hold(&g->slice, how.hold);
    g->slice.stream = how.stream;
    ok =
        ok && brig_weights_open(&g->weights, &g->slice, fds, m->n_files, &fail) == 0 &&
        brig_kv_open(&g->kv, fd, &g->slice, (struct brig_kv_shape){how.kv, how.slots, how.ctx}, &fail) == 0 &&
        brig_team_new(&g->team, how.threads, &fail) == 0;
    if (ok) {
        struct brig_block_setup setup = {.slice = &g->slice,
                                         .weights = g->weights,
                                         .kernel = kernel,
                                         .team = g->team,
                                         .exact = how.exact,
                                         .max_rows = how.max_rows,
                                         .ctx = how.ctx};
        ok = brig_block_new(&g->block, &setup, &fail) == 0;
    }
    if (!ok)
        fail_msg("%s", fail.text);
}

static inline void rig_close(struct rig *g)
{
    brig_block_free(g->block);
    brig_team_free(g->team);
    brig_kv_close(g->kv);
    brig_weights_close(g->weights);
    brig_slice_release(&g->slice);
}

/* The layers of the slice over n rows of h. */
static inline void rig_run(struct rig *g, float *h, const struct brig_run *runs, unsigned n_runs)
{
    struct brig_fail fail;
    atomic_uint layer = 0;
    for (unsigned i = 0; i < n_runs; i++)
        if (brig_kv_reserve(g->kv, runs[i].slot, runs[i].pos, runs[i].count, &fail) < 0)
            fail_msg("%s", fail.text);
    if (brig_block_run(g->block, g->kv, h, runs, n_runs, &layer, &fail) < 0)
        fail_msg("%s", fail.text);
}

/* Rows of the token table into h [n, hidden]. */
static inline void embed(const struct brig_model *m, const uint32_t *ids, unsigned n, float *h)
{
    const struct brig_tensor *t = brig_model_tensor(m, BRIG_ROLE_TOKEN_TABLE, 0);
    assert_non_null(t);
    uint64_t row_bytes = brig_type_row_bytes(t->type, t->dims[0]);
    uint8_t *row = brig_alloc(row_bytes, 1);
    for (unsigned i = 0; i < n; i++) {
        off_t at = (off_t)(t->offset + ids[i] * row_bytes);
        assert_int_equal(pread(m->files[t->file].fd, row, row_bytes, at), row_bytes);
        t->type->dequant(row, h + (size_t)i * m->desc.hidden, m->desc.hidden);
    }
    brig_free(row);
}

/* Logits of all rows of h into out [n, vocab]. */
static inline void head_all(struct rig *g, const float *h, uint32_t n, float *out)
{
    for (uint32_t i = 0; i < n; i += BRIG_HEAD_ROWS) {
        uint32_t rows[BRIG_HEAD_ROWS], count = n - i < BRIG_HEAD_ROWS ? n - i : BRIG_HEAD_ROWS;
        for (uint32_t k = 0; k < count; k++)
            rows[k] = i + k;
        struct brig_fail fail;
        if (brig_head_logits(g->block, h, rows, count, out + (size_t)i * g->slice.desc.vocab, &fail) < 0)
            fail_msg("%s", fail.text);
    }
}

/* Rows of `ids` at positions from 0, in batches of `batch`, through slices that join to the whole line. */
static inline float *logits_of(const struct brig_model *m, const uint32_t *ids, uint32_t n,
                               struct rig_how how, uint32_t batch, const uint32_t *cuts, unsigned n_cuts)
{
    struct rig rigs[8];
    uint32_t first = 0;
    unsigned n_rigs = 0;
    for (unsigned i = 0; i <= n_cuts; i++) {
        uint32_t last = i < n_cuts ? cuts[i] : m->desc.n_layers + 1;
        rig_open(&rigs[n_rigs++], m, (struct brig_cells){first, last}, how);
        first = last;
    }
    float *h = brig_alloc((size_t)n * m->desc.hidden, sizeof *h);
    float *logits = brig_alloc((size_t)n * m->desc.vocab, sizeof *logits);
    embed(m, ids, n, h);
    for (uint32_t at = 0; at < n; at += batch) {
        struct brig_run run = {.slot = 1, .pos = at, .count = n - at < batch ? n - at : batch};
        for (unsigned i = 0; i < n_rigs; i++)
            rig_run(&rigs[i], h + (size_t)at * m->desc.hidden, &run, 1);
        head_all(&rigs[n_rigs - 1], h + (size_t)at * m->desc.hidden, run.count,
                 logits + (size_t)at * m->desc.vocab);
    }
    for (unsigned i = 0; i < n_rigs; i++)
        rig_close(&rigs[i]);
    brig_free(h);
    return logits;
}

static inline void assert_same_bits(const float *a, const float *b, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (memcmp(&a[i], &b[i], sizeof *a) != 0)
            fail_msg("element %zu of %zu: %a and %a", i, n, (double)a[i], (double)b[i]);
}

/* A reference of a fixture: prompt, greedy continuation, logits after each prompt token. */
struct reference {
    unsigned n_prompt, n_greedy;
    uint32_t prompt[128], greedy[128];
    float *logits; /* [n_prompt, vocab] */
};

static inline unsigned json_ids(const json_t *root, const char *key, uint32_t *ids)
{
    const json_t *list = json_object_get(root, key);
    assert_in_range(json_array_size(list), 1, 128);
    for (size_t i = 0; i < json_array_size(list); i++)
        ids[i] = (uint32_t)json_integer_value(json_array_get(list, i));
    return (unsigned)json_array_size(list);
}

/* A version 1 NPY file of n little-endian f32 in C order. */
static inline void read_npy(const char *path, float *out, size_t n)
{
    uint8_t head[10];
    char text[1024];
    FILE *f = fopen(path, "rb");
    if (f == NULL)
        fail_msg("%s cannot be opened", path);
    assert_int_equal(fread(head, 1, sizeof head, f), sizeof head);
    assert_memory_equal(head, "\x93NUMPY\x01\x00", 8);
    size_t length = head[8] | (size_t)head[9] << 8;
    assert_in_range(length, 1, sizeof text - 1);
    assert_int_equal(fread(text, 1, length, f), length);
    text[length] = '\0';
    assert_non_null(strstr(text, "'<f4'"));
    assert_non_null(strstr(text, "'fortran_order': False"));
    assert_int_equal(fread(out, sizeof *out, n, f), n);
    assert_int_equal(fgetc(f), EOF);
    fclose(f);
}

static inline void read_reference(struct reference *ref, const char *type, uint32_t vocab)
{
    char path[128];
    snprintf(path, sizeof path, FIXTURES "%s.ref.json", type);
    json_t *root = json_load_file(path, 0, NULL);
    if (root == NULL)
        fail_msg("%s cannot be read", path);
    ref->n_prompt = json_ids(root, "prompt_ids", ref->prompt);
    ref->n_greedy = json_ids(root, "greedy_ids", ref->greedy);
    json_decref(root);
    snprintf(path, sizeof path, FIXTURES "%s.logits_prompt.npy", type);
    ref->logits = brig_alloc((size_t)ref->n_prompt * vocab, sizeof(float));
    read_npy(path, ref->logits, (size_t)ref->n_prompt * vocab);
}

/* The best of a whole row of logits. */
static inline uint32_t top_of(const float *logits, uint32_t vocab, uint32_t top, struct brig_candidate *out)
{
    struct brig_best best = {.v = out};
    brig_best_scan(&best, top, logits, 0, vocab);
    return brig_best_sort(&best);
}

#endif
