/* Verbs: what `brigade` can do. One row in verb.def, one file each. */
#ifndef BRIG_DRIVER_FRONT_VERB_H
#define BRIG_DRIVER_FRONT_VERB_H

#include <stdio.h>

#include "driver/front/settings.h"
#include "proto/base/err.h"

enum brig_verb_id {
#define BRIG_VERB(id) BRIG_VERB_##id,
#include "driver/front/verb.def"
#undef BRIG_VERB
    BRIG_VERB_COUNT
};

struct brig_verb {
    const char *name;
    const char *help;    /* one line */
    const char *usage;   /* the rest of the line "usage: brigade NAME ..." */
    const char *about;   /* what help says above the options; ends with a newline */
    const char *operand; /* "MODEL", or NULL: the verb takes none */
    bool operand_needed;
    const char *second; /* a second one, which is needed too; NULL: there is none */
    /* 0, or a failure whose text is printed as one line; an empty text prints nothing. */
    int (*run)(const struct brig_settings *s, struct brig_fail *fail);
};

const struct brig_verb *brig_verb_at(unsigned i); /* row i = enum brig_verb_id; NULL after the last row */
const struct brig_verb *brig_verb_by_name(const char *name, unsigned *ret_id);
const char *brig_verb_nearest(const char *name); /* the verb that was probably meant, or NULL */

/* `brigade help` and `brigade help VERB`. */
void brig_verb_print_all(FILE *out);
void brig_verb_print_one(FILE *out, unsigned id);

#endif
