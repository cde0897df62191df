/*
 * The work around the matrix products: the scalar kernel against double arithmetic, and every other kernel
 * against the scalar one bit for bit, at all lengths around the vector width and at the end of a page.
 */
#include "tests/unit/kernels_util.h"

#include <math.h>
#include <string.h>

#include "shard/kernels/kernel.h"
#include "shard/kernels/kv_row.h"
#include "shard/kernels/scalar.h"

static const struct brig_kernel *scalar(void)
{
    return brig_kernel_by_name("scalar");
}

/* The usable kernels that are not the scalar one. */
static const struct brig_kernel *other(unsigned *i)
{
    for (; brig_kernel_at(*i) != NULL; (*i)++)
        if (brig_kernel_at(*i) != scalar() && brig_kernel_at(*i)->usable())
            return brig_kernel_at((*i)++);
    return NULL;
}

static void fill(float *v, size_t n, bool wild)
{
    for (size_t i = 0; i < n; i++)
        v[i] = wild && random_below(16) == 0 ? random_bits() : random_f32() * 4.0f;
}

/* ---- quantise ---- */

static void fill_group(float *x, unsigned kind)
{
    const float special[] = {0.0f, -0.0f, 0x1p-149f, 0x1p-126f, 3.0e-37f, 4.0e-37f, 3.4e38f, 1.0f};
    for (unsigned i = 0; i < 32; i++) {
        x[i] = random_f32();
        if (kind == 1)
            x[i] = special[random_below(8)];
        else if (kind == 2)
            x[i] = 0.5f * (float)((int)random_below(255) - 127); /* ties when the scale is 2 */
        else if (kind == 3)
            x[i] *= 0x1p-121f;
    }
    if (kind == 2)
        x[7] = 63.5f;
    if (kind == 4)
        x[random_below(32)] = random_below(2) == 0 ? NAN : -INFINITY;
    if (kind == 5)
        memset(x, 0, 32 * sizeof *x);
}

static void quantize_is_right(void **state)
{
    (void)state;
    for (unsigned n = 0; n < 4000; n++) {
        float x[32], d, amax = 0;
        int8_t q[32];
        int32_t sum[2];
        fill_group(x, n % 6);
        scalar()->quantize(x, 32, q, &d, sum);
        for (unsigned i = 0; i < 32; i++)
            amax = fmaxf(amax, isfinite(x[i]) ? fabsf(x[i]) : INFINITY);
        int32_t low = 0, high = 0;
        for (unsigned i = 0; i < 16; i++) {
            low += q[i];
            high += q[16 + i];
        }
        assert_int_equal(sum[0], low);
        assert_int_equal(sum[1], high);
        if (isinf(amax)) {
            assert_true(isnan(d) && low == 0 && high == 0);
            continue;
        }
        assert_true(d == (amax < 0x1p-120f ? 0.0f : amax / 127.0f));
        for (unsigned i = 0; i < 32 && d > 0; i++) {
            assert_true(q[i] >= -127);
            assert_true(fabs((double)q[i] * (double)d - (double)x[i]) <= 0.5001 * (double)d);
        }
    }
}

static void quantize_equal(void **state)
{
    (void)state;
    const struct brig_kernel *k;
    for (unsigned row = 0; (k = other(&row)) != NULL;) {
        for (unsigned n = 0; n < 2000; n++) {
            uint32_t groups = 1 + random_below(5);
            struct edge x = edge_new(groups * 32 * sizeof(float)), q = edge_new(groups * 32);
            struct edge d = edge_new(groups * sizeof(float)), sum = edge_new(groups * 2 * sizeof(int32_t));
            int8_t want_q[160];
            float want_d[5];
            int32_t want_sum[10];
            for (uint32_t g = 0; g < groups; g++)
                fill_group((float *)x.data + 32 * g, random_below(6));
            scalar()->quantize(x.data, 32 * groups, want_q, want_d, want_sum);
            k->quantize(x.data, 32 * groups, q.data, d.data, sum.data);
            assert_memory_equal(q.data, want_q, 32 * groups);
            assert_memory_equal(sum.data, want_sum, 2 * groups * sizeof(int32_t));
            assert_same_f32(d.data, want_d, groups, "quantize scales");
            edge_free(&x);
            edge_free(&q);
            edge_free(&d);
            edge_free(&sum);
        }
    }
}

