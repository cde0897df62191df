/*
 * systemd: `systemd-run --user --scope` asks the user's service manager for a group, and executes the program
 * in it under the same pid. For people at a login session, who may not write the group tree themselves. The
 * manager removes the scope when its last process is gone.
 */
#include "launcher/enclose_way.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <poll.h>

extern char **environ;
extern const struct brig_way_ops brig_way_systemd;

#define TRY_MS 5000

/* A scope lies beside a session, not in it: only a login session is left, never a job or a container. */
static int check_place(const char *root, struct brig_fail *why)
{
    struct brig_cgroup own;
    int r = brig_cgroup_find(root, 2, &own, why);
    if (r < 0)
        return r;
    if (strstr(own.dir + own.mount_len, "/user.slice/") == NULL)
        return brig_fail_set(why, BRIG_EUNSUPPORTED, "this is no login session of systemd");
    do {
        if (brig_cgroup_confines(own.dir))
            return brig_fail_set(why, BRIG_EUNSUPPORTED, "%.200s has a limit that is not to be escaped",
                                 own.dir);
    } while (brig_cgroup_parent(&own, &own));
    return 0;
}

static void command(const struct brig_enclosure *e, bool named, char text[BRIG_WAY_TEXT],
                    char *words[BRIG_WAY_PREFIX])
{
    char name[BRIG_CGROUP_NAME] = "";
    const char *const fixed[] = {"systemd-run", "--user", "--scope",         "--quiet",
                                 "--collect",   "-p",     "MemorySwapMax=0", "-p"};
    unsigned n = 0;
    size_t at = 0;
    for (; n < sizeof fixed / sizeof *fixed; n++) {
        words[n] = text + at;
        at += (size_t)snprintf(text + at, BRIG_WAY_TEXT - at, "%s", fixed[n]) + 1;
    }
    words[n++] = text + at;
    at += (size_t)snprintf(text + at, BRIG_WAY_TEXT - at, "MemoryMax=%" PRIu64, e->bytes) + 1;
    if (named && brig_cgroup_own_name("", name)) {
        words[n++] = text + at;
        at += (size_t)snprintf(text + at, BRIG_WAY_TEXT - at, "--unit=%s", name) + 1;
    }
    words[n++] = text + at;
    snprintf(text + at, BRIG_WAY_TEXT - at, "--");
    words[n] = NULL;
}

/* Wait for a child with a deadline; its exit code, or -1. */
static int finish(pid_t pid)
{
    int status = 0, fd = (int)syscall(SYS_pidfd_open, pid, 0);
    struct pollfd p = {.fd = fd, .events = POLLIN};
    if (fd < 0 || poll(&p, 1, TRY_MS) != 1)
        kill(pid, SIGKILL);
    if (fd >= 0)
        close(fd);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* Does the manager make such a scope? Asked with a program that does nothing. */
static int enter(const char *root, struct brig_enclosure *e, struct brig_fail *why)
{
    char text[BRIG_WAY_TEXT], *words[BRIG_WAY_PREFIX], nothing[] = "true";
    posix_spawn_file_actions_t quiet;
    pid_t pid;
    int r = check_place(root, why);
    if (r < 0)
        return r;
    command(e, false, text, words);
    unsigned n = 0;
    while (words[n] != NULL)
        n++;
    words[n] = nothing;
    words[n + 1] = NULL;
    if (posix_spawn_file_actions_init(&quiet) != 0)
        return brig_fail_set(why, BRIG_ENOMEM, "out of memory");
    r = posix_spawn_file_actions_addopen(&quiet, 0, "/dev/null", O_RDONLY, 0);
    r |= posix_spawn_file_actions_addopen(&quiet, 1, "/dev/null", O_WRONLY, 0);
    r |= posix_spawn_file_actions_addopen(&quiet, 2, "/dev/null", O_WRONLY, 0);
    r = r != 0 ? ENOMEM : posix_spawnp(&pid, words[0], &quiet, NULL, words, environ);
    posix_spawn_file_actions_destroy(&quiet);
    errno = r;
    if (r != 0)
        return brig_fail_errno(why, BRIG_EUNSUPPORTED, "systemd-run");
    int code = finish(pid);
    return code == 0 ? 0
                     : brig_fail_set(why, BRIG_EUNSUPPORTED,
                                     "systemd-run --user --scope was refused (exit code %d)", code);
}

static void prefix(const struct brig_enclosure *e, char text[BRIG_WAY_TEXT], char *words[BRIG_WAY_PREFIX])
{
    command(e, true, text, words);
}

const struct brig_way_ops brig_way_systemd = {
    .way = {.name = "systemd",
            .help = "a scope of the user's systemd (systemd-run --user --scope) with MemoryMax, no swap"},
    .version = 2,
    .files = &brig_cgroup_files_2,
    .enter = enter,
    .prefix = prefix,
};
