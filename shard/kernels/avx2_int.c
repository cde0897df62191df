/*
 * Integer products with AVX2: bytes are multiplied in pairs into 16 bits and only then widened. That is exact
 * because nothing can pass 16 bits: two 5-bit weights give at most 2 * 31 * 127 = 7874, so 4 steps fit; two
 * 6-bit ones 2 * 63 * 127 = 16002, so 2 steps fit; two of Q8_0, taken as magnitude times signed activation,
 * at most 2 * 128 * 127 = 32512. Called by brig_panel_matmul.
 */
#include <string.h>

#include "shard/kernels/vec/blocks.h"

/* A chunk of unpacked weights, shared by all tokens of a tile. */
struct unpacked {
    struct brig_block group[BRIG_PANEL_CHUNK_INT / BRIG_ACT_GROUP];
};

static inline __m256i four(const int8_t *q)
{
    int32_t v;
    memcpy(&v, q, sizeof v);
    return _mm256_set1_epi32(v);
}

static inline bool is_signed(enum brig_type_id id)
{
    return id == BRIG_TYPE_Q8_0 || id == BRIG_TYPE_Q8_0_G16 || id == BRIG_TYPE_Q8_0_G64;
}

/* The exact sum of one group for 8 rows, offset not yet taken off. */
static inline __attribute__((always_inline)) __m256i dot(enum brig_type_id id, const brig_vu u[8],
                                                         const int8_t *q)
{
    const __m256i ones = _mm256_set1_epi16(1);
    __m256i isum = _mm256_setzero_si256();
    for (int c = 0; c < 8; c += 4) {
        __m256i sum16 = _mm256_setzero_si256();
        for (int i = c; i < c + 4; i++) {
            __m256i x = four(q + 4 * i);
            if (is_signed(id)) {
                __m256i products =
                    _mm256_maddubs_epi16(_mm256_abs_epi8((__m256i)u[i]), _mm256_sign_epi8(x, (__m256i)u[i]));
                isum = _mm256_add_epi32(isum, _mm256_madd_epi16(products, ones));
            } else {
                sum16 = _mm256_add_epi16(sum16, _mm256_maddubs_epi16((__m256i)u[i], x));
            }
        }
        if (!is_signed(id))
            isum = _mm256_add_epi32(isum, _mm256_madd_epi16(sum16, ones));
    }
    return isum;
}

static inline __attribute__((always_inline)) __m256 add_group(enum brig_type_id id,
                                                              const struct brig_block *b, const int8_t *q,
                                                              float dx, const int32_t *sum, __m256 acc)
{
    int32_t xsum = sum[0] + sum[1];
    __m256i isum = _mm256_sub_epi32(dot(id, b->u, q), _mm256_set1_epi32(brig_block_offset(id) * xsum));
    acc = _mm256_fmadd_ps(_mm256_cvtepi32_ps(isum), _mm256_mul_ps(b->d, _mm256_set1_ps(dx)), acc);
    if (brig_panel_has_min(id))
        acc = _mm256_fmadd_ps(b->m, _mm256_set1_ps(dx * (float)xsum), acc);
    return acc;
}

static inline void fetch(const uint8_t *p, unsigned bytes)
{
    for (unsigned i = 0; i < bytes; i += 64)
        _mm_prefetch((const char *)p + i, _MM_HINT_T1);
}

static inline __attribute__((always_inline)) void tokens(enum brig_type_id id, const struct unpacked *s,
                                                         const struct brig_act *x, size_t first,
                                                         unsigned n_tokens, size_t col, unsigned n_groups,
                                                         float *acc)
{
    for (unsigned t = 0; t < n_tokens; t++) {
        size_t at = (first + t) * x->cols + col;
        __m256 a = _mm256_load_ps(acc + 8 * t);
        for (unsigned g = 0; g < n_groups; g++)
            a = add_group(id, &s->group[g], x->q + at + g * BRIG_ACT_GROUP, x->d[at / BRIG_ACT_GROUP + g],
                          x->sum + at / 16 + 2 * g, a);
        _mm256_store_ps(acc + 8 * t, a);
    }
}

/* For one token a group stays in registers from its reading to its product. */
static inline __attribute__((always_inline)) void chain_one(enum brig_type_id id, unsigned block_bytes,
                                                            struct brig_panel p, const int8_t *q,
                                                            const float *d, const int32_t *sum,
                                                            unsigned n_groups, float *acc)
{
    __m256 a = _mm256_load_ps(acc);
    for (unsigned g = 0; g < n_groups; g++) {
        struct brig_block b;
        fetch(p.ahead + g * block_bytes * 8, block_bytes * 8);
        brig_block_read(id, p.base + g * block_bytes, p.stride, &b);
        a = add_group(id, &b, q + g * BRIG_ACT_GROUP, d[g], sum + 2 * g, a);
    }
    _mm256_store_ps(acc, a);
}