/* ---- norm, activation, add, narrowing ---- */

static void elementwise_is_right(void **state)
{
    (void)state;
    float x[577], y[577], out[577];
    fill(x, 577, false);
    fill(y, 577, false);
    double ss = 0;
    for (int i = 0; i < 577; i++)
        ss += (double)x[i] * (double)x[i];
    scalar()->rms_norm(x, y, 577, 1e-5f, out);
    for (int i = 0; i < 577; i++) {
        double want = (double)x[i] * (double)y[i] / sqrt(ss / 577 + 1e-5);
        assert_true(fabs((double)out[i] - want) <= 1e-6 * (fabs(want) + 1e-6));
    }
    scalar()->swiglu(x, y, 577, out);
    for (int i = 0; i < 577; i++) {
        double want = (double)x[i] / (1 + exp(-(double)x[i])) * (double)y[i];
        assert_true(fabs((double)out[i] - want) <= 1e-6 * (fabs(want) + 1e-6));
    }
    scalar()->geglu(x, y, 577, out);
    for (int i = 0; i < 577; i++) {
        double g = (double)x[i], want = 0.5 * g * (1 + tanh(sqrt(2 / M_PI) * (g + 0.044715 * g * g * g)));
        want *= (double)y[i];
        assert_true(fabs((double)out[i] - want) <= 2e-6 * (fabs(want) + 1e-6));
    }
    memcpy(out, y, sizeof out);
    scalar()->add_scaled(out, 0.7f, x, 577);
    for (int i = 0; i < 577; i++) {
        double want = (double)0.7f * (double)x[i] + (double)y[i];
        assert_true(out[i] == (float)want || fabs((double)out[i] - want) <= 6e-8 * fabs(want));
    }
    scalar()->swiglu((float[]){-100.0f, 100.0f}, (float[]){1.0f, 1.0f}, 2, out);
    assert_true(out[0] == 0.0f && out[1] == 100.0f);
}

static void elementwise_equal(void **state)
{
    (void)state;
    const struct brig_kernel *k;
    for (unsigned row = 0; (k = other(&row)) != NULL;) {
        for (uint32_t n = 1; n < 400; n += n < 70 ? 1 : 37) {
            struct edge x = edge_new(n * sizeof(float)), y = edge_new(n * sizeof(float));
            struct edge out = edge_new(n * sizeof(float)), half = edge_new(n * sizeof(uint16_t));
            float want[400];
            uint16_t want_half[400];
            for (int wild = 0; wild < 2; wild++) {
                fill(x.data, n, wild);
                fill(y.data, n, wild);
                scalar()->rms_norm(x.data, y.data, n, 1e-5f, want);
                k->rms_norm(x.data, y.data, n, 1e-5f, out.data);
                assert_same_f32(out.data, want, n, "rms_norm");
                scalar()->swiglu(x.data, y.data, n, want);
                k->swiglu(x.data, y.data, n, out.data);
                assert_same_f32(out.data, want, n, "swiglu");
                scalar()->geglu(x.data, y.data, n, want);
                k->geglu(x.data, y.data, n, out.data);
                assert_same_f32(out.data, want, n, "geglu");
                scalar()->geglu(x.data, NULL, n, want);
                k->geglu(x.data, NULL, n, out.data);
                assert_same_f32(out.data, want, n, "gelu");
                scalar()->layer_norm(x.data, y.data, x.data, n, 1e-5f, want);
                k->layer_norm(x.data, y.data, x.data, n, 1e-5f, out.data);
                assert_same_f32(out.data, want, n, "layer_norm");
                scalar()->to_f16(x.data, n, want_half);
                k->to_f16(x.data, n, half.data);
                assert_memory_equal(half.data, want_half, n * sizeof(uint16_t));
                memcpy(want, x.data, n * sizeof(float));
                scalar()->add(want, y.data, n);
                k->add(x.data, y.data, n);
                assert_same_f32(x.data, want, n, "add");
                float g = wild ? random_bits() : random_f32();
                scalar()->add_scaled(want, g, y.data, n);
                k->add_scaled(x.data, g, y.data, n);
                assert_same_f32(x.data, want, n, "add_scaled");
                scalar()->rms_norm(want, y.data, n, 1e-6f, want);
                k->rms_norm(x.data, y.data, n, 1e-6f, x.data);
                assert_same_f32(x.data, want, n, "rms_norm in place");
            }
            edge_free(&x);
            edge_free(&y);
            edge_free(&out);
            edge_free(&half);
        }
    }
}

