/* What `brigade bench` measured, as a table and as JSON. */
#ifndef BRIG_DRIVER_FRONT_BENCH_TABLE_H
#define BRIG_DRIVER_FRONT_BENCH_TABLE_H

#include "driver/run/bench.h"

#define BRIG_BENCH_MAX_ROWS 64u

struct brig_bench_row {
    struct brig_bench_config config;
    struct brig_bench_sample *samples; /* [repeat] */
    uint32_t *ids;           /* [n_streams, n_generate] of the first run; all others gave the same */
    uint64_t pss_peak_bytes; /* 0: not measured */
    bool done;               /* ids is there */
};

struct brig_bench_table {
    const struct brig_model *model;
    const struct brig_plan *plan; /* NULL: no budget */
    uint32_t n_prompt, n_generate;
    unsigned repeat;
    unsigned n_rows;
    struct brig_bench_row rows[BRIG_BENCH_MAX_ROWS];
    double *probes; /* [repeat] bytes per second; NULL: not measured */
    uint64_t bytes_per_token;
    unsigned n_starts, starts_shards; /* 0: no mode starts processes for a pass */
    uint64_t *starts_ns;
    uint32_t *scratch;                      /* ids of a run that is compared with the first */
    const struct brig_enclosure *enclosure; /* NULL, or its way is NULL: there is no budget */
    double tokenize_mb_s;                   /* 0: the model has no tokenizer that is known */
};

/* To standard output. */
int brig_bench_table_print(const struct brig_bench_table *t, struct brig_fail *fail);
/* To a file that appears whole, or to standard output when path is "-". */
int brig_bench_table_json(const struct brig_bench_table *t, const char *path, struct brig_fail *fail);

#endif