static inline __attribute__((always_inline)) void chain(enum brig_type_id id, unsigned block_bytes,
                                                        struct brig_panel p, const struct brig_act *x,
                                                        size_t first, unsigned n_tokens, size_t col,
                                                        unsigned n_groups, float *acc)
{
    size_t at = first * x->cols + col;
    if (n_tokens == 1) {
        chain_one(id, block_bytes, p, x->q + at, x->d + at / BRIG_ACT_GROUP, x->sum + at / 16, n_groups, acc);
        return;
    }
    struct unpacked s;
    for (unsigned g = 0; g < n_groups; g++)
        brig_block_read(id, p.base + g * block_bytes, p.stride, &s.group[g]);
    tokens(id, &s, x, first, n_tokens, col, n_groups, acc);
}

/* A chunk is one block of Q4_K or Q5_K. */
static inline __attribute__((always_inline)) void chain_k(enum brig_type_id id, unsigned block_bytes,
                                                          struct brig_panel p, const struct brig_act *x,
                                                          size_t first, unsigned n_tokens, size_t col,
                                                          float *acc)
{
    struct unpacked s;
    if (n_tokens == 1)
        fetch(p.ahead, block_bytes * 8);
    brig_block_read_k(id, p.base, p.stride, s.group);
    tokens(id, &s, x, first, n_tokens, col, BRIG_PANEL_CHUNK_INT / BRIG_ACT_GROUP, acc);
}

/* The exact sum of 16 columns, offset not yet taken off. */
static inline __attribute__((always_inline)) __m256i dot_16(enum brig_type_id id, const brig_vu u[4],
                                                            const int8_t *q)
{
    const __m256i ones = _mm256_set1_epi16(1);
    __m256i isum = _mm256_setzero_si256();
    for (int c = 0; c < 4; c += 2) {
        __m256i x0 = four(q + 4 * c), x1 = four(q + 4 * c + 4);
        if (is_signed(id)) {
            __m256i p0 =
                _mm256_maddubs_epi16(_mm256_abs_epi8((__m256i)u[c]), _mm256_sign_epi8(x0, (__m256i)u[c]));
            __m256i p1 = _mm256_maddubs_epi16(_mm256_abs_epi8((__m256i)u[c + 1]),
                                              _mm256_sign_epi8(x1, (__m256i)u[c + 1]));
            isum = _mm256_add_epi32(isum, _mm256_madd_epi16(p0, ones));
            isum = _mm256_add_epi32(isum, _mm256_madd_epi16(p1, ones));
        } else {
            __m256i sum16 = _mm256_add_epi16(_mm256_maddubs_epi16((__m256i)u[c], x0),
                                             _mm256_maddubs_epi16((__m256i)u[c + 1], x1));
            isum = _mm256_add_epi32(isum, _mm256_madd_epi16(sum16, ones));
        }
    }
    return isum;
}

static inline __attribute__((always_inline)) void
tokens_16(enum brig_type_id id, const struct brig_block16 *s, const struct brig_act *x, size_t first,
          unsigned n_tokens, size_t col, unsigned n_groups, float *acc)
{
    for (unsigned t = 0; t < n_tokens; t++) {
        size_t at = (first + t) * x->cols + col;
        __m256 a = _mm256_load_ps(acc + 8 * t);
        for (unsigned g = 0; g < n_groups; g++) {
            int32_t xsum = x->sum[at / 16 + g];
            float dx = x->d[at / BRIG_ACT_GROUP + g / 2];
            __m256i isum = _mm256_sub_epi32(dot_16(id, s[g].u, x->q + at + 16 * g),
                                            _mm256_set1_epi32(brig_block_offset(id) * xsum));
            a = _mm256_fmadd_ps(_mm256_cvtepi32_ps(isum), _mm256_mul_ps(s[g].d, _mm256_set1_ps(dx)), a);
            if (brig_panel_has_min(id))
                a = _mm256_fmadd_ps(s[g].m, _mm256_set1_ps(dx * (float)xsum), a);
        }
        _mm256_store_ps(acc + 8 * t, a);
    }
}

