/* Signals of the driver: SIGINT, SIGTERM and SIGHUP ask for a clean end; SIGPIPE is an error of write. */
#ifndef BRIG_DRIVER_FRONT_INTERRUPT_H
#define BRIG_DRIVER_FRONT_INTERRUPT_H

#include <signal.h>

void brig_interrupt_install(void);

/* Not 0 once a signal has come: its number. The memory that line and generation watch. */
const volatile sig_atomic_t *brig_interrupt_flag(void);

/* How often SIGINT has come since the last clear. Clear forgets SIGINT only: a request to terminate stays. */
int brig_interrupt_count(void);
void brig_interrupt_clear(void);

#endif
