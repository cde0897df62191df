/* How fast a tokenizer is, on a fixed text that is made in memory. */
#ifndef BRIG_DRIVER_RUN_BENCH_TOKENIZER_H
#define BRIG_DRIVER_RUN_BENCH_TOKENIZER_H

#include "driver/token/tokenizer.h"

#define BRIG_BENCH_TEXT_BYTES ((size_t)1 << 18)

/* Median of five passes over the text, in 10^6 bytes a second. */
int brig_bench_tokenizer(struct brig_tokenizer *t, double *ret_mb_s, struct brig_fail *fail);

#endif
