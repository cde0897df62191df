/*
 * Hashes of what the kernels, the stored types and our own functions compute, for comparing machines that
 * cannot run each other's programs (tests/arm/compare.py): one static program, the same input everywhere. A
 * line each: who computed ("scalar", "neon", "common" for what has one form), what, and 64 bits in hex. Which
 * NaN a NaN is does not count.
 */
#include <math.h>
#include <stdbool.h>

#include "proto/base/mem.h"
#include "proto/base/real.h"
#include "proto/model/r16.h"
#include "shard/kernels/kernel.h"
#include "shard/kernels/kv_row.h"
#include "shard/kernels/math.h"
#include "tests/unit/blocks_util.h"

#define MAX_COLS   1024u
#define MAX_ROWS   48u
#define MAX_TOKENS 40u

/* ---- hashing ---- */

static uint64_t hash; /* FNV-1a of the section at hand */

static void section(void)
{
    hash = 14695981039346656037ull;
    random_state = 88172645463325252ull;
}

static void add_bytes(const void *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        hash = (hash ^ ((const uint8_t *)p)[i]) * 1099511628211ull;
}

static void add_floats(const float *v, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        uint32_t bits = v[i] != v[i] ? 0x7fc00000u : brig_f32_to_bits(v[i]);
        add_bytes(&bits, sizeof bits);
    }
}

static void print(const char *who, const char *what, const char *more)
{
    printf("%s\t%s%s\t%016llx\n", who, what, more, (unsigned long long)hash);
}

/* ---- numbers ---- */

enum content {
    SANE,
    ANY_BITS,
    MIXED_EXTREMES,
    ALL_MINUS_128,
    ZERO_SCALES,
    INFINITE_SCALES,
    SUBNORMAL_SCALES,
    CONTENTS
};

/* Nothing but numbers, or infinities, NaNs and subnormals too. */
static void fill(float *v, size_t n, bool wild)
{
    const float special[] = {0.0f, -0.0f, 0x1p-149f, -0x1p-127f, 3.4e38f, -3.4e38f, INFINITY, -INFINITY};
    for (size_t i = 0; i < n; i++) {
        v[i] = random_f32() * 4.0f;
        if (wild && random_below(16) == 0)
            v[i] = random_below(2) == 0 ? random_bits() : special[random_below(8)];
    }
}

static void fill_block(const struct brig_type *type, uint8_t *b, enum content content)
{
    float scale = random_f32() * 0.02f, min = random_f32() * 0.02f;
    for (uint32_t i = 0; i < type->block_bytes; i++) {
        uint8_t any = (uint8_t)random_u32();
        b[i] = content == ALL_MINUS_128 ? 0x80 : content == MIXED_EXTREMES ? (any & 1 ? 0x80 : 0xff) : any;
    }
    if (type->block_elems == 1) {
        if (content == SANE)
            block_of_size(type, b, 1.0f);
        return;
    }
    if (content == ZERO_SCALES)
        scale = copysignf(0.0f, scale);
    else if (content == INFINITE_SCALES && type->id != BRIG_TYPE_MXFP4)
        scale = copysignf(INFINITY, scale);
    else if (content == SUBNORMAL_SCALES && type->id != BRIG_TYPE_MXFP4)
        scale *= 0x1p-14f; /* as an f16 */
    if (content != ANY_BITS)
        block_set_scales(type, b, scale, content == SUBNORMAL_SCALES ? min * 0x1p-14f : min);
}

static void fill_matrix(const struct brig_type *type, uint8_t *p, uint32_t rows, size_t row_bytes,
                        enum content content)
{
    static uint8_t panel[16 * MAX_COLS * 2];
    for (size_t i = 0; i < rows * row_bytes; i += type->block_bytes)
        fill_block(brig_type_native(type), p + i, content);
    for (size_t i = 0; i < rows * row_bytes && type->native != NULL; i += 16 * row_bytes) {
        memcpy(panel, p + i, 16 * row_bytes);
        brig_r16_join(type, panel, row_bytes, p + i);
    }
}

