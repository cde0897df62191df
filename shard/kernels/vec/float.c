/*
 * Float products: a chunk of a panel's rows is widened (or dequantised) and transposed to one vector a
 * column, then every token's chain goes over the columns in order. Called by brig_panel_matmul for F32, F16
 * and BF16 weights, and for all types when activations are f32.
 */
#include "shard/kernels/vec/blocks.h"

enum { HALF_COLS = 8, FULL_COLS = 4 }; /* columns in 16 bytes */

static void read_f32(struct brig_panel p, unsigned n_cols, brig_vf *w)
{
    for (unsigned c = 0; c < n_cols; c += FULL_COLS) {
        brig_vu t[4];
        brig_vu_transpose(p.base + c * sizeof(float), p.stride, t);
        for (unsigned i = 0; i < 4; i++)
            w[c + i] = (brig_vf)t[i];
    }
}

static void read_f16(struct brig_panel p, unsigned n_cols, brig_vf *w)
{
    for (unsigned c = 0; c < n_cols; c += HALF_COLS) {
        brig_vu t[4];
        brig_vu_transpose(p.base + c * sizeof(uint16_t), p.stride, t);
        for (unsigned i = 0; i < 4; i++) {
            w[c + 2 * i] = brig_vu_half(t[i]);
            w[c + 2 * i + 1] = brig_vu_half(t[i] >> 16);
        }
    }
}

static void read_bf16(struct brig_panel p, unsigned n_cols, brig_vf *w)
{
    for (unsigned c = 0; c < n_cols; c += HALF_COLS) {
        brig_vu t[4];
        brig_vu_transpose(p.base + c * sizeof(uint16_t), p.stride, t);
        for (unsigned i = 0; i < 4; i++) {
            w[c + 2 * i] = (brig_vf)(t[i] << 16);
            w[c + 2 * i + 1] = (brig_vf)(t[i] & 0xffff0000u);
        }
    }
}

/* As the types' own dequant: integer times scale, then plus minimum, each rounded. */
static inline __attribute__((always_inline)) void widen(enum brig_type_id id, const struct brig_block *b,
                                                        brig_vf *w)
{
    bool is_signed = id == BRIG_TYPE_Q8_0 || id == BRIG_TYPE_Q8_0_R16;
    for (unsigned i = 0; i < 32; i++) {
        unsigned at = 8 * (i % 4);
        brig_vi v = is_signed ? (brig_vi)(b->u[i / 4] << (24 - at)) >> 24
                              : (brig_vi)((b->u[i / 4] >> at) & 255u) - brig_block_offset(id);
        w[i] = __builtin_convertvector(v, brig_vf) * b->d;
        if (brig_panel_has_min(id))
            w[i] += b->m;
    }
}

static inline __attribute__((always_inline)) void
read_blocks(enum brig_type_id id, unsigned block_bytes, struct brig_panel p, unsigned n_cols, brig_vf *w)
{
    for (unsigned g = 0; g < n_cols / 32; g++) {
        struct brig_block b;
        brig_block_read(id, p.base + g * block_bytes, p.stride, &b);
        widen(id, &b, w + 32 * g);
    }
}

static inline __attribute__((always_inline)) void read_r16(enum brig_type_id id, const uint8_t *blocks,
                                                           unsigned row, unsigned n_cols, brig_vf *w)
{
    for (unsigned g = 0; g < n_cols / BRIG_R16_COLS; g++) {
        struct brig_block b;
        brig_block_read_r16(id, blocks + g * brig_block_r16_bytes(id), row, &b);
        widen(id, &b, w + BRIG_R16_COLS * g);
    }
}

