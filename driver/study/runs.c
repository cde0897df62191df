/* One row's programs: the plan that is asked, the bench that is run, and what their JSON says. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "driver/study/parts.h"

#define MAX_ARGS 192u
#define SELF     "/proc/self/exe"

struct args {
    char *v[MAX_ARGS + 1];
    unsigned n;
    char self[4096], prompt[16], generate[16];
};

static void put(struct args *a, const char *word)
{
    if (a->n < MAX_ARGS)
        a->v[a->n++] = (char *)word; /* posix_spawn takes them so, and leaves them alone */
    a->v[a->n] = NULL;
}

static void put_pair(struct args *a, const char *option, const char *value)
{
    put(a, option);
    put(a, value);
}

static void put_all(struct args *a, char *const *words)
{
    for (; words != NULL && *words != NULL; words++)
        put(a, *words);
}

/* The words that plan and bench share. */
static int begin(struct args *a, const struct brig_study *s, const struct brig_study_row *row,
                 const char *verb, struct brig_fail *fail)
{
    ssize_t n = readlink(SELF, a->self, sizeof a->self - 1);
    if (n <= 0)
        return brig_fail_errno(fail, BRIG_EIO, "the path of this program");
    a->self[n] = '\0';
    a->n = 0;
    put(a, a->self);
    put(a, verb);
    put(a, s->model->path);
    put_pair(a, "--shards", row->shards);
    if (strcmp(row->ram, BRIG_STUDY_NO_BUDGET) != 0)
        put_pair(a, "--ram", row->ram);
    if (strcmp(row->residency, "auto") != 0)
        put_pair(a, "--residency", row->residency);
    put_all(a, s->plan_options);
    return 0;
}

static void conclude(struct brig_study_row *row, enum brig_study_state state, const char *why)
{
    row->state = state;
    snprintf(row->why, sizeof row->why, "%s", why);
}

/* How a program ended, as a row says it; true when it ended well. */
static bool ended_well(const struct brig_study *s, struct brig_study_row *row, const struct brig_child_end *e,
                       enum brig_study_state if_refused)
{
    char words[sizeof row->why];
    brig_child_last_words(e, words, sizeof words);
    if (WIFEXITED(e->wait_status) && WEXITSTATUS(e->wait_status) == 0)
        return true;
    if (e->late) {
        snprintf(words, sizeof words, "not done after %u s (--run-limit)", s->limit_s);
        conclude(row, BRIG_STUDY_FAILED, words);
    } else if (WIFSIGNALED(e->wait_status)) {
        snprintf(words, sizeof words, "killed by signal %d (%s)", WTERMSIG(e->wait_status),
                 strsignal(WTERMSIG(e->wait_status)));
        conclude(row, BRIG_STUDY_KILLED, words);
    } else {
        /* A shard that the kernel kills ends its driver with a line that says so. */
        bool killed = strstr(words, "was killed by signal 9") != NULL;
        conclude(row, killed ? BRIG_STUDY_KILLED : if_refused, words[0] != '\0' ? words : "it said nothing");
    }
    return false;
}

/* A program's JSON; NULL and a row that has failed when it did not end well. *ret is the caller's. */
static int ask(const struct brig_study *s, struct brig_study_row *row, const struct args *a,
               enum brig_study_state if_refused, json_t **ret, struct brig_fail *fail)
{
    const struct brig_child_opts o = {.argv = a->v, .timeout_ms = s->limit_s * 1000, .cancel = s->cancel};
    struct brig_child_end e;
    *ret = NULL;
    int r = brig_child_run(&o, &e, fail);
    if (r == 0 && ended_well(s, row, &e, if_refused)) {
        *ret = json_loadb(e.out.data == NULL ? "" : e.out.data, e.out.len, 0, NULL);
        if (*ret == NULL)
            conclude(row, BRIG_STUDY_FAILED, "what it wrote is not JSON");
    }
    brig_child_release(&e);
    return r;
}

