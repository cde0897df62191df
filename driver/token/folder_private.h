/* What the readers of a folder's files share. */
#ifndef BRIG_DRIVER_TOKEN_FOLDER_PRIVATE_H
#define BRIG_DRIVER_TOKEN_FOLDER_PRIVATE_H

#include <jansson.h>

#include "driver/token/folder.h"
#include "driver/token/jsontab.h"
#include "driver/token/rules.h"
#include "proto/base/buf.h"

#define BRIG_FOLDER_MAX_ENDS 64u

enum brig_folder_file {
    BRIG_FOLDER_CONFIG,
    BRIG_FOLDER_SPECIAL,
    BRIG_FOLDER_GENERATION,
    BRIG_FOLDER_MODEL,
    BRIG_FOLDER_N_FILES,
};

struct brig_folder {
    struct brig_vocab vocab;
    struct brig_rules rules;
    char *text; /* of tokenizer.json: strings point into it */
    struct brig_json_tables tables;
    json_t *files[BRIG_FOLDER_N_FILES]; /* NULL: not there */
    struct brig_str *tokens;            /* [vocab.n_tokens] */
    int32_t *types;
    uint8_t *added;
    double *scores;
    uint32_t ends[BRIG_FOLDER_MAX_ENDS];
    struct brig_buf chat_template;
};

/* Tokens, merges, model and steps from f->tables. */
int brig_folder_read_model(struct brig_folder *f, struct brig_fail *fail);

/* What post_processor puts before and after a text. */
int brig_folder_read_post(struct brig_folder *f, struct brig_fail *fail);

/* The id of a spelling, an added token before others; -1: none. */
int64_t brig_folder_find(const struct brig_folder *f, struct brig_str spelling);

#endif
