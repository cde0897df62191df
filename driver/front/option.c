/* Parsing by getopt_long, fed from the rows; and the list of options in help. */
#include "driver/front/option.h"

#include <getopt.h>
#include <string.h>

#include "driver/front/verb.h"
#include "driver/run/sched.h"
#include "proto/base/parse.h"
#include "proto/model/desc.h"

static int wrong(struct brig_fail *fail, const char *what)
{
    return brig_fail_set(fail, BRIG_EUSAGE, "%s", what);
}

static void *field(struct brig_settings *s, const struct brig_option *o)
{
    return (char *)s + o->at;
}

static int take_flag(struct brig_settings *s, const struct brig_option *o, const char *value,
                     struct brig_fail *fail)
{
    (void)value;
    (void)fail;
    *(bool *)field(s, o) = true;
    return 0;
}

static int take_text(struct brig_settings *s, const struct brig_option *o, const char *value,
                     struct brig_fail *fail)
{
    (void)fail;
    *(const char **)field(s, o) = value;
    return 0;
}

static int whole_number(const struct brig_option *o, const char *value, uint64_t *ret, struct brig_fail *fail)
{
    uint64_t v;
    if (!brig_parse_u64(value, &v) || v < o->min || v > o->max)
        return brig_fail_set(fail, BRIG_EUSAGE, "a whole number from %llu to %llu is needed",
                             (unsigned long long)o->min, (unsigned long long)o->max);
    *ret = v;
    return 0;
}

static int take_count(struct brig_settings *s, const struct brig_option *o, const char *value,
                      struct brig_fail *fail)
{
    return whole_number(o, value, field(s, o), fail);
}

static int take_threads(struct brig_settings *s, const struct brig_option *o, const char *value,
                        struct brig_fail *fail)
{
    s->threads_given = true;
    return take_count(s, o, value, fail);
}

static int take_k(struct brig_settings *s, const struct brig_option *o, const char *value,
                  struct brig_fail *fail)
{
    uint64_t v = 0;
    int r = whole_number(o, value, &v, fail);
    if (r == 0)
        *(uint32_t *)field(s, o) = (uint32_t)v;
    return r;
}

static int take_seed(struct brig_settings *s, const struct brig_option *o, const char *value,
                     struct brig_fail *fail)
{
    s->seed_given = true;
    return take_count(s, o, value, fail);
}

/* The sampler knows the ranges of its numbers and checks them all at once. */
static int take_number(struct brig_settings *s, const struct brig_option *o, const char *value,
                       struct brig_fail *fail)
{
    return brig_parse_f64(value, field(s, o)) ? 0 : wrong(fail, "a finite number is needed");
}

static int take_stop(struct brig_settings *s, const struct brig_option *o, const char *value,
                     struct brig_fail *fail)
{
    (void)o;
    if (*value == '\0')
        return wrong(fail, "an empty text would stop everything");
    if (s->n_stops == BRIG_SETTINGS_MAX_STOPS)
        return brig_fail_set(fail, BRIG_EUSAGE, "at most %u are taken", BRIG_SETTINGS_MAX_STOPS);
    s->stops[s->n_stops++] = value;
    return 0;
}

int brig_option_shards(const char *value, size_t n, uint64_t *ret, struct brig_fail *fail)
{
    char text[32];
    uint64_t v = 0;
    if (n == 3 && memcmp(value, "all", 3) == 0) {
        *ret = BRIG_SHARDS_ALL;
        return 0;
    }
    if (n < sizeof text) {
        memcpy(text, value, n);
        text[n] = '\0';
    }
    if (n >= sizeof text || !brig_parse_u64(text, &v) || v < 1 || v > BRIG_MAX_LAYERS + 1)
        return brig_fail_set(fail, BRIG_EUSAGE, "a whole number from 1 to %u, or all, is needed",
                             BRIG_MAX_LAYERS + 1);
    *ret = v;
    return 0;
}

