/* brigade tokenize: text to ids and back. */
#include <stdio.h>
#include <string.h>

#include "driver/front/input.h"
#include "driver/front/template.h"
#include "driver/front/verb.h"
#include "driver/run/json.h"
#include "driver/token/folder.h"
#include "driver/token/tokenizer.h"
#include "proto/model/model.h"

static int write_failed(struct brig_fail *fail)
{
    return brig_fail_errno(fail, BRIG_EIO, "standard output");
}

static int print_plain(const struct brig_ids *ids, struct brig_fail *fail)
{
    for (size_t i = 0; i < ids->n; i++)
        printf("%s%u", i > 0 ? " " : "", ids->v[i]);
    return putchar('\n') == EOF || fflush(stdout) != 0 ? write_failed(fail) : 0;
}

/* Piece by piece, so that a long text does not become a tree in memory. */
static int print_piece(struct brig_tokenizer *t, uint32_t id, const char *separator, struct brig_fail *fail)
{
    const char *bytes;
    size_t n;
    if (!brig_tokenizer_piece(t, id, true, &bytes, &n))
        return brig_fail_set(fail, BRIG_EINTERNAL, "token %u has no piece", id);
    json_t *text = brig_json_text(bytes, n);
    fputs(separator, stdout);
    int r = text == NULL ? -1 : json_dumpf(text, stdout, JSON_ENCODE_ANY);
    json_decref(text);
    return r < 0 ? write_failed(fail) : 0;
}

static int print_json(struct brig_tokenizer *t, const struct brig_ids *ids, struct brig_fail *fail)
{
    fputs("{\"ids\":[", stdout);
    for (size_t i = 0; i < ids->n; i++)
        printf("%s%u", i > 0 ? "," : "", ids->v[i]);
    fputs("],\"pieces\":[", stdout);
    for (size_t i = 0; i < ids->n; i++) {
        int r = print_piece(t, ids->v[i], i > 0 ? "," : "", fail);
        if (r < 0)
            return r;
    }
    return fputs("]}\n", stdout) == EOF || fflush(stdout) != 0 ? write_failed(fail) : 0;
}

static int encode(const struct brig_settings *s, struct brig_tokenizer *t, const struct brig_buf *text,
                  struct brig_fail *fail)
{
    struct brig_ids ids = {0};
    int r = brig_tokenizer_encode(t, text->data == NULL ? "" : text->data, text->len,
                                  s->no_special ? 0 : BRIG_ENCODE_SPECIAL, &ids, fail);
    if (r == 0)
        r = s->json ? print_json(t, &ids, fail) : print_plain(&ids, fail);
    brig_ids_release(&ids);
    return r;
}

static int decode(const struct brig_settings *s, struct brig_tokenizer *t, const struct brig_buf *text,
                  struct brig_fail *fail)
{
    struct brig_ids ids = {0};
    struct brig_buf out = {0};
    int r = brig_input_ids(&ids, text->data == NULL ? "" : text->data, text->len, "standard input", fail);
    if (r == 0)
        r = brig_tokenizer_decode(t, ids.v, ids.n, !s->no_special, &out, fail);
    if (r == 0 && s->json) {
        json_t *o = json_object();
        json_object_set_new(o, "text", brig_json_text(out.data == NULL ? "" : out.data, out.len));
        r = brig_json_print(o, fail);
        json_decref(o);
    } else if (r == 0) {
        r = brig_output_write(out.data, out.len, fail);
    }
    brig_ids_release(&ids);
    brig_buf_release(&out);
    return r;
}

/* The tokenizer of a model, or of a folder that may hold nothing else. */
struct source {
    struct brig_model *model;
    struct brig_folder *folder;
    const struct brig_vocab *vocab;
    struct brig_tokenizer *tokenizer;
};

static int open_source(const struct brig_settings *s, struct source *from, struct brig_fail *fail)
{
    int r;
    if (brig_folder_is(s->operand)) {
        r = brig_folder_open(&from->folder, s->operand, fail);
        from->vocab = r == 0 ? brig_folder_vocab(from->folder) : NULL;
    } else {
        r = brig_model_open(&from->model, s->operand, fail);
        if (r == 0)
            r = brig_folder_attach(&from->folder, from->model, fail);
        from->vocab = r == 0 ? &from->model->vocab : NULL;
    }
    if (r == 0 && (r = brig_tokenizer_new(&from->tokenizer, from->vocab, s->pre, fail)) < 0)
        brig_fail_prefix(fail, "%s", s->operand);
    return r;
}

