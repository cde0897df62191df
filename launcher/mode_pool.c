/* pool: some shards live until the end of the run, the others are started for their turn. */
#include "launcher/launcher.h"

extern const struct brig_mode brig_mode_pool;

/* Which ones is fixed for the run: the order of shards is a cycle, and of a cycle a rule such as "the one
 * that was used last" keeps nothing that is of use. They lie evenly in the line, so that others can be
 * started while each of them works; the last stage, with the largest matrix, is among them. */
static bool lives(unsigned stage, unsigned n_stages, unsigned keep)
{
    uint64_t before = (uint64_t)stage * keep / n_stages, after = ((uint64_t)stage + 1) * keep / n_stages;
    return after > before;
}

const struct brig_mode brig_mode_pool = {
    .name = "pool",
    .help =
        "--keep K shards live, evenly spread; the others are started for their turn: between warm and cold",
    .lives = lives,
    .ahead = 2,
    .picks = true,
};
