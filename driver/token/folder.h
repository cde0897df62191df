/*
 * The tokenizer of a folder: tokenizer.json, and beside it tokenizer_config.json, special_tokens_map.json,
 * generation_config.json, config.json and chat_template.jinja, where they are there. No weights are needed.
 */
#ifndef BRIG_DRIVER_TOKEN_FOLDER_H
#define BRIG_DRIVER_TOKEN_FOLDER_H

#include <stdbool.h>

#include "proto/base/err.h"
#include "proto/model/model.h"

struct brig_folder;

/* path is the folder, or the tokenizer.json in it. The failure names the file. Truncation and padding, which
 * a tokenizer.json may state, concern batches for training and are not applied; all else that it states is
 * applied or refused by name. */
int brig_folder_open(struct brig_folder **ret, const char *path, struct brig_fail *fail);
void brig_folder_close(struct brig_folder *f); /* NULL allowed */

/* Lives as long as *f. */
const struct brig_vocab *brig_folder_vocab(const struct brig_folder *f);

/* For a model without a vocabulary of its own: the one that lies beside its first file becomes m->vocab, and
 * *ret must outlive m's use. *ret is NULL when the model has its own, or there is none. */
int brig_folder_attach(struct brig_folder **ret, struct brig_model *m, struct brig_fail *fail);

/* The names of the files that are read, the first one tokenizer.json; NULL after the last. */
const char *brig_folder_file(unsigned i);

/* Is path such a folder, or a file of this name? Only looks at names. */
bool brig_folder_is(const char *path);

#endif