static void layer_norm_is_right(void **state)
{
    (void)state;
    float x[577], w[577], bias[577], out[577];
    for (unsigned n = 1; n < 578; n += 64) {
        double mean = 0, variance = 0;
        fill(x, n, false);
        fill(w, n, false);
        fill(bias, n, false);
        for (unsigned i = 0; i < n; i++)
            mean += ((double)(x[i] += 3.0f)) / n;
        for (unsigned i = 0; i < n; i++)
            variance += ((double)x[i] - mean) * ((double)x[i] - mean) / n;
        scalar()->layer_norm(x, w, bias, n, 1e-5f, out);
        for (unsigned i = 0; i < n; i++) {
            double want = ((double)x[i] - mean) / sqrt(variance + 1e-5) * (double)w[i] + (double)bias[i];
            assert_true(fabs((double)out[i] - want) <= 2e-5);
        }
    }
}

/* gelu is x above all that exp tells apart from 0, and nothing below; never a NaN in between. */
static void gelu_at_the_ends(void **state)
{
    (void)state;
    float x[] = {0.0f, -0.0f, 5.0f, 10.0f, -10.0f, 1e20f, -1e20f, 3e38f, -3e38f}, out[9];
    scalar()->geglu(x, NULL, 9, out);
    assert_true(out[0] == 0.0f && out[1] == 0.0f && out[2] > 4.9999f && out[2] <= 5.0f);
    assert_true(out[3] == 10.0f && out[5] == 1e20f && out[7] == 3e38f);
    assert_true(out[4] <= 0.0f && out[4] > -1e-20f && out[6] == 0.0f && out[8] == 0.0f);
}

/* Every exponent and many mantissas, through swiglu with up = 1: exp, division and the edges of exp. */
static void exp_equal(void **state)
{
    (void)state;
    const float edges[] = {87.3f, -88.7f, 0.0f};
    const struct brig_kernel *k;
    float x[1024], one[1024], want[1024], got[1024];
    for (int i = 0; i < 1024; i++)
        one[i] = 1.0f;
    for (unsigned row = 0; (k = other(&row)) != NULL;) {
        for (unsigned n = 0; n < 600; n++) {
            for (unsigned i = 0; i < 1024; i++)
                x[i] = n < 300   ? random_bits()
                       : n < 580 ? random_f32() * 90.0f
                                 : brig_bits_to_f32(0x42ae0000u + random_below(0x60000)); /* 87 to 90 */
            if (n % 2 == 1)
                for (unsigned i = 0; i < 1024; i++)
                    x[i] = -x[i];
            for (unsigned i = 0; i < 9; i++) /* where exp turns to 0 and infinity, and next to it */
                x[100 + i] = nextafterf(edges[i / 3], i % 3 == 0   ? -INFINITY
                                                      : i % 3 == 1 ? edges[i / 3]
                                                                   : INFINITY);
            scalar()->swiglu(x, one, 1024, want);
            k->swiglu(x, one, 1024, got);
            assert_same_f32(got, want, 1024, "swiglu over exp's range");
            scalar()->geglu(x, one, 1024, want);
            k->geglu(x, one, 1024, got);
            assert_same_f32(got, want, 1024, "geglu over exp's range");
        }
    }
}

/* ---- log-sum-exp ---- */

