/* brigade list: the tables of what is supported, as the program itself sees them. */
#include <stdio.h>
#include <string.h>

#include "driver/chat/chat.h"
#include "driver/front/verb.h"
#include "driver/sample/sampler.h"
#include "driver/token/tokenizer.h"
#include "launcher/launcher.h"
#include "proto/disk/reader.h"
#include "proto/link/link.h"
#include "proto/model/family.h"
#include "proto/model/format.h"
#include "proto/model/kv_type.h"
#include "proto/model/type.h"

/* Row i of a table whose rows are objects with a name and a line of help. */
#define ROW_OF(fn, kind, at)                                                                                 \
    static const char *fn(unsigned i, const char **help)                                                     \
    {                                                                                                        \
        const struct kind *row = at(i);                                                                      \
        if (row == NULL)                                                                                     \
            return NULL;                                                                                     \
        *help = row->help;                                                                                   \
        return row->name;                                                                                    \
    }

ROW_OF(family, brig_family, brig_family_at)
ROW_OF(type, brig_type, brig_type_at)
ROW_OF(format, brig_format, brig_format_at)
ROW_OF(kv_type, brig_kv_type, brig_kv_type_at)
ROW_OF(link_row, brig_link, brig_link_at)
ROW_OF(mode, brig_mode, brig_mode_at)
ROW_OF(place, brig_place, brig_place_at)
ROW_OF(residency, brig_residency, brig_residency_at)
ROW_OF(way, brig_way, brig_way_at)
ROW_OF(verb, brig_verb, brig_verb_at)

static const char *error(unsigned i, const char **help)
{
    if (i + 1 >= BRIG_ERR_COUNT)
        return NULL;
    *help = brig_err_text((int)i + 1); /* 0 is no error */
    return brig_err_name((int)i + 1);
}

static const struct kind {
    const char *name; /* in the plural; the singular is taken too */
    const char *one;
    const char *help;
    const char *(*at)(unsigned i, const char **help); /* NULL after the last row */
} kinds[] = {
    {"families", "family", "kinds of models", family},
    {"types", "type", "stored types of tensors", type},
    {"kv-types", "kv-type", "types of the KV cache, for --kv", kv_type},
    {"formats", "format", "file formats of checkpoints", format},
    {"links", "link", "ways that frames travel", link_row},
    {"modes", "mode", "which shard processes live between tokens", mode},
    {"residencies", "residency", "how weights are in the memory of a shard", residency},
    {"places", "place", "where shard processes are started", place},
    {"readers", "reader", "ways to read weights from the disk, the first that works is taken",
     brig_reader_at},
    {"enclosures", "enclosure", "how a budget of memory is enforced, in the order tried", way},
    {"tokenizers", "tokenizer", "kinds of tokenizers", brig_tokenizer_kind_at},
    {"pretokenizers", "pretokenizer", "kinds of pre-tokenizers, for --pre", brig_pretokenizer_at},
    {"templates", "template", "chat templates", brig_chat_template_at},
    {"samplers", "sampler", "stages of the sampler, in order", brig_sampler_stage_at},
    {"errors", "error", "kinds of failure", error},
    {"verbs", "verb", "what brigade can do", verb},
};
#define N_KINDS (sizeof kinds / sizeof *kinds)

static void print_row(const char *name, const char *help)
{
    printf("%-14s %s\n", name, help);
}

static int run(const struct brig_settings *s, struct brig_fail *fail)
{
    for (size_t k = 0; k < N_KINDS; k++) {
        if (s->operand == NULL)
            print_row(kinds[k].name, kinds[k].help);
        if (s->operand == NULL ||
            (strcmp(s->operand, kinds[k].name) != 0 && strcmp(s->operand, kinds[k].one) != 0))
            continue;
        const char *name, *help = "";
        for (unsigned i = 0; (name = kinds[k].at(i, &help)) != NULL; i++)
            print_row(name, help);
        return 0;
    }
    if (s->operand != NULL)
        return brig_fail_set(fail, BRIG_EUSAGE, "unknown kind %s (`brigade list` has all)", s->operand);
    return 0;
}

const struct brig_verb brig_verb_list = {
    .name = "list",
    .help = "what is supported: families, types, modes, ...",
    .usage = "[KIND]",
    .about = "Without a kind: the kinds.\n\nexamples:\n  brigade list\n  brigade list types\n",
    .operand = "KIND",
    .run = run,
};
