/*
 * Tokenizers: text to ids and back, from the data in a checkpoint. One registry row per kind
 * (tokenizer.def), one file each; "gpt2" is byte-level BPE (Sennrich et al. 2016 on bytes, as GPT-2 does it),
 * "llama" BPE by scores with byte fallback (Kudo and Richardson 2018, SentencePiece), "bpe" BPE by merges on
 * characters, "t5" unigram (Kudo 2018). Around them stand the steps that a tokenizer.json states (rules.h).
 */
#ifndef BRIG_DRIVER_TOKEN_TOKENIZER_H
#define BRIG_DRIVER_TOKEN_TOKENIZER_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/base/buf.h"
#include "proto/base/err.h"
#include "proto/model/model.h"

struct brig_tokenizer;

struct brig_ids {
    uint32_t *v;
    size_t n, cap;
};
void brig_ids_release(struct brig_ids *ids);
int brig_ids_add(struct brig_ids *ids, uint32_t id);
int brig_ids_reserve(struct brig_ids *ids, size_t n); /* room for n in all: adding them allocates nothing */

/* vocab is borrowed and must live longer. pre_override: a row of the pre-tokenizer table or NULL. An unknown
 * kind of model or pre-tokenizer fails with what is known and how --pre overrides. */
int brig_tokenizer_new(struct brig_tokenizer **ret, const struct brig_vocab *vocab, const char *pre_override,
                       struct brig_fail *fail);
void brig_tokenizer_free(struct brig_tokenizer *t); /* NULL allowed */

enum brig_encode_flag {
    BRIG_ENCODE_SPECIAL = 1u, /* control tokens in the text become their ids; without it their spelling is
                                 plain text. User defined tokens become theirs with and without it */
    BRIG_ENCODE_BOS = 2u, /* add bos (and eos) as the file asks for: a file that asks for none gets none */
};

/* Bytes to ids, appended. Invalid UTF-8: one U+FFFD per maximal invalid prefix. NUL bytes are text. */
int brig_tokenizer_encode(struct brig_tokenizer *t, const char *text, size_t n, unsigned flags,
                          struct brig_ids *ids, struct brig_fail *fail);

/* Bytes of one token as they go into the output (control tokens: their spelling, when special is true, else
 * nothing). false for an id outside the vocabulary. The bytes are borrowed until the next call. */
bool brig_tokenizer_piece(struct brig_tokenizer *t, uint32_t id, bool special, const char **bytes, size_t *n);

/* Bytes at the start of a token's piece that belong to no text that begins with it: the space that encode
 * puts before a text. Ends the borrowing of another token's piece. */
size_t brig_tokenizer_lead(struct brig_tokenizer *t, uint32_t id);

/* Decode a whole list, from the start of a text: without the space that encode put before it. Invalid UTF-8
 * in the result becomes U+FFFD. */
int brig_tokenizer_decode(struct brig_tokenizer *t, const uint32_t *ids, size_t n, bool special,
                          struct brig_buf *out, struct brig_fail *fail);

/* Streaming decode: feed tokens, take text that holds only whole characters; what may still become a
 * character is held back until it does, or until it cannot (then U+FFFD), or until finish. */
struct brig_stream {
    unsigned char held[8];
    unsigned n_held;
};
int brig_stream_add(struct brig_stream *s, const char *bytes, size_t n, struct brig_buf *out);
int brig_stream_finish(struct brig_stream *s, struct brig_buf *out);

/* Is this id an end of turn or of text: eos, eot, or a control token spelt like one (<|im_end|>, <|eot_id|>,
 * <|endoftext|>, <end_of_turn>, </s>, <|end|>). */
bool brig_tokenizer_is_end(const struct brig_tokenizer *t, uint32_t id);
uint32_t brig_tokenizer_n_tokens(const struct brig_tokenizer *t);

/* Rows of the two tables, for `brigade list`. NULL names after the last row. */
const char *brig_tokenizer_kind_at(unsigned i, const char **help);
const char *brig_pretokenizer_at(unsigned i, const char **help);

#endif
