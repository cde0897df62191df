/* cold: nothing lives between passes. */
#include "launcher/launcher.h"

extern const struct brig_mode brig_mode_cold;

static bool lives(unsigned stage, unsigned n_stages, unsigned keep)
{
    (void)stage;
    (void)n_stages;
    (void)keep;
    return false;
}

/* ahead = 2: one is connecting while another is still being loaded by the kernel; more only holds memory. */
const struct brig_mode brig_mode_cold = {
    .name = "cold",
    .help = "nothing lives: each shard is started for its turn, works once, exits: the smallest footprint",
    .lives = lives,
    .ahead = 2,
};
