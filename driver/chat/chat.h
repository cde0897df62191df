/*
 * Chat templates: a conversation to the prompt that the model was trained on. For now templates that contain
 * <|im_start|> are ChatML, with the default system message that the template itself has.
 */
#ifndef BRIG_DRIVER_CHAT_CHAT_H
#define BRIG_DRIVER_CHAT_CHAT_H

#include <stdbool.h>
#include <stddef.h>

#include "proto/base/buf.h"
#include "proto/base/err.h"
#include "proto/base/str.h"

struct brig_chat_message {
    const char *role; /* "system", "user", "assistant" */
    const char *text;
};

/* Render messages with the template of the model; with add_generation the beginning of the assistant's turn
 * follows. A template that we do not know fails with words that name --raw. */
int brig_chat_render(struct brig_str chat_template, const struct brig_chat_message *messages, size_t n,
                     bool add_generation, struct brig_buf *out, struct brig_fail *fail);

const char *brig_chat_template_at(unsigned i, const char **help); /* rows for `brigade list templates` */

#endif