/* Numbers that are missing or null are 0. */
static double number(const json_t *o, const char *key)
{
    return json_number_value(json_object_get(o, key));
}

static uint64_t whole(const json_t *o, const char *key)
{
    double v = number(o, key);
    return v > 0 && v < 9e15 ? (uint64_t)v : 0;
}

static void read_plan(const json_t *o, struct brig_study_plan *p)
{
    const char *regime = json_string_value(json_object_get(o, "regime"));
    p->known = true;
    p->budget_bytes = whole(o, "budget_bytes");
    p->total_bytes = whole(o, "total_bytes");
    p->least_bytes = whole(o, "least_bytes");
    p->token_bytes = whole(o, "token_bytes");
    p->held_bytes = whole(o, "held_bytes");
    p->read_bytes = whole(o, "read_bytes");
    p->hit_rate = number(o, "expert_hit_rate");
    p->token_s = number(o, "token_s");
    p->disk_bytes_s = number(o, "disk_bytes_s");
    p->memory_bytes_s = number(o, "memory_bytes_s");
    snprintf(p->regime, sizeof p->regime, "%s", regime != NULL ? regime : "");
}

/* What a run planned for itself comes first: it knows better what it needs, and has not measured the machine.
 */
static void own_plan(const json_t *o, struct brig_study_plan *p)
{
    struct brig_study_plan own = {0};
    if (!json_is_object(o))
        return;
    read_plan(o, &own);
    own.token_s = own.token_s > 0 ? own.token_s : p->token_s;
    own.disk_bytes_s = own.disk_bytes_s > 0 ? own.disk_bytes_s : p->disk_bytes_s;
    own.memory_bytes_s = own.memory_bytes_s > 0 ? own.memory_bytes_s : p->memory_bytes_s;
    if (own.regime[0] == '\0')
        memcpy(own.regime, p->regime, sizeof own.regime);
    *p = own;
}

int brig_study_ask_plan(struct brig_study *s, struct brig_study_row *row, struct brig_fail *fail)
{
    struct args a;
    json_t *o;
    int r = begin(&a, s, row, "plan", fail);
    if (r < 0)
        return r;
    put_pair(&a, "--mode", row->mode->name);
    snprintf(a.generate, sizeof a.generate, "%u", s->n_prompt + s->n_generate);
    put_pair(&a, "--ctx", a.generate);
    put(&a, "--json");
    r = ask(s, row, &a, BRIG_STUDY_REFUSED, &o, fail);
    if (o != NULL)
        read_plan(o, &row->plan);
    json_decref(o);
    return r;
}

/* No budget, mode or residency changes a token: else the speeds would be of different things. */
static bool same_ids(struct brig_study *s, const json_t *figures, struct brig_study_row *row)
{
    const json_t *ids = json_array_get(json_object_get(figures, "ids"), 0);
    bool same = true;
    for (uint32_t i = 0; same && i < s->n_generate; i++) {
        uint32_t id = (uint32_t)json_integer_value(json_array_get(ids, i));
        if (s->ids_of == NULL)
            s->ids[i] = id;
        same = s->ids[i] == id;
    }
    if (s->ids_of == NULL)
        s->ids_of = row;
    return same;
}

