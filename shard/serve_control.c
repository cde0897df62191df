/*
 * The control thread: one request at a time, each answered at once, but for attach (which waits for the next
 * of the line to listen) and drain (which waits for the data sockets to close).
 */
#include "shard/serve.h"

#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#include "proto/base/clock.h"

#define POLL_MS     250u     /* how soon the end of the program is noticed */
#define SILENCE_S   60u      /* without a sign of life the run of a driver ends */
#define END_WAIT_MS 900u     /* for the compute thread to close a run */
#define WAIT_LONG   (60000u) /* between looks when nothing but a request can happen */

__attribute__((format(printf, 3, 4))) static void refuse(struct brig_reply *reply, enum brig_err err,
                                                         const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(reply->text, sizeof reply->text, fmt, ap);
    va_end(ap);
    reply->err = err;
}

static struct timespec after_ms(uint32_t ms)
{
    uint64_t until = brig_clock_ns() + ms * BRIG_NS_PER_MS;
    return (struct timespec){.tv_sec = (time_t)(until / BRIG_NS_PER_S),
                             .tv_nsec = (long)(until % BRIG_NS_PER_S)};
}

/* Under the lock: wait for the run to be closed. */
static bool await_free(struct brig_serve *s)
{
    struct timespec until = after_ms(END_WAIT_MS);
    while (s->state != BRIG_SHARD_FREE)
        if (pthread_cond_timedwait(&s->changed, &s->lock, &until) != 0)
            break;
    return s->state == BRIG_SHARD_FREE;
}

/* Under the lock: the request is of the run that is served. */
static bool owns(const struct brig_serve *s, const struct brig_request *req)
{
    return s->state != BRIG_SHARD_FREE && s->run->run_id == req->run_id;
}

static void hello(struct brig_serve *s, struct brig_reply *reply)
{
    const struct brig_holding *h = s->hold;
    const struct brig_desc *d = &h->slice.desc;
    memcpy(reply->identity, h->slice.identity, sizeof reply->identity);
    reply->n_layers = d->n_layers;
    reply->cells_first = h->slice.cells.first;
    reply->cells_last = h->slice.cells.last;
    reply->hidden = d->hidden;
    reply->vocab = d->vocab;
    reply->ctx = h->shape.ctx;
    reply->slots = h->shape.slots;
    reply->pid = (uint32_t)getpid();
    reply->threads = h->threads;
    const struct brig_weights_stats w = brig_weights_stats(h->weights);
    reply->mapped_bytes = w.held_bytes;
    reply->unlocked_bytes = w.unlocked_bytes;
    memcpy(reply->numeric_class, h->numeric_class, sizeof reply->numeric_class);
    snprintf(reply->kernel, sizeof reply->kernel, "%s", h->kernel->name);
    if (gethostname(reply->host, sizeof reply->host - 1) < 0)
        reply->host[0] = '\0';
    pthread_mutex_lock(&s->lock);
    reply->state = s->state;
    pthread_mutex_unlock(&s->lock);
}

/* What the run needs against what this shard holds, in words. */
static bool fits(const struct brig_serve *s, const struct brig_request *req, struct brig_reply *reply)
{
    const struct brig_holding *h = s->hold;
    if (memcmp(req->identity, h->slice.identity, sizeof req->identity) != 0)
        refuse(reply, BRIG_EMISMATCH, "this shard holds another model");
    else if (strcmp(req->numeric_class, h->numeric_class) != 0)
        refuse(reply, BRIG_EMISMATCH, "this shard computes as \"%s\", the run as \"%s\"", h->numeric_class,
               req->numeric_class);
    else if (req->ctx < 1 || req->ctx > h->shape.ctx)
        refuse(reply, BRIG_EMISMATCH, "the run wants %u positions, the cache of this shard has %u (--ctx)",
               req->ctx, h->shape.ctx);
    else if (req->slots < 1 || req->slots > h->shape.slots)
        refuse(reply, BRIG_EMISMATCH, "the run wants %u slots, the cache of this shard has %u (--slots)",
               req->slots, h->shape.slots);
    else if (req->max_rows < 1 || req->max_rows > BRIG_FRAME_MAX_ROWS)
        refuse(reply, BRIG_ELIMIT, "frames of %u rows: 1 to %u are possible", req->max_rows,
               BRIG_FRAME_MAX_ROWS);
    else if (req->n_stages > BRIG_FRAME_MAX_STAGES || req->stage >= req->n_stages)
        refuse(reply, BRIG_EPROTO, "stage %u of %u", req->stage, req->n_stages);
    return reply->err == BRIG_OK;
}

