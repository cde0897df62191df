/* One stage of a line: hello, attach, dial, status, end. */
#include "driver/run/line_parts.h"

#include <stdio.h>
#include <string.h>

#include "proto/base/clock.h"

#define ANSWER_MS                                                                                            \
    5000u /* a control request that starts no computing is answered in this time, or something is wrong */

void brig_peer_name(const struct brig_line *l, unsigned stage, char *out, size_t cap)
{
    const struct brig_cells cells = l->stages[stage].cells;
    uint32_t n_layers = l->opts.model->desc.n_layers;
    char what[64];
    if (cells.last == 0) { /* nobody has said hello there yet */
        snprintf(out, cap, "shard %u at %s", stage, l->peers[stage].url);
        return;
    }
    if (cells.first == n_layers)
        snprintf(what, sizeof what, "head");
    else
        snprintf(what, sizeof what, "layers %u:%u%s", cells.first,
                 cells.last > n_layers ? n_layers : cells.last, cells.last > n_layers ? ", head" : "");
    if (l->launcher != NULL)
        snprintf(out, cap, "shard %u (%s)", stage, what);
    else
        snprintf(out, cap, "shard %u at %s (%s)", stage, l->peers[stage].url, what);
}

int brig_peer_blame(struct brig_line *l, unsigned stage, struct brig_fail *fail)
{
    char name[BRIG_URL_MAX + 96];
    brig_peer_name(l, stage, name, sizeof name);
    /* The process may be dying just now: its connection ended first. */
    if (l->launcher != NULL && fail->code == BRIG_EDEAD && brig_launcher_alive(l->launcher, stage))
        brig_launcher_reap(l->launcher, stage, 200);
    if (l->launcher != NULL && brig_launcher_post_mortem(l->launcher, stage, fail))
        return -(int)fail->code;
    if (strncmp(fail->text, l->peers[stage].url, strlen(l->peers[stage].url)) == 0 && l->launcher == NULL)
        return brig_fail_prefix(fail, "shard %u", stage); /* the address is said already */
    return brig_fail_prefix(fail, "%s", name);
}

static int call(struct brig_line *l, unsigned stage, struct brig_request *req, struct brig_reply *reply,
                uint32_t timeout_ms, struct brig_fail *fail)
{
    req->run_id = l->run_id;
    pthread_mutex_lock(&l->lock);
    int r = brig_ctl_call(l->peers[stage].ctl, req, reply, timeout_ms, fail);
    pthread_mutex_unlock(&l->lock);
    if (r == 0 && reply->err != BRIG_OK)
        r = brig_fail_set(fail, reply->err, "%s",
                          reply->text[0] != '\0' ? reply->text : brig_err_text(reply->err));
    return r;
}

