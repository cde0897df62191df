/*
 * What a command line says, after parsing: one struct for all verbs, filled from the option table
 * (option.def). Strings are borrowed from argv.
 */
#ifndef BRIG_DRIVER_FRONT_SETTINGS_H
#define BRIG_DRIVER_FRONT_SETTINGS_H

#include <stdbool.h>
#include <stdint.h>

#include "driver/sample/sampler.h"
#include "launcher/launcher.h"
#include "proto/model/type.h"

#define BRIG_SETTINGS_MAX_STOPS 64u
#define BRIG_SETTINGS_MAX_GIVEN 64u

struct brig_option;

/* An option as it was given. */
struct brig_given {
    const struct brig_option *option;
    const char *value; /* NULL: a flag */
};

enum brig_lookup {
    BRIG_LOOKUP_AUTO, /* where a disk decides how long a pass takes */
    BRIG_LOOKUP_ON,
    BRIG_LOOKUP_OFF,
};

struct brig_settings {
    const char *operand; /* MODEL, KIND or VERB; NULL when not given */
    const char *second;  /* OUT of pack */
    bool help;
    struct brig_given given[BRIG_SETTINGS_MAX_GIVEN]; /* the first of them, in order: to be handed on */
    unsigned n_given;
    /* text in */
    const char *prompt, *file, *system;
    const char *chat_template; /* name or file; NULL: the model's */
    bool raw;
    const char *stops[BRIG_SETTINGS_MAX_STOPS];
    unsigned n_stops;
    /* how far */
    uint64_t n_predict; /* 0: to the end of the turn or the context */
    uint64_t ctx;       /* 0: the default */
    bool ignore_eos;
    /* sampling */
    struct brig_sample_opts sample;
    bool seed_given;
    /* the line */
    uint64_t shards; /* BRIG_SHARDS_ALL: one for each cell */
    const struct brig_mode *mode;
    uint64_t keep;                          /* of the mode that picks; 0: its own choice */
    bool hold;                              /* of the CPUs, during a pass */
    const struct brig_residency *residency; /* NULL: auto */
    const struct brig_link *link;           /* NULL: as is best for the mode */
    uint64_t threads;                       /* 0: the shard's own default */
    enum brig_kv_id kv;
    bool exact;
    struct brig_ram ram;              /* for all processes together */
    struct brig_enclosure *enclosure; /* filled when a budget is in force; the program leaves it at its end */
    char *const *argv;                /* the whole command line, to execute it anew inside the enclosure */
    const char *chain;
    bool insecure;
    uint32_t timeout_ms;
    bool shards_given, mode_given, threads_given, kv_given, residency_given;
    /* drafts */
    enum brig_lookup lookup;
    const char *draft;  /* the draft model; NULL: none */
    uint64_t draft_len; /* 0: chosen */
    /* what is written */
    const char *stats, *trace, *trace_routing, *out;
    bool json, quiet;
    /* tokenize, logits */
    bool no_special, decode, as_text;
    const char *pre, *ids, *hidden, *messages;
    /* pack */
    const struct brig_type *quant, *head_quant; /* NULL: as stored; as quant */
    bool requantize, interleave;
    /* bench */
    const char *bench_streams, *bench_json;
    const char *bench_modes, *bench_shards; /* NULL: the default */
    const char *bench_ram;                  /* NULL: no budget */
    const char *bench_residency;            /* NULL: auto */
    const char *bench_skip;                 /* NULL: nothing */
    const char *bench_report;               /* a folder, or NULL */
    uint64_t bench_limit;                   /* seconds, of one run of a report */
    uint64_t bench_prompt, bench_generate, bench_repeat;
    uint64_t bench_flights; /* 0: chosen */
    bool bench_random;
    /* plan */
    const char *plan_for; /* NULL: run */
    /* probe */
    bool fresh;
};

#define BRIG_SHARDS_ALL UINT64_MAX

void brig_settings_init(struct brig_settings *s);

#endif
