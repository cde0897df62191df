/* cold: nothing lives between passes. */
#include "launcher/launcher.h"

extern const struct brig_mode brig_mode_cold;

/* ahead = 2: one is connecting while another is still being loaded by the kernel; more only holds memory. */
const struct brig_mode brig_mode_cold = {
    .name = "cold",
    .help = "nothing lives: each shard is started for its turn, works once, exits: the smallest footprint",
    .keeps = false,
    .ahead = 2,
};
