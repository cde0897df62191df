/* The table of kinds of drafts. */
#include "driver/run/draft.h"

static const struct brig_draft *const rows[] = {
#define BRIG_DRAFT(object) &object,
#include "driver/run/draft.def"
#undef BRIG_DRAFT
};

const struct brig_draft *brig_draft_at(unsigned i)
{
    return i < sizeof rows / sizeof *rows ? rows[i] : NULL;
}
