/*
 * The sampler: from the head's answer to one id. Order: penalties, top-k, top-p, min-p, temperature, draw.
 * Probabilities for top-p and min-p are taken at temperature 1 over what top-k kept, in (logit descending,
 * id ascending) order. The draw is one number from a counter-based generator keyed by (seed, index of the
 * generated token), so drafting, batching or sending again never shifts the stream. Temperature 0 is greedy.
 */
#ifndef BRIG_DRIVER_SAMPLE_SAMPLER_H
#define BRIG_DRIVER_SAMPLE_SAMPLER_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/base/err.h"

struct brig_sample_opts {
    double temp;            /* >= 0 */
    uint32_t top_k;         /* 0: all */
    double top_p;           /* (0, 1]; 1: off */
    double min_p;           /* [0, 1); 0: off */
    double repeat_penalty;  /* > 0; 1: off. A positive logit is divided by it, another multiplied */
    uint32_t repeat_last_n; /* window of the three penalties: newest tokens of prompt and answer; 0: off */
    double presence_penalty, frequency_penalty; /* [-2, 2] subtracted once, and per occurrence */
    uint64_t seed;
};

/* The defaults of the command line: 0.8, 40, 0.95, 0.05, 1, 64, 0, 0. */
struct brig_sample_opts brig_sample_defaults(void);
/* Names the flag whose value is out of range. */
int brig_sample_check(const struct brig_sample_opts *o, struct brig_fail *fail);

struct brig_sampler;
int brig_sampler_new(struct brig_sampler **ret, const struct brig_sample_opts *o, uint32_t vocab,
                     struct brig_fail *fail);
void brig_sampler_free(struct brig_sampler *s);

/* A token that now counts for penalties: each of the prompt, and each one generated. */
void brig_sampler_accept(struct brig_sampler *s, uint32_t id);

/* How many candidates per row determine the next draw and those after `ahead` more tokens, or 0 when the
 * whole row is needed: max(64, k + number of distinct penalised ids, ahead among them) when top_k is 1..256
 * (or the draw is greedy) and no stage can raise a logit. */
uint32_t brig_sampler_top(const struct brig_sampler *s, uint32_t ahead);

/* Choose from candidates (ids[n], logits[n] in (logit descending, id ascending) order, of a row whose
 * log-sum-exp is lse) or from a whole row (ids NULL, n = vocab). index: 0 for the first generated token, and
 * so on. Both ways give the same id. lse is for reports and is not needed by any stage here. */
int brig_sampler_pick(struct brig_sampler *s, const uint32_t *ids, const float *logits, uint32_t n,
                      uint64_t index, uint32_t *ret, struct brig_fail *fail);

/* Rows of the stage table for `brigade list samplers`. */
const char *brig_sampler_stage_at(unsigned i, const char **help);

#endif