/* A chunk is one block of Q6_K: groups of 16 columns. */
static void chain_q6_k(struct brig_panel p, const struct brig_act *x, size_t first, unsigned n_tokens,
                       size_t col, float *acc)
{
    struct brig_block16 s[BRIG_PANEL_CHUNK_INT / 16];
    if (n_tokens == 1)
        fetch(p.ahead, 210 * 8);
    brig_block_read_q6_k(p.base, p.stride, s);
    tokens_16(BRIG_TYPE_Q6_K, s, x, first, n_tokens, col, BRIG_PANEL_CHUNK_INT / 16, acc);
}

/* n_groups: of 32 columns, a block of a _G16 type each. */
static inline __attribute__((always_inline)) void chain_16(enum brig_type_id id, unsigned block_bytes,
                                                           struct brig_panel p, const struct brig_act *x,
                                                           size_t first, unsigned n_tokens, size_t col,
                                                           unsigned n_groups, float *acc)
{
    struct brig_block16 s[BRIG_PANEL_CHUNK_INT / 16];
    if (n_tokens == 1)
        fetch(p.ahead, n_groups * block_bytes * 8);
    for (unsigned g = 0; g < n_groups; g++)
        brig_block_read_16(id, p.base + g * block_bytes, p.stride, s + 2 * g);
    tokens_16(id, s, x, first, n_tokens, col, 2 * n_groups, acc);
}

/* n_groups: of 32 columns, two of them a block of a _G64 type. */
static inline __attribute__((always_inline)) void chain_64(enum brig_type_id id, unsigned block_bytes,
                                                           struct brig_panel p, const struct brig_act *x,
                                                           size_t first, unsigned n_tokens, size_t col,
                                                           unsigned n_groups, float *acc)
{
    struct unpacked s;
    if (n_tokens == 1)
        fetch(p.ahead, n_groups / 2 * block_bytes * 8);
    for (unsigned g = 0; g < n_groups; g += 2)
        brig_block_read_64(id, p.base + g / 2 * block_bytes, p.stride, s.group + g);
    tokens(id, &s, x, first, n_tokens, col, n_groups, acc);
}

void brig_avx2_chain_int(enum brig_type_id id, struct brig_panel p, const struct brig_act *x, size_t first,
                         unsigned n_tokens, size_t col, unsigned n_cols, float *acc)
{
    unsigned n_groups = n_cols / BRIG_ACT_GROUP;
    switch (id) {
    case BRIG_TYPE_Q4_0:
        chain(BRIG_TYPE_Q4_0, 18, p, x, first, n_tokens, col, n_groups, acc);
        break;
    case BRIG_TYPE_Q4_1:
        chain(BRIG_TYPE_Q4_1, 20, p, x, first, n_tokens, col, n_groups, acc);
        break;
    case BRIG_TYPE_Q5_0:
        chain(BRIG_TYPE_Q5_0, 22, p, x, first, n_tokens, col, n_groups, acc);
        break;
    case BRIG_TYPE_Q5_1:
        chain(BRIG_TYPE_Q5_1, 24, p, x, first, n_tokens, col, n_groups, acc);
        break;
    case BRIG_TYPE_Q4_K:
        chain_k(BRIG_TYPE_Q4_K, 144, p, x, first, n_tokens, col, acc);
        break;
    case BRIG_TYPE_Q5_K:
        chain_k(BRIG_TYPE_Q5_K, 176, p, x, first, n_tokens, col, acc);
        break;
    case BRIG_TYPE_Q6_K:
        chain_q6_k(p, x, first, n_tokens, col, acc);
        break;
    case BRIG_TYPE_Q8_0_G16:
        chain_16(BRIG_TYPE_Q8_0_G16, 36, p, x, first, n_tokens, col, n_groups, acc);
        break;
    case BRIG_TYPE_Q4_0_G16:
        chain_16(BRIG_TYPE_Q4_0_G16, 20, p, x, first, n_tokens, col, n_groups, acc);
        break;
    case BRIG_TYPE_Q4_1_G16:
        chain_16(BRIG_TYPE_Q4_1_G16, 24, p, x, first, n_tokens, col, n_groups, acc);
        break;
    case BRIG_TYPE_Q8_0_G64:
        chain_64(BRIG_TYPE_Q8_0_G64, 66, p, x, first, n_tokens, col, n_groups, acc);
        break;
    case BRIG_TYPE_Q4_0_G64:
        chain_64(BRIG_TYPE_Q4_0_G64, 34, p, x, first, n_tokens, col, n_groups, acc);
        break;
    case BRIG_TYPE_Q4_1_G64:
        chain_64(BRIG_TYPE_Q4_1_G64, 36, p, x, first, n_tokens, col, n_groups, acc);
        break;
    default:
        chain(BRIG_TYPE_Q8_0, 34, p, x, first, n_tokens, col, n_groups, acc);
        break;
    }
}
