/* The row of the kernel table that this instruction set is. */
#include "shard/kernels/kernel.h"
#include "shard/kernels/vec/vec.h"

static void matmul(const struct brig_matrix *w, uint64_t row_begin, uint64_t row_end,
                   const struct brig_act *x, float *y, size_t y_stride)
{
    const struct brig_panel_ops ops = {
        .rows = BRIG_LANES,
        .rows_many = BRIG_MANY_ROWS,
        .integer = BRIG_ISA(chain_int),
        .floats = BRIG_ISA(chain_float),
        .packed = BRIG_ISA(chain_packed),
        .r16_integer = BRIG_ISA(chain_r16_int),
        .r16_floats = BRIG_ISA(chain_r16_float),
        .add = BRIG_ISA(add),
    };
    brig_panel_matmul(&ops, w, row_begin, row_end, x, y, y_stride);
}

static bool usable(void)
{
    return brig_vec_usable();
}

const struct brig_kernel BRIG_ISA_KERNEL = {
    .name = BRIG_ISA_NAME,
    .help = BRIG_ISA_HELP,
    .usable = usable,
    .matmul = matmul,
    .quantize = BRIG_ISA(quantize),
    .rms_norm = BRIG_ISA(rms_norm),
    .layer_norm = BRIG_ISA(layer_norm),
    .attention = BRIG_ISA(attention),
    .swiglu = BRIG_ISA(swiglu),
    .geglu = BRIG_ISA(geglu),
    .add = BRIG_ISA(add),
    .add_scaled = BRIG_ISA(add_scaled),
    .to_f16 = BRIG_ISA(to_f16),
    .log_sum_exp = BRIG_ISA(log_sum_exp),
};
