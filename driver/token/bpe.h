/* Byte-pair encoding by a list of merges (Sennrich et al. 2016), whatever its first symbols are: the part
 * that kinds of tokenizer share. */
#ifndef BRIG_DRIVER_TOKEN_BPE_H
#define BRIG_DRIVER_TOKEN_BPE_H

#include "driver/token/kind.h"
#include "driver/token/merge.h"
#include "driver/token/strmap.h"

struct brig_bpe {
    const struct brig_vocab *vocab;
    struct brig_strmap spelling; /* of the tokens that text can become */
    struct brig_pairmap ranks;
    uint32_t *made; /* [n_merges] */
    struct brig_merge merge;
};

/* A merge whose parts or result are no tokens fails and is named. *b need not be initialised; release accepts
 * a zeroed or half-made one. */
int brig_bpe_init(struct brig_bpe *b, const struct brig_vocab *vocab, struct brig_fail *fail);
void brig_bpe_release(struct brig_bpe *b);

/* Merge the n symbols in b->merge.ids (reserved by the caller) and append what is left. */
int brig_bpe_run(struct brig_bpe *b, size_t n, struct brig_ids *ids, struct brig_fail *fail);

/* The token that is spelt like this and is no control token, or BRIG_NO_ID. */
uint32_t brig_bpe_whole(const struct brig_bpe *b, const char *spelling, size_t n);

/* brig_ids_add with a failure that says what ran out. */
int brig_bpe_add(struct brig_ids *ids, uint32_t id, struct brig_fail *fail);

#endif
