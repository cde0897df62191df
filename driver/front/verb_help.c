/* brigade help: what there is, from the tables. */
#include <stdio.h>

#include "driver/front/verb.h"

static int run(const struct brig_settings *s, struct brig_fail *fail)
{
    unsigned id;
    if (s->operand == NULL) {
        brig_verb_print_all(stdout);
        return 0;
    }
    if (brig_verb_by_name(s->operand, &id) != NULL) {
        brig_verb_print_one(stdout, id);
        return 0;
    }
    const char *nearest = brig_verb_nearest(s->operand);
    return brig_fail_set(fail, BRIG_EUSAGE, "unknown verb %s%s%s (`brigade help` has all)", s->operand,
                         nearest != NULL ? ": did you mean " : "", nearest != NULL ? nearest : "");
}

const struct brig_verb brig_verb_help = {
    .name = "help",
    .help = "what there is, or the options of a verb",
    .usage = "[VERB]",
    .about = "examples:\n  brigade help\n  brigade help run\n",
    .operand = "VERB",
    .run = run,
};