static void log_sum_exp_right_and_equal(void **state)
{
    (void)state;
    const uint32_t lengths[] = {1, 2, 15, 16, 17, 33, 64, 127, 517, 2049, 4095, 4096};
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        uint32_t n = lengths[i];
        struct edge x = edge_new(n * sizeof(float));
        float *v = x.data;
        double top = -INFINITY, sum = 0;
        for (uint32_t j = 0; j < n; j++) {
            v[j] = random_f32() * 20.0f;
            top = fmax(top, (double)v[j]);
        }
        for (uint32_t j = 0; j < n; j++)
            sum += exp((double)v[j] - top);
        float want = scalar()->log_sum_exp(v, n);
        assert_true(fabs((double)want - (log(sum) + top)) <= 4e-6);
        const struct brig_kernel *k;
        for (unsigned row = 0; (k = other(&row)) != NULL;) {
            assert_true(same_f32(k->log_sum_exp(v, n), scalar()->log_sum_exp(v, n)));
            v[random_below(n)] = -INFINITY;
            assert_true(same_f32(k->log_sum_exp(v, n), scalar()->log_sum_exp(v, n)));
            v[random_below(n)] = NAN;
            assert_true(same_f32(k->log_sum_exp(v, n), scalar()->log_sum_exp(v, n)));
            fill(v, n, false);
        }
        edge_free(&x);
    }
}

/* ---- attention ---- */

/* Numbers as attention meets them, some of them wild: any bits, also as scales. */
static void fill_row(void *row, enum brig_kv_id kv, uint32_t head_dim, bool wild)
{
    uint64_t n = kv == BRIG_KV_Q8 ? brig_kv_quant_bytes(head_dim) / BRIG_KV_GROUP : head_dim;
    float *scales = (float *)(void *)((char *)row + brig_kv_quant_bytes(head_dim));
    for (uint64_t i = 0; i < n; i++) {
        float x = wild && random_below(4000) == 0 ? random_bits() : random_f32() * 2.0f;
        if (kv == BRIG_KV_F32)
            ((float *)row)[i] = x;
        else if (kv == BRIG_KV_F16)
            ((uint16_t *)row)[i] = brig_f32_to_f16(x);
        else
            scales[i] = x / 127.0f;
    }
    for (uint64_t i = 0; kv == BRIG_KV_Q8 && i < brig_kv_quant_bytes(head_dim); i++)
        ((int8_t *)row)[i] = i < head_dim ? (int8_t)((int)random_below(255) - 127) : 0;
}

/* A cache of n_pos rows whose last one ends where a page ends. */
static struct edge cache_edge(enum brig_kv_id kv, size_t stride, uint32_t n_pos, uint32_t head_dim, bool wild)
{
    struct edge e = edge_new((n_pos - 1) * stride + brig_kv_row_bytes(kv, head_dim));
    for (uint32_t p = 0; p < n_pos; p++)
        fill_row((char *)e.data + p * stride, kv, head_dim, wild);
    return e;
}

static size_t some_stride(enum brig_kv_id kv, uint32_t head_dim)
{
    return brig_kv_row_bytes(kv, head_dim) + random_below(20) * (kv == BRIG_KV_F16 ? 2 : 4);
}

static double element(const struct brig_attention *a, const void *data, uint32_t pos, uint32_t i)
{
    const char *row = (const char *)data + pos * a->stride;
    if (a->kv == BRIG_KV_F32)
        return (double)((const float *)(const void *)row)[i];
    if (a->kv == BRIG_KV_F16)
        return (double)brig_f16_to_f32(((const uint16_t *)(const void *)row)[i]);
    const float *scales = (const float *)(const void *)(row + (a->head_dim + 31) / 32 * 32);
    return (double)((const int8_t *)row)[i] * (double)scales[i / 32];
}