static int take_shards(struct brig_settings *s, const struct brig_option *o, const char *value,
                       struct brig_fail *fail)
{
    s->shards_given = true;
    return brig_option_shards(value, strlen(value), field(s, o), fail);
}

static int take_mode(struct brig_settings *s, const struct brig_option *o, const char *value,
                     struct brig_fail *fail)
{
    (void)o;
    s->mode_given = true;
    s->mode = brig_mode_by_name(value);
    return s->mode != NULL ? 0 : wrong(fail, "no such mode; `brigade list modes` has them");
}

static int take_residency(struct brig_settings *s, const struct brig_option *o, const char *value,
                          struct brig_fail *fail)
{
    (void)o;
    s->residency_given = true;
    s->residency = brig_residency_by_name(value);
    if (s->residency != NULL || strcmp(value, "auto") == 0)
        return 0;
    return wrong(fail, "no such residency; `brigade list residencies` has them, auto chooses");
}

static int take_link(struct brig_settings *s, const struct brig_option *o, const char *value,
                     struct brig_fail *fail)
{
    (void)o;
    s->link = brig_link_by_name(value);
    return s->link != NULL ? 0 : wrong(fail, "no such link; `brigade list links` has them");
}

static int take_wait(struct brig_settings *s, const struct brig_option *o, const char *value,
                     struct brig_fail *fail)
{
    (void)o;
    s->hold = strcmp(value, "hold") == 0;
    return s->hold || strcmp(value, "block") == 0 ? 0 : wrong(fail, "block or hold");
}

/* A stored type that can be written. */
static int take_quant(struct brig_settings *s, const struct brig_option *o, const char *value,
                      struct brig_fail *fail)
{
    const struct brig_type *t = brig_type_by_name(value);
    if (t == NULL)
        return wrong(fail, "no such type; `brigade list types` has them");
    if (t->native != NULL)
        return wrong(fail, "an interleaved type is written by --layout r16");
    if (t->quantize == NULL)
        return wrong(fail, "this type is read, and not written");
    *(const struct brig_type **)field(s, o) = t;
    return 0;
}

static int take_layout(struct brig_settings *s, const struct brig_option *o, const char *value,
                       struct brig_fail *fail)
{
    (void)o;
    s->interleave = strcmp(value, "r16") == 0;
    return s->interleave || strcmp(value, "native") == 0 ? 0 : wrong(fail, "native or r16 is needed");
}

static int take_kv(struct brig_settings *s, const struct brig_option *o, const char *value,
                   struct brig_fail *fail)
{
    (void)o;
    s->kv_given = true;
    return brig_kv_type_by_name(value, &s->kv) ? 0 : wrong(fail, "f16, f32 or q8 is needed");
}

static int take_lookup(struct brig_settings *s, const struct brig_option *o, const char *value,
                       struct brig_fail *fail)
{
    static const char *const names[] = {
        [BRIG_LOOKUP_AUTO] = "auto", [BRIG_LOOKUP_ON] = "on", [BRIG_LOOKUP_OFF] = "off"};
    (void)o;
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(value, names[i]) == 0) {
            s->lookup = (enum brig_lookup)i;
            return 0;
        }
    return wrong(fail, "on, off or auto is needed");
}

static int take_draft_len(struct brig_settings *s, const struct brig_option *o, const char *value,
                          struct brig_fail *fail)
{
    if (strcmp(value, "auto") == 0) {
        *(uint64_t *)field(s, o) = 0;
        return 0;
    }
    return take_count(s, o, value, fail);
}

static int take_ram(struct brig_settings *s, const struct brig_option *o, const char *value,
                    struct brig_fail *fail)
{
    (void)o;
    return brig_ram_parse(value, &s->ram, fail);
}

