/*
 * What a frame of n rows costs, learned from the frames that were sent. One row costs `one_ns`, each further
 * one a part of that: nearly nothing where a pass waits for a disk or for a process to start, most of it
 * where the arithmetic is what takes the time.
 */
#ifndef BRIG_DRIVER_RUN_SPEC_COST_H
#define BRIG_DRIVER_RUN_SPEC_COST_H

#include <stdbool.h>
#include <stdint.h>

/* Further rows are counted in groups of like size: 1, 2-3, 4-7, ... */
#define BRIG_SPEC_COST_GROUPS 8u

struct brig_spec_cost {
    bool disk_bound; /* before anything is known of further rows: they are nearly free */
    double one_ns;   /* 0: not known yet */
    unsigned n_one;
    double row_ns[BRIG_SPEC_COST_GROUPS]; /* of a further row */
    unsigned n_row[BRIG_SPEC_COST_GROUPS];
    double prompt_ns, prompt_rows; /* the largest piece of a prompt so far; 0: none */
};

void brig_spec_cost_prompt(struct brig_spec_cost *c, uint32_t rows, uint64_t ns);
void brig_spec_cost_frame(struct brig_spec_cost *c, uint32_t rows, uint64_t ns);

/* Nanoseconds of a frame of 1 + further rows; one_ns is known. */
double brig_spec_cost_ns(const struct brig_spec_cost *c, uint32_t further);

#endif
