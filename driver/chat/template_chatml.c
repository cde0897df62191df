/*
 * ChatML: <|im_start|>role, a line end, the text, <|im_end|>, a line end. Templates of this kind differ in
 * the system message that they put before a conversation without one. It is read from the template's own
 * source: the literal between "<|im_start|>system\n" and "<|im_end|>", as SmolLM2's and Qwen2.5's have it.
 */
#include <string.h>

#include "driver/chat/template.h"

#define START  "<|im_start|>"
#define END    "<|im_end|>"
#define SYSTEM "<|im_start|>system"

static const char *find(const char *from, const char *end, const char *what)
{
    return memmem(from, (size_t)(end - from), what, strlen(what));
}

static bool begins(const char *from, const char *end, const char *what)
{
    size_t n = strlen(what);
    return (size_t)(end - from) >= n && memcmp(from, what, n) == 0;
}

static bool fits(struct brig_str source)
{
    const char *end = source.ptr + source.len;
    /* <|im_sep|> belongs to a relative of ChatML in which the role ends otherwise. */
    return find(source.ptr, end, START) != NULL && find(source.ptr, end, "<|im_sep|>") == NULL;
}

/* One character of a literal: *c moves past it, and past the backslash of an escape. */
static int add_literal(const char **c, const char *end, bool quoted, struct brig_buf *out)
{
    char byte = *(*c)++;
    if (quoted && byte == '\\' && *c < end) {
        byte = *(*c)++;
        byte = byte == 'n' ? '\n' : byte == 't' ? '\t' : byte == 'r' ? '\r' : byte;
    }
    return brig_buf_add(out, &byte, 1);
}

/* The system message that is written out after a SYSTEM at `at`: 1 when there is one, 0 when the literal ends
 * before END does (the message is then an expression), or an error. */
static int read_default(struct brig_str source, const char *at, struct brig_buf *out)
{
    const char *end = source.ptr + source.len, *c = at + strlen(SYSTEM);
    char quote = at > source.ptr ? at[-1] : '\0';
    bool quoted = quote == '\'' || quote == '"'; /* else it is the template's plain text */
    if (begins(c, end, "\n"))
        c += 1;
    else if (quoted && begins(c, end, "\\n"))
        c += 2;
    else
        return 0;
    while (c < end) {
        if (begins(c, end, END))
            return 1;
        if (quoted ? *c == quote : begins(c, end, "{{") || begins(c, end, "{%"))
            return 0;
        int r = add_literal(&c, end, quoted, out);
        if (r < 0)
            return r;
    }
    return 0;
}

static int find_default(struct brig_str source, struct brig_buf *out)
{
    const char *end = source.ptr + source.len, *at = source.ptr;
    while ((at = find(at, end, SYSTEM)) != NULL) {
        brig_buf_clear(out);
        int r = read_default(source, at, out);
        if (r != 0)
            return r;
        at += strlen(SYSTEM);
    }
    return 0;
}

static int add_message(struct brig_buf *out, const char *role, const char *text, size_t n)
{
    int r = brig_buf_printf(out, START "%s\n", role);
    if (r == 0)
        r = brig_buf_add(out, text, n);
    return r == 0 ? brig_buf_add(out, END "\n", strlen(END "\n")) : r;
}

static int render(struct brig_str source, const struct brig_chat_message *messages, size_t n,
                  bool add_generation, struct brig_buf *out)
{
    struct brig_buf text = {0};
    int r = n > 0 && strcmp(messages[0].role, "system") != 0 ? find_default(source, &text) : 0;
    if (r == 1)
        r = add_message(out, "system", text.data != NULL ? text.data : "", text.len);
    brig_buf_release(&text);
    for (size_t i = 0; i < n && r == 0; i++)
        r = add_message(out, messages[i].role, messages[i].text, strlen(messages[i].text));
    if (r == 0 && add_generation)
        r = brig_buf_printf(out, START "assistant\n");
    return r;
}

const struct brig_chat_template brig_chat_chatml = {
    .name = "chatml",
    .help = "ChatML (<|im_start|>), with the system message that the model's template has",
    .fits = fits,
    .render = render,
};
