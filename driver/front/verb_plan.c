/* brigade plan: what a budget of memory gives, without starting anything. */
#include <stdio.h>
#include <string.h>

#include "driver/front/budget.h"
#include "driver/front/drafts.h"
#include "driver/front/verb.h"
#include "driver/run/json.h"
#include "driver/run/plan_json.h"
#include "driver/token/folder.h"

/* Who holds what, beyond the weights. */
static const struct {
    const char *verb;
    bool tokenizer, whole_rows;
    bool prompt_and_answer; /* its context is what it measures */
} uses[] = {
    {"run", true, false, false},
    {"chat", true, false, false},
    {"bench", false, false, true},
    {"logits", false, true, false},
};

static int need_of(const struct brig_settings *s, struct brig_budget_need *ret, struct brig_fail *fail)
{
    const char *verb = s->plan_for != NULL ? s->plan_for : "run";
    for (size_t i = 0; i < sizeof uses / sizeof *uses; i++) {
        if (strcmp(uses[i].verb, verb) != 0)
            continue;
        *ret = (struct brig_budget_need){
            .tokenizer = uses[i].tokenizer, .whole_rows = uses[i].whole_rows, .measure = true};
        if (uses[i].prompt_and_answer && s->ctx == 0)
            ret->ctx = (uint32_t)(s->bench_prompt + s->bench_generate);
        return 0;
    }
    return brig_fail_set(fail, BRIG_EUSAGE, "--for %s: run, chat, bench or logits", verb);
}

/* A token without the draft model, whose memory the weights then have; 0: not known, or no draft model. */
static int without_draft(double *ret_token_s, const struct brig_settings *s, const struct brig_model *m,
                         const struct brig_budget_need *need, const struct brig_plan *with,
                         struct brig_fail *fail)
{
    struct brig_budget_need alone = *need;
    struct brig_plan p;
    *ret_token_s = 0;
    if (need->draft == NULL)
        return 0;
    alone.draft = NULL;
    alone.speed = &with->speed;
    int r = brig_budget_plan(&p, s, m, &alone, fail);
    if (r < 0)
        return r;
    *ret_token_s = p.seconds_a_token;
    brig_plan_release(&p);
    return 0;
}

static int print(const struct brig_plan *p, const struct brig_settings *s, const struct brig_model *m,
                 double alone_token_s, struct brig_fail *fail)
{
    if (s->json) {
        json_t *o = brig_plan_json(p);
        json_object_set_new(o, "schema", json_integer(1));
        json_object_set_new(o, "model", brig_json_text(m->path, strlen(m->path)));
        json_object_set_new(o, "model_bytes", json_integer((json_int_t)brig_ram_model_bytes(m)));
        json_object_set_new(o, "draft_model",
                            s->draft != NULL ? brig_json_text(s->draft, strlen(s->draft)) : json_null());
        json_object_set_new(o, "without_draft_token_s",
                            alone_token_s > 0 ? json_real(alone_token_s) : json_null());
        json_object_set_new(o, "mode", json_string(s->mode->name));
        int r = brig_json_print(o, fail);
        json_decref(o);
        return r;
    }
    brig_budget_print(stdout, p, m);
    if (alone_token_s > 0 && p->seconds_a_token > 0)
        printf("drafts      without a draft model %.3g tokens/s; worth it from %.2f tokens a pass on, the "
               "time that "
               "drafting takes aside\n",
               1 / alone_token_s, p->seconds_a_token / alone_token_s);
    return fflush(stdout) != 0 ? brig_fail_errno(fail, BRIG_EIO, "standard output") : 0;
}

static int run(const struct brig_settings *s, struct brig_fail *fail)
{
    struct brig_model *m = NULL;
    struct brig_folder *folder = NULL;
    struct brig_plan plan = {0};
    struct brig_drafts drafts = {0};
    struct brig_budget_need need;
    double alone_token_s = 0;
    int r = need_of(s, &need, fail);
    if (r == 0)
        r = brig_model_open(&m, s->operand, fail);
    if (r == 0 && (need.tokenizer || s->draft != NULL))
        r = brig_folder_attach(&folder, m, fail);
    if (r == 0)
        r = brig_drafts_open(&drafts, s, m, fail);
    need.draft = drafts.model;
    if (r == 0)
        r = brig_budget_plan(&plan, s, m, &need, fail);
    if (r == 0)
        r = without_draft(&alone_token_s, s, m, &need, &plan, fail);
    if (r == 0)
        r = print(&plan, s, m, alone_token_s, fail);
    brig_plan_release(&plan);
    brig_drafts_release(&drafts);
    brig_model_close(m);
    brig_folder_close(folder);
    return r;
}

const struct brig_verb brig_verb_plan = {
    .name = "plan",
    .help = "what a budget of memory gives: what is held, what is read, how fast",
    .usage = "MODEL [--ram SIZE] [OPTION]...",
    .about = "Says how `brigade run` (or another, --for) would keep within the budget, and starts nothing: "
             "which weights are\n"
             "held and which are read from the disk for each token, what memory goes to what, the\n"
             "smallest budget that would do, the speed that memory and disk allow, and which of them is the\n"
             "limit. The budget is for all processes together, memory that the kernel takes for them\n"
             "included. Sizes are bytes, or with K, M, G, T (1024 each), or a share of the model's files.\n"
             "\n"
             "examples:\n"
             "  brigade plan MODEL\n"
             "  brigade plan MODEL --ram 4G\n"
             "  brigade plan MODEL --ram 50% --ctx 2048 --json\n"
             "  brigade plan MODEL --ram auto --mode cold\n"
             "  brigade plan MODEL --ram 4G --draft SMALL_MODEL\n"
             "  brigade plan MODEL --ram 4G --for bench\n",
    .operand = "MODEL",
    .operand_needed = true,
    .run = run,
};