/* Activations whose groups are ordinary, at the limit, all zero, subnormal, not finite, or all ties. */
static void fill_group(float *x, enum content content)
{
    unsigned kind = content == SANE ? 0 : random_below(6);
    for (unsigned i = 0; i < BRIG_ACT_GROUP; i++) {
        x[i] = random_f32() * 3.0f;
        if (kind == 1)
            x[i] = copysignf(127.0f, x[i]);
        else if (kind == 2)
            x[i] = copysignf(0.0f, x[i]);
        else if (kind == 3)
            x[i] *= 0x1p-121f;
        else if (kind == 5) /* in halves, once the largest is 127 */
            x[i] = i == 7 ? 63.5f : 0.25f * (float)((int)random_below(509) - 254);
    }
    if (kind == 4)
        x[random_below(BRIG_ACT_GROUP)] = random_below(2) == 0 ? NAN : -INFINITY;
}

/* ---- products ---- */

struct shape {
    uint32_t rows, cols, unit, tokens;
};

static const struct shape shapes[] = {
    {20, 1024, 256, 1}, {35, 768, 512, 3}, {7, 512, 512, 9}, {40, 256, 256, 37}};

enum { MAX_STRIDE = MAX_COLS + 64 };

static float x_floats[MAX_TOKENS * MAX_COLS], x_scales[MAX_TOKENS * MAX_STRIDE / 32],
    y[MAX_TOKENS * MAX_ROWS];
static int8_t x_quants[MAX_TOKENS * MAX_STRIDE];
static int32_t x_sums[MAX_TOKENS * MAX_STRIDE / 16];

static struct brig_act activations(const struct brig_kernel *k, struct shape s, bool integer,
                                   enum content content)
{
    size_t n = (size_t)s.tokens * s.cols, stride = brig_act_stride(s.cols);
    for (size_t i = 0; i < n; i += BRIG_ACT_GROUP)
        fill_group(x_floats + i, content);
    for (size_t t = 0; t < s.tokens && integer; t++)
        k->quantize(x_floats + t * s.cols, s.cols, x_quants + t * stride, x_scales + t * (stride / 32),
                    x_sums + t * (stride / 16));
    return (struct brig_act){s.tokens, s.cols, x_floats, integer ? x_quants : NULL, x_scales, x_sums};
}

static void product(const struct brig_kernel *k, const struct brig_matrix *w, const struct brig_act *x)
{
    memset(y, 0x55, sizeof y);
    for (uint64_t r = 0; r < w->rows; r += 32)
        k->matmul(w, r, r + 32 < w->rows ? r + 32 : w->rows, x, y, w->rows);
    add_floats(y, w->rows * x->n_rows);
}

static void hash_products(const struct brig_kernel *k, const struct brig_type *type, bool integer)
{
    static uint8_t weights[MAX_ROWS * MAX_COLS * 4];
    section();
    for (unsigned n = 0; n < 4 * CONTENTS; n++) {
        struct shape s = shapes[n % 4];
        size_t row_bytes = s.cols / type->block_elems * type->block_bytes;
        if (type->native != NULL)
            s.rows = (s.rows + 15) / 16 * 16;
        fill_matrix(type, weights, s.rows, row_bytes, n / 4);
        struct brig_matrix w = {.type = type,
                                .data = weights,
                                .rows = s.rows,
                                .cols = s.cols,
                                .row_bytes = row_bytes,
                                .unit_cols = s.unit};
        struct brig_act x = activations(k, s, integer, n / 4);
        product(k, &w, &x);
    }
    print(k->name, integer ? "integer product " : "float product ", type->name);
}

/* Any words, zeros and (numbers as) scales are a matrix. */
static void hash_packed(const struct brig_kernel *k, const struct brig_type *type, bool ordered)
{
    enum { ROWS = 40, COLS = 512, GROUP = 64, GROUPS = COLS / GROUP };
    static uint8_t words[ROWS * COLS], zeros[ROWS * GROUPS], scales[ROWS * GROUPS * 4];
    static uint32_t groups[COLS], order[COLS], starts[GROUPS + 1];
    section();
    for (unsigned n = 0; n < 8; n++) {
        for (size_t i = 0; i < sizeof words; i++)
            words[i] = (uint8_t)random_u32();
        for (size_t i = 0; i < sizeof zeros; i++)
            zeros[i] = (uint8_t)random_u32();
        fill((float *)(void *)scales, sizeof scales / 4, n >= 4);
        for (uint32_t c = 0; c < COLS; c++)
            groups[c] = random_below(GROUPS);
        brig_packed_sort(groups, COLS, GROUPS, order, starts);
        struct brig_packed p = {type->packing,
                                brig_type_by_name("F32"),
                                words,
                                scales,
                                zeros,
                                ROWS,
                                COLS,
                                GROUP,
                                n % 2,
                                GROUPS,
                                ordered ? order : NULL,
                                ordered ? starts : NULL};
        struct brig_matrix w = {.type = type,
                                .data = words,
                                .rows = ROWS,
                                .cols = COLS,
                                .row_bytes = COLS * type->packing->bits / 8,
                                .unit_cols = 256,
                                .packed = &p};
        struct brig_act x = activations(k, (struct shape){ROWS, COLS, 256, n % 4 == 0 ? 1 : 11}, false, SANE);
        product(k, &w, &x);
    }
    print(k->name, ordered ? "product in an order of its own " : "product ", type->name);
}

