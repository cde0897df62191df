/* What a run says of itself: one line for people, one JSON object for programs. */
#ifndef BRIG_DRIVER_RUN_REPORT_H
#define BRIG_DRIVER_RUN_REPORT_H

#include <stdbool.h>
#include <stdint.h>

#include "driver/run/embed.h"
#include "driver/run/generate.h"
#include "driver/run/line.h"
#include "proto/base/buf.h"

struct brig_report {
    const struct brig_model *model;
    const struct brig_embed *embed;
    const char *mode;
    enum brig_kv_id kv;
    bool exact;
    uint64_t seed;
    size_t n_prompt;
    const struct brig_generated *generated;
    struct brig_line_stats line;
    struct brig_spec *spec;                 /* NULL: nothing was drafted */
    const struct brig_model *draft_model;   /* NULL: none */
    struct brig_line_stats draft_line;      /* its */
    const struct brig_plan *plan;           /* NULL: there was no budget */
    const struct brig_enclosure *enclosure; /* NULL, or its way is NULL: likewise */
};

/* One line, no newline. */
int brig_report_line(const struct brig_report *r, struct brig_buf *out);
/* The fields are listed in docs/running.md. */
int brig_report_write_json(const struct brig_report *r, const char *path, struct brig_fail *fail);

/* Weights read in one decode pass: every layer (of its experts the used ones) and the head, and the row of
 * the token table unless that table is the head's own. */
uint64_t brig_report_bytes_per_token(const struct brig_model *m, const struct brig_embed *e);

#endif
