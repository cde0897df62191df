/*
 * Attention of several queries over the cache of one KV head, which they read together. Scores: the 16 chains
 * of a position lie in lanes, a tile of queries times positions at a time, and as many positions as there are
 * lanes are joined at once by a tree of adjacent pairs. Weighted sums: lanes are elements of the head,
 * positions in order, a tile of queries at a time. Called through the kernel table.
 */
#include <math.h>
#include <string.h>

#include "shard/kernels/vec/exp.h"

enum {
    TILE = BRIG_LANES >= 16 ? 4 : 2, /* queries, and positions, whose sums find room in the registers */
    WIDE = 4                         /* vectors of the output that share one pass over the positions */
};

/* How rows lie in the cache: known where the loops are compiled, once for each type. */
struct form {
    enum brig_kv_id kv;
    size_t scales; /* q8: where in a row they begin */
};

/* Of a q8 row: no vector crosses a group. */
static inline __attribute__((always_inline)) brig_vf load_q8(const void *row, struct form f, size_t i)
{
    float scale;
    memcpy(&scale, (const char *)row + f.scales + i / BRIG_KV_GROUP * sizeof scale, sizeof scale);
    return brig_vf_load_i8((const int8_t *)row + i) * brig_vf_set1(scale);
}

/* Elements [i, i + n) of a row of the cache: n a vector, or fewer. */
static inline __attribute__((always_inline)) brig_vf load(const void *row, struct form f, size_t i)
{
    if (f.kv == BRIG_KV_Q8)
        return load_q8(row, f, i);
    return f.kv == BRIG_KV_F32 ? brig_vf_load((const float *)row + i)
                               : brig_vf_load_f16((const uint16_t *)row + i);
}

static inline __attribute__((always_inline)) brig_vf load_n(const void *row, struct form f, size_t i,
                                                            size_t n)
{
    if (f.kv == BRIG_KV_Q8) /* the last group is whole: what is beyond n is there, and not looked at */
        return load_q8(row, f, i);
    return f.kv == BRIG_KV_F32 ? brig_vf_load_n((const float *)row + i, n)
                               : brig_vf_load_f16_n((const uint16_t *)row + i, n);
}

static inline const void *row_at(const void *base, size_t stride, uint32_t pos)
{
    return (const char *)base + pos * stride;
}

/* The queries of a tile and all positions that any of them sees. */
struct tile {
    const struct brig_attention *a;
    unsigned query; /* number of the first */
    uint32_t first, n_pos;
};

static struct tile tile_at(const struct brig_attention *a, unsigned query, unsigned n)
{
    struct tile t = {a, query, a->first[query], a->n_pos[query]};
    for (unsigned i = query + 1; i < query + n; i++) {
        t.first = a->first[i] < t.first ? a->first[i] : t.first;
        t.n_pos = a->n_pos[i] > t.n_pos ? a->n_pos[i] : t.n_pos;
    }
    return t;
}

static inline float *scores_at(const struct tile *t, unsigned i)
{
    return t->a->scores + (t->query + i) * t->a->scores_stride;
}

enum { ALL = BRIG_LANES * BRIG_PARTS }; /* vectors of chains that a tree joins */

/* Of a head whose width is no multiple of the chains, the last elements, from i on: added to v. A lane
 * without an element keeps its sum untouched. */
static __attribute__((noinline)) void last_chains(unsigned n_queries, const float *const *q, struct form f,
                                                  const void *const rows[TILE], uint32_t i, uint32_t dim,
                                                  brig_vf *v)
{
    for (unsigned part = 0; part < BRIG_PARTS && i < dim; part++, i += BRIG_LANES)
        for (unsigned p = 0; p < TILE; p++) {
            brig_vf x = load_n(rows[p], f, i, dim - i);
            for (unsigned n = 0; n < n_queries; n++) {
                brig_vf *old = &v[n * ALL + p * BRIG_PARTS + part];
                brig_vf sum = brig_vf_fma(brig_vf_load_n(q[n] + i, dim - i), x, *old);
                *old = brig_vf_keep_n(*old, sum, dim - i);
            }
        }
}