static void read_weights(enum brig_type_id id, struct brig_panel p, unsigned n_cols, brig_vf *w)
{
    switch (id) {
    case BRIG_TYPE_F32:
        read_f32(p, n_cols, w);
        break;
    case BRIG_TYPE_F16:
        read_f16(p, n_cols, w);
        break;
    case BRIG_TYPE_BF16:
        read_bf16(p, n_cols, w);
        break;
    case BRIG_TYPE_Q4_0:
        read_blocks(BRIG_TYPE_Q4_0, 18, p, n_cols, w);
        break;
    case BRIG_TYPE_Q4_1:
        read_blocks(BRIG_TYPE_Q4_1, 20, p, n_cols, w);
        break;
    case BRIG_TYPE_Q5_0:
        read_blocks(BRIG_TYPE_Q5_0, 22, p, n_cols, w);
        break;
    case BRIG_TYPE_Q5_1:
        read_blocks(BRIG_TYPE_Q5_1, 24, p, n_cols, w);
        break;
    default:
        read_blocks(BRIG_TYPE_Q8_0, 34, p, n_cols, w);
        break;
    }
}

/* N tokens, N a constant: their sums stay in registers while the weights pass by. */
static inline __attribute__((always_inline)) void tile(const int N, const brig_vf *w, const float *f,
                                                       size_t cols, unsigned n_cols, float *acc)
{
    brig_vf a[8];
    for (int k = 0; k < N; k++)
        a[k] = brig_vf_load(acc + (unsigned)k * BRIG_LANES);
    for (unsigned c = 0; c < n_cols; c++)
        for (int k = 0; k < N; k++)
            a[k] = brig_vf_fma(w[c], brig_vf_set1(f[(size_t)k * cols + c]), a[k]);
    for (int k = 0; k < N; k++)
        brig_vf_store(acc + (unsigned)k * BRIG_LANES, a[k]);
}

void BRIG_ISA(columns)(const brig_vf *w, const struct brig_act *x, size_t first, unsigned n_tokens,
                       size_t col, unsigned n_cols, float *acc)
{
    const float *f = x->f + first * x->cols + col;
    unsigned t = 0;
    for (; t + 8 <= n_tokens; t += 8)
        tile(8, w, f + t * (size_t)x->cols, x->cols, n_cols, acc + BRIG_LANES * t);
    if (t + 4 <= n_tokens) {
        tile(4, w, f + t * (size_t)x->cols, x->cols, n_cols, acc + BRIG_LANES * t);
        t += 4;
    }
    for (; t < n_tokens; t++)
        tile(1, w, f + t * (size_t)x->cols, x->cols, n_cols, acc + BRIG_LANES * t);
}

void BRIG_ISA(chain_float)(enum brig_type_id id, struct brig_panel p, const struct brig_act *x, size_t first,
                           unsigned n_tokens, size_t col, unsigned n_cols, float *acc)
{
    brig_vf w[BRIG_PANEL_CHUNK_FLOAT];
    read_weights(id, p, n_cols, w);
    BRIG_ISA(columns)(w, x, first, n_tokens, col, n_cols, acc);
}

void BRIG_ISA(chain_r16_float)(enum brig_type_id id, const uint8_t *blocks, const uint8_t *ahead,
                               const struct brig_act *x, size_t first, unsigned n_tokens, size_t col,
                               unsigned n_cols, float *acc)
{
    brig_vf w[BRIG_PANEL_CHUNK_FLOAT];
    (void)ahead;
    for (unsigned row = 0; row < BRIG_R16_ROWS; row += BRIG_LANES, acc += BRIG_LANES * n_tokens) {
        switch (id) {
        case BRIG_TYPE_Q4_0_R16:
            read_r16(BRIG_TYPE_Q4_0_R16, blocks, row, n_cols, w);
            break;
        case BRIG_TYPE_Q4_1_R16:
            read_r16(BRIG_TYPE_Q4_1_R16, blocks, row, n_cols, w);
            break;
        default:
            read_r16(BRIG_TYPE_Q8_0_R16, blocks, row, n_cols, w);
            break;
        }
        BRIG_ISA(columns)(w, x, first, n_tokens, col, n_cols, acc);
    }
}
