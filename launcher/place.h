/* Places, inside the launcher: how a process is started somewhere. One row in place.def, one file each. */
#ifndef BRIG_LAUNCHER_PLACE_H
#define BRIG_LAUNCHER_PLACE_H

#include "launcher/launcher.h"

/* A process to start: a program, its arguments, and the descriptors that it inherits beside 0, 1 and 2:
 * fds[i] becomes BRIG_PLACE_FIRST_FD + i. All fds are above that range (launcher.c makes them so). */
struct brig_spawn {
    const char *program;
    char *const *argv;
    const int *fds;
    unsigned n_fds;
};

#define BRIG_PLACE_FIRST_FD 3

struct brig_place_ops {
    struct brig_place place;
    /* Start it; the caller waits for it. Everything but the named descriptors is closed in the child, its
     * signals are at their defaults, and it has a process group of its own (a Ctrl-C is the driver's to
     * handle). */
    int (*spawn)(const struct brig_spawn *what, pid_t *ret, struct brig_fail *fail);
};

#endif
