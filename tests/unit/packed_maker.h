/*
 * Packed matrices for tests: random integers, zeros and scales, put into words as GPTQ and AWQ checkpoints
 * have them. Shares nothing with proto/model/packed.c.
 */
#ifndef BRIG_TESTS_UNIT_PACKED_MAKER_H
#define BRIG_TESTS_UNIT_PACKED_MAKER_H

#include <string.h>

#include "proto/base/mem.h"
#include "proto/model/packed.h"
#include "tests/unit/kernels_util.h"

struct pack_shape {
    const char *type; /* "GPTQ4" */
    const char *scale_type;
    uint32_t rows, cols, group_cols;
    uint32_t zero_bias;
    bool ordered;
};

struct pack {
    struct pack_shape shape;
    uint32_t bits, n_groups;
    float *weights;                   /* [rows, cols] what it stands for */
    uint32_t *groups;                 /* [cols] */
    uint32_t *visits;                 /* [cols] columns by (group, column) */
    struct edge words, zeros, scales; /* each ends where a page ends */
    size_t n_words;
    uint32_t *order, *starts; /* of brig_packed_sort */
    struct brig_packed packed;
};

static inline void pack_put(void *words, size_t word, unsigned shift, uint32_t v)
{
    uint32_t w;
    char *at = (char *)words + 4 * word;
    memcpy(&w, at, sizeof w);
    w |= v << shift;
    memcpy(at, &w, sizeof w);
}

/* Bit at which output number r lies in its word. AWQ: the word's eight nibbles, low ones first, are the
 * outputs 0 2 4 6 1 3 5 7. */
static inline unsigned pack_row_shift(const struct pack *p, uint32_t r)
{
    static const unsigned nibble_has[8] = {0, 2, 4, 6, 1, 3, 5, 7};
    unsigned i = 0;
    if (p->shape.type[0] != 'A')
        return r % (32 / p->bits) * p->bits;
    while (nibble_has[i] != r % 8)
        i++;
    return 4 * i;
}

static inline void pack_groups(struct pack *p)
{
    uint32_t cols = p->shape.cols, n = 0;
    for (uint32_t c = 0; c < cols; c++)
        p->groups[c] = p->shape.ordered ? random_below(p->n_groups) : c / p->shape.group_cols;
    for (uint32_t g = 0; g < p->n_groups; g++)
        for (uint32_t c = 0; c < cols; c++)
            if (p->groups[c] == g)
                p->visits[n++] = c;
    assert_int_equal(n, cols);
}

static inline float pack_scale(struct pack *p, uint32_t g, uint32_t r)
{
    float s = random_f32() * 0.02f;
    size_t i = (size_t)g * p->shape.rows + r;
    char *at = p->scales.data;
    if (strcmp(p->shape.scale_type, "F32") == 0) {
        memcpy(at + 4 * i, &s, 4);
        return s;
    }
    bool f16 = strcmp(p->shape.scale_type, "F16") == 0;
    uint16_t h = f16 ? brig_f32_to_f16(s) : (uint16_t)(brig_f32_to_bits(s) >> 16);
    memcpy(at + 2 * i, &h, 2);
    return f16 ? brig_f16_to_f32(h) : brig_bf16_to_f32(h);
}

static inline void pack_fill(struct pack *p)
{
    uint32_t rows = p->shape.rows, cols = p->shape.cols, in_word = 32 / p->bits, top = (1u << p->bits) - 1;
    float *scales = brig_alloc((size_t)p->n_groups * rows, sizeof *scales);
    uint32_t *zeros = brig_alloc((size_t)p->n_groups * rows, sizeof *zeros);
    for (uint32_t g = 0; g < p->n_groups; g++)
        for (uint32_t r = 0; r < rows; r++) {
            size_t i = (size_t)g * rows + r;
            scales[i] = pack_scale(p, g, r);
            zeros[i] = random_below(top + 1);
            pack_put(p->zeros.data, (size_t)g * (rows / in_word) + r / in_word, pack_row_shift(p, r),
                     (zeros[i] - p->shape.zero_bias) & top);
        }
    for (uint32_t r = 0; r < rows; r++)
        for (uint32_t c = 0; c < cols; c++) {
            uint32_t q = random_below(top + 1);
            size_t i = (size_t)p->groups[c] * rows + r;
            if (p->shape.type[0] == 'A')
                pack_put(p->words.data, (size_t)c * (rows / 8) + r / 8, pack_row_shift(p, r), q);
            else
                pack_put(p->words.data, (size_t)(c / in_word) * rows + r, c % in_word * p->bits, q);
            p->weights[(size_t)r * cols + c] = scales[i] * (float)((int)q - (int)zeros[i]);
        }
    brig_free(scales);
    brig_free(zeros);
}

static inline struct pack *pack_new(struct pack_shape shape)
{
    struct pack *p = brig_alloc(1, sizeof *p);
    const struct brig_type *type = brig_type_by_name(shape.type);
    const struct brig_type *scale_type = brig_type_by_name(shape.scale_type);
    p->shape = shape;
    p->bits = strchr(shape.type, '8') != NULL ? 8 : 4;
    p->n_groups = (shape.cols + shape.group_cols - 1) / shape.group_cols;
    p->weights = brig_alloc((size_t)shape.rows * shape.cols, sizeof *p->weights);
    p->groups = brig_alloc(shape.cols, sizeof *p->groups);
    p->visits = brig_alloc(shape.cols, sizeof *p->visits);
    p->n_words = (size_t)shape.rows * shape.cols / (32 / p->bits);
    p->words = edge_new(4 * p->n_words);
    p->zeros = edge_new((size_t)p->n_groups * shape.rows * p->bits / 8);
    p->scales = edge_new((size_t)p->n_groups * shape.rows * scale_type->block_bytes);
    pack_groups(p);
    pack_fill(p);
    p->packed = (struct brig_packed){
        .packing = type->packing,
        .scale_type = scale_type,
        .words = p->words.data,
        .scales = p->scales.data,
        .zeros = p->zeros.data,
        .rows = shape.rows,
        .cols = shape.cols,
        .group_cols = shape.group_cols,
        .zero_bias = shape.zero_bias,
        .n_groups = p->n_groups,
    };
    if (!shape.ordered)
        return p;
    p->order = brig_alloc(shape.cols, sizeof *p->order);
    p->starts = brig_alloc(p->n_groups + 1, sizeof *p->starts);
    assert_true(brig_packed_sort(p->groups, shape.cols, p->n_groups, p->order, p->starts) < 0);
    p->packed.order = p->order;
    p->packed.starts = p->starts;
    return p;
}

static inline void pack_free(struct pack *p)
{
    edge_free(&p->words);
    edge_free(&p->zeros);
    edge_free(&p->scales);
    brig_free(p->weights);
    brig_free(p->groups);
    brig_free(p->visits);
    brig_free(p->order);
    brig_free(p->starts);
    brig_free(p);
}

#endif
