/* brigade run: one prompt, one answer. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "driver/chat/chat.h"
#include "driver/front/answer.h"
#include "driver/front/input.h"
#include "driver/front/lineup.h"
#include "driver/front/template.h"
#include "driver/front/verb.h"
#include "driver/run/report.h"
#include "proto/base/outfile.h"

/* Far more text than any context holds; a prompt that is larger is a mistake. */
#define MAX_PROMPT_BYTES ((size_t)64 << 20)

/* The last newline of a file belongs to the file, not to the prompt. */
static void drop_newline(struct brig_buf *b)
{
    if (b->len > 0 && b->data[b->len - 1] == '\n')
        b->data[--b->len] = '\0';
}

static int read_prompt(struct brig_buf *text, const struct brig_settings *s, struct brig_fail *fail)
{
    text->max = MAX_PROMPT_BYTES;
    if (s->prompt != NULL && s->file != NULL)
        return brig_fail_set(fail, BRIG_EUSAGE, "-p and -f: the prompt can come from one place only");
    if (s->prompt != NULL)
        return brig_buf_add(text, s->prompt, strlen(s->prompt)) < 0
                   ? brig_fail_set(fail, BRIG_ELIMIT, "-p: the prompt is too long")
                   : 0;
    if (s->file == NULL && isatty(STDIN_FILENO) == 1)
        return brig_fail_set(fail, BRIG_EUSAGE,
                             "no prompt: give -p TEXT or -f FILE, or pipe one in (`brigade help run`)");
    int r = brig_input_read(text, s->file, fail);
    if (r == 0)
        drop_newline(text);
    return r;
}

/* The text itself, for the model to go on with. */
static int plain(const struct brig_settings *s, struct brig_str text, struct brig_buf *out,
                 struct brig_fail *fail)
{
    if (s->system != NULL)
        return brig_fail_set(fail, BRIG_EUSAGE, "--system: %s",
                             s->raw ? "there is none with --raw" : "the model has no chat template");
    if (!s->raw && !s->quiet)
        fputs("brigade: the model has no chat template, so it continues the prompt (--chat-template gives it "
              "one)\n",
              stderr);
    return brig_buf_add(out, text.ptr, text.len) < 0
               ? brig_fail_set(fail, BRIG_ENOMEM, "out of memory for the prompt")
               : 0;
}

/* The prompt as the model was trained on it: a conversation when it has a template, else the text itself. */
static int render(struct brig_lineup *l, const struct brig_buf *text, struct brig_buf *out, unsigned *flags,
                  struct brig_fail *fail)
{
    const struct brig_settings *s = l->settings;
    struct brig_template t;
    struct brig_chat_message messages[2];
    struct brig_str prompt = {text->data == NULL ? "" : text->data, text->len};
    size_t n = 0;
    if (s->raw && s->chat_template != NULL)
        return brig_fail_set(fail, BRIG_EUSAGE, "--chat-template: there is none with --raw");
    int r = brig_template_choose(&t, s, &l->model->vocab, fail);
    bool raw = s->raw || t.chat.text.len == 0;
    *flags = BRIG_ENCODE_SPECIAL | (raw ? BRIG_ENCODE_BOS : 0);
    if (s->system != NULL)
        messages[n++] = (struct brig_chat_message){{"system", 6}, {s->system, strlen(s->system)}};
    messages[n++] = (struct brig_chat_message){{"user", 4}, prompt};
    if (r == 0)
        r = raw ? plain(s, prompt, out, fail)
                : brig_chat_render(&t.chat, &l->model->vocab, messages, n, true, out, fail);
    brig_template_release(&t);
    return r;
}

static int make_prompt(struct brig_lineup *l, const struct brig_buf *text, struct brig_ids *ids,
                       struct brig_fail *fail)
{
    struct brig_buf rendered = {0};
    unsigned flags = 0;
    int r = render(l, text, &rendered, &flags, fail);
    if (r == 0)
        r = brig_tokenizer_encode(l->tokenizer, rendered.data == NULL ? "" : rendered.data, rendered.len,
                                  flags, ids, fail);
    brig_buf_release(&rendered);
    return r;
}

static int check_prompt(const struct brig_lineup *l, const struct brig_ids *ids, struct brig_fail *fail)
{
    if (ids->n == 0)
        return brig_fail_set(fail, BRIG_EUSAGE, "the prompt is empty");
    if (ids->n > l->ctx)
        return brig_fail_set(fail, BRIG_ELIMIT,
                             "the prompt has %zu tokens and the context room for %u (--ctx sets it)", ids->n,
                             l->ctx);
    return 0;
}

