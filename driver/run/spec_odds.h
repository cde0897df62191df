/*
 * How often guesses hold, learned from those that were sent. The first token of a draft is counted apart from
 * the second and third, those from the next four, and so on: a draft that goes wrong mostly does so at once.
 */
#ifndef BRIG_DRIVER_RUN_SPEC_ODDS_H
#define BRIG_DRIVER_RUN_SPEC_ODDS_H

#include <stdint.h>

#define BRIG_SPEC_ODDS_GROUPS 7u /* places 1, 2-3, 4-7, ... */

/* Tokens that were right when all before them in the draft were, of those that could have been. */
struct brig_spec_odds {
    double hits[BRIG_SPEC_ODDS_GROUPS], tries[BRIG_SPEC_ODDS_GROUPS];
};

/* A draft of n tokens came back, of which held were right. */
void brig_spec_odds_add(struct brig_spec_odds *o, uint32_t n, uint32_t held);
/* What was seen counts as a little less: what was given up is tried again some day. */
void brig_spec_odds_fade(struct brig_spec_odds *o);
/* The chance of token `place`, 1 or more, when all before it are right. */
double brig_spec_odds_at(const struct brig_spec_odds *o, uint32_t place);

#endif
