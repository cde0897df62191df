/* One answer to standard output. */
#include "driver/front/answer.h"

#include <sys/random.h>

#include "driver/front/input.h"
#include "driver/front/interrupt.h"
#include "driver/front/progress.h"

int brig_answer_sample(const struct brig_settings *s, struct brig_sample_opts *ret, struct brig_fail *fail)
{
    struct brig_sample_opts o = s->sample;
    uint32_t seed; /* short enough to type again */
    int r = brig_sample_check(&o, fail);
    if (r < 0) {
        fail->code = BRIG_EUSAGE;
        return -BRIG_EUSAGE;
    }
    if (!s->seed_given) {
        if (getrandom(&seed, sizeof seed, 0) != sizeof seed)
            return brig_fail_errno(fail, BRIG_EIO, "no random numbers for the seed");
        o.seed = seed;
    }
    *ret = o;
    return 0;
}

struct sink {
    struct brig_answer_job *job;
    struct brig_progress bar;
};

static int text(void *ctx, const char *bytes, size_t n, struct brig_fail *fail)
{
    struct sink *s = ctx;
    if (s->job->keep != NULL && brig_buf_add(s->job->keep, bytes, n) < 0)
        return brig_fail_set(fail, BRIG_ENOMEM, "out of memory for the answer");
    if (n > 0)
        s->job->open_line = bytes[n - 1] != '\n';
    return brig_output_write(bytes, n, fail);
}

static void progress(void *ctx, size_t done, size_t total)
{
    brig_progress_update(&((struct sink *)ctx)->bar, done, total);
}

int brig_answer_run(struct brig_answer_job *job, struct brig_generated *ret, struct brig_fail *fail)
{
    struct brig_lineup *l = job->lineup;
    const struct brig_settings *s = l->settings;
    struct sink sink = {.job = job};
    struct brig_generate g = {.sched = l->sched,
                              .spec = l->spec,
                              .tokenizer = l->tokenizer,
                              .prompt = job->prompt.v,
                              .n_prompt = job->prompt.n,
                              .max_new = s->n_predict,
                              .first_index = job->first_index,
                              .ignore_eos = s->ignore_eos,
                              .stops = s->stops,
                              .n_stops = s->n_stops,
                              .trace = l->trace,
                              .cancel = brig_interrupt_flag(),
                              .text = text,
                              .progress = progress,
                              .ctx = &sink};
    int r = brig_sampler_new(&g.sampler, &job->sample, l->model->desc.vocab, fail);
    if (r < 0)
        return r;
    brig_progress_init(&sink.bar, "prompt", s->quiet);
    r = brig_generate_run(&g, ret, fail);
    brig_progress_wipe(&sink.bar);
    brig_sampler_free(g.sampler);
    return r;
}
