/*
 * The text of a tokenizer.json with its two large tables, model.vocab and model.merges, read apart: a tree of
 * them takes most of a second for 262,144 tokens, a walk a twentieth of that. All the rest is jansson's,
 * which sees null where the tables stand. What is accepted is JSON (RFC 8259) in UTF-8.
 */
#ifndef BRIG_DRIVER_TOKEN_JSONTAB_H
#define BRIG_DRIVER_TOKEN_JSONTAB_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "proto/base/err.h"
#include "proto/base/str.h"

struct brig_json_token {
    struct brig_str text;
    union {
        uint32_t id;  /* of {"text": id} */
        double score; /* of [["text", score]]: the index is the id */
    };
};

struct brig_json_tables {
    bool has_vocab, has_merges;
    bool scored; /* vocab is a list */
    uint32_t n_tokens, n_pairs;
    struct brig_json_token *tokens;
    struct brig_str (*pairs)[2]; /* of ["left", "right"] or "left right" */
    json_t *rest;
};

/* Strings of the tables point into text, which is changed (escapes are resolved in place) and must live
 * longer. Fails with the line. *ret need not be initialised; release after a failure is not needed. */
int brig_json_tables_read(struct brig_json_tables *ret, char *text, size_t n, struct brig_fail *fail);
void brig_json_tables_release(struct brig_json_tables *t);

#endif