/* ---- the rest of a kernel ---- */

static void hash_quantize(const struct brig_kernel *k)
{
    section();
    for (unsigned n = 0; n < 400; n++) {
        struct shape s = {1, 32 * (1 + n % 5), 32, 1};
        struct brig_act x = activations(k, s, true, n % 4);
        add_bytes(x.q, s.cols);
        add_floats(x.d, s.cols / 32);
        add_bytes(x.sum, s.cols / 16 * sizeof *x.sum);
    }
    print(k->name, "quantise", "");
}

enum { LENGTH = 150 };

static void hash_elements(const struct brig_kernel *k)
{
    float a[LENGTH], b[LENGTH], out[LENGTH];
    uint16_t half[LENGTH];
    section();
    for (unsigned n = 1; n < LENGTH; n += n < 40 ? 1 : 13) {
        for (unsigned wild = 0; wild < 2; wild++) {
            fill(a, n, wild);
            fill(b, n, wild);
            k->rms_norm(a, b, n, 1e-5f, out);
            add_floats(out, n);
            k->layer_norm(a, b, a, n, 1e-5f, out);
            add_floats(out, n);
            k->swiglu(a, b, n, out);
            add_floats(out, n);
            k->geglu(a, b, n, out);
            add_floats(out, n);
            k->geglu(a, NULL, n, out);
            add_floats(out, n);
            k->to_f16(a, n, half);
            add_bytes(half, n * sizeof *half);
            k->add(a, b, n);
            k->add_scaled(a, b[0], b, n);
            add_floats(a, n);
        }
    }
    print(k->name, "norms, activation functions, additions, f16", "");
}

/* Where exp rounds its argument to whole powers of two it may meet ties: next to (n + 1/2) ln 2. */
static void hash_ties(const struct brig_kernel *k)
{
    float x[LENGTH], one[LENGTH], out[LENGTH];
    section();
    for (unsigned i = 0; i < LENGTH; i++)
        one[i] = 1.0f;
    for (int n = -125; n < 125; n++) {
        float tie = ((float)n + 0.5f) * 0.693147181f;
        for (int i = 0; i < LENGTH; i++)
            x[i] = brig_bits_to_f32(brig_f32_to_bits(tie) + (uint32_t)(i - LENGTH / 2));
        k->swiglu(x, one, LENGTH, out);
        add_floats(out, LENGTH);
    }
    print(k->name, "exp near ties", "");
}

static void hash_log_sum_exp(const struct brig_kernel *k)
{
    static float v[BRIG_LSE_BLOCK];
    const uint32_t lengths[] = {1, 3, 16, 21, 33, 1000, 4095, BRIG_LSE_BLOCK};
    section();
    for (unsigned i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        for (uint32_t j = 0; j < lengths[i]; j++)
            v[j] = random_f32() * 90.0f;
        for (unsigned j = 0; j < 3; j++) {
            float sum = k->log_sum_exp(v, lengths[i]);
            add_floats(&sum, 1);
            v[random_below(lengths[i])] = j == 0 ? -INFINITY : NAN;
        }
    }
    print(k->name, "log-sum-exp", "");
}

