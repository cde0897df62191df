/* Which chat template a verb uses: --chat-template NAME|FILE, else the model's own. */
#ifndef BRIG_DRIVER_FRONT_TEMPLATE_H
#define BRIG_DRIVER_FRONT_TEMPLATE_H

#include "driver/chat/chat.h"
#include "driver/front/settings.h"

struct brig_template {
    struct brig_chat_template chat; /* text.len 0: the model has none and none was given */
    struct brig_buf file;           /* the text, when it came from a file */
};

/* Names come before files. v: whose own template it is, borrowed. Release in every case. */
int brig_template_choose(struct brig_template *t, const struct brig_settings *s, const struct brig_vocab *v,
                         struct brig_fail *fail);
void brig_template_release(struct brig_template *t);

#endif
