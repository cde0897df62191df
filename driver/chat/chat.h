/*
 * Chat templates: a conversation to the prompt that the model was trained on. A template is Jinja (jinja.h):
 * the model's own, one of the named ones (template.def), or a file.
 */
#ifndef BRIG_DRIVER_CHAT_CHAT_H
#define BRIG_DRIVER_CHAT_CHAT_H

#include <stdbool.h>
#include <stddef.h>

#include <jansson.h>

#include "proto/base/buf.h"
#include "proto/base/err.h"
#include "proto/base/str.h"
#include "proto/model/model.h"

struct brig_chat_template {
    struct brig_str text; /* len 0: there is none */
    const char *name;     /* what failures call it: a file, a name, "the chat template" */
};

struct brig_chat_message {
    struct brig_str role; /* "system", "user", "assistant" */
    struct brig_str text; /* any bytes */
};

/* Render messages; with add_generation the beginning of the assistant's turn follows. The text is added to
 * *out, which is left as it was on failure. vocab (or NULL) has the special tokens. A failure names the
 * template and the line; a template that is none names --raw and --chat-template. */
int brig_chat_render(const struct brig_chat_template *t, const struct brig_vocab *vocab,
                     const struct brig_chat_message *messages, size_t n, bool add_generation,
                     struct brig_buf *out, struct brig_fail *fail);

/* The same for a list of messages as JSON, or an object whose members are the template's variables: messages,
 * tools, add_generation_prompt (true when not given) and whatever else the template reads. */
int brig_chat_render_json(const struct brig_chat_template *t, const struct brig_vocab *vocab,
                          const json_t *given, struct brig_buf *out, struct brig_fail *fail);

/* A named template; false when there is none of that name. */
bool brig_chat_template_named(const char *name, struct brig_chat_template *ret);
const char *brig_chat_template_at(unsigned i, const char **help); /* rows for `brigade list templates` */

#endif
