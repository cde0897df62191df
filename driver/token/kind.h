/*
 * Kinds of tokenizer: how plain text becomes ids, and an id bytes. One row in tokenizer.def, one file each.
 * What all kinds share (added tokens, invalid UTF-8, bos and eos, streaming) is in tokenizer.c.
 */
#ifndef BRIG_DRIVER_TOKEN_KIND_H
#define BRIG_DRIVER_TOKEN_KIND_H

#include "driver/token/tokenizer.h"

/* GGUF token types */
enum brig_token_type {
    BRIG_TOKEN_NORMAL = 1,
    BRIG_TOKEN_UNKNOWN = 2,
    BRIG_TOKEN_CONTROL = 3,
    BRIG_TOKEN_USER = 4,
    BRIG_TOKEN_UNUSED = 5,
    BRIG_TOKEN_BYTE = 6,
};

struct brig_tokenizer_kind {
    const char *name; /* as tokenizer.ggml.model says it: "gpt2" */
    const char *help; /* one line for `brigade list tokenizers` */
    /* Build what encode and piece need. vocab is borrowed and outlives the state. pre_override as in
     * brig_tokenizer_new. */
    int (*open)(void **ret_state, const struct brig_vocab *vocab, const char *pre_override,
                struct brig_fail *fail);
    void (*close)(void *state); /* accepts NULL */
    /* Well-formed UTF-8 without added tokens, normalised, to ids, appended. at_start: nothing stands before
     * it. */
    int (*encode)(void *state, const char *text, size_t n, bool at_start, struct brig_ids *ids,
                  struct brig_fail *fail);
    /* The rest is for vocabularies without rules: those have decoders. NULL: there are none without.
     * Append the bytes that a token stands for; only for ids inside the vocabulary that are neither control
     * nor user defined. */
    int (*piece)(void *state, uint32_t id, struct brig_buf *out);
    /* As piece, for user defined tokens; NULL: they stand for their spelling. */
    int (*user_piece)(void *state, uint32_t id, struct brig_buf *out);
    /* How many bytes at the start of this token's piece encode put before the text, when the token is the
     * first of it. NULL: encode puts none. */
    size_t (*lead)(void *state, uint32_t id);
};

#endif
