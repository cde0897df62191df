/* A run's sockets and buffers. Opened by the control thread, closed by the compute thread. */
#include "shard/serve.h"

#include <string.h>

#include "proto/base/clock.h"
#include "proto/base/mem.h"

#define DIAL_MS 5000u /* for the next of the line to listen */

static int listen_for_frames(struct brig_serve *s, struct brig_serve_run *run, struct brig_fail *fail)
{
    const struct brig_shard_args *a = s->hold->args;
    char url[BRIG_URL_MAX];
    int r = 0;
    if (a->listen != NULL)
        snprintf(url, sizeof url, "%s", a->listen);
    else
        r = brig_ctl_data_url(s->ctl, url, fail);
    if (r < 0)
        return r;
    if (a->listen == NULL)
        brig_link_adopt(a->link, url);
    run->rx_link = brig_link_for(url, fail);
    if (run->rx_link == NULL)
        return -(int)fail->code;
    return run->rx_link->listen(&run->rx, url, run->max_bytes, run->data_url, fail);
}

static int dial_next(struct brig_serve *s, struct brig_serve_run *run, struct brig_fail *fail)
{
    int r = brig_link_check_url(run->next_url, s->hold->args->insecure, fail);
    if (r < 0)
        return r;
    run->tx_link = brig_link_for(run->next_url, fail);
    if (run->tx_link == NULL)
        return -(int)fail->code;
    return run->tx_link->dial(&run->tx, run->next_url, run->max_bytes, DIAL_MS, fail);
}

static int make_block(struct brig_serve *s, struct brig_serve_run *run, struct brig_fail *fail)
{
    struct brig_holding *h = s->hold;
    int r = h->team == NULL ? brig_team_new(&h->team, h->threads, fail) : 0;
    if (r < 0)
        return r;
    struct brig_block_setup setup = {.slice = &h->slice,
                                     .weights = h->weights,
                                     .kernel = h->kernel,
                                     .team = h->team,
                                     .exact = h->args->exact,
                                     .max_rows = run->max_rows,
                                     .ctx = run->ctx};
    r = brig_block_new(&run->block, &setup, fail);
    if (r < 0)
        return r;
    run->want_rows = brig_alloc(run->max_rows, sizeof *run->want_rows);
    return run->want_rows != NULL ? 0 : brig_fail_set(fail, BRIG_ENOMEM, "out of memory for a run");
}

/* A cache that nobody handed over belongs to no run before this one. */
static int clear_cache(struct brig_serve *s, struct brig_fail *fail)
{
    int r = 0;
    for (uint32_t slot = 0; r == 0 && !s->hold->args->launched && slot < s->hold->shape.slots; slot++) {
        struct brig_cache_op drop = {.kind = BRIG_CACHE_DROP, .slot = slot};
        r = brig_kv_apply(s->hold->kv, &drop, 1, fail);
    }
    return r;
}

int brig_serve_run_open(struct brig_serve *s, const struct brig_request *req, struct brig_serve_run **ret,
                        struct brig_fail *fail)
{
    const struct brig_desc *d = &s->hold->slice.desc;
    struct brig_serve_run *run = brig_alloc(1, sizeof *run);
    if (run == NULL)
        return brig_fail_set(fail, BRIG_ENOMEM, "out of memory for a run");
    run->run_id = req->run_id;
    run->stage = req->stage;
    run->n_stages = req->n_stages;
    run->max_rows = req->max_rows;
    run->ctx = req->ctx;
    run->slots = req->slots;
    run->max_bytes =
        brig_frame_max_message(req->n_stages, req->max_rows, d->hidden, d->vocab, brig_desc_choices(d));
    memcpy(run->next_url, req->next_url, sizeof run->next_url);
    int r = clear_cache(s, fail);
    if (r == 0)
        r = make_block(s, run, fail);
    if (r == 0)
        r = listen_for_frames(s, run, fail);
    if (r == 0)
        r = dial_next(s, run, fail);
    if (r < 0) {
        brig_serve_run_close(run);
        return r;
    }
    run->idle_since_ns = brig_clock_ns();
    *ret = run;
    return 0;
}

void brig_serve_run_close(struct brig_serve_run *run)
{
    if (run == NULL)
        return;
    if (run->rx != NULL)
        run->rx_link->rx_close(run->rx);
    if (run->tx != NULL)
        run->tx_link->tx_close(run->tx);
    brig_block_free(run->block);
    brig_free(run->want_rows);
    brig_free(run);
}
