/*
 * Interleaved matrices (proto/model/r16.h) with AVX2: a panel is one half of the 16 rows, and a vector of
 * weights one load. Called by brig_panel_matmul. Why nothing passes 16 bits: avx2_int.c.
 */
#include "shard/kernels/vec/vec.h"

#include "proto/model/r16.h"

/* A block of 8 rows, vector c of lane r having columns 4 c..4 c + 3 of row r: bytes of Q8_0 signed, those of
 * 4 bits unsigned, a value being byte - offset_of. */
struct block {
    __m256i u[8];
    __m256 d, m;
};

static inline __attribute__((always_inline)) unsigned bytes_of(enum brig_type_id id)
{
    return BRIG_R16_ROWS * (id == BRIG_TYPE_Q8_0_R16 ? 34 : id == BRIG_TYPE_Q4_1_R16 ? 20 : 18);
}

static inline __attribute__((always_inline)) int offset_of(enum brig_type_id id)
{
    return id == BRIG_TYPE_Q4_0_R16 ? 8 : 0;
}

static inline __attribute__((always_inline)) struct block read(enum brig_type_id id, const uint8_t *p,
                                                               unsigned row)
{
    const __m256i low = _mm256_set1_epi8(15);
    struct block b;
    b.d = b.m = _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(p + 2 * row)));
    p += 32;
    if (brig_panel_has_min(id)) {
        b.m = _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(p + 2 * row)));
        p += 32;
    }
    for (int c = 0; c < (id == BRIG_TYPE_Q8_0_R16 ? 8 : 4); c++) {
        __m256i v = _mm256_loadu_si256((const __m256i *)(p + 64 * c + 4 * row));
        if (id == BRIG_TYPE_Q8_0_R16) {
            b.u[c] = v;
        } else {
            b.u[c] = _mm256_and_si256(v, low);
            b.u[c + 4] = _mm256_and_si256(_mm256_srli_epi32(v, 4), low);
        }
    }
    return b;
}

static inline __m256i four(const int8_t *q)
{
    int32_t v;
    memcpy(&v, q, sizeof v);
    return _mm256_set1_epi32(v);
}

/* The exact sum of a group, offset not yet taken off. */
static inline __attribute__((always_inline)) __m256i dot(enum brig_type_id id, const struct block *b,
                                                         const int8_t *q)
{
    const __m256i ones = _mm256_set1_epi16(1);
    __m256i isum = _mm256_setzero_si256();
    for (int c = 0; c < 8; c += 4) {
        __m256i sum16 = _mm256_setzero_si256();
        for (int i = c; i < c + 4; i++) {
            __m256i x = four(q + 4 * i);
            if (id == BRIG_TYPE_Q8_0_R16) {
                __m256i products =
                    _mm256_maddubs_epi16(_mm256_abs_epi8(b->u[i]), _mm256_sign_epi8(x, b->u[i]));
                isum = _mm256_add_epi32(isum, _mm256_madd_epi16(products, ones));
            } else {
                sum16 = _mm256_add_epi16(sum16, _mm256_maddubs_epi16(b->u[i], x));
            }
        }
        if (id != BRIG_TYPE_Q8_0_R16)
            isum = _mm256_add_epi32(isum, _mm256_madd_epi16(sum16, ones));
    }
    return isum;
}

static inline __attribute__((always_inline)) void tokens(enum brig_type_id id, const struct block *s,
                                                         const struct brig_act *x, size_t first,
                                                         unsigned n_tokens, size_t col, unsigned n_groups,
                                                         float *acc)
{
    for (unsigned t = 0; t < n_tokens; t++) {
        size_t at = (first + t) * x->cols + col;
        __m256 a = _mm256_load_ps(acc + 8 * t);
        for (unsigned g = 0; g < n_groups; g++) {
            int32_t xsum = x->sum[at / 16 + 2 * g] + x->sum[at / 16 + 2 * g + 1];
            float dx = x->d[at / BRIG_ACT_GROUP + g];
            __m256i isum = _mm256_sub_epi32(dot(id, &s[g], x->q + at + g * BRIG_ACT_GROUP),
                                            _mm256_set1_epi32(offset_of(id) * xsum));
            a = _mm256_fmadd_ps(_mm256_cvtepi32_ps(isum), _mm256_mul_ps(s[g].d, _mm256_set1_ps(dx)), a);
            if (brig_panel_has_min(id))
                a = _mm256_fmadd_ps(s[g].m, _mm256_set1_ps(dx * (float)xsum), a);
        }
        _mm256_store_ps(acc + 8 * t, a);
    }
}

/* The rows' two halves, one after the other: the second finds in the cache what the first has read. */
static inline __attribute__((always_inline)) void chain(enum brig_type_id id, const uint8_t *blocks,
                                                        const uint8_t *ahead, const struct brig_act *x,
                                                        size_t first, unsigned n_tokens, size_t col,
                                                        unsigned n_groups, float *acc)
{
    struct block s[BRIG_PANEL_CHUNK_INT / BRIG_ACT_GROUP];
    for (unsigned row = 0; row < BRIG_R16_ROWS; row += 8, acc += 8 * n_tokens) {
        for (unsigned g = 0; g < n_groups; g++) {
            for (unsigned i = 0; row == 0 && i < bytes_of(id); i += 64)
                _mm_prefetch((const char *)ahead + g * bytes_of(id) + i, _MM_HINT_T1);
            s[g] = read(id, blocks + g * bytes_of(id), row);
        }
        tokens(id, s, x, first, n_tokens, col, n_groups, acc);
    }
}

void brig_avx2_chain_r16_int(enum brig_type_id id, const uint8_t *blocks, const uint8_t *ahead,
                             const struct brig_act *x, size_t first, unsigned n_tokens, size_t col,
                             unsigned n_cols, float *acc)
{
    unsigned n_groups = n_cols / BRIG_ACT_GROUP;
    switch (id) {
    case BRIG_TYPE_Q4_0_R16:
        chain(BRIG_TYPE_Q4_0_R16, blocks, ahead, x, first, n_tokens, col, n_groups, acc);
        break;
    case BRIG_TYPE_Q4_1_R16:
        chain(BRIG_TYPE_Q4_1_R16, blocks, ahead, x, first, n_tokens, col, n_groups, acc);
        break;
    default:
        chain(BRIG_TYPE_Q8_0_R16, blocks, ahead, x, first, n_tokens, col, n_groups, acc);
        break;
    }
}
