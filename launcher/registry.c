/* The tables of launch modes and places. */
#include "launcher/launcher.h"

#include <string.h>

#include "launcher/place.h"

#define BRIG_MODE(object) extern const struct brig_mode object;
#include "launcher/mode.def"
#undef BRIG_MODE
#define BRIG_PLACE(object) extern const struct brig_place_ops object;
#include "launcher/place.def"
#undef BRIG_PLACE

static const struct brig_mode *const modes[] = {
#define BRIG_MODE(object) &object,
#include "launcher/mode.def"
#undef BRIG_MODE
};

static const struct brig_place_ops *const places[] = {
#define BRIG_PLACE(object) &object,
#include "launcher/place.def"
#undef BRIG_PLACE
};

const struct brig_mode *brig_mode_at(unsigned i)
{
    return i < sizeof modes / sizeof modes[0] ? modes[i] : NULL;
}

const struct brig_mode *brig_mode_by_name(const char *name)
{
    for (unsigned i = 0; i < sizeof modes / sizeof modes[0]; i++)
        if (strcmp(modes[i]->name, name) == 0)
            return modes[i];
    return NULL;
}

const struct brig_place *brig_place_at(unsigned i)
{
    return i < sizeof places / sizeof places[0] ? &places[i]->place : NULL;
}