/* A file that cannot be written should be said before the work and not after it. */
static int check_writable(const char *path, struct brig_fail *fail)
{
    struct brig_outfile probe;
    if (path == NULL)
        return 0;
    int r = brig_outfile_open(&probe, path, fail);
    if (r == 0)
        brig_outfile_abandon(&probe);
    return r;
}

static int report(struct brig_lineup *l, const struct brig_answer_job *job, const struct brig_generated *g,
                  struct brig_fail *fail)
{
    const struct brig_settings *s = l->settings;
    struct brig_report rep = {.model = l->model,
                              .embed = l->embed,
                              .mode = s->mode->name,
                              .exact = s->exact,
                              .kv = s->kv,
                              .seed = job->sample.seed,
                              .n_prompt = job->prompt.n,
                              .generated = g,
                              .spec = l->spec,
                              .draft_model = l->drafts.model,
                              .plan = l->planned ? &l->plan : NULL,
                              .enclosure = s->enclosure};
    struct brig_buf line = {0};
    brig_line_stats(l->line, &rep.line);
    if (l->drafts.line != NULL)
        brig_line_stats(l->drafts.line, &rep.draft_line);
    if (!s->quiet && brig_report_line(&rep, &line) == 0)
        fprintf(stderr, "brigade: %s\n", line.data);
    brig_buf_release(&line);
    return s->stats == NULL ? 0 : brig_report_write_json(&rep, s->stats, fail);
}

static int answer(struct brig_lineup *l, struct brig_answer_job *job, struct brig_fail *fail)
{
    struct brig_generated g = {0};
    int r = brig_answer_run(job, &g, fail);
    if (job->open_line) { /* what follows on standard error begins a line of its own, piped too */
        int ended = brig_output_write("\n", 1, r == 0 ? fail : NULL);
        r = r == 0 ? ended : r;
    }
    if (r == 0)
        r = report(l, job, &g, fail);
    if (r == 0 && g.reason == BRIG_STOP_REASON_CANCELLED)
        r = brig_fail_set(fail, BRIG_ECANCELLED, "cancelled");
    brig_generated_release(&g);
    return r;
}

static int run(const struct brig_settings *s, struct brig_fail *fail)
{
    struct brig_lineup l;
    struct brig_answer_job job = {.lineup = &l};
    struct brig_buf text = {0};
    int r = brig_answer_sample(s, &job.sample, fail);
    if (r < 0)
        return r;
    r = brig_lineup_open(&l, s, false, &(struct brig_budget_need){.tokenizer = true}, fail);
    if (r == 0)
        r = read_prompt(&text, s, fail);
    if (r == 0)
        r = check_writable(s->stats, fail);
    if (r == 0) {
        brig_lineup_choose_ctx(&l);
        r = brig_lineup_start(
            &l,
            &(struct brig_lineup_need){
                .ctx = l.ctx, .pss = s->stats != NULL, .tokenizer = true, .sample = &job.sample},
            fail);
    }
    if (r == 0)
        r = make_prompt(&l, &text, &job.prompt, fail);
    if (r == 0)
        r = check_prompt(&l, &job.prompt, fail);
    if (r == 0)
        r = answer(&l, &job, fail);
    brig_ids_release(&job.prompt);
    brig_buf_release(&text);
    return brig_lineup_release(&l, r, fail);
}

const struct brig_verb brig_verb_run = {
    .name = "run",
    .help = "answer one prompt",
    .usage = "MODEL [-p TEXT | -f FILE | < FILE] [OPTION]...",
    .about =
        "Prints the answer, ended by a newline, and nothing else on standard output; figures go to\n"
        "standard error. The prompt is put into the model's chat template when it has one. The last\n"
        "newline of a file or of standard input is no part of the prompt. Ctrl-C ends the answer, still\n"
        "prints the figures, and exits with code 130. Exit codes: 0 done, 1 failed, 2 wrong usage.\n"
        "\n"
        "examples:\n"
        "  brigade run MODEL -p 'Why is the sky blue?'\n"
        "  brigade run MODEL -p 'Name three rivers.' --temp 0 -n 64 --shards 4\n"
        "  brigade run MODEL --raw -p 'Once upon a time' --shards all --mode cold --stats figures.json\n"
        "  echo 'Say hello.' | brigade run MODEL -q\n"
        "  brigade run MODEL -p 'Hi!' --chain tcp://10.0.0.1:7000,tcp://10.0.0.2:7000 --insecure\n",
    .operand = "MODEL",
    .operand_needed = true,
    .run = run,
};
