/* The tables of formats and families. */
#include "proto/model/family.h"

#include <stddef.h>

#define BRIG_FORMAT(object) extern const struct brig_format object;
#include "proto/model/format.def"
#undef BRIG_FORMAT
#define BRIG_FAMILY(object) extern const struct brig_family object;
#include "proto/model/family.def"
#undef BRIG_FAMILY

static const struct brig_format *const formats[] = {
#define BRIG_FORMAT(object) &object,
#include "proto/model/format.def"
#undef BRIG_FORMAT
};

static const struct brig_family *const families[] = {
#define BRIG_FAMILY(object) &object,
#include "proto/model/family.def"
#undef BRIG_FAMILY
};

const struct brig_format *brig_format_at(unsigned i)
{
    return i < sizeof formats / sizeof formats[0] ? formats[i] : NULL;
}

const struct brig_family *brig_family_at(unsigned i)
{
    return i < sizeof families / sizeof families[0] ? families[i] : NULL;
}

const struct brig_family *brig_family_by_name(struct brig_str name)
{
    for (unsigned i = 0; i < sizeof families / sizeof families[0]; i++)
        if (brig_str_eq(name, families[i]->name))
            return families[i];
    return NULL;
}
