/* A progress bar. */
#include "driver/front/progress.h"

#include <stdio.h>
#include <unistd.h>

#include "proto/base/clock.h"

#define WAIT_NS   BRIG_NS_PER_S
#define REDRAW_NS (100 * BRIG_NS_PER_MS)
#define BAR_COLS  30u

void brig_progress_init(struct brig_progress *p, const char *what, bool quiet)
{
    *p = (struct brig_progress){
        .what = what, .on = !quiet && isatty(STDERR_FILENO) == 1, .begin_ns = brig_clock_ns()};
}

void brig_progress_update(struct brig_progress *p, size_t done, size_t total)
{
    uint64_t now = brig_clock_ns();
    if (done >= total) {
        brig_progress_wipe(p);
        return;
    }
    if (!p->on || now - p->begin_ns < WAIT_NS || (p->drawn && now - p->drawn_ns < REDRAW_NS))
        return;
    char bar[BAR_COLS + 1];
    unsigned full = (unsigned)((double)done / (double)total * BAR_COLS);
    for (unsigned i = 0; i < BAR_COLS; i++)
        bar[i] = i < full ? '#' : '.';
    bar[BAR_COLS] = '\0';
    fprintf(stderr, "\r%s [%s] %zu of %zu\033[K", p->what, bar, done, total);
    fflush(stderr);
    p->drawn = true;
    p->drawn_ns = now;
}

void brig_progress_wipe(struct brig_progress *p)
{
    if (p->drawn) {
        fputs("\r\033[K", stderr);
        fflush(stderr);
    }
    p->drawn = false;
}
