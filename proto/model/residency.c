/* The table of residencies. */
#include "proto/model/residency.h"

#include <stddef.h>
#include <string.h>

static const struct brig_residency rows[] = {
#define BRIG_RESIDENCY(hold, name, help) {#name, help, BRIG_HOLD_##hold},
#include "proto/model/residency.def"
#undef BRIG_RESIDENCY
};

const struct brig_residency *brig_residency_at(unsigned i)
{
    return i < sizeof rows / sizeof rows[0] ? &rows[i] : NULL;
}

const struct brig_residency *brig_residency_by_name(const char *name)
{
    for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (strcmp(rows[i].name, name) == 0)
            return &rows[i];
    return NULL;
}