static int take_timeout(struct brig_settings *s, const struct brig_option *o, const char *value,
                        struct brig_fail *fail)
{
    double seconds;
    (void)o;
    if (!brig_parse_f64(value, &seconds) || !(seconds >= 0.001) || seconds > 86400)
        return wrong(fail, "seconds from 0.001 to 86400 are needed");
    s->timeout_ms = (uint32_t)(seconds * 1000 + 0.5);
    return 0;
}

#define V(x)  (1u << BRIG_VERB_##x)
#define TALK  (V(run) | V(chat))
#define LINE  (TALK | V(logits) | V(bench))
#define EVERY ((1u << BRIG_VERB_COUNT) - 1)

static const struct brig_option rows[] = {
#define BRIG_OPTION(name_, letter_, arg_, take_, field_, min_, max_, verbs_, help_)                          \
    {.name = name_,                                                                                          \
     .letter = letter_,                                                                                      \
     .arg = arg_,                                                                                            \
     .help = help_,                                                                                          \
     .verbs = verbs_,                                                                                        \
     .take = take_,                                                                                          \
     .at = offsetof(struct brig_settings, field_),                                                           \
     .min = min_,                                                                                            \
     .max = max_},
#include "driver/front/option.def"
#undef BRIG_OPTION
};
#define N_ROWS (sizeof rows / sizeof *rows)

const struct brig_option *brig_option_at(unsigned i)
{
    return i < N_ROWS ? &rows[i] : NULL;
}

void brig_settings_init(struct brig_settings *s)
{
    memset(s, 0, sizeof *s);
    s->sample = brig_sample_defaults();
    s->shards = 1;
    s->mode = brig_mode_by_name("warm");
    s->timeout_ms = 10000;
    s->bench_streams = "1";
    s->bench_prompt = 64;
    s->bench_generate = 32;
    s->bench_repeat = 3;
    s->bench_limit = 1800;
}

/* getopt's values for long options: above every letter. */
#define LONG_BASE 256

struct tables {
    struct option longs[N_ROWS + 1];
    char shorts[2 * N_ROWS + 3];
};

static void fill_tables(struct tables *t, unsigned verb)
{
    size_t n = 0, k = 0;
    memset(t, 0, sizeof *t);
    t->shorts[k++] = ':'; /* a missing value is told from an unknown option */
    for (size_t i = 0; i < N_ROWS; i++) {
        if ((rows[i].verbs & (1u << verb)) == 0)
            continue;
        t->longs[n++] = (struct option){.name = rows[i].name,
                                        .has_arg = rows[i].arg != NULL ? required_argument : no_argument,
                                        .val = LONG_BASE + (int)i};
        if (rows[i].letter == 0)
            continue;
        t->shorts[k++] = rows[i].letter;
        if (rows[i].arg != NULL)
            t->shorts[k++] = ':';
    }
}

static const struct brig_option *row_of(int c, unsigned verb)
{
    if (c >= LONG_BASE && c < LONG_BASE + (int)N_ROWS)
        return &rows[c - LONG_BASE];
    for (size_t i = 0; i < N_ROWS; i++)
        if (rows[i].letter == c && c != 0 && (rows[i].verbs & (1u << verb)) != 0)
            return &rows[i];
    return NULL;
}

static int refuse(int c, unsigned verb, const char *word, struct brig_fail *fail)
{
    const char *name = brig_verb_at(verb)->name;
    const struct brig_option *o = row_of(optopt, verb);
    if (c == ':')
        return brig_fail_set(fail, BRIG_EUSAGE, "%s: %s is missing", word, o != NULL ? o->arg : "a value");
    if (o != NULL && o->arg == NULL)
        return brig_fail_set(fail, BRIG_EUSAGE, "--%s takes no value", o->name);
    if (optopt != 0 && optopt < LONG_BASE && strncmp(word, "--", 2) != 0)
        return brig_fail_set(fail, BRIG_EUSAGE, "unknown option -%c (`brigade help %s` has the options)",
                             optopt, name);
    return brig_fail_set(fail, BRIG_EUSAGE,
                         "unknown or ambiguous option %s (`brigade help %s` has the options)", word, name);
}