/* Claim the shard for the peer; false when another is served. The run before may still be closing. */
static bool claim(struct brig_serve *s, uint32_t peer, struct brig_reply *reply)
{
    pthread_mutex_lock(&s->lock);
    bool closing = s->ending;
    bool is_free = closing ? await_free(s) : s->state == BRIG_SHARD_FREE;
    if (is_free) {
        s->asking_peer = peer;
        s->asking_peer_gone = false;
    }
    pthread_mutex_unlock(&s->lock);
    if (!is_free)
        refuse(reply, BRIG_EBUSY, "%s",
               closing ? "still at work on a frame of the run before" : "this shard serves another driver");
    return is_free;
}

static void attach(struct brig_serve *s, uint32_t peer, const struct brig_request *req,
                   struct brig_reply *reply)
{
    struct brig_serve_run *run = NULL;
    struct brig_fail fail;
    if (!fits(s, req, reply) || !claim(s, peer, reply))
        return;
    int r = brig_serve_run_open(s, req, &run, &fail);
    if (r < 0)
        refuse(reply, fail.code, "%s", fail.text);
    else
        run->peer = peer;
    atomic_store(&s->last_sign_ns, brig_clock_ns());
    pthread_mutex_lock(&s->lock);
    bool gone = s->asking_peer_gone;
    s->asking_peer = 0;
    if (r == 0 && !gone) {
        memcpy(reply->data_url, run->data_url, sizeof reply->data_url);
        s->run = run;
        s->state = BRIG_SHARD_ATTACHED;
        s->why[0] = '\0';
        pthread_cond_broadcast(&s->changed);
    }
    pthread_mutex_unlock(&s->lock);
    if (r == 0 && gone) {
        brig_serve_run_close(run);
        refuse(reply, BRIG_ECANCELLED, "the driver has gone");
    }
}

static void status(struct brig_serve *s, const struct brig_request *req, struct brig_reply *reply)
{
    pthread_mutex_lock(&s->lock);
    bool own = owns(s, req);
    reply->state = s->state;
    if (own && s->state == BRIG_SHARD_FAILED)
        memcpy(reply->text, s->why, sizeof reply->text);
    bool has_team = own && s->hold->team != NULL;
    pthread_mutex_unlock(&s->lock);
    if (!own) {
        refuse(reply, BRIG_EMISMATCH, "that run has ended here");
        return;
    }
    atomic_store(&s->last_sign_ns, brig_clock_ns());
    reply->frame_id = atomic_load(&s->frame_id);
    reply->layer = atomic_load(&s->layer);
    reply->working = atomic_load(&s->working);
    reply->progress = atomic_load(&s->frames) + brig_weights_progress(s->hold->weights);
    if (has_team)
        reply->progress += atomic_load(brig_team_progress(s->hold->team));
}

static void drain(struct brig_serve *s, const struct brig_request *req, struct brig_reply *reply)
{
    pthread_mutex_lock(&s->lock);
    bool own = owns(s, req);
    pthread_mutex_unlock(&s->lock);
    if (!own) {
        refuse(reply, BRIG_EMISMATCH, "that run has ended here");
        return;
    }
    brig_serve_end_run(s, false);
    pthread_mutex_lock(&s->lock);
    bool closed = await_free(s);
    pthread_mutex_unlock(&s->lock);
    if (!closed)
        refuse(reply, BRIG_EBUSY, "still at work on a frame; the run ends after it");
}

