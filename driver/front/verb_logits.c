/* brigade logits: what the model says at every position of a list of ids, as numbers. */
#include <stdio.h>
#include <string.h>

#include "driver/front/input.h"
#include "driver/front/interrupt.h"
#include "driver/front/lineup.h"
#include "driver/front/progress.h"
#include "driver/front/verb.h"
#include "driver/run/npy.h"
#include "proto/base/outfile.h"

struct sink {
    FILE *f;
    uint32_t vocab;
    uint64_t n_rows;
    struct brig_progress bar;
};

static int write_row(void *ctx, uint32_t row, const float *logits)
{
    struct sink *s = ctx;
    (void)row; /* rows come in order, batch after batch */
    s->n_rows++;
    return brig_npy_values(s->f, logits, s->vocab);
}

static void progress(void *ctx, size_t done, size_t total)
{
    brig_progress_update(&((struct sink *)ctx)->bar, done, total);
}

static int check_ids(const struct brig_model *m, const struct brig_ids *ids, struct brig_fail *fail)
{
    if (ids->n == 0)
        return brig_fail_set(fail, BRIG_EUSAGE, "--ids: the list is empty");
    if (ids->n > BRIG_MAX_CTX)
        return brig_fail_set(fail, BRIG_EUSAGE, "--ids: more than %u tokens", BRIG_MAX_CTX);
    for (size_t i = 0; i < ids->n; i++)
        if (ids->v[i] >= m->desc.vocab)
            return brig_fail_set(fail, BRIG_EUSAGE, "--ids: %u is outside the vocabulary of %u", ids->v[i],
                                 m->desc.vocab);
    return 0;
}

static int write_all(struct brig_lineup *l, const struct brig_ids *ids, struct brig_outfile *out,
                     struct brig_fail *fail)
{
    struct sink sink = {.f = out->stream, .vocab = l->model->desc.vocab};
    brig_progress_init(&sink.bar, "logits", l->settings->quiet);
    int r = brig_npy_header(sink.f, ids->n, sink.vocab);
    if (r < 0)
        return brig_fail_errno(fail, BRIG_EIO, "%s", l->settings->out);
    r = brig_session_logits(l->session, ids->v, ids->n, write_row, &sink, progress, &sink, fail);
    brig_progress_wipe(&sink.bar);
    if (ferror(sink.f))
        return brig_fail_errno(fail, BRIG_EIO, "%s: could not be written", l->settings->out);
    if (r == 0 && sink.n_rows != ids->n)
        return brig_fail_set(fail, BRIG_EPROTO, "%llu rows of logits came for %zu tokens",
                             (unsigned long long)sink.n_rows, ids->n);
    return r;
}

static int run(const struct brig_settings *s, struct brig_fail *fail)
{
    struct brig_lineup l = {0};
    struct brig_ids ids = {0};
    struct brig_outfile out = {0};
    if (s->ids == NULL || s->out == NULL)
        return brig_fail_set(fail, BRIG_EUSAGE, "--%s is missing", s->ids == NULL ? "ids" : "out");
    int r = brig_input_ids(&ids, s->ids, strlen(s->ids), "--ids", fail);
    if (r == 0)
        r = brig_lineup_open(&l, s, false, fail);
    if (r == 0)
        r = check_ids(l.model, &ids, fail);
    if (r == 0)
        r = brig_outfile_open(&out, s->out, fail);
    if (r == 0)
        r = brig_lineup_start(&l, (uint32_t)ids.n, false, fail);
    if (r == 0)
        r = write_all(&l, &ids, &out, fail);
    if (r == 0)
        r = brig_outfile_commit(&out, fail);
    brig_outfile_abandon(&out);
    brig_ids_release(&ids);
    return brig_lineup_release(&l, r, fail);
}

const struct brig_verb brig_verb_logits = {
    .name = "logits",
    .help = "write the logits of every position of a list of token ids",
    .usage = "MODEL --ids LIST --out FILE.npy [OPTION]...",
    .about =
        "Row i of the file holds the logits after tokens 0 to i. The model needs no tokenizer.\n"
        "\n"
        "examples:\n"
        "  brigade logits MODEL --ids 1,2,3 --out logits.npy\n"
        "  brigade logits MODEL --ids \"$(echo Hello | brigade tokenize MODEL)\" --out logits.npy --exact\n",
    .operand = "MODEL",
    .operand_needed = true,
    .run = run,
};
