/* The life of a serving shard: its threads, and runs one after another. Called by main. */
#include "shard/serve.h"

#include <string.h>

#define POLL_MS 250u /* how soon the end of the driver's connection is noticed while no frame comes */

static void gone(void *ctx, uint32_t peer)
{
    struct brig_serve *s = ctx;
    pthread_mutex_lock(&s->lock);
    if (s->state != BRIG_SHARD_FREE && s->run->peer == peer)
        s->ending = true;
    if (s->asking_peer == peer)
        s->asking_peer_gone = true;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
}

int brig_serve_open(struct brig_serve *s, struct brig_holding *hold, struct brig_fail *fail)
{
    pthread_condattr_t attr;
    memset(s, 0, sizeof *s);
    s->hold = hold;
    pthread_mutex_init(&s->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&s->changed, &attr);
    pthread_condattr_destroy(&attr);
    int r = brig_ctl_listen(&s->ctl, hold->args->control, s->control_url, gone, s, fail);
    if (r < 0)
        return r;
    r = pthread_create(&s->control_thread, NULL, brig_serve_control_main, s);
    if (r == 0)
        return 0;
    brig_ctl_server_close(s->ctl);
    return brig_fail_set(fail, BRIG_ELIMIT, "no thread for control: %s", strerror(r));
}

/* Under the lock: the run's receiver, for the one who closes it; NULL when another does. */
static struct brig_rx *take_rx(struct brig_serve *s)
{
    struct brig_rx *rx = NULL;
    if (s->state != BRIG_SHARD_FREE) {
        rx = s->run->rx;
        s->run->rx = NULL;
    }
    return rx;
}

void brig_serve_end_run(struct brig_serve *s, bool quit)
{
    const struct brig_link *link = NULL;
    pthread_mutex_lock(&s->lock);
    s->quit = s->quit || quit;
    s->ending = s->ending || s->state != BRIG_SHARD_FREE;
    struct brig_rx *rx = take_rx(s);
    if (rx != NULL)
        link = s->run->rx_link;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
    if (rx != NULL)
        link->rx_close(rx);
}

void brig_serve_quit(struct brig_serve *s)
{
    brig_serve_end_run(s, true);
}

void brig_serve_close(struct brig_serve *s)
{
    brig_serve_quit(s);
    pthread_join(s->control_thread, NULL);
    brig_ctl_server_close(s->ctl); /* the lock stays: a signal can still come */
}

/* Wait for a run and its receiver (NULL when it is over already); false when the process is to end. */
static bool await_run(struct brig_serve *s, struct brig_rx **rx)
{
    pthread_mutex_lock(&s->lock);
    while (s->state == BRIG_SHARD_FREE && !s->quit)
        pthread_cond_wait(&s->changed, &s->lock);
    bool run = s->state != BRIG_SHARD_FREE;
    *rx = run ? s->run->rx : NULL;
    pthread_mutex_unlock(&s->lock);
    return run;
}

/* True when the run is over. A failed one stays, so that its driver can ask why, until that driver ends it.
 */
static bool run_is_over(struct brig_serve *s)
{
    pthread_mutex_lock(&s->lock);
    while (s->state == BRIG_SHARD_FAILED && !s->ending && !s->quit)
        pthread_cond_wait(&s->changed, &s->lock);
    bool over = s->ending || s->quit;
    pthread_mutex_unlock(&s->lock);
    return over;
}

static void run_failed(struct brig_serve *s, const struct brig_fail *why)
{
    pthread_mutex_lock(&s->lock);
    s->state = BRIG_SHARD_FAILED;
    snprintf(s->why, sizeof s->why, "%.255s", why->text);
    pthread_mutex_unlock(&s->lock);
    if (!s->hold->args->launched)
        fprintf(stderr, "brigade-shard: the run failed: %s\n", why->text);
}

static void close_run(struct brig_serve *s)
{
    struct brig_serve_run *run = s->run;
    pthread_mutex_lock(&s->lock);
    struct brig_rx *rx = take_rx(s);
    pthread_mutex_unlock(&s->lock);
    if (rx != NULL)
        run->rx_link->rx_close(rx);
    brig_serve_run_close(run);
    pthread_mutex_lock(&s->lock);
    s->run = NULL;
    s->state = BRIG_SHARD_FREE;
    s->ending = false;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
}

/* Until the run is over, or, with --once, has had its frame: true then. The time before the first frame is
 * used to bring the weights near. */
static bool work_run(struct brig_serve *s, struct brig_rx *rx)
{
    const struct brig_link *link = s->run->rx_link;
    bool prefetching = true;
    while (!run_is_over(s)) {
        struct brig_fail fail;
        struct brig_msg *m;
        int r = link->recv(rx, &m, prefetching ? 0 : POLL_MS, &fail);
        if (r == -BRIG_ECANCELLED) /* closed by who ends the run */
            continue;
        if (r == -BRIG_ETIMEOUT) {
            prefetching = prefetching && brig_weights_prefetch(s->hold->weights);
            continue;
        }
        if (r == 0)
            r = brig_serve_message(s, m, &fail);
        if (r < 0)
            run_failed(s, &fail);
        if (r == 1 && s->hold->args->once)
            return true;
    }
    return false;
}

void brig_serve_work(struct brig_serve *s)
{
    struct brig_rx *rx;
    while (await_run(s, &rx)) {
        if (work_run(s, rx)) { /* its only frame must leave; everything else ends with the process */
            s->run->tx_link->tx_close(s->run->tx);
            return;
        }
        close_run(s);
    }
}
