/* warm: every shard lives until the end of the run. */
#include "launcher/launcher.h"

extern const struct brig_mode brig_mode_warm;

static bool lives(unsigned stage, unsigned n_stages, unsigned keep)
{
    (void)stage;
    (void)n_stages;
    (void)keep;
    return true;
}

const struct brig_mode brig_mode_warm = {
    .name = "warm",
    .help = "every shard lives until the end; frames go down the chain: the fastest token, RAM for all of it",
    .lives = lives,
    .keeps = true,
};