static bool may_stop(struct brig_serve *s, const struct brig_request *req, struct brig_reply *reply)
{
    pthread_mutex_lock(&s->lock);
    bool may = s->state == BRIG_SHARD_FREE || s->ending || owns(s, req);
    pthread_mutex_unlock(&s->lock);
    if (!may)
        refuse(reply, BRIG_EBUSY, "this shard serves another driver");
    return may;
}

/* Fill the reply; true when the process is to end after it. */
static bool answer(struct brig_serve *s, uint32_t peer, const struct brig_request *req,
                   struct brig_reply *reply)
{
    switch (req->kind) {
    case BRIG_CONTROL_HELLO:
        hello(s, reply);
        return false;
    case BRIG_CONTROL_ATTACH:
        attach(s, peer, req, reply);
        return false;
    case BRIG_CONTROL_STATUS:
        status(s, req, reply);
        return false;
    case BRIG_CONTROL_DRAIN:
        drain(s, req, reply);
        return false;
    case BRIG_CONTROL_STOP:
        return may_stop(s, req, reply);
    default:
        refuse(reply, BRIG_EPROTO, "request %d is not known", (int)req->kind);
        return false;
    }
}

/* One request from its bytes to its reply. */
static bool serve_one(struct brig_serve *s, const struct brig_buf *bytes, uint32_t peer, struct brig_buf *out)
{
    struct brig_request req = {0};
    struct brig_fail fail;
    bool stop = false;
    int r = brig_request_decode(&req, bytes->data, bytes->len, &fail);
    struct brig_reply reply = {.kind = req.kind};
    if (r < 0)
        refuse(&reply, fail.code, "%s", fail.text);
    else
        stop = answer(s, peer, &req, &reply);
    brig_buf_clear(out);
    if (brig_reply_encode(&reply, out) < 0)
        return stop;
    r = brig_ctl_reply(s->ctl, out, &fail);
    if (r < 0 && r != -BRIG_EDEAD && !s->hold->args->launched) /* who has gone wants no reply */
        fprintf(stderr, "brigade-shard: a reply could not be given: %s\n", fail.text);
    return stop;
}

/* A driver on another machine can vanish without its connection ending. One that launched this shard cannot.
 */
static bool look_around(struct brig_serve *s)
{
    uint64_t now = brig_clock_ns(), sign = atomic_load(&s->last_sign_ns);
    pthread_mutex_lock(&s->lock);
    bool silent = s->state != BRIG_SHARD_FREE && !s->hold->args->launched && !atomic_load(&s->working) &&
                  now > sign && now - sign > SILENCE_S * BRIG_NS_PER_S;
    bool quit = s->quit;
    pthread_mutex_unlock(&s->lock);
    if (silent)
        brig_serve_end_run(s, false);
    return !quit;
}

void *brig_serve_control_main(void *serve)
{
    struct brig_serve *s = serve;
    bool launched = s->hold->args->launched;
    struct brig_buf in = {.max = BRIG_CONTROL_MAX_BYTES}, out = {.max = BRIG_CONTROL_MAX_BYTES};
    bool stop = false;
    while (!stop && look_around(s)) {
        struct brig_fail fail;
        uint32_t peer;
        int r = brig_ctl_recv(s->ctl, &in, &peer, launched ? WAIT_LONG : POLL_MS, &fail);
        if (r == 0) {
            stop = serve_one(s, &in, peer, &out);
        } else if (r != -BRIG_ETIMEOUT) {
            fprintf(stderr, "brigade-shard: the control address is lost: %s\n", fail.text);
            stop = true;
        }
    }
    brig_buf_release(&in);
    brig_buf_release(&out);
    /* A launched shard leaves nothing behind that would need its compute thread to be waited for. */
    if (stop && launched) {
        brig_ctl_server_close(s->ctl);
        _exit(0);
    }
    brig_serve_quit(s);
    return NULL;
}