static uint32_t at_most(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* What the shard holds must be what the run needs, in words. */
static int check_hello(const struct brig_line *l, const struct brig_reply *h, struct brig_fail *fail)
{
    const struct brig_model *m = l->opts.model;
    if (memcmp(h->identity, m->identity, sizeof h->identity) != 0)
        return brig_fail_set(fail, BRIG_EMISMATCH, "it holds another model than %s", m->path);
    if (h->n_layers != m->desc.n_layers || h->hidden != m->desc.hidden || h->vocab != m->desc.vocab ||
        h->cells_first >= h->cells_last || h->cells_last > m->desc.n_layers + 1)
        return brig_fail_set(fail, BRIG_EPROTO, "it states a slice that does not fit %s", m->path);
    if (strcmp(h->numeric_class, l->numeric_class) != 0)
        return brig_fail_set(
            fail, BRIG_EMISMATCH,
            "it computes as \"%s\", this run as \"%s\": start both with the same --exact and --kv",
            h->numeric_class, l->numeric_class);
    if (h->ctx < l->opts.ctx || h->slots < l->opts.slots)
        return brig_fail_set(
            fail, BRIG_EMISMATCH,
            "its cache has room for %u positions, this run wants %u: give the run --ctx %u, or the "
            "shard more",
            h->ctx, l->opts.ctx, h->ctx);
    return 0;
}

static void note_hello(struct brig_stage_stats *s, const struct brig_reply *h, uint32_t n_layers)
{
    s->cells = (struct brig_cells){h->cells_first, h->cells_last};
    s->head = brig_cells_has_head(s->cells, n_layers);
    s->pid = h->pid;
    s->threads = h->threads;
    s->unlocked_bytes = h->unlocked_bytes;
    memcpy(s->host, h->host, sizeof s->host);
    memcpy(s->kernel, h->kernel, sizeof s->kernel);
}

int brig_peer_hello(struct brig_line *l, unsigned stage, struct brig_fail *fail)
{
    struct brig_peer *p = &l->peers[stage];
    struct brig_request req = {.kind = BRIG_CONTROL_HELLO};
    struct brig_reply reply;
    pthread_mutex_lock(&l->lock);
    int r = brig_ctl_dial(&p->ctl, p->url, l->opts.timeout_ms, fail);
    pthread_mutex_unlock(&l->lock);
    if (r == 0)
        r = call(l, stage, &req, &reply, at_most(ANSWER_MS, l->opts.timeout_ms), fail);
    if (r == 0)
        r = check_hello(l, &reply, fail);
    if (r < 0)
        return brig_peer_blame(l, stage, fail);
    note_hello(&l->stages[stage], &reply, l->opts.model->desc.n_layers);
    return 0;
}

int brig_peer_attach(struct brig_line *l, unsigned stage, const char *next_url, struct brig_fail *fail)
{
    struct brig_peer *p = &l->peers[stage];
    struct brig_request req = {.kind = BRIG_CONTROL_ATTACH,
                               .stage = stage,
                               .n_stages = l->n_stages,
                               .max_rows = l->opts.max_rows,
                               .ctx = l->opts.ctx,
                               .slots = l->opts.slots};
    struct brig_reply reply;
    memcpy(req.identity, l->opts.model->identity, sizeof req.identity);
    memcpy(req.numeric_class, l->numeric_class, sizeof req.numeric_class);
    snprintf(req.next_url, sizeof req.next_url, "%s", next_url);
    int r = call(l, stage, &req, &reply, l->opts.timeout_ms + ANSWER_MS, fail);
    if (r < 0)
        return brig_peer_blame(l, stage, fail);
    memcpy(p->data_url, reply.data_url, sizeof p->data_url);
    p->attached = true;
    p->done = false;
    p->silent_since_ns = 0;
    return 0;
}

int brig_peer_dial(struct brig_line *l, unsigned stage, struct brig_fail *fail)
{
    struct brig_peer *p = &l->peers[stage];
    int r = brig_link_check_url(p->data_url, l->opts.insecure, fail);
    p->tx_link = r < 0 ? NULL : brig_link_for(p->data_url, fail);
    if (p->tx_link == NULL)
        return brig_peer_blame(l, stage, fail);
    r = p->tx_link->dial(&p->tx, p->data_url, l->max_bytes, l->opts.timeout_ms, fail);
    return r < 0 ? brig_peer_blame(l, stage, fail) : 0;
}

int brig_peer_up(struct brig_line *l, unsigned stage, struct brig_fail *fail)
{
    struct brig_peer *p = &l->peers[stage];
    int r = 0;
    if (p->tx != NULL)
        return 0;
    if (!brig_launcher_alive(l->launcher, stage))
        r = brig_launcher_start(l->launcher, stage, fail);
    if (r == 0)
        r = brig_launcher_ready(l->launcher, stage, p->url, fail);
    if (r < 0)
        return r;
    l->stages[stage].start_ns = brig_launcher_start_ns(l->launcher, stage);
    r = brig_peer_hello(l, stage, fail);
    if (r == 0)
        r = brig_peer_attach(l, stage, l->rx_url, fail);
    if (r == 0)
        r = brig_peer_dial(l, stage, fail);
    return r;
}

int brig_peer_status(struct brig_line *l, unsigned stage, struct brig_reply *reply, uint32_t timeout_ms,
                     struct brig_fail *fail)
{
    struct brig_request req = {.kind = BRIG_CONTROL_STATUS};
    return call(l, stage, &req, reply, timeout_ms, fail);
}

bool brig_peer_part(struct brig_line *l, unsigned stage)
{
    struct brig_peer *p = &l->peers[stage];
    struct brig_fail ignored; /* it is going away: a failure only means that it is not waited for */
    bool leaves = p->done;
    if (p->tx != NULL)
        p->tx_link->tx_close(p->tx);
    p->tx = NULL;
    if (p->ctl != NULL && p->attached && !p->done && p->silent_since_ns == 0) {
        struct brig_request req = {.kind = l->launcher != NULL ? BRIG_CONTROL_STOP : BRIG_CONTROL_DRAIN};
        struct brig_reply reply;
        leaves = call(l, stage, &req, &reply, 1000, &ignored) == 0;
    }
    pthread_mutex_lock(&l->lock);
    brig_ctl_client_close(p->ctl);
    p->ctl = NULL;
    p->attached = false;
    pthread_mutex_unlock(&l->lock);
    return leaves;
}

void brig_peer_down(struct brig_line *l, unsigned stage)
{
    bool leaves = brig_peer_part(l, stage);
    if (l->launcher != NULL && brig_launcher_alive(l->launcher, stage))
        brig_launcher_reap(l->launcher, stage, leaves ? 1000 : 0);
    l->peers[stage].done = false;
}
