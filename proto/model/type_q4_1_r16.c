/* Q4_1_R16: Q4_1 with 16 rows interleaved (r16.h). */
#include "proto/model/r16.h"

extern const struct brig_type brig_type_q4_1;

const struct brig_type brig_type_q4_1_r16 = {
    .name = "Q4_1_R16",
    .help = "Q4_1 with 16 rows interleaved (Brigade's own: `brigade pack --layout r16`)",
    .id = BRIG_TYPE_Q4_1_R16,
    .gguf_id = 1202,
    .block_elems = BRIG_R16_COLS,
    .block_bytes = 20,
    .group = BRIG_R16_COLS,
    .native = &brig_type_q4_1,
};
