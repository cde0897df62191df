/* Options: one table (option.def) that drives parsing and help alike. */
#ifndef BRIG_DRIVER_FRONT_OPTION_H
#define BRIG_DRIVER_FRONT_OPTION_H

#include <stddef.h>
#include <stdio.h>

#include "driver/front/settings.h"
#include "proto/base/err.h"

struct brig_option {
    const char *name; /* long name without dashes */
    char letter;      /* short name or 0 */
    const char *arg;  /* what help calls the value; NULL: a flag */
    const char *help;
    unsigned verbs; /* bit set of enum brig_verb_id */
    /* Check value (NULL for a flag) and put it into *s; a failure says what a right value is, the caller
     * names the option. */
    int (*take)(struct brig_settings *s, const struct brig_option *o, const char *value,
                struct brig_fail *fail);
    size_t at;         /* of the field in struct brig_settings */
    uint64_t min, max; /* of whole numbers */
};

/* argv[0] is the verb's name. Fills *s from options and the one operand. Every failure is -BRIG_EUSAGE and
 * names the flag and the reason. */
int brig_option_parse(struct brig_settings *s, unsigned verb, int argc, char **argv, struct brig_fail *fail);

void brig_option_print(FILE *out, unsigned verb);

const struct brig_option *brig_option_at(unsigned i); /* NULL after the last row */

/* "all" or a number >= 1, and a comma-separated list of them: the values of --shards. */
int brig_option_shards(const char *value, size_t n, uint64_t *ret, struct brig_fail *fail);

#endif
