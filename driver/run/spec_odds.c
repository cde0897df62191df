/* How often guesses hold. */
#include "driver/run/spec_odds.h"

/* With each newer draft, and with each frame that could have had one. */
#define USED 0.9
#define IDLE 0.99

static unsigned group_of(uint32_t place)
{
    unsigned g = 0;
    while (place >> (g + 1) != 0 && g + 1 < BRIG_SPEC_ODDS_GROUPS)
        g++;
    return g;
}

static void fade(struct brig_spec_odds *o, double by)
{
    for (unsigned g = 0; g < BRIG_SPEC_ODDS_GROUPS; g++) {
        o->hits[g] *= by;
        o->tries[g] *= by;
    }
}

void brig_spec_odds_add(struct brig_spec_odds *o, uint32_t n, uint32_t held)
{
    fade(o, USED);
    for (uint32_t place = 1; place <= n && place <= held + 1; place++) {
        o->tries[group_of(place)] += 1;
        o->hits[group_of(place)] += place <= held;
    }
}

void brig_spec_odds_fade(struct brig_spec_odds *o)
{
    fade(o, IDLE);
}

/* Of what was tried, and of two more tries that went as those of earlier places; before any, as a coin. */
double brig_spec_odds_at(const struct brig_spec_odds *o, uint32_t place)
{
    double p = 0.5;
    for (unsigned g = 0; g <= group_of(place); g++)
        p = (o->hits[g] + 2 * p) / (o->tries[g] + 2);
    return p;
}