/* What is stored as q8 lies within half a step of what it was; what fills the last group up is 0. */
static void kv_rows_are_right(void **state)
{
    (void)state;
    const struct brig_kernel *kernel;
    for (uint32_t dim = 1; dim <= 140; dim++) {
        float x[140], want[160];
        struct brig_attention a = {.kv = BRIG_KV_Q8, .head_dim = dim};
        fill(x, dim, false);
        memset(want, 0x55, sizeof want);
        brig_kv_row_store(scalar(), BRIG_KV_Q8, x, dim, want);
        size_t bytes = (dim + 31) / 32 * 36;
        assert_int_equal(brig_kv_row_bytes(BRIG_KV_Q8, dim), bytes);
        for (uint32_t i = 0; i < dim; i++) {
            double most = 0;
            for (uint32_t k = i / 32 * 32; k < dim && k < i / 32 * 32 + 32; k++)
                most = fmax(most, fabs((double)x[k]));
            assert_true(fabs(element(&a, want, 0, i) - (double)x[i]) <= most / 254 * 1.0001);
        }
        for (uint32_t i = dim; i < (dim + 31) / 32 * 32; i++)
            assert_int_equal(((const int8_t *)(const void *)want)[i], 0);
        for (unsigned row = 0; (kernel = other(&row)) != NULL;)
            for (unsigned kv = 0; kv < BRIG_KV_COUNT; kv++) {
                struct edge got = edge_new(brig_kv_row_bytes((enum brig_kv_id)kv, dim));
                brig_kv_row_store(scalar(), (enum brig_kv_id)kv, x, dim, want);
                brig_kv_row_store(kernel, (enum brig_kv_id)kv, x, dim, got.data);
                assert_memory_equal(got.data, want, brig_kv_row_bytes((enum brig_kv_id)kv, dim));
                edge_free(&got);
            }
    }
}

static void attention_is_right(void **state)
{
    (void)state;
    for (unsigned n = 0; n < 60; n++) {
        enum brig_kv_id kv = n % BRIG_KV_COUNT;
        uint32_t n_pos = 1 + random_below(200), dim = 1 + random_below(100);
        uint32_t first = n % 4 == 0 ? 0 : random_below(n_pos);
        size_t stride = some_stride(kv, dim);
        struct edge k = cache_edge(kv, stride, n_pos, dim, false),
                    v = cache_edge(kv, stride, n_pos, dim, false);
        float q[100], scores[208], out[100];
        double e[200], top = -INFINITY, sum = 0;
        fill(q, dim, false);
        struct brig_attention a = {.n = 1,
                                   .q = {q},
                                   .out = {out},
                                   .first = {first},
                                   .n_pos = {n_pos},
                                   .k = k.data,
                                   .v = v.data,
                                   .kv = kv,
                                   .stride = stride,
                                   .head_dim = dim,
                                   .scale = 0.125f,
                                   .scores = scores,
                                   .scores_stride = 208};
        scalar()->attention(&a);
        for (uint32_t p = first; p < n_pos; p++) {
            e[p] = 0;
            for (uint32_t i = 0; i < dim; i++)
                e[p] += (double)q[i] * element(&a, k.data, p, i) * 0.125;
            top = fmax(top, e[p]);
        }
        for (uint32_t p = first; p < n_pos; p++)
            sum += e[p] = exp(e[p] - top);
        for (uint32_t i = 0; i < dim; i++) {
            double want = 0;
            for (uint32_t p = first; p < n_pos; p++)
                want += e[p] / sum * element(&a, v.data, p, i);
            assert_true(fabs((double)out[i] - want) <= 2e-5);
        }
        edge_free(&k);
        edge_free(&v);
    }
}

/* Queries of rows that follow one another, some of each row, and a window in some cases. */
static void queries_new(struct brig_attention *a, float *q, uint32_t n_pos)
{
    uint32_t heads = 1 + random_below(4), window = random_below(3) == 0 ? 1 + random_below(150) : UINT32_MAX;
    a->n = 1 + random_below(random_below(3) == 0 ? 1 : BRIG_ATTN_QUERIES);
    for (unsigned i = 0; i < a->n; i++) {
        uint32_t back = (a->n - 1 - i) / heads; /* rows after this one */
        uint32_t end = n_pos > back ? n_pos - back : 1;
        a->q[i] = q + i * a->head_dim;
        a->first[i] = end > window ? end - window : 0;
        a->n_pos[i] = end;
    }
}

