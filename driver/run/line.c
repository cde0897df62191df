/* A line: opening it (launched here, or attached to by address), its heartbeat, its end, its figures. */
#include "driver/run/line.h"

#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "driver/run/line_parts.h"
#include "proto/base/clock.h"
#include "proto/base/mem.h"

#define HEARTBEAT_S  10 /* a shard ends a run after a minute without a sign of life */
#define KEPT_SAMPLES 65536u
#define MAX_FLIGHTS  32u

/* ---- shards that others started: keep the run alive while a person thinks ---- */

static void beat(struct brig_line *l)
{
    for (unsigned i = 0; i < l->n_stages; i++) {
        struct brig_request req = {.kind = BRIG_CONTROL_STATUS, .run_id = l->run_id};
        struct brig_reply reply;
        struct brig_fail ignored; /* the next pass finds out and says so */
        if (l->peers[i].ctl != NULL && brig_ctl_call(l->peers[i].ctl, &req, &reply, 200, &ignored) < 0)
            return;
    }
}

static void *heart_main(void *arg)
{
    struct brig_line *l = arg;
    pthread_mutex_lock(&l->lock);
    while (!l->stopping) {
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_sec += HEARTBEAT_S;
        if (pthread_cond_timedwait(&l->wake, &l->lock, &until) != 0 && !l->stopping)
            beat(l);
    }
    pthread_mutex_unlock(&l->lock);
    return NULL;
}

static int heart_start(struct brig_line *l, struct brig_fail *fail)
{
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old); /* signals are the main thread's */
    int r = pthread_create(&l->heart, NULL, heart_main, l);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (r != 0)
        return brig_fail_set(fail, BRIG_ENOMEM, "no thread for the heartbeat");
    l->beating = true;
    return 0;
}

static void heart_stop(struct brig_line *l)
{
    if (!l->beating)
        return;
    pthread_mutex_lock(&l->lock);
    l->stopping = true;
    pthread_cond_signal(&l->wake);
    pthread_mutex_unlock(&l->lock);
    pthread_join(l->heart, NULL);
    l->beating = false;
}

/* ---- opening ---- */

static int allocate(struct brig_line *l, unsigned n_stages, struct brig_fail *fail)
{
    l->n_stages = n_stages;
    l->peers = brig_alloc(n_stages, sizeof *l->peers);
    l->stages = brig_alloc(n_stages, sizeof *l->stages);
    l->pss_now = brig_alloc(n_stages, sizeof *l->pss_now);
    /* One at work in each stage and one more on its way: the first stage then always takes what is sent,
     * also while the last one waits for the driver to take an answer. */
    l->room = l->star ? 1 : n_stages < MAX_FLIGHTS ? n_stages + 1 : MAX_FLIGHTS;
    l->flights = brig_alloc(l->room, sizeof *l->flights);
    if (l->peers == NULL || l->stages == NULL || l->pss_now == NULL || l->flights == NULL ||
        brig_samples_init(&l->hops, KEPT_SAMPLES) < 0)
        return brig_fail_set(fail, BRIG_ENOMEM, "out of memory for a line of %u shards", n_stages);
    const struct brig_desc *d = &l->opts.model->desc;
    l->max_bytes = brig_frame_max_message(n_stages, l->opts.max_rows, d->hidden, d->vocab);
    return 0;
}

/* Where frames come back to: on the machine's own address that the last shard is reached from. */
static int listen_url(struct brig_line *l, const struct brig_ctl_client *last, char out[BRIG_URL_MAX],
                      struct brig_fail *fail)
{
    const char *host = last != NULL ? brig_ctl_local_host(last) : "";
    int n = host[0] != '\0' ? snprintf(out, BRIG_URL_MAX, "tcp://%s:0", host)
                            : snprintf(out, BRIG_URL_MAX, "abstract://brigade-%016llx-driver",
                                       (unsigned long long)l->run_id);
    if (n >= (int)BRIG_URL_MAX)
        return brig_fail_set(fail, BRIG_ELIMIT, "the address %s is too long", host);
    return 0;
}

static int listen_for_frames(struct brig_line *l, const struct brig_ctl_client *last, struct brig_fail *fail)
{
    char url[BRIG_URL_MAX];
    int r = listen_url(l, last, url, fail);
    if (r == 0)
        brig_link_adopt(l->opts.link, url);
    if (r == 0)
        r = brig_link_check_url(url, l->opts.insecure, fail);
    l->rx_link = r < 0 ? NULL : brig_link_for(url, fail);
    if (l->rx_link == NULL)
        return -(int)fail->code;
    return l->rx_link->listen(&l->rx, url, l->max_bytes, l->rx_url, fail);
}

