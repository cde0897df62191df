/* From settings to everything a verb works with: model, tokenizer, token table, line, session. */
#ifndef BRIG_DRIVER_FRONT_LINEUP_H
#define BRIG_DRIVER_FRONT_LINEUP_H

#include "driver/front/budget.h"
#include "driver/front/settings.h"
#include "driver/run/session.h"
#include "driver/token/folder.h"
#include "driver/token/tokenizer.h"
#include "proto/base/err.h"
#include "proto/stat/trace.h"

struct brig_lineup {
    const struct brig_settings *settings;
    struct brig_model *model;
    struct brig_folder *folder; /* whose vocabulary the model has; NULL: the model has its own */
    struct brig_embed *embed;
    struct brig_tokenizer *tokenizer; /* NULL when not asked for */
    struct brig_trace *trace;         /* NULL unless --trace */
    struct brig_line *line;
    struct brig_session *session;
    uint32_t ctx;
    struct brig_plan plan; /* with --ram */
    bool planned;
};

/* Model and token table; the tokenizer too when wanted (a model without one then fails). Checks the flags
 * that depend on the model, and with --ram makes the plan, for `budget`. Starts nothing. Release in every
 * case. */
int brig_lineup_open(struct brig_lineup *l, const struct brig_settings *s, bool with_tokenizer,
                     const struct brig_budget_need *budget, struct brig_fail *fail);

/* The model's vocabulary, when it is in files beside it. brig_lineup_open has done so when a tokenizer is
 * wanted.
 */
int brig_lineup_vocab(struct brig_lineup *l, struct brig_fail *fail);

/* The context that the settings ask for; when they do not, what the plan has chosen or min(trained, 4096),
 * said on standard error. */
void brig_lineup_choose_ctx(struct brig_lineup *l);

/* What a line is started for, beyond settings. */
struct brig_lineup_need {
    uint32_t ctx;   /* positions */
    bool pss;       /* each pass also reads the memory figures */
    bool tokenizer; /* open it too, while the shards start */
    bool star;      /* one layer a shard, each giving its rows back to the driver: for brig_session_hidden */
};

/* Shards and session; the tokenizer when asked for (its failure is the one that is told, if both fail). */
int brig_lineup_start(struct brig_lineup *l, const struct brig_lineup_need *need, struct brig_fail *fail);

/* Ends the line in order; writes the trace (its failure is reported when there is none before). Everything
 * may be half-built. Returns r, or the trace's failure. */
int brig_lineup_release(struct brig_lineup *l, int r, struct brig_fail *fail);

/* The number of processes that a value of --shards means; too many is a usage failure that names the flag. */
int brig_lineup_count(const struct brig_model *m, uint64_t shards, unsigned *ret, struct brig_fail *fail);

/* Rows of a batch: all that a frame takes, unless BRIGADE_TEST_BATCH says less. */
int brig_lineup_batch(uint32_t max_rows, uint32_t *ret, struct brig_fail *fail);

#endif
