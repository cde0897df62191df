/*
 * One answer: prompt ids through the line, sampled tokens back through it, text out as it becomes whole
 * characters, until something stops it.
 */
#ifndef BRIG_DRIVER_RUN_GENERATE_H
#define BRIG_DRIVER_RUN_GENERATE_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "driver/run/sched.h"
#include "driver/run/spec.h"
#include "driver/sample/sampler.h"
#include "driver/token/tokenizer.h"
#include "proto/stat/trace.h"

enum brig_stop_reason {
    BRIG_STOP_REASON_EOS,       /* an end token */
    BRIG_STOP_REASON_STOP,      /* a stop string */
    BRIG_STOP_REASON_LENGTH,    /* as many tokens as asked for */
    BRIG_STOP_REASON_CONTEXT,   /* the context is full */
    BRIG_STOP_REASON_CANCELLED, /* the user */
    BRIG_STOP_REASON_COUNT
};
const char *brig_stop_reason_name(enum brig_stop_reason reason); /* "eos" */

struct brig_generate {
    struct brig_sched *sched; /* all pointers are borrowed. No other sequence is in it */
    struct brig_spec *spec;   /* drafts that go with the tokens; NULL: none */
    struct brig_tokenizer *tokenizer;
    struct brig_sampler *sampler; /* new: it is told of the prompt here */
    const uint32_t *prompt;       /* the whole of it: what the cache already holds is not sent again */
    size_t n_prompt;              /* 1 to the context */
    uint64_t max_new;             /* 0: no limit but the context */
    uint64_t first_index; /* tokens generated before with the same seed: draws are counted on from there */
    bool ignore_eos;
    const char *const *stops;
    unsigned n_stops;
    struct brig_trace *trace;            /* or NULL */
    const volatile sig_atomic_t *cancel; /* or NULL */
    /* Text of the answer, whole characters; not 0: give up with that value. */
    int (*text)(void *ctx, const char *bytes, size_t n, struct brig_fail *fail);
    void (*progress)(void *ctx, size_t done,
                     size_t total); /* of the prompt, what must be sent of it; or NULL */
    void *ctx;                      /* of both */
};

struct brig_generated {
    struct brig_ids ids; /* without the end token */
    enum brig_stop_reason reason;
    size_t n_sent;                        /* prompt tokens that the cache did not hold */
    uint64_t n_passes;                    /* frames that tokens were drawn from */
    uint64_t begin_ns, first_ns, last_ns; /* clock: prompt sent; first and last token drawn; 0: none was */
};

/* A cancelled answer is a result (0, reason CANCELLED), not a failure. *ret is written in both cases and
 * released by the caller. */
int brig_generate_run(const struct brig_generate *g, struct brig_generated *ret, struct brig_fail *fail);
void brig_generated_release(struct brig_generated *g);

double brig_generated_prefill_tok_s(const struct brig_generated *g);
double brig_generated_decode_tok_s(const struct brig_generated *g); /* (n - 1) / (t_n - t_1); 0 below 2 */

#endif
