/*
 * Closed receivers. A thread that was between two receives when its receiver was closed comes back to it once
 * more, and must find the door closed instead of freed memory: so the newest closed receivers are kept for a
 * while.
 */
#include "proto/link/parts.h"

#define KEPT 16u

struct kept {
    void *rx;
    void (*release)(void *rx);
};

static struct kept kept[KEPT];
static unsigned kept_next;
static pthread_mutex_t kept_lock = PTHREAD_MUTEX_INITIALIZER;

void brig_link_keep(void *rx, void (*release)(void *rx))
{
    pthread_mutex_lock(&kept_lock);
    struct kept old = kept[kept_next];
    kept[kept_next] = (struct kept){rx, release};
    kept_next = (kept_next + 1) % KEPT;
    pthread_mutex_unlock(&kept_lock);
    if (old.rx != NULL)
        old.release(old.rx);
}

void brig_link_forget(void)
{
    for (unsigned i = 0; i < KEPT; i++)
        brig_link_keep(NULL, NULL);
}