static void close_source(struct source *from)
{
    brig_tokenizer_free(from->tokenizer);
    brig_model_close(from->model);
    brig_folder_close(from->folder);
}

/* The prompt that a conversation becomes. */
static int render(const struct brig_settings *s, const struct brig_vocab *v, struct brig_buf *out,
                  struct brig_fail *fail)
{
    struct brig_template t;
    struct brig_buf file = {0};
    json_error_t err;
    json_t *given = NULL;
    int r = brig_template_choose(&t, s, v, fail);
    if (r == 0)
        r = brig_input_read(&file, s->messages, fail);
    if (r == 0) {
        given = json_loadb(file.data == NULL ? "" : file.data, file.len, JSON_ALLOW_NUL, &err);
        if (given == NULL)
            r = brig_fail_set(fail, BRIG_EFORMAT, "%s: line %d, column %d: %s", s->messages, err.line,
                              err.column, err.text);
    }
    if (r == 0)
        r = brig_chat_render_json(&t.chat, v, given, out, fail);
    json_decref(given);
    brig_buf_release(&file);
    brig_template_release(&t);
    return r;
}

static int check_flags(const struct brig_settings *s, struct brig_fail *fail)
{
    if (s->messages == NULL && (s->as_text || s->chat_template != NULL))
        return brig_fail_set(fail, BRIG_EUSAGE, "%s needs --messages",
                             s->as_text ? "--text" : "--chat-template");
    if (s->messages != NULL && s->decode)
        return brig_fail_set(fail, BRIG_EUSAGE, "--messages and --decode do not go together");
    if (s->as_text && s->json)
        return brig_fail_set(fail, BRIG_EUSAGE, "--text and --json do not go together");
    return 0;
}

static int print(const struct brig_settings *s, struct brig_tokenizer *t, const struct brig_buf *text,
                 struct brig_fail *fail)
{
    if (s->as_text)
        return brig_output_write(text->data, text->len, fail);
    return s->decode ? decode(s, t, text, fail) : encode(s, t, text, fail);
}

static int run(const struct brig_settings *s, struct brig_fail *fail)
{
    struct source from = {0};
    struct brig_buf text = {0};
    int r = check_flags(s, fail);
    if (r < 0)
        return r;
    r = open_source(s, &from, fail);
    if (r == 0)
        r = s->messages != NULL ? render(s, from.vocab, &text, fail) : brig_input_read(&text, NULL, fail);
    if (r == 0)
        r = print(s, from.tokenizer, &text, fail);
    brig_buf_release(&text);
    close_source(&from);
    return r;
}

const struct brig_verb brig_verb_tokenize = {
    .name = "tokenize",
    .help = "text on standard input to token ids, or back",
    .usage = "MODEL [--json] [--no-special] [--decode] < TEXT | MODEL --messages FILE [--text]",
    .about = "Prints the ids of the bytes on standard input, all of them: a final newline counts, and no\n"
             "beginning-of-text token is added. With --decode ids (white space, commas or a JSON list\n"
             "between them) become text. MODEL may be a folder that holds only tokenizer.json and its\n"
             "companions, or that file. --no-special makes plain text of control tokens.\n"
             "\n"
             "With --messages the text is a conversation in the chat template of the model: a JSON list of\n"
             "messages ([{\"role\": \"user\", \"content\": \"Hi\"}]), or an object with messages, tools,\n"
             "add_generation_prompt (default true) and whatever else the template reads. --text shows it.\n"
             "\n"
             "examples:\n"
             "  printf 'Hello there' | brigade tokenize MODEL\n"
             "  printf 'Hello there' | brigade tokenize MODEL --json\n"
             "  echo '[1, 2, 3]' | brigade tokenize MODEL --decode\n"
             "  brigade tokenize MODEL --messages conversation.json --text\n",
    .operand = "MODEL",
    .operand_needed = true,
    .run = run,
};
