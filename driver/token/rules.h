/*
 * What a tokenizer.json states beside its tables: the steps that text goes through before it becomes tokens,
 * and those that tokens go through when they become text. The names are those of the tokenizers library,
 * whose behaviour each step has; steps that come to the same are one kind here.
 */
#ifndef BRIG_DRIVER_TOKEN_RULES_H
#define BRIG_DRIVER_TOKEN_RULES_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/base/str.h"

#define BRIG_MAX_STEPS 16u /* of one chain */

enum brig_step_kind {
    BRIG_STEP_NFC,
    BRIG_STEP_NFD,
    BRIG_STEP_NFKC,
    BRIG_STEP_NFKD,
    BRIG_STEP_LOWERCASE,
    BRIG_STEP_STRIP_ACCENTS, /* combining marks go */
    BRIG_STEP_STRIP,         /* white space at the ends that `left` and `right` name */
    BRIG_STEP_PREPEND,       /* content, before a text that is not empty */
    BRIG_STEP_REPLACE,       /* each match of pattern becomes content */
    BRIG_STEP_SPLIT,         /* cut at the matches of pattern, as behaviour says */
    BRIG_STEP_PREFIX,        /* content, before a piece that does not begin with it; `first`: only the piece
                                at the start of the whole text */
    BRIG_STEP_BYTES,         /* bytes written as the printable characters of GPT-2 */
    BRIG_STEP_BYTE_FALLBACK, /* <0xHH> is a byte */
    BRIG_STEP_FUSE,          /* what follows treats the text, not each token */
    BRIG_STEP_TRIM,          /* up to `most` times content at the start: of each token, or of the text */
};

enum brig_split { /* what becomes of a match */
                  BRIG_SPLIT_REMOVED,
                  BRIG_SPLIT_ISOLATED,
                  BRIG_SPLIT_MERGED_WITH_PREVIOUS,
                  BRIG_SPLIT_MERGED_WITH_NEXT,
                  BRIG_SPLIT_CONTIGUOUS, /* as isolated, neighbouring matches together */
};

struct brig_step {
    enum brig_step_kind kind;
    enum brig_split behaviour;
    bool regex;  /* pattern is a regular expression, else it stands for itself */
    bool invert; /* what lies between the matches is the match */
    bool left, right, first;
    uint32_t most;
    struct brig_str pattern, content;
};

struct brig_steps {
    unsigned n;
    struct brig_step v[BRIG_MAX_STEPS];
};

enum brig_added_flag { /* of an added token */
                       BRIG_ADDED_NORMALIZED = 1u,
                       BRIG_ADDED_LSTRIP = 2u, /* takes white space before it too */
                       BRIG_ADDED_RSTRIP = 4u,
                       BRIG_ADDED_WORD = 8u, /* only where no letter, digit or underscore is beside it */
                       BRIG_ADDED_ONLY =
                           16u /* the model has no such token: text becomes it only as an added token */
};

struct brig_rules {
    struct brig_steps normal, pre, decode;
    bool joined; /* no decoder: tokens are joined with spaces */
    bool byte_fallback, fuse_unk, ignore_merges;
    const uint8_t *added; /* [n_tokens] flags, 0 for tokens that are not added */
    const double *scores; /* [n_tokens] log-probabilities of unigram tokens, else NULL */
};

#endif
