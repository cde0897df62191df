/* warm: every shard lives until the end of the run. */
#include "launcher/launcher.h"

extern const struct brig_mode brig_mode_warm;

const struct brig_mode brig_mode_warm = {
    .name = "warm",
    .help = "every shard lives until the end; frames go down the chain: the fastest token, RAM for all of it",
    .keeps = true,
    .ahead = 0,
};