/* The processes that live, all at once; on a star they are also attached and dialled. */
static int start_living(struct brig_line *l, struct brig_fail *fail)
{
    int r = 0;
    for (unsigned i = 0; r == 0 && i < l->n_stages; i++)
        if (brig_line_lives(l, i))
            r = brig_launcher_start(l->launcher, i, fail);
    for (unsigned i = 0; r == 0 && i < l->n_stages; i++) {
        if (!brig_line_lives(l, i))
            continue;
        if (!l->opts.mode->keeps) {
            r = brig_peer_up(l, i, fail);
            continue;
        }
        r = brig_launcher_ready(l->launcher, i, l->peers[i].url, fail);
        l->stages[i].start_ns = brig_launcher_start_ns(l->launcher, i);
        if (r == 0)
            r = brig_peer_hello(l, i, fail);
    }
    return r;
}

static int launch(struct brig_line *l, struct brig_fail *fail)
{
    const struct brig_line_opts *o = &l->opts;
    struct brig_launch_opts launch = {.model = o->model,
                                      .n_shards = o->n_shards,
                                      .threads = o->threads,
                                      .exact = o->exact,
                                      .kv = o->kv,
                                      .link = o->link,
                                      .mode = o->mode,
                                      .keep = o->keep,
                                      .ctx = o->ctx,
                                      .slots = o->slots,
                                      .plan = o->plan,
                                      .timeout_ms = o->timeout_ms};
    int r = brig_launcher_open(&l->launcher, &launch, fail);
    if (r == 0)
        r = allocate(l, brig_launcher_stages(l->launcher), fail);
    for (unsigned i = 0; r == 0 && i < l->n_stages; i++) {
        l->stages[i].cells = brig_launcher_cells(l->launcher, i);
        l->stages[i].head = brig_cells_has_head(l->stages[i].cells, o->model->desc.n_layers);
        l->stages[i].lives = brig_line_lives(l, i);
    }
    if (r == 0)
        r = listen_for_frames(l, NULL, fail);
    return r < 0 ? r : start_living(l, fail);
}

static unsigned count_urls(const char *chain)
{
    unsigned n = 1;
    for (const char *p = chain; *p != '\0'; p++)
        n += *p == ',';
    return n;
}

/* The slices of the shards must join to the whole line, in the order given. */
static int check_joined(struct brig_line *l, struct brig_fail *fail)
{
    uint32_t at = 0, end = l->opts.model->desc.n_layers + 1;
    char name[BRIG_URL_MAX + 96];
    for (unsigned i = 0; i < l->n_stages; i++) {
        brig_peer_name(l, i, name, sizeof name);
        if (l->stages[i].cells.first != at)
            return brig_fail_set(fail, BRIG_EMISMATCH, "%s: layer %u is due at this place of the chain", name,
                                 at);
        at = l->stages[i].cells.last;
    }
    if (at == end)
        return 0;
    return brig_fail_set(fail, BRIG_EMISMATCH,
                         "%s is the last of the chain, and layers %u:%u and the head are missing", name, at,
                         end - 1);
}

static int attach_chain(struct brig_line *l, struct brig_fail *fail)
{
    const char *p = l->opts.chain;
    int r = allocate(l, count_urls(p), fail);
    for (unsigned i = 0; r == 0 && i < l->n_stages; i++) {
        size_t n = strcspn(p, ",");
        if (n == 0 || n >= BRIG_URL_MAX)
            return brig_fail_set(fail, BRIG_EUSAGE, "--chain: address %u is empty or longer than %u", i,
                                 BRIG_URL_MAX - 1);
        memcpy(l->peers[i].url, p, n);
        p += n + (p[n] == ',');
        r = brig_link_check_url(l->peers[i].url, l->opts.insecure, fail);
        if (r == 0)
            r = brig_peer_hello(l, i, fail);
    }
    if (r == 0)
        r = check_joined(l, fail);
    if (r == 0)
        r = listen_for_frames(l, l->peers[l->n_stages - 1].ctl, fail);
    return r;
}

/* Join the stages that are kept, from the last to the first: each learns an address that already listens, the
 * next one's, or on a star the driver's. */
static int join_up(struct brig_line *l, struct brig_fail *fail)
{
    const char *next = l->rx_url;
    for (unsigned i = l->n_stages; i-- > 0;) {
        int r = brig_peer_attach(l, i, next, fail);
        if (r == 0 && (l->star || i == 0))
            r = brig_peer_dial(l, i, fail);
        if (r < 0)
            return r;
        next = l->star ? l->rx_url : l->peers[i].data_url;
    }
    return 0;
}

