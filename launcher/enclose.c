/* The enclosure: enter a group, execute this program anew inside it, and what is read from the group later.
 */
#include "launcher/enclose.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/sysinfo.h>
#include <sys/wait.h>
#include <unistd.h>

#include "launcher/enclose_way.h"
#include "launcher/ram.h"
#include "proto/base/mem.h"
#include "proto/base/parse.h"
#include "proto/base/proc.h"

extern char **environ;

/* "WAY PID START BYTES HOME" for the program that is executed anew. */
#define MARKER   "BRIGADE_ENCLOSURE"
#define MAX_ARGS 65536

struct marker {
    const struct brig_way_ops *ops;
    uint64_t bytes;
    char home[PATH_MAX];
};

/* The marker, if it is of this very process: one that came down from another process is not ours. */
static bool read_marker(struct marker *m)
{
    char copy[PATH_MAX + 128], *save = NULL, *words[4];
    const char *text = getenv(MARKER);
    uint64_t pid, start, own;
    if (text == NULL || strlen(text) >= sizeof copy)
        return false;
    memcpy(copy, text, strlen(text) + 1);
    for (unsigned i = 0; i < 4; i++) {
        words[i] = strtok_r(i == 0 ? copy : NULL, " ", &save);
        if (words[i] == NULL)
            return false;
    }
    const char *home = strtok_r(NULL, "", &save);
    m->ops = brig_way_ops_by_name(words[0]);
    snprintf(m->home, sizeof m->home, "%s", home == NULL ? "" : home);
    return m->ops != NULL && brig_parse_u64(words[1], &pid) && brig_parse_u64(words[2], &start) &&
           brig_parse_u64(words[3], &m->bytes) && pid == (uint64_t)getpid() &&
           brig_proc_start_ticks("", getpid(), &own) && own == start;
}

static bool write_marker(const struct brig_enclosure *e)
{
    char text[PATH_MAX + 128];
    uint64_t start;
    if (!brig_proc_start_ticks("", getpid(), &start))
        return false;
    snprintf(text, sizeof text, "%s %ld %" PRIu64 " %" PRIu64 " %s", e->way->name, (long)getpid(), start,
             e->bytes, e->home);
    return setenv(MARKER, text, 1) == 0;
}

uint64_t brig_enclosed_bytes(void)
{
    struct marker m;
    return read_marker(&m) ? m.bytes : 0;
}

/* Comes back only when the program cannot be executed. */
static int execute(const struct brig_way_ops *ops, const struct brig_enclosure *e, char *const argv[],
                   struct brig_fail *fail)
{
    char self[PATH_MAX], text[BRIG_WAY_TEXT], *prefix[BRIG_WAY_PREFIX] = {NULL};
    ssize_t len = readlink("/proc/self/exe", self, sizeof self - 1);
    size_t n = 0, n_prefix = 0, n_args = 0;
    if (len <= 0)
        return brig_fail_errno(fail, BRIG_EIO, "/proc/self/exe");
    self[len] = '\0';
    if (ops->prefix != NULL)
        ops->prefix(e, text, prefix);
    while (prefix[n_prefix] != NULL)
        n_prefix++;
    while (argv[n_args] != NULL && n_args < MAX_ARGS)
        n_args++;
    char **args = brig_alloc(n_prefix + n_args + 2, sizeof *args);
    if (args == NULL || !write_marker(e)) {
        brig_free(args);
        return brig_fail_set(fail, BRIG_ENOMEM, "out of memory to execute %.200s anew", self);
    }
    for (; n < n_prefix; n++)
        args[n] = prefix[n];
    args[n++] = n_prefix > 0 || n_args == 0 ? self : argv[0];
    for (size_t i = 1; i < n_args; i++)
        args[n++] = argv[i];
    args[n] = NULL;
    if (n_prefix > 0)
        execvpe(args[0], args, environ);
    else
        execve(self, args, environ);
    int r = brig_fail_errno(fail, BRIG_EIO, "%.200s: cannot be executed anew in its group", args[0]);
    unsetenv(MARKER);
    brig_free(args);
    return r;
}

/* A budget larger than what there is is no mistake, but it is not what holds. */
static void note_room(struct brig_enclosure *e, const struct brig_cgroup *g,
                      const struct brig_cgroup_files *files)
{
    struct sysinfo info;
    char where[PATH_MAX] = "", text[320] = "", budget[BRIG_RAM_TEXT], room[BRIG_RAM_TEXT];
    size_t at = strlen(e->note);
    if (g != NULL)
        e->room_bytes = brig_cgroup_least(g, files, where);
    if (e->bytes < e->room_bytes)
        e->room_bytes = e->bytes;
    if (sysinfo(&info) == 0 && (uint64_t)info.totalram * info.mem_unit < e->room_bytes) {
        e->room_bytes = (uint64_t)info.totalram * info.mem_unit;
        snprintf(text, sizeof text, "the budget of %s is more than the %s of this machine",
                 brig_ram_text(e->bytes, budget), brig_ram_text(e->room_bytes, room));
    } else if (e->room_bytes < e->bytes) {
        snprintf(text, sizeof text, "the budget of %s is more than the %s that the cgroup %.200s allows",
                 brig_ram_text(e->bytes, budget), brig_ram_text(e->room_bytes, room), where);
    }
    if (text[0] != '\0')
        snprintf(e->note + at, sizeof e->note - at, "%s%s", at == 0 ? "" : "; ", text);
}

