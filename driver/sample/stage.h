/*
 * Stages of the sampler: each narrows or weighs a list of entries. One row in stage.def, one file each. The
 * sampler (sampler.c) owns the memory; a stage allocates nothing.
 */
#ifndef BRIG_DRIVER_SAMPLE_STAGE_H
#define BRIG_DRIVER_SAMPLE_STAGE_H

#include <stdint.h>

#include "driver/sample/sampler.h"

struct brig_sample_entry {
    float logit; /* finite or -infinity; never -0 */
    uint32_t id;
};

struct brig_sample_list {
    struct brig_sample_entry *entries; /* [n] ids ascending or in order; from top-k on (logit descending, id
                                          ascending) */
    struct brig_sample_entry *spare;   /* as long as entries: sorting may swap the two */
    double *weights;                   /* [n] from top-k on: exp(logit - best logit), from temperature on:
                                          exp((logit - best logit) / temperature) */
    uint32_t n;                        /* at least 1 */
    const uint32_t *counts; /* [vocab] occurrences in the window of penalties; NULL: no penalties */
    uint64_t index;         /* of the token that is drawn */
};

struct brig_sample_stage {
    const char *name; /* "top-k" */
    const char *help; /* one line for `brigade list samplers` */
    void (*apply)(const struct brig_sample_opts *o, struct brig_sample_list *list);
};

/* The n best of the list's entries into its first n, in order. */
void brig_sample_order(struct brig_sample_list *list, uint32_t n);

#endif
