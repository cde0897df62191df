/* Chat templates that we know: how to see that a model has one, and how to render it. One row in
 * template.def, one file each. */
#ifndef BRIG_DRIVER_CHAT_TEMPLATE_H
#define BRIG_DRIVER_CHAT_TEMPLATE_H

#include "driver/chat/chat.h"

struct brig_chat_template {
    const char *name; /* "chatml" */
    const char *help; /* one line for `brigade list templates` */
    bool (*fits)(struct brig_str source);
    /* As brig_chat_render, with a source that fits; 0 or a negative error of the buffer. */
    int (*render)(struct brig_str source, const struct brig_chat_message *messages, size_t n,
                  bool add_generation, struct brig_buf *out);
};

#endif
