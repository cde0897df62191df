/* The table of verbs, and the help that is made from it and from the table of options. */
#include "driver/front/verb.h"

#include <string.h>

#include "driver/front/option.h"
#include "proto/base/size.h"

#define BRIG_VERB(id) extern const struct brig_verb brig_verb_##id;
#include "driver/front/verb.def"
#undef BRIG_VERB

static const struct brig_verb *const rows[] = {
#define BRIG_VERB(id) [BRIG_VERB_##id] = &brig_verb_##id,
#include "driver/front/verb.def"
#undef BRIG_VERB
};

const struct brig_verb *brig_verb_at(unsigned i)
{
    return i < BRIG_VERB_COUNT ? rows[i] : NULL;
}

const struct brig_verb *brig_verb_by_name(const char *name, unsigned *ret_id)
{
    for (unsigned i = 0; i < BRIG_VERB_COUNT; i++)
        if (strcmp(rows[i]->name, name) == 0) {
            *ret_id = i;
            return rows[i];
        }
    return NULL;
}

/* Levenshtein distance of two short words; long ones count as far. */
static unsigned distance(const char *a, const char *b)
{
    enum { MAX = 24 };
    unsigned row[MAX + 1];
    size_t na = strlen(a), nb = strlen(b);
    if (na > MAX || nb > MAX)
        return MAX;
    for (size_t j = 0; j <= nb; j++)
        row[j] = (unsigned)j;
    for (size_t i = 1; i <= na; i++) {
        unsigned corner = row[0];
        row[0] = (unsigned)i;
        for (size_t j = 1; j <= nb; j++) {
            unsigned change = corner + (a[i - 1] != b[j - 1]);
            corner = row[j];
            unsigned shift = (row[j] < row[j - 1] ? row[j] : row[j - 1]) + 1;
            row[j] = change < shift ? change : shift;
        }
    }
    return row[nb];
}

const char *brig_verb_nearest(const char *name)
{
    const char *best = NULL;
    unsigned least = 3; /* farther than two letters is no slip of the hand */
    for (unsigned i = 0; i < BRIG_VERB_COUNT; i++) {
        unsigned d = distance(name, rows[i]->name);
        if (d < least) {
            least = d;
            best = rows[i]->name;
        }
    }
    return best;
}

void brig_verb_print_all(FILE *out)
{
    fputs("usage: brigade VERB ...\n\n"
          "Runs a language model whose layers live in separate processes, the shards, that pass hidden\n"
          "vectors along a line.\n\nverbs:\n",
          out);
    for (unsigned i = 0; i < BRIG_VERB_COUNT; i++)
        fprintf(out, "  %-10s %s\n", rows[i]->name, rows[i]->help);
    fputs("\n`brigade help VERB` has its options and examples; `brigade --version` the versions.\n", out);
}

void brig_verb_print_one(FILE *out, unsigned id)
{
    const struct brig_verb *v = rows[id];
    fprintf(out, "usage: brigade %s %s\n\n%s\noptions:\n", v->name, v->usage, v->about);
    brig_option_print(out, id);
}
