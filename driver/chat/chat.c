/* The named templates, and what a template is told: the variables that transformers gives it. */
#include "driver/chat/chat.h"

#include <string.h>

#include "driver/chat/jinja.h"

static const struct {
    const char *name, *help, *text;
} templates[] = {
#define BRIG_CHAT_TEMPLATE(name_, help_, text_) {name_, help_, text_},
#include "driver/chat/template.def"
#undef BRIG_CHAT_TEMPLATE
};
#define N_TEMPLATES (sizeof templates / sizeof templates[0])

const char *brig_chat_template_at(unsigned i, const char **help)
{
    if (i >= N_TEMPLATES)
        return NULL;
    if (help != NULL)
        *help = templates[i].help;
    return templates[i].name;
}

bool brig_chat_template_named(const char *name, struct brig_chat_template *ret)
{
    for (size_t i = 0; i < N_TEMPLATES; i++) {
        if (strcmp(templates[i].name, name) == 0) {
            *ret = (struct brig_chat_template){{templates[i].text, strlen(templates[i].text)},
                                               templates[i].name};
            return true;
        }
    }
    return false;
}

/* Any bytes: invalid UTF-8 is the tokenizer's business. */
static json_t *text(struct brig_str s)
{
    return json_stringn_nocheck(s.ptr, s.len);
}

static int add_token(json_t *context, const char *name, const struct brig_vocab *v, int64_t id)
{
    if (id < 0 || (uint64_t)id >= v->n_tokens) /* not stated: undefined, as in transformers */
        return 0;
    return json_object_set_new(context, name, text(v->tokens[id]));
}

/* The variables that every template has; NULL when memory is out. */
static json_t *new_context(const struct brig_vocab *v)
{
    json_t *context = json_object();
    int r = json_object_set_new(context, "tools", json_null());
    r |= json_object_set_new(context, "documents", json_null());
    r |= json_object_set_new(context, "add_generation_prompt", json_true());
    if (v != NULL) {
        r |= add_token(context, "bos_token", v, v->bos);
        r |= add_token(context, "eos_token", v, v->eos);
        r |= add_token(context, "pad_token", v, v->pad);
        r |= add_token(context, "unk_token", v, v->unk);
    }
    if (r == 0)
        return context;
    json_decref(context);
    return NULL;
}

/* Takes context. */
static int render(const struct brig_chat_template *t, json_t *context, struct brig_buf *out,
                  struct brig_fail *fail)
{
    if (context == NULL)
        return brig_fail_set(fail, BRIG_ENOMEM, "out of memory for the conversation");
    int r = brig_jinja_render(t->text, context, &brig_jinja_default_limits, out, fail);
    json_decref(context);
    if (r < 0)
        brig_fail_prefix(fail, "%s", t->name);
    return r;
}

static int check(const struct brig_chat_template *t, struct brig_fail *fail)
{
    if (t->text.len > 0)
        return 0;
    return brig_fail_set(
        fail, BRIG_EUNSUPPORTED,
        "the model has no chat template; --chat-template gives it one, --raw sends the text as "
        "it is");
}

static int add_messages(json_t *context, const struct brig_chat_message *messages, size_t n)
{
    json_t *list = json_array();
    int r = json_object_set_new(context, "messages", list);
    for (size_t i = 0; i < n && r == 0; i++) {
        json_t *m = json_object();
        r = json_object_set_new(m, "role", text(messages[i].role));
        r |= json_object_set_new(m, "content", text(messages[i].text));
        r |= json_array_append_new(list, m);
    }
    return r;
}

int brig_chat_render(const struct brig_chat_template *t, const struct brig_vocab *vocab,
                     const struct brig_chat_message *messages, size_t n, bool add_generation,
                     struct brig_buf *out, struct brig_fail *fail)
{
    int r = check(t, fail);
    if (r < 0)
        return r;
    json_t *context = new_context(vocab);
    if (context != NULL &&
        (json_object_set_new(context, "add_generation_prompt", json_boolean(add_generation)) < 0 ||
         add_messages(context, messages, n) < 0)) {
        json_decref(context);
        context = NULL;
    }
    return render(t, context, out, fail);
}

int brig_chat_render_json(const struct brig_chat_template *t, const struct brig_vocab *vocab,
                          const json_t *given, struct brig_buf *out, struct brig_fail *fail)
{
    int r = check(t, fail);
    if (r < 0)
        return r;
    if (!json_is_array(given) && !json_is_array(json_object_get(given, "messages")))
        return brig_fail_set(
            fail, BRIG_EFORMAT,
            "a conversation is a JSON list of messages, or an object that has such a list as "
            "\"messages\"");
    json_t *context = new_context(vocab), *other = (json_t *)(uintptr_t)given;
    r = json_is_array(given) ? json_object_set(context, "messages", other)
                             : json_object_update(context, other);
    if (r < 0) {
        json_decref(context);
        context = NULL;
    }
    return render(t, context, out, fail);
}
