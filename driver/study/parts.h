/* What the files of this room share. */
#ifndef BRIG_DRIVER_STUDY_PARTS_H
#define BRIG_DRIVER_STUDY_PARTS_H

#include <jansson.h>

#include "driver/study/child.h"
#include "driver/study/study.h"

/* Bring the page cache into a state and look: *ret_share of the files' bytes are in it. When that is not the
 * state wanted, why says so (empty: it is). A kernel that does not tell is no failure: *ret_share is then
 * below 0. */
int brig_study_cache_set(const struct brig_model *m, enum brig_study_cache wanted, double *ret_share,
                         char *why, size_t n, struct brig_fail *fail);

/* `brigade plan` and `brigade bench` for a row, as programs of their own. round counts from 0. They set the
 * row's state and why; a failure is only what ends the study. */
int brig_study_ask_plan(struct brig_study *s, struct brig_study_row *row, struct brig_fail *fail);
int brig_study_run_row(struct brig_study *s, struct brig_study_row *row, unsigned round,
                       struct brig_fail *fail);

/* Does what was read contradict the plan? Sets the row's state and why. */
void brig_study_judge(struct brig_study_row *row);

/* Charts that there is something to draw for, by name; NULL after the last. svg: text from "<svg" on, added
 * to *out, or nothing when there is nothing to draw. -BRIG_EUNSUPPORTED: gnuplot is not installed. */
struct brig_study_chart {
    const char *name, *title, *about;
};
const struct brig_study_chart *brig_study_chart_at(unsigned i);
int brig_study_chart_draw(const struct brig_study *s, unsigned i, struct brig_buf *out,
                          struct brig_fail *fail);

json_t *brig_study_json(const struct brig_study *s);
/* svgs[i]: of chart i, empty when it was not drawn. */
int brig_study_page(const struct brig_study *s, const struct brig_buf *svgs, struct brig_buf *out,
                    struct brig_fail *fail);

#endif