static void name_tracks(struct brig_line *l)
{
    char name[BRIG_URL_MAX + 96];
    for (unsigned i = 0; l->opts.trace != NULL && i < l->n_stages; i++) {
        brig_peer_name(l, i, name, sizeof name);
        brig_trace_track(l->opts.trace, i + 1, name);
    }
}

static int set_up(struct brig_line *l, struct brig_fail *fail)
{
    const struct brig_pass empty = {0};
    struct brig_answer none;
    brig_numeric_class(l->numeric_class, l->opts.exact, brig_kv_type_name(l->opts.kv));
    if (getrandom(&l->run_id, sizeof l->run_id, 0) != sizeof l->run_id)
        return brig_fail_errno(fail, BRIG_EIO, "no random numbers");
    int r = l->opts.chain != NULL ? attach_chain(l, fail) : launch(l, fail);
    if (r == 0 && l->opts.mode->keeps) {
        r = join_up(l, fail);
        if (r == 0 && l->opts.chain != NULL)
            r = heart_start(l, fail);
        if (r == 0) /* a frame without rows proves the line */
            r = brig_line_pass(l, &empty, &none, fail);
    }
    if (r < 0)
        return r;
    l->proven_ns = brig_clock_ns();
    name_tracks(l);
    return 0;
}

static int check_mode(const struct brig_line_opts *o, struct brig_fail *fail)
{
    if (o->chain != NULL && !o->mode->keeps)
        return brig_fail_set(fail, BRIG_EUSAGE,
                             "--chain is for shards that live: it does not go with --mode %s", o->mode->name);
    if (o->keep > 0 && !o->mode->picks)
        return brig_fail_set(fail, BRIG_EUSAGE,
                             "--keep says how many shards live: it does not go with --mode %s",
                             o->mode->name);
    if (o->mode->picks && o->keep > o->n_shards)
        return brig_fail_set(fail, BRIG_EUSAGE, "--keep %u: there are %u shards", o->keep, o->n_shards);
    return 0;
}

int brig_line_open(struct brig_line **ret, const struct brig_line_opts *opts, struct brig_fail *fail)
{
    struct brig_line *l = brig_alloc(1, sizeof *l);
    if (l == NULL)
        return brig_fail_set(fail, BRIG_ENOMEM, "out of memory for a line");
    l->opts = *opts;
    l->hold = -1;
    if (l->opts.link == NULL)
        l->opts.link = opts->mode->keeps ? brig_link_default() : brig_link_plain();
    l->star = opts->star || !opts->mode->keeps;
    if (opts->mode->picks && opts->keep == 0)
        l->opts.keep = (opts->n_shards + 1) / 2;
    pthread_mutex_init(&l->lock, NULL);
    pthread_cond_init(&l->wake, NULL);
    int r = check_mode(opts, fail);
    if (r == 0)
        r = set_up(l, fail);
    if (r < 0) {
        r = brig_line_verdict(l, r, fail);
        brig_line_close(l);
        return r;
    }
    *ret = l;
    return 0;
}

void brig_line_close(struct brig_line *l)
{
    if (l == NULL)
        return;
    brig_hold_end(l->hold);
    heart_stop(l);
    for (unsigned i = 0; l->peers != NULL && i < l->n_stages; i++)
        brig_peer_down(l, i);
    if (l->rx != NULL)
        l->rx_link->rx_close(l->rx);
    brig_launcher_close(l->launcher);
    brig_samples_release(&l->hops);
    brig_free(l->peers);
    brig_free(l->stages);
    brig_free(l->pss_now);
    brig_free(l->flights);
    brig_free(l->lse);
    brig_free(l->logits);
    brig_free(l->n);
    brig_free(l->ids);
    pthread_cond_destroy(&l->wake);
    pthread_mutex_destroy(&l->lock);
    brig_free(l);
}

void brig_line_stats(struct brig_line *l, struct brig_line_stats *ret)
{
    for (unsigned i = 0; l->launcher != NULL && i < l->n_stages; i++)
        l->stages[i].kv_bytes = brig_launcher_cache_bytes(l->launcher, i);
    *ret = (struct brig_line_stats){
        .n_stages = l->n_stages,
        .stages = l->stages,
        .proven_ns = l->proven_ns,
        .pss_peak_bytes = l->pss_peak_bytes,
        .hops_per_pass = l->star ? 2 * (uint64_t)l->n_stages : l->n_stages + 1,
        .hop_ns = l->hops.v,
        .n_hop_ns = l->hops.n,
    };
}