static void hash_attention(const struct brig_kernel *k, enum brig_kv_id kv)
{
    enum { POSITIONS = 160, DIM = 140, QUERIES = 7 };
    static float q[DIM + QUERIES], x[DIM], cache[2][POSITIONS * DIM], scores[QUERIES * POSITIONS],
        out[QUERIES * DIM];
    const uint32_t dims[] = {64, 128, 80, 16, 1, 140, 37, 96};
    section();
    for (unsigned n = 0; n < 48; n++) {
        uint32_t dim = dims[n % 8], n_pos = n < 24 ? n + 1 : 1 + random_below(POSITIONS - QUERIES);
        uint32_t first = n % 3 == 0 ? random_below(n_pos) : 0;
        fill(q, DIM + QUERIES, false);
        for (unsigned i = 0; i < 2; i++)
            for (size_t j = 0; j < POSITIONS; j++) {
                fill(x, DIM, n % 6 == 5);
                brig_kv_row_store(k, kv, x, dim, &cache[i][j * DIM]);
                if (n % 6 != 5) /* which NaN is stored is left open */
                    add_bytes(&cache[i][j * DIM], brig_kv_row_bytes(kv, dim));
            }
        struct brig_attention a = {.n = 1 + n % QUERIES,
                                   .k = cache[0],
                                   .v = cache[1],
                                   .kv = kv,
                                   .stride = DIM * sizeof(float),
                                   .head_dim = dim,
                                   .scale = 0.125f,
                                   .scores = scores,
                                   .scores_stride = POSITIONS};
        for (unsigned i = 0; i < a.n; i++) {
            a.q[i] = q + i; /* each a little different */
            a.out[i] = out + i * dim;
            a.first[i] = first;
            a.n_pos[i] = n_pos + i / 2;
        }
        k->attention(&a);
        add_floats(out, a.n * dim);
    }
    print(k->name, "attention, cache of ", brig_kv_type_name(kv));
}

static void hash_kernel(const struct brig_kernel *k)
{
    for (unsigned i = 0; brig_type_at(i) != NULL; i++) {
        const struct brig_type *type = brig_type_at(i);
        if (type->packing != NULL) {
            hash_packed(k, type, false);
            if (!type->packing->by_rows)
                hash_packed(k, type, true);
            continue;
        }
        hash_products(k, type, false);
        if (type->group != 0)
            hash_products(k, type, true);
    }
    hash_quantize(k);
    hash_elements(k);
    hash_ties(k);
    hash_log_sum_exp(k);
    for (unsigned kv = 0; kv < BRIG_KV_COUNT; kv++)
        hash_attention(k, (enum brig_kv_id)kv);
}

/* ---- what has one form ---- */

static void hash_types(void)
{
    float v[1024];
    uint8_t block[4096];
    for (unsigned i = 0; brig_type_at(i) != NULL; i++) {
        const struct brig_type *type = brig_type_at(i);
        if (type->packing != NULL || type->native != NULL)
            continue;
        section();
        for (unsigned n = 0; n < 40; n++) {
            fill_block(type, block, n % CONTENTS);
            type->dequant(block, v, type->block_elems);
            add_floats(v, type->block_elems);
        }
        print("common", "dequantise ", type->name);
        if (type->quantize == NULL)
            continue;
        section();
        for (unsigned n = 0; n < 40; n++) {
            float size = n % 4 == 0 ? 0x1p-100f : n % 4 == 1 ? 0.0f : 2.0f;
            for (unsigned j = 0; j < 256; j++)
                v[j] = random_f32() * size;
            type->quantize(v, block, 256);
            add_bytes(block, 256 / type->block_elems * type->block_bytes);
        }
        print("common", "quantise to ", type->name);
    }
}

static void hash_functions(void)
{
    section();
    for (unsigned i = 0; i < 40000; i++) {
        float x = i % 3 == 0 ? random_bits() : random_f32() * (i % 3 == 1 ? 90.0f : 1.0f), r[5];
        r[0] = brig_expf(x);
        r[1] = brig_logf(x);
        r[2] = (float)brig_pow(500000.0, (double)random_f32());
        brig_sincosf(fabsf(x), &r[3], &r[4]);
        add_floats(r, 5);
    }
    print("common", "exp, log, pow, sin, cos", "");
}

int main(void)
{
    for (unsigned i = 0; brig_kernel_at(i) != NULL; i++)
        if (brig_kernel_at(i)->usable())
            hash_kernel(brig_kernel_at(i));
    hash_types();
    hash_functions();
    return 0;
}
