/* brigade plan: what a budget of memory gives, without starting anything. */
#include <stdio.h>
#include <string.h>

#include "driver/front/budget.h"
#include "driver/front/verb.h"
#include "driver/run/json.h"
#include "driver/run/plan_json.h"
#include "driver/token/folder.h"

static int print(const struct brig_plan *p, const struct brig_settings *s, const struct brig_model *m,
                 struct brig_fail *fail)
{
    if (s->json) {
        json_t *o = brig_plan_json(p);
        json_object_set_new(o, "schema", json_integer(1));
        json_object_set_new(o, "model", brig_json_text(m->path, strlen(m->path)));
        json_object_set_new(o, "model_bytes", json_integer((json_int_t)brig_ram_model_bytes(m)));
        json_object_set_new(o, "mode", json_string(s->mode->name));
        int r = brig_json_print(o, fail);
        json_decref(o);
        return r;
    }
    brig_budget_print(stdout, p, m);
    return fflush(stdout) != 0 ? brig_fail_errno(fail, BRIG_EIO, "standard output") : 0;
}

static int run(const struct brig_settings *s, struct brig_fail *fail)
{
    struct brig_model *m = NULL;
    struct brig_folder *folder = NULL;
    struct brig_plan plan = {0};
    const struct brig_budget_need need = {.tokenizer = true, .measure = true};
    int r = brig_model_open(&m, s->operand, fail);
    if (r == 0)
        r = brig_folder_attach(&folder, m, fail);
    if (r == 0)
        r = brig_budget_plan(&plan, s, m, &need, fail);
    if (r == 0)
        r = print(&plan, s, m, fail);
    brig_plan_release(&plan);
    brig_model_close(m);
    brig_folder_close(folder);
    return r;
}

const struct brig_verb brig_verb_plan = {
    .name = "plan",
    .help = "what a budget of memory gives: what is held, what is read, how fast",
    .usage = "MODEL [--ram SIZE] [OPTION]...",
    .about = "Says how `brigade run` would keep within the budget, and starts nothing: which weights are\n"
             "held and which are read from the disk for each token, what memory goes to what, the\n"
             "smallest budget that would do, the speed that memory and disk allow, and which of them is the\n"
             "limit. The budget is for all processes together, memory that the kernel takes for them\n"
             "included. Sizes are bytes, or with K, M, G, T (1024 each), or a share of the model's files.\n"
             "\n"
             "examples:\n"
             "  brigade plan MODEL\n"
             "  brigade plan MODEL --ram 4G\n"
             "  brigade plan MODEL --ram 50% --ctx 2048 --json\n"
             "  brigade plan MODEL --ram auto --mode cold\n",
    .operand = "MODEL",
    .operand_needed = true,
    .run = run,
};
