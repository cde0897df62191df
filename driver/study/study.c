/* The rounds: each row once in each, forwards and backwards in turn. */
#include "driver/study/study.h"

#include <stdio.h>
#include <string.h>

#include "driver/study/parts.h"
#include "proto/base/mem.h"

/* One run of one row. A row that did not work once is not run again: its reason would be the same. */
static int run_once(struct brig_study *s, struct brig_study_row *row, unsigned round, struct brig_fail *fail)
{
    char why[sizeof row->why];
    double share;
    if (row->state != BRIG_STUDY_WAITING && row->state != BRIG_STUDY_MEASURED)
        return 0;
    int r = brig_study_cache_set(s->model, row->cache, &share, why, sizeof why, fail);
    if (r < 0)
        return r;
    if (share < 0)
        s->blind = true;
    if (why[0] != '\0') {
        row->state = BRIG_STUDY_VOID;
        memcpy(row->why, why, sizeof why);
        return 0;
    }
    row->state = BRIG_STUDY_MEASURED;
    return brig_study_run_row(s, row, round, fail);
}

static int probe(struct brig_study *s, struct brig_fail *fail)
{
    int r = brig_probe_read_once(s->threads, &s->probes[s->n_probes].memory_bytes_s, fail);
    if (r == 0)
        s->n_probes++;
    return r;
}

static int allocate(struct brig_study *s, struct brig_fail *fail)
{
    s->probes = brig_alloc(s->rounds + 1, sizeof *s->probes);
    s->ids = brig_alloc(s->n_generate, sizeof *s->ids);
    bool ok = s->probes != NULL && s->ids != NULL;
    for (unsigned i = 0; i < s->n_rows; i++) {
        s->rows[i].samples = brig_alloc(s->rounds, sizeof *s->rows[i].samples);
        ok &= s->rows[i].samples != NULL;
    }
    for (unsigned i = 0; i < s->model->n_files; i++)
        s->model_bytes += s->model->files[i].bytes;
    return ok ? 0 : brig_fail_set(fail, BRIG_ENOMEM, "out of memory for %u rounds", s->rounds);
}

static int ask_plans(struct brig_study *s, struct brig_fail *fail)
{
    for (unsigned i = 0; i < s->n_rows; i++) {
        int r =
            strcmp(s->rows[i].ram, BRIG_STUDY_NO_BUDGET) == 0 ? 0 : brig_study_ask_plan(s, &s->rows[i], fail);
        if (r < 0)
            return r;
    }
    return 0;
}

int brig_study_run(struct brig_study *s, struct brig_fail *fail)
{
    size_t total = (size_t)s->n_rows * s->rounds, done = 0;
    int r = allocate(s, fail);
    if (r == 0)
        r = ask_plans(s, fail);
    if (r == 0)
        r = probe(s, fail);
    for (unsigned round = 0; r == 0 && round < s->rounds; round++) {
        for (unsigned i = 0; r == 0 && i < s->n_rows; i++) {
            r = run_once(s, &s->rows[round % 2 == 0 ? i : s->n_rows - 1 - i], round, fail);
            if (s->progress != NULL)
                s->progress(s->progress_ctx, ++done, total);
        }
        if (r == 0)
            r = probe(s, fail);
    }
    for (unsigned i = 0; r == 0 && i < s->n_rows; i++)
        brig_study_judge(&s->rows[i]);
    return r;
}

void brig_study_release(struct brig_study *s)
{
    for (unsigned i = 0; i < s->n_rows; i++)
        brig_free(s->rows[i].samples);
    brig_free(s->probes);
    brig_free(s->ids);
    memset(s, 0, sizeof *s);
}

static double middle(const double *first, unsigned n)
{
    const size_t stride = sizeof(struct brig_study_sample) / sizeof *first;
    for (unsigned i = 0; i < n; i++) {
        double x = first[i * stride];
        unsigned below = 0, same = 0;
        for (unsigned k = 0; k < n; k++) {
            below += first[k * stride] < x;
            same += first[k * stride] == x;
        }
        if (below <= (n - 1) / 2 && (n - 1) / 2 < below + same)
            return x;
    }
    return 0;
}

/* Of an even number the lower of the middle two: a figure that was measured. */
struct brig_study_sample brig_study_median(const struct brig_study_row *row)
{
    struct brig_study_sample m = {0};
    if (row->n_samples == 0)
        return m;
    m.start_s = middle(&row->samples->start_s, row->n_samples);
    m.ttft_s = middle(&row->samples->ttft_s, row->n_samples);
    m.pass_tokens = middle(&row->samples->pass_tokens, row->n_samples);
    m.prefill_tok_s = middle(&row->samples->prefill_tok_s, row->n_samples);
    m.decode_tok_s = middle(&row->samples->decode_tok_s, row->n_samples);
    m.disk_start_bytes = middle(&row->samples->disk_start_bytes, row->n_samples);
    m.disk_prompt_bytes = middle(&row->samples->disk_prompt_bytes, row->n_samples);
    m.disk_token_bytes = middle(&row->samples->disk_token_bytes, row->n_samples);
    m.token_bytes = middle(&row->samples->token_bytes, row->n_samples);
    return m;
}
