/* brigade logits: what the model says at every position of a list of ids, as numbers, and the hidden states
 * on the way there. */
#include <stdio.h>
#include <limits.h>
#include <string.h>
#include <sys/types.h>

#include "driver/front/input.h"
#include "driver/front/interrupt.h"
#include "driver/front/lineup.h"
#include "driver/front/progress.h"
#include "driver/front/verb.h"
#include "driver/run/npy.h"
#include "proto/base/outfile.h"

/* One output file being written. */
struct sink {
    FILE *f;
    uint64_t n_ids;
    uint32_t cols; /* vocabulary, or hidden */
    uint64_t n_rows;
    struct brig_progress bar;
};

static int write_row(void *ctx, uint32_t row, const float *logits)
{
    struct sink *s = ctx;
    (void)row; /* rows come in order, batch after batch */
    s->n_rows++;
    return brig_npy_values(s->f, logits, s->cols);
}

/* Batches go through all boundaries, the file has one boundary after the other: each row has its place. */
static int write_hidden(void *ctx, uint32_t boundary, size_t first, const float *h, uint32_t n_rows)
{
    struct sink *s = ctx;
    uint64_t at = (boundary * s->n_ids + first) * s->cols * sizeof *h;
    s->n_rows += n_rows;
    if (fseeko(s->f, (off_t)(BRIG_NPY_HEADER_BYTES + at), SEEK_SET) != 0)
        return -BRIG_EIO;
    return brig_npy_values(s->f, h, (size_t)n_rows * s->cols);
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

/* After all rows: r, or that the file could not be written, or that rows are missing. */
static int written(struct sink *sink, const char *path, uint64_t n_rows, int r, struct brig_fail *fail)
{
    brig_progress_wipe(&sink->bar);
    if (ferror(sink->f))
        return brig_fail_errno(fail, BRIG_EIO, "%s: could not be written", path);
    if (r == 0 && sink->n_rows != n_rows)
        return brig_fail_set(fail, BRIG_EPROTO, "%llu rows came where %llu were due",
                             (unsigned long long)sink->n_rows, (unsigned long long)n_rows);
    return r;
}

static int write_logits(struct brig_lineup *l, const struct brig_ids *ids, struct brig_outfile *out,
                        struct brig_fail *fail)
{
    struct sink sink = {.f = out->stream, .n_ids = ids->n, .cols = l->model->desc.vocab};
    const uint64_t shape[] = {ids->n, sink.cols};
    brig_progress_init(&sink.bar, "logits", l->settings->quiet);
    if (brig_npy_header(sink.f, shape, 2) < 0)
        return brig_fail_errno(fail, BRIG_EIO, "%s: could not be written", l->settings->out);
    int r = brig_session_logits(l->session, ids->v, ids->n, write_row, &sink, progress, &sink, fail);
    return written(&sink, l->settings->out, ids->n, r, fail);
}

static int write_all_hidden(struct brig_lineup *l, const struct brig_ids *ids, struct brig_outfile *out,
                            struct brig_fail *fail)
{
    const char *path = l->settings->hidden;
    struct sink sink = {.f = out->stream, .n_ids = ids->n, .cols = l->model->desc.hidden};
    const uint64_t shape[] = {l->model->desc.n_layers + 2, ids->n, sink.cols};
    if (fseeko(sink.f, 0, SEEK_SET) != 0)
        return brig_fail_errno(fail, BRIG_EIO, "%s: hidden states need a file, not a pipe or device", path);
    brig_progress_init(&sink.bar, "hidden states", l->settings->quiet);
    if (brig_npy_header(sink.f, shape, 3) < 0)
        return brig_fail_errno(fail, BRIG_EIO, "%s: could not be written", path);
    int r = brig_session_hidden(l->session, ids->v, ids->n, write_hidden, &sink, progress, &sink, fail);
    brig_session_rewind(l->session, NULL, 0);
    return written(&sink, path, shape[0] * ids->n, r, fail);
}

/* Both files are there in the end, or none. */
static int write_files(struct brig_lineup *l, const struct brig_ids *ids, struct brig_fail *fail)
{
    struct brig_outfile hidden = {0}, out = {0};
    const struct brig_settings *s = l->settings;
    const struct brig_lineup_need need = {.ctx = (uint32_t)ids->n, .star = s->hidden != NULL};
    int r = s->hidden == NULL ? 0 : brig_outfile_open(&hidden, s->hidden, fail);
    if (r == 0 && s->out != NULL)
        r = brig_outfile_open(&out, s->out, fail);
    if (r == 0)
        r = brig_lineup_start(l, &need, fail);
    if (r == 0 && s->hidden != NULL)
        r = write_all_hidden(l, ids, &hidden, fail);
    if (r == 0 && s->out != NULL)
        r = write_logits(l, ids, &out, fail);
    if (r == 0 && s->hidden != NULL)
        r = brig_outfile_commit(&hidden, fail);
    if (r == 0 && s->out != NULL)
        r = brig_outfile_commit(&out, fail);
    brig_outfile_abandon(&hidden);
    brig_outfile_abandon(&out);
    return r;
}

static int check_wishes(const struct brig_settings *s, struct brig_fail *fail)
{
    if (s->ids == NULL)
        return brig_fail_set(fail, BRIG_EUSAGE, "--ids is missing");
    if (s->out == NULL && s->hidden == NULL)
        return brig_fail_set(fail, BRIG_EUSAGE, "--out is missing (or --hidden)");
    if (s->hidden != NULL && s->shards_given && s->shards != BRIG_SHARDS_ALL)
        return brig_fail_set(fail, BRIG_EUSAGE,
                             "--shards: with --hidden each layer is a shard: leave it out or say `all`");
    return 0;
}

static int run(const struct brig_settings *s, struct brig_fail *fail)
{
    struct brig_lineup l = {0};
    struct brig_ids ids = {0};
    int r = check_wishes(s, fail);
    if (r == 0)
        r = brig_input_ids(&ids, s->ids, strlen(s->ids), "--ids", fail);
    if (r == 0)
        r = brig_lineup_open(&l, s, false,
                             &(struct brig_budget_need){.ctx = (uint32_t)ids.n,
                                                        .n_shards = s->hidden != NULL ? UINT_MAX : 0,
                                                        .whole_rows = s->out != NULL},
                             fail);
    if (r == 0)
        r = check_ids(l.model, &ids, fail);
    if (r == 0)
        r = write_files(&l, &ids, fail);
    brig_ids_release(&ids);
    return brig_lineup_release(&l, r, fail);
}

const struct brig_verb brig_verb_logits = {
    .name = "logits",
    .help = "write logits, and hidden states, of every position of a list of token ids",
    .usage = "MODEL --ids LIST [--out FILE.npy] [--hidden FILE.npy] [OPTION]...",
    .about =
        "Row i of the file holds the logits after tokens 0 to i. The model needs no tokenizer.\n"
        "--hidden writes what enters the first layer, what leaves each layer, and the final norm.\n"
        "\n"
        "examples:\n"
        "  brigade logits MODEL --ids 1,2,3 --out logits.npy\n"
        "  brigade logits MODEL --ids \"$(echo Hello | brigade tokenize MODEL)\" --out logits.npy --exact\n",
    .operand = "MODEL",
    .operand_needed = true,
    .run = run,
};
