/* Signal handlers that only take note. */
#include "driver/front/interrupt.h"

#include <stddef.h>
#include <string.h>

static volatile sig_atomic_t number;
static volatile sig_atomic_t count;

static void note(int sig)
{
    if (sig == SIGINT)
        count++;
    if (number == 0 || number == SIGINT)
        number = sig;
}

void brig_interrupt_install(void)
{
    struct sigaction a;
    memset(&a, 0, sizeof a);
    sigemptyset(&a.sa_mask);
    a.sa_handler = note; /* without SA_RESTART: a read that waits for a person ends */
    sigaction(SIGINT, &a, NULL);
    sigaction(SIGTERM, &a, NULL);
    sigaction(SIGHUP, &a, NULL);
    a.sa_handler = SIG_IGN;
    sigaction(SIGPIPE, &a, NULL);
}

const volatile sig_atomic_t *brig_interrupt_flag(void)
{
    return &number;
}

int brig_interrupt_count(void)
{
    return count;
}

void brig_interrupt_clear(void)
{
    count = 0;
    if (number == SIGINT)
        number = 0;
}
