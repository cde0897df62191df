/* Chat templates: the table, and the words for a model whose template is not in it. */
#include "driver/chat/chat.h"

#include "driver/chat/template.h"

#define BRIG_CHAT_TEMPLATE(object) extern const struct brig_chat_template object;
#include "driver/chat/template.def"
#undef BRIG_CHAT_TEMPLATE

static const struct brig_chat_template *const templates[] = {
#define BRIG_CHAT_TEMPLATE(object) &object,
#include "driver/chat/template.def"
#undef BRIG_CHAT_TEMPLATE
};
#define N_TEMPLATES (sizeof templates / sizeof templates[0])

const char *brig_chat_template_at(unsigned i, const char **help)
{
    if (i >= N_TEMPLATES)
        return NULL;
    if (help != NULL)
        *help = templates[i]->help;
    return templates[i]->name;
}

int brig_chat_render(struct brig_str chat_template, const struct brig_chat_message *messages, size_t n,
                     bool add_generation, struct brig_buf *out, struct brig_fail *fail)
{
    if (chat_template.len == 0)
        return brig_fail_set(fail, BRIG_EUNSUPPORTED,
                             "the model has no chat template; --raw sends the text as it is");
    size_t before = out->len;
    for (size_t i = 0; i < N_TEMPLATES; i++) {
        if (!templates[i]->fits(chat_template))
            continue;
        int r = templates[i]->render(chat_template, messages, n, add_generation, out);
        if (r == 0)
            return 0;
        out->len = before;
        return brig_fail_set(fail, (enum brig_err) - r, "rendering the conversation: %s", brig_err_text(-r));
    }
    return brig_fail_set(fail, BRIG_EUNSUPPORTED,
                         "the model's chat template is not one that is known; --raw sends the text as it is");
}
