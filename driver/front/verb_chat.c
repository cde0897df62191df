/*
 * brigade chat: a conversation. The whole of it is rendered for each turn; what the cache already holds of it
 * is not sent again (the common beginning of the ids decides, so a text that tokenises otherwise than it was
 * generated costs a few tokens and nothing else).
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "driver/chat/chat.h"
#include "driver/front/answer.h"
#include "driver/front/input.h"
#include "driver/front/interrupt.h"
#include "driver/front/lines.h"
#include "driver/front/template.h"
#include "driver/front/verb.h"
#include "proto/base/mem.h"

struct chat {
    struct brig_lineup lineup;
    struct brig_answer_job job;
    struct brig_lines *lines;
    struct brig_template chat_template;
    struct brig_chat_message *messages; /* texts are owned */
    size_t n_messages, cap_messages;
    struct brig_buf rendered;
};

static void forget(struct chat *c, size_t from)
{
    while (c->n_messages > from)
        brig_free((char *)(uintptr_t)c->messages[--c->n_messages].text.ptr);
}

static int say(struct chat *c, const char *role, const char *text, size_t n, struct brig_fail *fail)
{
    if (c->n_messages == c->cap_messages) {
        size_t cap = c->cap_messages * 2 + 16;
        struct brig_chat_message *m = brig_alloc(cap, sizeof *m);
        if (m == NULL)
            return brig_fail_set(fail, BRIG_ENOMEM, "out of memory for the conversation");
        if (c->n_messages > 0)
            memcpy(m, c->messages, c->n_messages * sizeof *m);
        brig_free(c->messages);
        c->messages = m;
        c->cap_messages = cap;
    }
    char *copy = brig_strndup(text, n);
    if (copy == NULL)
        return brig_fail_set(fail, BRIG_ENOMEM, "out of memory for the conversation");
    c->messages[c->n_messages++] = (struct brig_chat_message){{role, strlen(role)}, {copy, n}};
    return 0;
}

static size_t n_system(const struct chat *c)
{
    return c->lineup.settings->system != NULL;
}

static int make_prompt(struct chat *c, struct brig_fail *fail)
{
    brig_buf_clear(&c->rendered);
    c->job.prompt.n = 0;
    int r = brig_chat_render(&c->chat_template.chat, &c->lineup.model->vocab, c->messages, c->n_messages,
                             true, &c->rendered, fail);
    return r < 0 ? r
                 : brig_tokenizer_encode(c->lineup.tokenizer, c->rendered.data, c->rendered.len,
                                         BRIG_ENCODE_SPECIAL, &c->job.prompt, fail);
}

/* The last message does not fit: without a person nothing else can be done about it. */
static int full(struct chat *c, struct brig_fail *fail)
{
    size_t n = c->job.prompt.n;
    forget(c, c->n_messages - 1);
    if (!brig_lines_interactive(c->lines))
        return brig_fail_set(fail, BRIG_ELIMIT, "the conversation has %zu tokens and the context room for %u",
                             n, c->lineup.ctx);
    fprintf(stderr,
            "brigade: the conversation would have %zu tokens and the context has room for %u: /reset "
            "begins a new one\n",
            n, c->lineup.ctx);
    return 0;
}

static int tell_end(struct chat *c, const struct brig_generated *g, struct brig_fail *fail)
{
    int r = brig_output_write("\n", 1, fail);
    if (r == 0 && g->reason == BRIG_STOP_REASON_CONTEXT && !c->lineup.settings->quiet)
        fputs("brigade: the context is full: /reset begins a new conversation\n", stderr);
    if (r < 0 || g->reason != BRIG_STOP_REASON_CANCELLED)
        return r;
    /* One Ctrl-C ends the answer; a second one, or another signal, the program. */
    if (*brig_interrupt_flag() != SIGINT || brig_interrupt_count() > 1)
        return brig_fail_set(fail, BRIG_ECANCELLED, "cancelled");
    brig_interrupt_clear();
    return 0;
}

static int turn(struct chat *c, const struct brig_buf *text, struct brig_fail *fail)
{
    struct brig_generated g = {0};
    struct brig_buf kept = {0};
    int r = say(c, "user", text->data, text->len, fail);
    if (r == 0)
        r = make_prompt(c, fail);
    if (r < 0)
        return r;
    if (c->job.prompt.n >= c->lineup.ctx)
        return full(c, fail);
    c->job.keep = &kept;
    r = brig_answer_run(&c->job, &g, fail);
    if (r == 0)
        r = say(c, "assistant", kept.data == NULL ? "" : kept.data, kept.len, fail);
    c->job.first_index += g.ids.n;
    if (r == 0)
        r = tell_end(c, &g, fail);
    brig_generated_release(&g);
    brig_buf_release(&kept);
    return r;
}

