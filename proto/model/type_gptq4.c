/* GPTQ4: GPTQ's 4-bit integers; a word holds 8 columns (packed.h). */
#include "proto/model/packed.h"

static const struct brig_packing packing = {
    .bits = 4,
    .by_rows = false,
    .place = {0, 1, 2, 3, 4, 5, 6, 7},
};

const struct brig_type brig_type_gptq4 = {
    .name = "GPTQ4",
    .help = "GPTQ of 4 bits: 8 columns a word, scales and zeros beside (safetensors only)",
    .id = BRIG_TYPE_GPTQ4,
    .gguf_id = 1100,
    .block_elems = 8,
    .block_bytes = 4,
    .group = 0,
    .packing = &packing,
};