/* The chains of N queries over TILE positions, to v[query * ALL + position, part]. */
static inline __attribute__((always_inline)) void
chains(const unsigned N, const struct tile *t, struct form f, const void *const rows[TILE], brig_vf *v)
{
    brig_vf acc[TILE * TILE * BRIG_PARTS];
    const float *const *q = t->a->q + t->query;
    uint32_t i = 0, dim = t->a->head_dim;
    for (unsigned k = 0; k < N * TILE * BRIG_PARTS; k++)
        acc[k] = brig_vf_zero();
    for (; i + BRIG_CHAINS <= dim; i += BRIG_CHAINS)
        for (unsigned k = 0; k < TILE * BRIG_PARTS; k++) {
            uint32_t at = i + k % BRIG_PARTS * BRIG_LANES;
            brig_vf x = load(rows[k / BRIG_PARTS], f, at);
            for (unsigned n = 0; n < N; n++)
                acc[n * TILE * BRIG_PARTS + k] =
                    brig_vf_fma(brig_vf_load(q[n] + at), x, acc[n * TILE * BRIG_PARTS + k]);
        }
    for (unsigned n = 0; n < N; n++)
        for (unsigned k = 0; k < TILE * BRIG_PARTS; k++)
            v[n * ALL + k] = acc[n * TILE * BRIG_PARTS + k];
    if (i < dim)
        last_chains(N, q, f, rows, i, dim, v);
}

/* Scores of a query, from p on; those of positions that it does not see do not count. */
static inline __attribute__((always_inline)) void keep_scores(const struct tile *t, unsigned i, uint32_t p,
                                                              brig_vf s, brig_vf *tops, float *top)
{
    uint32_t first = t->a->first[t->query + i], n_pos = t->a->n_pos[t->query + i];
    float *scores = scores_at(t, i);
    brig_vf_store(scores + p, s);
    if (p >= first && n_pos - first >= BRIG_LANES && p <= n_pos - BRIG_LANES) {
        *tops = brig_vf_larger(s, *tops); /* a score that is no number leaves the maximum alone */
        return;
    }
    for (uint32_t k = p > first ? p : first; k < p + BRIG_LANES && k < n_pos; k++)
        *top = scores[k] > *top ? scores[k] : *top;
}

/* The scores of N queries, and the largest of each. */
static inline __attribute__((always_inline)) void scores_of(const unsigned N, const struct tile *t,
                                                            struct form f, float *top)
{
    const struct brig_attention *a = t->a;
    brig_vf tops[TILE];
    for (unsigned n = 0; n < N; n++) {
        tops[n] = brig_vf_set1(-INFINITY);
        top[n] = -INFINITY;
    }
    for (uint32_t p = t->first / BRIG_CHAINS * BRIG_CHAINS; p < t->n_pos; p += BRIG_LANES) {
        brig_vf v[TILE * ALL];
        if (p + BRIG_LANES <= t->first)
            continue;
        for (uint32_t i = 0; i < BRIG_LANES; i += TILE) {
            const void *rows[TILE];
            for (uint32_t k = 0; k < TILE; k++) { /* outside: a position that is there */
                uint32_t pos = p + i + k;
                pos = pos < t->first ? t->first : pos < t->n_pos ? pos : t->n_pos - 1;
                rows[k] = row_at(a->k, a->stride, pos);
            }
            chains(N, t, f, rows, v + i * BRIG_PARTS);
        }
        for (unsigned n = 0; n < N; n++)
            keep_scores(t, n, p, brig_vf_tree16(v + n * ALL) * a->scale, &tops[n], &top[n]);
    }
    for (unsigned n = 0; n < N; n++) {
        float lane[BRIG_LANES];
        brig_vf_store(lane, tops[n]);
        for (unsigned i = 0; i < BRIG_LANES; i++)
            top[n] = lane[i] > top[n] ? lane[i] : top[n];
    }
}

/* The columns of V that a pass works on: N vectors, or one of n elements. */
struct columns {
    size_t at, n;
    bool whole;
};

/* One position's part in the block sums of a query: C vectors of V times its weight; and the weight. */
static inline __attribute__((always_inline)) void add_position(const unsigned C, brig_vf e, const brig_vf *x,
                                                               brig_vf *block, brig_vf *weight)
{
    for (unsigned k = 0; k < C; k++)
        block[k] = brig_vf_fma(e, x[k], block[k]);
    *weight += e;
}

static inline __attribute__((always_inline)) void
load_columns(const unsigned C, const struct tile *t, struct form f, uint32_t p, struct columns c, brig_vf *x)
{
    const void *row = row_at(t->a->v, t->a->stride, p);
    for (unsigned k = 0; k < C; k++)
        x[k] = c.whole ? load(row, f, c.at + k * BRIG_LANES) : load_n(row, f, c.at, c.n);
}

/* Positions [p, end) for one query of the tile. */
static inline __attribute__((always_inline)) void add_alone(const unsigned C, const struct tile *t,
                                                            struct form f, struct columns c, unsigned i,
                                                            uint32_t p, uint32_t end, brig_vf *block,
                                                            brig_vf *weight)
{
    for (; p < end; p++) {
        brig_vf x[WIDE];
        load_columns(C, t, f, p, c, x);
        add_position(C, brig_vf_set1(scores_at(t, i)[p]), x, block, weight);
    }
}

