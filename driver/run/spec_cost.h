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
#define BRIG_SPEC_COST_NEWEST 9u

/* Of the newest figures the one with a third of them below it: a machine that is busy elsewhere for a moment,
 * a process that was stopped, make a frame slower and never faster. */
struct brig_spec_figure {
    double ns; /* 0: none yet */
    struct {
        double ns;
        uint32_t further;
    } newest[BRIG_SPEC_COST_NEWEST]; /* frames as they were */
    unsigned n;                      /* all that there were */
};

struct brig_spec_cost {
    bool disk_bound; /* before anything is known of further rows: they are nearly free */
    struct brig_spec_figure one;
    struct brig_spec_figure more[BRIG_SPEC_COST_GROUPS]; /* of a further row */
    uint32_t most;                                       /* further rows that a frame has had */
    uint32_t without;                                    /* frames of one row since the last one of more */
    double prompt_ns, prompt_rows;                       /* the largest piece of a prompt so far; 0: none */
};

void brig_spec_cost_prompt(struct brig_spec_cost *c, uint32_t rows, uint64_t ns);
void brig_spec_cost_frame(struct brig_spec_cost *c, uint32_t rows, uint64_t ns);

/* Nanoseconds of a frame of 1 + further rows; one.ns is known. */
double brig_spec_cost_ns(const struct brig_spec_cost *c, uint32_t further);
/* The same as one may hope after a while without further rows: they may have become cheaper. */
double brig_spec_cost_hoped_ns(const struct brig_spec_cost *c, uint32_t further);

#endif
