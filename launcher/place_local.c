/* The local place: posix_spawn on this machine. */
#include "launcher/place.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <unistd.h>

extern char **environ;
extern const struct brig_place_ops brig_place_local;

static int file_actions(const struct brig_spawn *what, posix_spawn_file_actions_t *actions)
{
    int r = posix_spawn_file_actions_addopen(actions, 0, "/dev/null", O_RDONLY, 0);
    if (r == 0)
        r = posix_spawn_file_actions_addopen(actions, 1, "/dev/null", O_WRONLY, 0);
    for (unsigned i = 0; r == 0 && i < what->n_fds; i++)
        r = posix_spawn_file_actions_adddup2(actions, what->fds[i], BRIG_PLACE_FIRST_FD + (int)i);
    if (r == 0)
        r = posix_spawn_file_actions_addclosefrom_np(actions, BRIG_PLACE_FIRST_FD + (int)what->n_fds);
    return r;
}

static int attributes(posix_spawnattr_t *attr)
{
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    int r = posix_spawnattr_setflags(attr,
                                     POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    if (r == 0)
        r = posix_spawnattr_setpgroup(attr, 0);
    if (r == 0)
        r = posix_spawnattr_setsigmask(attr, &none);
    if (r == 0)
        r = posix_spawnattr_setsigdefault(attr, &all);
    return r;
}

static int local_spawn(const struct brig_spawn *what, pid_t *ret, struct brig_fail *fail)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attr;
    if (posix_spawn_file_actions_init(&actions) != 0)
        return brig_fail_set(fail, BRIG_ENOMEM, "%s: cannot be started: out of memory", what->program);
    if (posix_spawnattr_init(&attr) != 0) {
        posix_spawn_file_actions_destroy(&actions);
        return brig_fail_set(fail, BRIG_ENOMEM, "%s: cannot be started: out of memory", what->program);
    }
    int r = file_actions(what, &actions);
    if (r == 0)
        r = attributes(&attr);
    if (r == 0)
        r = posix_spawn(ret, what->program, &actions, &attr, what->argv, environ);
    posix_spawnattr_destroy(&attr);
    posix_spawn_file_actions_destroy(&actions);
    if (r == 0)
        return 0;
    errno = r;
    return brig_fail_errno(fail, BRIG_EIO, "%s: cannot be started", what->program);
}

const struct brig_place_ops brig_place_local = {
    .place = {.name = "local", .help = "this machine: posix_spawn, pidfd, dies with its driver"},
    .spawn = local_spawn,
};
