/* From --chat-template, or its absence, to a template. */
#include "driver/front/template.h"

#include <string.h>
#include <unistd.h>

#include "driver/front/input.h"

#define MAX_TEMPLATE_BYTES ((size_t)1 << 20)

int brig_template_choose(struct brig_template *t, const struct brig_settings *s, const struct brig_vocab *v,
                         struct brig_fail *fail)
{
    const char *given = s->chat_template;
    *t = (struct brig_template){.chat = {v->chat_template, "the chat template"},
                                .file = {.max = MAX_TEMPLATE_BYTES}};
    if (given == NULL || brig_chat_template_named(given, &t->chat))
        return 0;
    if (strchr(given, '/') == NULL && access(given, F_OK) != 0)
        return brig_fail_set(
            fail, BRIG_EUSAGE,
            "--chat-template %s: neither a file nor a name; `brigade list templates` has the names", given);
    int r = brig_input_read(&t->file, given, fail);
    if (r < 0)
        return r;
    if (t->file.len == 0)
        return brig_fail_set(fail, BRIG_EFORMAT, "%s: the file is empty", given);
    t->chat = (struct brig_chat_template){{t->file.data, t->file.len}, given};
    return 0;
}

void brig_template_release(struct brig_template *t)
{
    brig_buf_release(&t->file);
}