static void read_bench(struct brig_study *s, const json_t *o, struct brig_study_row *row)
{
    const json_t *figures = json_array_get(json_object_get(o, "rows"), 0);
    const json_t *run = json_array_get(json_object_get(figures, "runs"), 0);
    if (run == NULL || json_array_size(json_array_get(json_object_get(figures, "ids"), 0)) != s->n_generate) {
        conclude(row, BRIG_STUDY_FAILED, "its JSON has no figures");
        return;
    }
    if (!same_ids(s, figures, row)) {
        char label[64], why[sizeof row->why];
        brig_study_label(s->ids_of, label, sizeof label);
        snprintf(why, sizeof why, "it gave other tokens than %s with --ram %s", label, s->ids_of->ram);
        conclude(row, BRIG_STUDY_FAILED, why);
        return;
    }
    const struct brig_study_sample sample = {.start_s = number(figures, "start_s"),
                                             .ttft_s = number(run, "ttft_s"),
                                             .pass_tokens = number(figures, "rows_per_frame"),
                                             .prefill_tok_s = number(run, "prefill_tok_s"),
                                             .decode_tok_s = number(run, "decode_tok_s"),
                                             .disk_start_bytes = number(run, "disk_start_bytes"),
                                             .disk_prompt_bytes = number(run, "disk_prompt_bytes"),
                                             .disk_token_bytes =
                                                 number(run, "disk_decode_bytes") / (s->n_generate - 1),
                                             .token_bytes = number(figures, "bytes_per_token")};
    uint64_t pss = whole(figures, "pss_peak_bytes"), cgroup = whole(o, "cgroup_peak_bytes");
    own_plan(json_object_get(o, "plan"), &row->plan);
    /* A group that has had more is not the one of the budget: the run was not enclosed. */
    if (row->plan.budget_bytes == 0 || cgroup > row->plan.budget_bytes)
        cgroup = 0;
    row->samples[row->n_samples++] = sample;
    row->pss_peak_bytes = pss > row->pss_peak_bytes ? pss : row->pss_peak_bytes;
    row->cgroup_peak_bytes = cgroup > row->cgroup_peak_bytes ? cgroup : row->cgroup_peak_bytes;
}

int brig_study_run_row(struct brig_study *s, struct brig_study_row *row, unsigned round,
                       struct brig_fail *fail)
{
    struct args a;
    json_t *o;
    int r = begin(&a, s, row, "bench", fail);
    if (r < 0)
        return r;
    snprintf(a.prompt, sizeof a.prompt, "%u", s->n_prompt);
    snprintf(a.generate, sizeof a.generate, "%u", s->n_generate);
    put_pair(&a, "--modes", row->mode->name);
    put_pair(&a, "-p", a.prompt);
    put_pair(&a, "-n", a.generate);
    put_pair(&a, "--repeat", "1");
    /* Memory is asked for in one round: that is a run of its own. */
    put_pair(&a, "--skip", round == 0 ? "probe,starts,tokenizer" : "memory,probe,starts,tokenizer");
    put_pair(&a, "--json", "-");
    put(&a, "-q");
    put_all(&a, s->bench_options);
    r = ask(s, row, &a, BRIG_STUDY_FAILED, &o, fail);
    if (r == 0 && o != NULL)
        read_bench(s, o, row);
    json_decref(o);
    return r;
}

/* What is read in a pass is the plan's to say: less was read from somebody else's page cache, more was read
 * twice. Two hundredths of the weights are allowed for what lies at the ends of a run, and a mebibyte. */
void brig_study_judge(struct brig_study_row *row)
{
    if (row->state != BRIG_STUDY_MEASURED || !row->plan.known || row->plan.budget_bytes == 0)
        return;
    struct brig_study_sample m = brig_study_median(row);
    double planned = (double)row->plan.read_bytes;
    double read = m.disk_token_bytes * (m.pass_tokens > 1 ? m.pass_tokens : 1);
    double slack = 0.2 * planned + 0.02 * (double)row->plan.token_bytes + 1048576;
    /* How often experts hit is an expectation for routing that is even: real routing may do better. */
    bool too_little = row->plan.hit_rate == 0 && read < planned - slack;
    if (!too_little && read <= planned + slack)
        return;
    row->state = BRIG_STUDY_VOID;
    snprintf(row->why, sizeof row->why, "%.1f MiB were read in a pass where the plan has %.1f: %s",
             read / 1048576, planned / 1048576,
             too_little ? "the rest came from a page cache outside the budget"
                        : "what should have been held was read again");
}
