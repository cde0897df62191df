/* From what the command line says about memory to a plan (launcher/plan.h), and a plan to text and JSON. */
#ifndef BRIG_DRIVER_FRONT_BUDGET_H
#define BRIG_DRIVER_FRONT_BUDGET_H

#include <stdio.h>

#include "driver/front/settings.h"
#include "launcher/launcher.h"
#include "proto/base/err.h"

/* What a plan is made for, beyond settings. */
struct brig_budget_need {
    const struct brig_model *draft;      /* NULL: none */
    const struct brig_plan_speed *speed; /* what is known of the machine; NULL: to be found out */
    uint32_t ctx;                        /* 0: as the settings say, or chosen */
    unsigned n_shards;                   /* 0: as the settings say, or chosen; UINT_MAX: one for each cell */
    bool whole_rows;                     /* whole rows of logits for each token that is sent */
    bool tokenizer;
    bool measure; /* the machine, when nothing is known of it; it takes time, and memory that no budget has */
};

/* *ret: the caller releases it. A budget that cannot work fails, with "--ram" before the reason. */
int brig_budget_plan(struct brig_plan *ret, const struct brig_settings *s, const struct brig_model *m,
                     const struct brig_budget_need *need, struct brig_fail *fail);

/* Go into a memory cgroup of that size, where that is allowed: the program is then executed anew, and comes
 * here again. Before anything is read from standard input. A line on standard error says what is not as
 * asked.
 */
int brig_budget_enclose(const struct brig_settings *s, uint64_t bytes, struct brig_fail *fail);

/* The plan for people, on several lines. */
void brig_budget_print(FILE *out, const struct brig_plan *p, const struct brig_model *m);

#endif