static inline uint32_t larger(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

static inline uint32_t smaller(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* Positions [begin, end) of a block: what each query sees of them in order, those that all see together. */
static inline __attribute__((always_inline)) void block_of(const unsigned N, const unsigned C,
                                                           const struct tile *t, struct form f,
                                                           struct columns c, uint32_t begin, uint32_t end,
                                                           brig_vf block[][WIDE], brig_vf *weight)
{
    const uint32_t *first = t->a->first + t->query, *n_pos = t->a->n_pos + t->query;
    uint32_t from = begin, to = end;
    for (unsigned n = 0; n < N; n++) {
        from = larger(from, first[n]);
        to = smaller(to, n_pos[n]);
    }
    from = smaller(from, end);
    to = larger(from, to);
    for (unsigned n = 0; n < N; n++)
        add_alone(C, t, f, c, n, larger(begin, first[n]), smaller(from, n_pos[n]), block[n], &weight[n]);
    for (uint32_t p = from; p < to; p++) {
        brig_vf x[WIDE];
        load_columns(C, t, f, p, c, x);
        for (unsigned n = 0; n < N; n++)
            add_position(C, brig_vf_set1(scores_at(t, n)[p]), x, block[n], &weight[n]);
    }
    for (unsigned n = 0; n < N; n++)
        add_alone(C, t, f, c, n, larger(to, first[n]), smaller(end, n_pos[n]), block[n], &weight[n]);
}

/* C vectors of the output of N queries: total over blocks of the block's weighted sum, over the sum of the
 * weights. A block of which a query sees nothing adds 0, which changes no total. */
static inline __attribute__((always_inline)) void
weighted(const unsigned N, const unsigned C, const struct tile *t, struct form f, struct columns c)
{
    brig_vf total[TILE][WIDE], sum[TILE];
    for (unsigned n = 0; n < N; n++) {
        sum[n] = brig_vf_zero();
        for (unsigned k = 0; k < C; k++)
            total[n][k] = brig_vf_zero();
    }
    for (uint32_t p = t->first; p < t->n_pos;) {
        brig_vf block[TILE][WIDE], weight[TILE];
        uint32_t end = brig_attn_block_end(p, t->n_pos);
        for (unsigned n = 0; n < N; n++) {
            weight[n] = brig_vf_zero();
            for (unsigned k = 0; k < C; k++)
                block[n][k] = brig_vf_zero();
        }
        block_of(N, C, t, f, c, p, end, block, weight);
        for (unsigned n = 0; n < N; n++) {
            sum[n] += weight[n];
            for (unsigned k = 0; k < C; k++)
                total[n][k] += block[n][k];
        }
        p = end;
    }
    for (unsigned n = 0; n < N; n++)
        for (unsigned k = 0; k < C; k++)
            brig_vf_store_n(t->a->out[t->query + n] + c.at + k * BRIG_LANES, total[n][k] / sum[n],
                            c.n - k * BRIG_LANES);
}

static inline __attribute__((always_inline)) void tile(const unsigned N, const struct brig_attention *a,
                                                       struct form f, unsigned query)
{
    const struct tile t = tile_at(a, query, N);
    float top[TILE];
    scores_of(N, &t, f, top);
    for (unsigned n = 0; n < N; n++) {
        float *e = scores_at(&t, n);
        uint32_t end = a->n_pos[query + n];
        for (uint32_t p = a->first[query + n]; p < end; p += BRIG_LANES)
            brig_vf_store_n(e + p, brig_vf_exp(brig_vf_load_n(e + p, end - p) - top[n]), end - p);
    }
    size_t i = 0;
    for (; i + WIDE * BRIG_LANES <= a->head_dim; i += WIDE * BRIG_LANES)
        weighted(N, WIDE, &t, f, (struct columns){i, WIDE * BRIG_LANES, true});
    for (; i < a->head_dim; i += BRIG_LANES)
        weighted(N, 1, &t, f, (struct columns){i, a->head_dim - i, false});
}

static inline __attribute__((always_inline)) void attention(const struct brig_attention *a, struct form f)
{
    unsigned query = 0;
    for (; TILE > 2 && query + TILE <= a->n; query += TILE)
        tile(TILE, a, f, query);
    for (; query + 2 <= a->n; query += 2)
        tile(2, a, f, query);
    if (query < a->n)
        tile(1, a, f, query);
}

void BRIG_ISA(attention)(const struct brig_attention *a)
{
    switch (a->kv) {
    case BRIG_KV_Q8:
        attention(a, (struct form){BRIG_KV_Q8, brig_kv_quant_bytes(a->head_dim)});
        break;
    case BRIG_KV_F32:
        attention(a, (struct form){.kv = BRIG_KV_F32});
        break;
    default:
        attention(a, (struct form){.kv = BRIG_KV_F16});
    }
}