/* Is this process where it should be, and does the limit hold there? The name of the group is our own. */
static bool is_inside(struct brig_enclosure *e, const struct brig_way_ops *ops, struct brig_cgroup *g,
                      struct brig_fail *why)
{
    char name[BRIG_CGROUP_NAME];
    uint64_t limit = 0;
    if (brig_cgroup_find("", ops->version, g, why) < 0)
        return false;
    const char *last = strrchr(g->dir, '/');
    if (!brig_cgroup_own_name("", name) || last == NULL || strncmp(last + 1, name, strlen(name)) != 0) {
        brig_fail_set(why, BRIG_EUNSUPPORTED, "this process is in %.200s and not in a group of its own",
                      g->dir);
        return false;
    }
    if (!brig_cgroup_number(g->dir, ops->files->limit, &limit) || limit != e->bytes) {
        brig_fail_set(why, BRIG_EUNSUPPORTED, "%.200s does not have that limit", g->dir);
        return false;
    }
    memcpy(e->dir, g->dir, sizeof e->dir);
    return true;
}

static void uncounted(struct brig_enclosure *e)
{
    char reasons[sizeof e->note], budget[BRIG_RAM_TEXT];
    snprintf(reasons, sizeof reasons, "%s", e->note);
    snprintf(e->note, sizeof e->note, "the budget of %s is counted and not enforced: %.400s",
             brig_ram_text(e->bytes, budget), reasons);
}

/* The second call: executed anew, inside. */
static void arrive(struct brig_enclosure *e, const struct marker *m)
{
    struct brig_enclosure_figures figures;
    struct brig_cgroup g;
    struct brig_fail why = {0};
    e->bytes = m->bytes;
    if (!is_inside(e, m->ops, &g, &why)) {
        e->way = &brig_way_ops_by_name("none")->way;
        snprintf(e->note, sizeof e->note, "%s: %.300s", m->ops->way.name, why.text);
        uncounted(e);
        return;
    }
    e->way = &m->ops->way;
    memcpy(e->home, m->home, sizeof e->home);
    note_room(e, &g, m->ops->files);
    e->oom_kills = 0;
    brig_enclosure_read(e, &figures);
    e->oom_kills = figures.oom_kills == BRIG_ENCLOSURE_UNKNOWN ? 0 : figures.oom_kills;
}

int brig_enclose(struct brig_enclosure *ret, uint64_t bytes, char *const argv[], struct brig_fail *fail)
{
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    struct marker m;
    memset(ret, 0, sizeof *ret);
    ret->bytes = bytes < page ? page : bytes - bytes % page;
    ret->room_bytes = UINT64_MAX;
    bool second = read_marker(&m);
    unsetenv(MARKER);
    if (second) {
        arrive(ret, &m);
        return 0;
    }
    const struct brig_way_ops *ops = brig_way_choose("", ret);
    if (ops->files == NULL) {
        uncounted(ret);
        note_room(ret, NULL, NULL);
        return 0;
    }
    int r = execute(ops, ret, argv, fail);
    brig_enclosure_leave(ret);
    return r;
}

void brig_enclosure_leave(struct brig_enclosure *e)
{
    struct marker m;
    if (e->way == NULL && read_marker(&m)) { /* executed anew, and failed before it asked to be enclosed */
        unsetenv(MARKER);
        arrive(e, &m);
    }
    const struct brig_way_ops *ops = e->way == NULL ? NULL : brig_way_ops_by_name(e->way->name);
    if (ops != NULL && ops->leave != NULL && e->dir[0] != '\0')
        ops->leave("", e);
    e->dir[0] = '\0';
}

/* ---- what the group says ---- */

void brig_enclosure_read(const struct brig_enclosure *e, struct brig_enclosure_figures *ret)
{
    const uint64_t unknown = BRIG_ENCLOSURE_UNKNOWN;
    *ret = (struct brig_enclosure_figures){unknown, unknown, unknown, unknown};
    const struct brig_way_ops *ops = e->way == NULL ? NULL : brig_way_ops_by_name(e->way->name);
    if (ops == NULL || ops->files == NULL || e->dir[0] == '\0')
        return;
    const struct brig_cgroup_files *f = ops->files;
    brig_cgroup_number(e->dir, f->peak, &ret->peak_bytes);
    brig_cgroup_number(e->dir, f->usage, &ret->now_bytes);
    if (f->swap != NULL)
        brig_cgroup_number(e->dir, f->swap, &ret->swap_bytes);
    else
        brig_cgroup_line(e->dir, "memory.stat", "total_swap", &ret->swap_bytes);
    if (brig_cgroup_line(e->dir, f->events, f->events_key, &ret->oom_kills))
        ret->oom_kills -= e->oom_kills < ret->oom_kills ? e->oom_kills : ret->oom_kills;
}

void brig_enclosure_expose(const struct brig_enclosure *e, pid_t pid)
{
    char dir[64];
    if (e == NULL || e->dir[0] == '\0')
        return;
    snprintf(dir, sizeof dir, "/proc/%ld", (long)pid);
    brig_cgroup_write_number(dir, "oom_score_adj", 1000, NULL);
}

bool brig_enclosure_blame(const struct brig_enclosure *e, const char *name, int wait_status,
                          struct brig_fail *fail)
{
    struct brig_enclosure_figures figures;
    char budget[BRIG_RAM_TEXT];
    if (e == NULL || !WIFSIGNALED(wait_status) || WTERMSIG(wait_status) != SIGKILL)
        return false;
    brig_enclosure_read(e, &figures);
    if (figures.oom_kills == BRIG_ENCLOSURE_UNKNOWN || figures.oom_kills == 0)
        return false;
    brig_fail_set(fail, BRIG_ELIMIT, "%s was killed for memory: the run needed more than its budget of %s",
                  name, brig_ram_text(e->bytes, budget));
    return true;
}