static uint32_t lowest(const struct brig_attention *a)
{
    uint32_t first = a->first[0];
    for (unsigned i = 1; i < a->n; i++)
        first = a->first[i] < first ? a->first[i] : first;
    return first;
}

/* What no query sees is not read: whole pages of the first n bytes fault. */
static void hide(struct edge *e, size_t n)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), head = (size_t)((char *)e->data - (char *)e->map);
    assert_int_equal(mprotect(e->map, (head + n) / page * page, PROT_NONE), 0);
}

/* A kernel against the scalar one; and each query alone against all together. */
static void attention_compare(const struct brig_kernel *kernel, struct brig_attention a, float *out)
{
    enum { POSITIONS = 416, DIM = 256 };
    static float want_scores[BRIG_ATTN_QUERIES * POSITIONS], want[BRIG_ATTN_QUERIES * DIM];
    static float scores[BRIG_ATTN_QUERIES * POSITIONS];
    struct brig_attention b = a;
    b.scores = want_scores;
    b.scores_stride = POSITIONS;
    a.scores = scores;
    a.scores_stride = (a.n_pos[a.n - 1] + 15) / 16 * 16;
    for (unsigned i = 0; i < a.n; i++) {
        a.out[i] = out + i * a.head_dim;
        b.out[i] = want + i * a.head_dim;
    }
    scalar()->attention(&b);
    kernel->attention(&a);
    for (unsigned i = 0; i < a.n; i++)
        assert_same_f32(scores + i * a.scores_stride + a.first[i],
                        want_scores + (size_t)i * POSITIONS + a.first[i], a.n_pos[i] - a.first[i],
                        "attention weights");
    assert_same_f32(out, want, (size_t)a.n * a.head_dim, "attention");
    for (unsigned i = 0; i < a.n; i++) {
        b.n = 1;
        b.q[0] = a.q[i];
        b.first[0] = a.first[i];
        b.n_pos[0] = a.n_pos[i];
        kernel->attention(&b);
        assert_same_f32(want, out + i * a.head_dim, a.head_dim, "attention of one query");
    }
}

static void attention_equal(void **state)
{
    (void)state;
    const struct brig_kernel *kernel;
    const uint32_t dims[] = {64, 128, 96, 80, 32, 16, 256};
    for (unsigned row = 0; (kernel = other(&row)) != NULL;) {
        for (unsigned n = 0; n < 450; n++) {
            enum brig_kv_id kv = n % BRIG_KV_COUNT;
            bool wild = n % 8 == 7;
            uint32_t n_pos = n < 210 ? 1 + n / 3 : 1 + random_below(400);
            uint32_t dim = n % 4 == 0 ? 1 + random_below(140) : dims[random_below(7)];
            size_t stride = some_stride(kv, dim);
            struct edge q = edge_new(BRIG_ATTN_QUERIES * dim * sizeof(float));
            struct brig_attention a = {.kv = kv, .stride = stride, .head_dim = dim, .scale = 0.125f};
            queries_new(&a, q.data, n_pos);
            struct edge out = edge_new(a.n * dim * sizeof(float));
            struct edge k = cache_edge(kv, stride, n_pos, dim, wild);
            struct edge v = cache_edge(kv, stride, n_pos, dim, wild);
            hide(&k, lowest(&a) * stride);
            hide(&v, lowest(&a) * stride);
            fill(q.data, BRIG_ATTN_QUERIES * dim, false);
            a.k = k.data;
            a.v = v.data;
            attention_compare(kernel, a, out.data);
            edge_free(&k);
            edge_free(&v);
            edge_free(&q);
            edge_free(&out);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quantize_is_right),
        cmocka_unit_test(quantize_equal),
        cmocka_unit_test(elementwise_is_right),
        cmocka_unit_test(elementwise_equal),
        cmocka_unit_test(layer_norm_is_right),
        cmocka_unit_test(gelu_at_the_ends),
        cmocka_unit_test(exp_equal),
        cmocka_unit_test(log_sum_exp_right_and_equal),
        cmocka_unit_test(kv_rows_are_right),
        cmocka_unit_test(attention_is_right),
        cmocka_unit_test(attention_equal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
