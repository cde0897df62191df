/* From settings to drafts. */
#include "driver/front/drafts.h"

#include "driver/token/same.h"

static int check_tokens(struct brig_drafts *d, const struct brig_settings *s, const struct brig_model *m,
                        struct brig_fail *fail)
{
    const char *const names[] = {s->draft, m->path};
    int r = brig_folder_attach(&d->folder, d->model, fail);
    if (r < 0)
        return r;
    if (m->vocab.n_tokens == 0 || d->model->vocab.n_tokens == 0)
        return brig_fail_set(fail, BRIG_EUNSUPPORTED,
                             "%s has no tokenizer, so it is not known whether its tokens are those of %s",
                             m->vocab.n_tokens == 0 ? m->path : s->draft,
                             m->vocab.n_tokens == 0 ? s->draft : m->path);
    r = brig_vocab_same(&d->model->vocab, &m->vocab, names, fail);
    return r < 0 ? brig_fail_prefix(fail, "a draft model must have the same tokens") : 0;
}

/* A tokenizer.json that was read to be compared. */
static void forget_tokens(struct brig_drafts *d)
{
    if (d->folder == NULL)
        return;
    d->model->vocab = (struct brig_vocab){0};
    brig_folder_close(d->folder);
    d->folder = NULL;
}

int brig_drafts_open(struct brig_drafts *d, const struct brig_settings *s, const struct brig_model *m,
                     struct brig_fail *fail)
{
    *d = (struct brig_drafts){0};
    if (s->draft == NULL)
        return 0;
    int r = brig_model_open(&d->model, s->draft, fail);
    if (r == 0 && brig_enclosed_bytes() == 0)
        r = check_tokens(d, s, m, fail);
    if (r == 0)
        forget_tokens(d);
    if (r == 0)
        r = brig_embed_open(&d->embed, d->model, fail);
    return r < 0 ? brig_fail_prefix(fail, "--draft") : 0;
}

static int start_model(struct brig_drafts *d, const struct brig_line_opts *as, struct brig_fail *fail)
{
    struct brig_line_opts line = *as;
    struct brig_session_opts session = {
        .model = d->model, .embed = d->embed, .ctx = brig_plan_draft_ctx(d->model, as->ctx)};
    line.model = d->model;
    line.mode = brig_mode_by_name("warm");
    line.keep = 0;
    line.n_shards = 1;
    line.turn_bytes = 0;
    line.chain = NULL;
    line.star = false;
    line.slots = 1;
    line.ctx = session.ctx;
    line.max_rows = session.ctx < BRIG_SESSION_MAX_ROWS ? session.ctx : BRIG_SESSION_MAX_ROWS;
    if (as->plan != NULL) {
        line.plan = NULL; /* which says how the model's weights are held */
        line.residency = brig_residency_by_name("lock");
        line.max_rows = brig_plan_draft_rows(d->model, as->ctx);
    }
    line.trace = NULL;  /* its tracks are those of the model's shards */
    line.routes = NULL; /* it has experts of its own, if any */
    session.batch_rows = line.max_rows;
    int r = brig_line_open(&d->line, &line, fail);
    session.line = d->line;
    if (r == 0)
        r = brig_session_new(&d->session, &session, fail);
    return r < 0 ? brig_fail_prefix(fail, "--draft") : 0;
}

int brig_drafts_start(struct brig_drafts *d, const struct brig_settings *s, const struct brig_line_opts *line,
                      const struct brig_sample_opts *sample, bool disk_bound, struct brig_fail *fail)
{
    bool lookup = s->lookup == BRIG_LOOKUP_ON || (s->lookup == BRIG_LOOKUP_AUTO && disk_bound);
    int r = d->model != NULL ? start_model(d, line, fail) : 0;
    if (r < 0)
        return r;
    d->sample = *sample;
    d->opts = (struct brig_spec_opts){.lookup = lookup,
                                      .length = (uint32_t)s->draft_len,
                                      .vocab = line->model->desc.vocab,
                                      .disk_bound = disk_bound};
    if (d->model != NULL) {
        d->draft = (struct brig_draft_opts){
            .session = d->session, .vocab = d->model->desc.vocab, .sample = &d->sample};
        d->opts.draft = &d->draft;
    }
    d->any = lookup || d->model != NULL;
    return 0;
}

void brig_drafts_release(struct brig_drafts *d)
{
    brig_session_free(d->session);
    brig_line_close(d->line);
    brig_embed_close(d->embed);
    brig_model_close(d->model);
    brig_folder_close(d->folder);
    *d = (struct brig_drafts){0};
}