static int finish(struct brig_settings *s, const struct brig_verb *v, int argc, char **argv,
                  struct brig_fail *fail)
{
    int n = argc - optind, most = (v->operand != NULL) + (v->second != NULL);
    if (n > most)
        return brig_fail_set(fail, BRIG_EUSAGE, "%s is one word too many (`brigade help %s`)",
                             argv[optind + most], v->name);
    const char *missing = n == 0 && v->operand_needed ? v->operand : n == 1 ? v->second : NULL;
    if (missing != NULL && !s->help)
        return brig_fail_set(fail, BRIG_EUSAGE, "%s is missing: brigade %s %s", missing, v->name, v->usage);
    if (s->exact && !s->kv_given)
        s->kv = BRIG_KV_F32;
    /* Each run of a report has a budget of its own: this process has none. */
    if (s->bench_ram != NULL && s->bench_report == NULL && brig_ram_parse(s->bench_ram, &s->ram, fail) < 0)
        return brig_fail_prefix(fail, "--ram %s", s->bench_ram);
    if (s->bench_residency != NULL && s->bench_report == NULL &&
        take_residency(s, NULL, s->bench_residency, fail) < 0)
        return brig_fail_prefix(fail, "--residency %s", s->bench_residency);
    s->operand = n > 0 ? argv[optind] : NULL;
    s->second = n > 1 ? argv[optind + 1] : NULL;
    return 0;
}

int brig_option_parse(struct brig_settings *s, unsigned verb, int argc, char **argv, struct brig_fail *fail)
{
    struct tables t;
    fill_tables(&t, verb);
    opterr = 0;
    optind = 0; /* glibc: forget earlier calls */
    for (;;) {
        int at = optind > 0 ? optind : 1;
        int c = getopt_long(argc, argv, t.shorts, t.longs, NULL);
        if (c == -1)
            break;
        if (c == '?' || c == ':')
            return refuse(c, verb, argv[optind > at ? optind - 1 : at], fail);
        const struct brig_option *o = row_of(c, verb);
        if (o->take(s, o, optarg, fail) < 0)
            return optarg != NULL ? brig_fail_prefix(fail, "--%s %s", o->name, optarg)
                                  : brig_fail_prefix(fail, "--%s", o->name);
        if (s->n_given < BRIG_SETTINGS_MAX_GIVEN)
            s->given[s->n_given++] = (struct brig_given){.option = o, .value = optarg};
    }
    return finish(s, brig_verb_at(verb), argc, argv, fail);
}

/* Help beside the names, broken between words to fit a terminal. */
static void print_beside(FILE *out, const char *left, const char *help)
{
    enum { LEFT = 30, RIGHT = 66 };
    for (bool first = true; first || *help != '\0'; first = false) {
        size_t n = strlen(help);
        if (n > RIGHT) {
            const char *space = memrchr(help, ' ', RIGHT + 1);
            n = space != NULL ? (size_t)(space - help) : RIGHT;
        }
        fprintf(out, "  %-*s %.*s\n", LEFT, first ? left : "", (int)n, help);
        help += n + (help[n] == ' ');
    }
}

void brig_option_print(FILE *out, unsigned verb)
{
    for (size_t i = 0; i < N_ROWS; i++) {
        char left[64], letter[8] = "    ";
        if ((rows[i].verbs & (1u << verb)) == 0)
            continue;
        if (rows[i].letter != 0)
            snprintf(letter, sizeof letter, "-%c, ", rows[i].letter);
        snprintf(left, sizeof left, "%s--%s%s%s", letter, rows[i].name, rows[i].arg != NULL ? " " : "",
                 rows[i].arg != NULL ? rows[i].arg : "");
        print_beside(out, left, rows[i].help);
    }
}