/* true when the line was a command; *ends for the one that ends the conversation. */
static bool command(struct chat *c, const char *line, bool *ends)
{
    if (line[0] != '/')
        return false;
    if (strcmp(line, "/exit") == 0) {
        *ends = true;
    } else if (strcmp(line, "/reset") == 0) {
        forget(c, n_system(c));
        fputs("brigade: a new conversation\n", stderr);
    } else if (strcmp(line, "/help") == 0) {
        fputs("/reset  begin a new conversation\n/exit   end (so does Ctrl-D)\n/help   this text\n"
              "Ctrl-C ends an answer, at the prompt the program.\n",
              stderr);
    } else {
        fprintf(stderr, "brigade: no such command; /help has them\n");
    }
    return true;
}

static int talk(struct chat *c, struct brig_fail *fail)
{
    struct brig_buf line = {0};
    bool ends = false;
    int r = 0;
    while (r == 0 && !ends) {
        bool more = false;
        r = brig_lines_next(c->lines, &line, &more, fail);
        if (r < 0 || !more)
            break;
        if (line.len == 0 || command(c, line.data, &ends))
            continue;
        r = turn(c, &line, fail);
    }
    brig_buf_release(&line);
    return r;
}

static void greet(const struct chat *c)
{
    const struct brig_model *m = c->lineup.model;
    struct brig_line_stats stats;
    brig_line_stats(c->lineup.line, &stats);
    if (c->lineup.settings->quiet)
        return;
    fprintf(stderr, "brigade: %.*s, %u shard%s, %s, seed %" PRIu64 "; /help has the commands\n",
            (int)(m->name.len < 80 ? m->name.len : 80), m->name.ptr, stats.n_stages,
            stats.n_stages == 1 ? "" : "s", c->lineup.settings->mode->name, c->job.sample.seed);
}

static int open_all(struct chat *c, const struct brig_settings *s, struct brig_fail *fail)
{
    int r = brig_lineup_open(&c->lineup, s, true, &(struct brig_budget_need){.tokenizer = true}, fail);
    if (r == 0)
        r = brig_template_choose(&c->chat_template, s, &c->lineup.model->vocab, fail);
    if (r == 0 && c->chat_template.chat.text.len == 0)
        r = brig_fail_set(fail, BRIG_EUNSUPPORTED,
                          "%s: the model has no chat template; --chat-template gives it one, `brigade run` "
                          "continues plain text",
                          s->operand);
    if (r == 0 && s->system != NULL)
        r = say(c, "system", s->system, strlen(s->system), fail);
    if (r == 0) /* a template that cannot work should fail now, not after the first line */
        r = say(c, "user", "", 0, fail);
    if (r == 0)
        r = make_prompt(c, fail);
    forget(c, n_system(c) < c->n_messages ? n_system(c) : c->n_messages);
    if (r < 0)
        return r;
    brig_lineup_choose_ctx(&c->lineup);
    r = brig_lines_open(&c->lines, "> ", fail);
    return r < 0 ? r : brig_lineup_start(&c->lineup, &(struct brig_lineup_need){.ctx = c->lineup.ctx}, fail);
}

static int run(const struct brig_settings *s, struct brig_fail *fail)
{
    struct chat c = {0};
    c.job.lineup = &c.lineup;
    int r = brig_answer_sample(s, &c.job.sample, fail);
    if (r < 0)
        return r;
    r = open_all(&c, s, fail);
    if (r == 0) {
        greet(&c);
        r = talk(&c, fail);
    }
    brig_lines_close(c.lines);
    forget(&c, 0);
    brig_free(c.messages);
    brig_buf_release(&c.rendered);
    brig_template_release(&c.chat_template);
    brig_ids_release(&c.job.prompt);
    return brig_lineup_release(&c.lineup, r, fail);
}

const struct brig_verb brig_verb_chat = {
    .name = "chat",
    .help = "talk with a model",
    .usage = "MODEL [OPTION]...",
    .about = "Each line is a turn; on a terminal lines can be edited and the arrow keys bring back earlier\n"
             "ones. /reset begins a new conversation, /exit or Ctrl-D ends, /help lists the commands.\n"
             "Ctrl-C ends an answer; a second one, or one at the prompt, ends the program.\n"
             "\n"
             "examples:\n"
             "  brigade chat MODEL\n"
             "  brigade chat MODEL --system 'You answer in rhymes.' --shards 4\n"
             "  printf 'My name is Ada.\\nWhat is my name?\\n' | brigade chat MODEL --temp 0\n",
    .operand = "MODEL",
    .operand_needed = true,
    .run = run,
};
