/* GPTQ8: GPTQ's 8-bit integers; a word holds 4 columns (packed.h). */
#include "proto/model/packed.h"

static const struct brig_packing packing = {
    .bits = 8,
    .by_rows = false,
    .place = {0, 1, 2, 3},
};

const struct brig_type brig_type_gptq8 = {
    .name = "GPTQ8",
    .help = "GPTQ of 8 bits: 4 columns a word, scales and zeros beside (safetensors only)",
    .id = BRIG_TYPE_GPTQ8,
    .gguf_id = 1101,
    .block_elems = 4,
    .block_bytes = 4,
    .group = 0,
    .packing = &packing,
};
