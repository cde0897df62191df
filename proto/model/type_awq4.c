/* AWQ4: AWQ's 4-bit integers in its GEMM layout; a word holds 8 rows, and from the low bits on they are rows
 * 0 2 4 6 1 3 5 7 (packed.h). */
#include "proto/model/packed.h"

static const struct brig_packing packing = {
    .bits = 4,
    .by_rows = true,
    .place = {0, 4, 1, 5, 2, 6, 3, 7},
};

const struct brig_type brig_type_awq4 = {
    .name = "AWQ4",
    .help = "AWQ of 4 bits, GEMM layout: 8 rows a word, scales and zeros beside (safetensors only)",
    .id = BRIG_TYPE_AWQ4,
    .gguf_id = 1102,
    .block_elems = 2,
    .block_bytes = 1,
    .group = 0,
    .packing = &packing,
};
