/* Enclosures: groups found and made in trees of files that look like the kernel's, of both versions; and the
 * whole way through with the kernel's own where it lets us (this program then executes itself anew). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <ftw.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "launcher/enclose_way.h"
#include "launcher/launcher.h"
#include "proto/base/proc.h"

#define MIB ((uint64_t)1 << 20)

/* ---- a tree that looks like the kernel's ---- */

static char root[64];

static int set_up(void **state)
{
    (void)state;
    snprintf(root, sizeof root, "/tmp/brigade-enclose-XXXXXX");
    return mkdtemp(root) == NULL ? -1 : 0;
}

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *walk)
{
    (void)st;
    (void)flag;
    (void)walk;
    return remove(path);
}

static int tear_down(void **state)
{
    (void)state;
    return nftw(root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static void path_of(const char *name, char out[512])
{
    assert_true(snprintf(out, 512, "%s/%s", root, name) < 512);
}

__attribute__((format(printf, 2, 3))) static void put(const char *name, const char *fmt, ...)
{
    char path[512];
    va_list ap;
    path_of(name, path);
    for (char *p = path + strlen(root) + 1; (p = strchr(p, '/')) != NULL; p++) {
        *p = '\0';
        mkdir(path, 0700);
        *p = '/';
    }
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    va_start(ap, fmt);
    assert_true(vfprintf(f, fmt, ap) >= 0);
    va_end(ap);
    assert_int_equal(fclose(f), 0);
}

static void holds(const char *name, const char *text)
{
    char path[512], got[128] = "";
    path_of(name, path);
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    size_t n = fread(got, 1, sizeof got - 1, f);
    fclose(f);
    got[n] = '\0';
    assert_string_equal(got, text);
}

static bool exists(const char *name)
{
    char path[512];
    path_of(name, path);
    return access(path, F_OK) == 0;
}

/* This process, with a start time of 77. */
static void put_process(void)
{
    char name[64];
    snprintf(name, sizeof name, "proc/%ld/stat", (long)getpid());
    put(name, "%ld (a ) b) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 77 20\n", (long)getpid());
}

static const char *own(const char *parent, const char *file)
{
    static char name[8][256];
    static unsigned turn;
    char *out = name[turn++ % 8];
    snprintf(out, 256, "%s/brigade-%ld-77/%s", parent, (long)getpid(), file);
    return out;
}

static const char *pid_text(void)
{
    static char text[32];
    snprintf(text, sizeof text, "%ld", (long)getpid());
    return text;
}

#define V1_MOUNT "35 32 0:32 / /sys/fs/cgroup/memory rw shared:9 - cgroup cgroup rw,memory\n"
#define V2_MOUNT "41 31 0:38 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw,nsdelegate\n"
#define V1       "sys/fs/cgroup/memory"
#define V2       "sys/fs/cgroup"

/* ---- where we are ---- */

static void finds(unsigned version, const char *groups, const char *mounts, const char *dir, const char *says)
{
    struct brig_cgroup g;
    struct brig_fail fail = {0};
    char path[512];
    put("proc/self/cgroup", "%s", groups);
    put("proc/self/mountinfo", "%s", mounts);
    int r = brig_cgroup_find(root, version, &g, &fail);
    if (dir == NULL) {
        assert_true(r < 0);
        assert_non_null(strstr(fail.text, says));
        return;
    }
    assert_int_equal(r, 0);
    path_of(dir, path);
    assert_string_equal(g.dir, path);
}

static void own_group_is_found(void **state)
{
    (void)state;
    put(V1 "/a/b/x", "1");
    put(V2 "/unified/c/x", "1");
    put("mnt/a space/b/x", "1");
    finds(1, "4:cpu,cpuacct:/a\n3:cpuset,memory:/a/b\n0::/c\n", V1_MOUNT, V1 "/a/b", NULL);
    finds(1, "3:memory:/\n", V1_MOUNT, V1, NULL);
    finds(2, "3:memory:/a/b\n0::/c\n", V1_MOUNT "9 1 0:1 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n",
          V2 "/unified/c", NULL);
    /* A part of the hierarchy is mounted: the container's own. */
    finds(1, "3:memory:/docker/77/b\n",
          "9 1 0:1 /docker/77 /mnt/a\\040space rw - cgroup cgroup rw,cpu,memory\n", "mnt/a space/b", NULL);
    /* The same hierarchy twice, once with a part in which we are not. */
    finds(1, "3:memory:/a/b\n", "9 1 0:1 /other /mnt/a\\040space rw - cgroup cgroup rw,memory\n" V1_MOUNT,
          V1 "/a/b", NULL);
    finds(1, "3:memory:/ab\n", "9 1 0:1 /a /mnt rw - cgroup cgroup rw,memory\n", NULL, "not to be seen");
    finds(1, "3:memory:/a/gone\n", V1_MOUNT, NULL, "/a/gone of this process is not to be seen");
    finds(1, "3:memory:/a/b\n", "9 1 0:1 / /sys rw - tmpfs tmpfs rw,memory\n", NULL, "no memory groups");
    finds(1, "4:cpu:/a\n0::/\n", V1_MOUNT, NULL, "no memory groups of this version");
    finds(2, "3:memory:/a/b\n", V2_MOUNT, NULL, "no memory groups of this version");
    finds(1, "rubbish\n:\n3:memory\n", "rubbish\n - \n1 2 3 - cgroup\n", NULL, "no memory groups");
    finds(1, "3:memory:/a/b\n", "rubbish\n - \n1 2 3 - cgroup\n\n9 1 0:1 / /sys rw - cgroup cgroup\n", NULL,
          "no memory groups");
}

static void numbers_and_lines(void **state)
{
    char dir[512];
    uint64_t n = 5;
    (void)state;
    path_of("g", dir);
    put("g/max", "max\n");
    put("g/number", "123\n");
    put("g/rubbish", "12x\n");
    put("g/events", "low 0\noom 7\noom_kill 3\noom_group_kill 9\n");
    put("g/words", "cpu memory\n");
    assert_true(brig_cgroup_number(dir, "max", &n) && n == UINT64_MAX);
    assert_true(brig_cgroup_number(dir, "number", &n) && n == 123);
    assert_false(brig_cgroup_number(dir, "rubbish", &n));
    assert_false(brig_cgroup_number(dir, "missing", &n));
    assert_int_equal(n, 123);
    assert_true(brig_cgroup_line(dir, "events", "oom_kill", &n) && n == 3);
    assert_false(brig_cgroup_line(dir, "events", "oom_k", &n));
    assert_true(brig_cgroup_word(dir, "words", "memory"));
    assert_false(brig_cgroup_word(dir, "words", "mem"));
}

static void least_limit_above(void **state)
{
    struct brig_cgroup g;
    char where[PATH_MAX] = "", path[512];
    (void)state;
    put("proc/self/cgroup", "0::/a/b\n");
    put("proc/self/mountinfo", V2_MOUNT);
    put(V2 "/a/b/memory.max", "max\n");
    put(V2 "/a/memory.max", "4096000\n");
    assert_int_equal(brig_cgroup_find(root, 2, &g, NULL), 0);
    assert_int_equal(brig_cgroup_least(&g, &brig_cgroup_files_2, where), 4096000);
    path_of(V2 "/a", path);
    assert_string_equal(where, path);
    put(V2 "/a/memory.max", "max\n");
    assert_true(brig_cgroup_least(&g, &brig_cgroup_files_2, where) == UINT64_MAX);
}

/* ---- version 1 ---- */

static void put_v1(void)
{
    put_process();
    put("proc/self/cgroup", "3:memory:/job\n0::/\n");
    put("proc/self/mountinfo", V1_MOUNT);
    put(V1 "/job/memory.limit_in_bytes", "9223372036854771712\n");
    put(own(V1 "/job", "memory.limit_in_bytes"), "%s", "");
    put(own(V1 "/job", "memory.memsw.limit_in_bytes"), "9223372036854771712\n");
    put(own(V1 "/job", "memory.swappiness"), "60\n");
    put(own(V1 "/job", "cgroup.procs"), "%s", "");
}

static struct brig_enclosure chosen(const char *way, const char *dir, const char *home)
{
    struct brig_enclosure e = {.bytes = 64 * MIB};
    char path[512];
    const struct brig_way_ops *ops = brig_way_choose(root, &e);
    assert_non_null(ops);
    assert_string_equal(ops->way.name, way);
    assert_ptr_equal(e.way, &ops->way);
    if (dir != NULL) {
        path_of(own(dir, ""), path);
        path[strlen(path) - 1] = '\0';
        assert_string_equal(e.dir, path);
        path_of(home, path);
        assert_string_equal(e.home, path);
        assert_string_equal(e.note, "");
    }
    return e;
}

static void version_1(void **state)
{
    (void)state;
    put_v1();
    chosen("cgroup1", V1 "/job", V1 "/job");
    holds(own(V1 "/job", "memory.limit_in_bytes"), "67108864");
    holds(own(V1 "/job", "memory.memsw.limit_in_bytes"), "67108864");
    holds(own(V1 "/job", "memory.swappiness"), "60\n");
    holds(own(V1 "/job", "cgroup.procs"), pid_text());
}

static void version_1_without_count_of_swap(void **state)
{
    char path[512];
    (void)state;
    put_v1();
    path_of(own(V1 "/job", "memory.memsw.limit_in_bytes"), path);
    assert_int_equal(unlink(path), 0);
    chosen("cgroup1", V1 "/job", V1 "/job");
    holds(own(V1 "/job", "memory.swappiness"), "0");
}

static void what_is_not_allowed_is_said(void **state)
{
    char path[512];
    (void)state;
    put_v1();
    path_of(own(V1 "/job", "cgroup.procs"), path);
    assert_int_equal(unlink(path), 0);
    struct brig_enclosure e = chosen("none", NULL, NULL);
    assert_non_null(strstr(e.note, "cgroup1: "));
    assert_non_null(strstr(e.note, "cgroup2: no memory groups of this version"));
    assert_non_null(strstr(e.note, "systemd: "));
    assert_string_equal(e.dir, "");
}

/* ---- version 2 ---- */

static void put_v2(const char *group, const char *parent)
{
    char name[128];
    put_process();
    put("proc/self/cgroup", "0::/%s\n", group);
    put("proc/self/mountinfo", V2_MOUNT);
    snprintf(name, sizeof name, V2 "/%s", parent);
    put(own(name, "memory.max"), "max\n");
    put(own(name, "memory.swap.max"), "max\n");
    put(own(name, "cgroup.procs"), "%s", "");
}

static void limited_v2(const char *parent)
{
    holds(own(parent, "memory.max"), "67108864");
    holds(own(parent, "memory.swap.max"), "0");
    holds(own(parent, "cgroup.procs"), pid_text());
}

static void version_2_at_the_root(void **state)
{
    (void)state;
    put_v2("", "");
    put(V2 "/cgroup.controllers", "cpu memory\n");
    put(V2 "/cgroup.subtree_control", "cpu memory\n");
    chosen("cgroup2", V2, V2);
    limited_v2(V2);
    holds(V2 "/cgroup.subtree_control", "cpu memory\n");
}

static void version_2_alone_steps_down(void **state)
{
    (void)state;
    put_v2("service", "service");
    put(V2 "/service/cgroup.controllers", "memory pids\n");
    put(V2 "/service/cgroup.subtree_control", "\n");
    put(V2 "/service/cgroup.procs", "%ld\n", (long)getpid());
    put(V2 "/service/memory.max", "999999999\n");
    chosen("cgroup2", V2 "/service", V2 "/service");
    limited_v2(V2 "/service");
    holds(V2 "/service/cgroup.subtree_control", "+memory");
}

static void version_2_stepping_down_is_undone(void **state)
{
    char path[512];
    (void)state;
    put_v2("service", "service");
    put(V2 "/service/cgroup.controllers", "memory pids\n");
    put(V2 "/service/cgroup.subtree_control", "\n");
    put(V2 "/service/cgroup.procs", "%ld\n", (long)getpid());
    path_of(own(V2 "/service", "memory.max"), path);
    assert_int_equal(unlink(path), 0);
    struct brig_enclosure e = chosen("none", NULL, NULL);
    assert_non_null(strstr(e.note, "memory.max: No such file"));
    holds(V2 "/service/cgroup.subtree_control", "-memory");
    holds(V2 "/service/cgroup.procs", pid_text());
}

static void put_session(const char *limit, const char *children_of_slice)
{
    put_v2("slice/session", "slice");
    put(V2 "/slice/cgroup.subtree_control", "%s\n", children_of_slice);
    put(V2 "/slice/session/cgroup.controllers", "memory\n");
    put(V2 "/slice/session/cgroup.subtree_control", "\n");
    put(V2 "/slice/session/cgroup.procs", "1\n%ld\n", (long)getpid());
    put(V2 "/slice/session/memory.max", "%s\n", limit);
}

static void version_2_beside_others(void **state)
{
    (void)state;
    put_session("max", "memory pids");
    struct brig_enclosure e = chosen("cgroup2", V2 "/slice", V2 "/slice/session");
    limited_v2(V2 "/slice");
    /* And back. The folder stays here: it is not empty as the kernel's would be. */
    const struct brig_way_ops *ops = brig_way_ops_by_name("cgroup2");
    ops->leave(root, &e);
    holds(V2 "/slice/session/cgroup.procs", pid_text());
}

static void version_2_escapes_no_limit(void **state)
{
    (void)state;
    put_session("999999999", "memory pids");
    struct brig_enclosure e = chosen("none", NULL, NULL);
    assert_non_null(strstr(e.note, "has a limit that is not to be escaped"));
    holds(own(V2 "/slice", "cgroup.procs"), "");
    put_session("max", "memory pids");
    put(V2 "/slice/session/cpu.max", "50000 100000\n");
    e = chosen("none", NULL, NULL);
    assert_non_null(strstr(e.note, "has a limit that is not to be escaped"));
    put(V2 "/slice/session/cpu.max", "max 100000\n");
    put(V2 "/slice/session/memory.high", "5000000\n");
    chosen("none", NULL, NULL);
    put(V2 "/slice/session/memory.high", "max\n");
    chosen("cgroup2", V2 "/slice", V2 "/slice/session");
}

static void version_2_not_given_to_us(void **state)
{
    (void)state;
    put_session("max", "pids");
    struct brig_enclosure e = chosen("none", NULL, NULL);
    assert_non_null(strstr(e.note, "its groups cannot have a limit of memory"));
    put_v2("bare", "bare");
    put(V2 "/bare/cgroup.controllers", "cpu\n");
    e = chosen("none", NULL, NULL);
    assert_non_null(strstr(e.note, "has no control over memory"));
    put(V2 "/cgroup.controllers", "memory\n");
    put(V2 "/cgroup.subtree_control", "\n");
    put(V2 "/cgroup.procs", "1\n2\n");
    put("proc/self/cgroup", "0::/\n");
    e = chosen("none", NULL, NULL);
    assert_non_null(strstr(e.note, "which is the topmost"));
}

/* ---- systemd ---- */

/* A stand-in for systemd-run that writes its arguments down; where it is, is in PATH. */
static void put_systemd_run(int exit_code)
{
    char path[512], folders[600], out[512];
    path_of("bin/systemd-run", path);
    path_of("arguments", out);
    put("bin/systemd-run", "#!/bin/sh\necho \"$@\" > %s\nexit %d\n", out, exit_code);
    assert_int_equal(chmod(path, 0700), 0);
    snprintf(folders, sizeof folders, "%s/bin:/usr/bin:/bin", root);
    setenv("PATH", folders, 1);
}

static void put_login(const char *limit)
{
    put_process();
    put("proc/self/cgroup", "0::/user.slice/user-7.slice/session-2.scope\n");
    put("proc/self/mountinfo", V2_MOUNT);
    put(V2 "/user.slice/user-7.slice/cgroup.subtree_control", "pids\n");
    put(V2 "/user.slice/user-7.slice/session-2.scope/cgroup.controllers", "pids\n");
    put(V2 "/user.slice/user-7.slice/memory.max", "%s\n", limit);
}

static void systemd_at_a_login_session(void **state)
{
    char text[BRIG_WAY_TEXT], all[BRIG_WAY_TEXT] = "", name[BRIG_CGROUP_NAME], *words[BRIG_WAY_PREFIX];
    char path[4096];
    (void)state;
    snprintf(path, sizeof path, "%s", getenv("PATH") != NULL ? getenv("PATH") : "");
    put_login("max");
    put_systemd_run(0);
    struct brig_enclosure e = chosen("systemd", NULL, NULL);
    holds("arguments", "--user --scope --quiet --collect -p MemorySwapMax=0 -p MemoryMax=67108864 -- true\n");
    brig_way_ops_by_name("systemd")->prefix(&e, text, words);
    for (unsigned i = 0; words[i] != NULL; i++)
        snprintf(all + strlen(all), sizeof all - strlen(all), "%s ", words[i]);
    assert_true(brig_cgroup_own_name("", name));
    assert_non_null(strstr(all, "systemd-run --user --scope --quiet --collect -p MemorySwapMax=0 -p "
                                "MemoryMax=67108864 --unit=brigade-"));
    assert_non_null(strstr(all, name));
    assert_string_equal(all + strlen(all) - 4, " -- ");
    put_systemd_run(3);
    e = chosen("none", NULL, NULL);
    assert_non_null(strstr(e.note, "systemd-run --user --scope was refused (exit code 3)"));
    put_login("999999999");
    e = chosen("none", NULL, NULL);
    assert_non_null(strstr(e.note, "has a limit that is not to be escaped"));
    setenv("PATH", "/nowhere", 1);
    put_login("max");
    e = chosen("none", NULL, NULL);
    assert_non_null(strstr(e.note, "systemd-run: No such file"));
    setenv("PATH", path, 1);
}

/* ---- the dead ---- */

static void groups_of_dead_runs_are_removed(void **state)
{
    char dir[512], busy[512], alive[512], other[512], living[256];
    const char *const strange[] = {"groups/brigade-12",  "groups/brigade-a-b",
                                   "groups/brigade-0-5", "groups/brigade-99999999999-5",
                                   "groups/other-12-5",  "groups/brigade-5-"};
    (void)state;
    put_process();
    put("groups/x", "1");
    path_of("groups", dir);
    for (unsigned i = 0; i < sizeof strange / sizeof *strange; i++) {
        path_of(strange[i], busy);
        assert_int_equal(mkdir(busy, 0700), 0);
    }
    snprintf(living, sizeof living, "groups/brigade-%ld-77", (long)getpid());
    path_of(living, alive);
    assert_int_equal(mkdir(alive, 0700), 0);
    snprintf(living, sizeof living, "groups/brigade-%ld-76", (long)getpid()); /* the pid was used again */
    path_of(living, other);
    assert_int_equal(mkdir(other, 0700), 0);
    path_of("groups/brigade-4000000-5", busy);
    assert_int_equal(mkdir(busy, 0700), 0);
    put("groups/brigade-4000001-5/procs", "1"); /* the kernel's rmdir refuses, as this one's */
    assert_int_equal(brig_cgroup_sweep(root, dir), 2);
    assert_false(exists("groups/brigade-4000000-5"));
    assert_int_equal(access(other, F_OK), -1);
    assert_int_equal(access(alive, F_OK), 0);
    assert_true(exists("groups/brigade-4000001-5"));
    for (unsigned i = 0; i < sizeof strange / sizeof *strange; i++)
        assert_true(exists(strange[i]));
}

static void rows_have_names_and_help(void **state)
{
    unsigned n = 0;
    (void)state;
    for (const struct brig_way *w; (w = brig_way_at(n)) != NULL; n++) {
        assert_true(strlen(w->name) > 0 && strlen(w->help) > 10);
        const struct brig_way_ops *ops = brig_way_ops_by_name(w->name);
        assert_ptr_equal(&ops->way, w);
        assert_true((ops->files == NULL) == (ops->version == 0));
    }
    assert_int_equal(n, 4);
    assert_null(brig_way_ops_by_name("no such way"));
}

/* ---- the kernel's own ---- */

/* Is there a group that is named after this process? */
static bool in_own_group(void)
{
    char name[BRIG_CGROUP_NAME];
    struct brig_cgroup g;
    return brig_cgroup_own_name("", name) &&
           (brig_cgroup_find("", 1, &g, NULL) == 0 || brig_cgroup_find("", 2, &g, NULL) == 0) &&
           strstr(g.dir, name) != NULL;
}

/* Runs as a process of its own, executed anew by brig_enclose: argv[1] is "inside", argv[2] what to do. */
static int inside(char **argv)
{
    static struct brig_enclosure e;
    struct brig_enclosure_figures f;
    struct brig_fail fail = {0};
    char dir[PATH_MAX];
    int status = 0;
    if (strcmp(argv[2], "fail") == 0 && brig_enclosed_bytes() != 0) {
        brig_enclosure_leave(&e);
        printf("failed inside, there %d\n", access(e.home, F_OK) != 0 || in_own_group());
        return 0;
    }
    if (brig_enclose(&e, 32 * MIB + 5, argv, &fail) < 0) {
        printf("failed %s\n", fail.text);
        return 1;
    }
    brig_enclosure_read(&e, &f);
    printf("way %s bytes %" PRIu64 " left %d peak %d note %s\n", e.way->name, e.bytes,
           getenv("BRIGADE_ENCLOSURE") != NULL, f.peak_bytes != BRIG_ENCLOSURE_UNKNOWN && f.peak_bytes > 0,
           e.note);
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        size_t n = strcmp(argv[2], "eat") == 0 ? 200 * MIB : MIB;
        poll(NULL, 0, 100); /* until the parent has exposed it */
        char *p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        for (size_t i = 0; p != MAP_FAILED && i < n; i += 4096)
            p[i] = 1;
        _exit(7);
    }
    brig_enclosure_expose(&e, pid);
    waitpid(pid, &status, 0);
    if (!brig_enclosure_blame(&e, "the child", status, &fail))
        snprintf(fail.text, sizeof fail.text, "no blame");
    brig_enclosure_read(&e, &f);
    snprintf(dir, sizeof dir, "%s", e.dir);
    brig_enclosure_leave(&e);
    brig_enclosure_leave(&e);
    printf("exit %d kills %" PRIu64 " swap %" PRIu64 " there %d: %s\n",
           WIFEXITED(status) ? WEXITSTATUS(status) : -1, f.oom_kills, f.swap_bytes,
           dir[0] != '\0' && access(dir, F_OK) == 0, fail.text);
    return 0;
}

/* Output of this program run with "inside" and a word. */
static void run_inside(const char *word, const char *marker, char *out, size_t cap)
{
    int fds[2], status;
    size_t n = 0;
    assert_int_equal(pipe(fds), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        char *const argv[] = {(char *)"enclose", (char *)"inside", (char *)(uintptr_t)word, NULL};
        char text[128];
        uint64_t start = 0;
        brig_proc_start_ticks("", getpid(), &start);
        snprintf(text, sizeof text, "cgroup1 %ld %" PRIu64 " 1048576 /", (long)getpid(), start);
        if (marker != NULL)
            setenv("BRIGADE_ENCLOSURE", strcmp(marker, "own") == 0 ? text : marker, 1);
        dup2(fds[1], 1);
        alarm(60);
        execv("/proc/self/exe", argv);
        _exit(127);
    }
    close(fds[1]);
    for (ssize_t r; n < cap - 1 && (r = read(fds[0], out + n, cap - 1 - n)) > 0;)
        n += (size_t)r;
    out[n] = '\0';
    close(fds[0]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

static void enclosed_by_the_kernel(void **state)
{
    char out[4096];
    (void)state;
    run_inside("rest", "cgroup1 1 1 4096 /", out, sizeof out); /* a marker of another process */
    if (strstr(out, "way none") != NULL) {
        assert_non_null(strstr(out, "the budget of 32.0 MiB is counted and not enforced: cgroup1: "));
        print_message("the kernel's groups: skipped: %s", out);
        skip();
    }
    assert_non_null(strstr(out, " bytes 33554432 left 0 peak 1 note \n"));
    assert_non_null(strstr(out, "\nexit 7 kills 0 swap 0 there 0: no blame\n"));
    run_inside("eat", NULL, out, sizeof out);
    assert_non_null(strstr(out, "\nexit -1 kills 1 swap 0 there 0: the child was killed for memory: the run "
                                "needed more than its budget of 32.0 MiB\n"));
    run_inside("fail", NULL, out, sizeof out);
    assert_string_equal(out, "failed inside, there 0\n");
}

/* Executed anew, and yet not inside: said, and not tried again and again. */
static void no_loop(void **state)
{
    char out[4096];
    (void)state;
    run_inside("rest", "own", out, sizeof out);
    assert_non_null(strstr(out,
                           "way none bytes 1048576 left 0 peak 0 note the budget of 1.0 MiB is counted and "
                           "not enforced: cgroup1: "));
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(own_group_is_found, set_up, tear_down),
        cmocka_unit_test_setup_teardown(numbers_and_lines, set_up, tear_down),
        cmocka_unit_test_setup_teardown(least_limit_above, set_up, tear_down),
        cmocka_unit_test_setup_teardown(version_1, set_up, tear_down),
        cmocka_unit_test_setup_teardown(version_1_without_count_of_swap, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_is_not_allowed_is_said, set_up, tear_down),
        cmocka_unit_test_setup_teardown(version_2_at_the_root, set_up, tear_down),
        cmocka_unit_test_setup_teardown(version_2_alone_steps_down, set_up, tear_down),
        cmocka_unit_test_setup_teardown(version_2_stepping_down_is_undone, set_up, tear_down),
        cmocka_unit_test_setup_teardown(version_2_beside_others, set_up, tear_down),
        cmocka_unit_test_setup_teardown(version_2_escapes_no_limit, set_up, tear_down),
        cmocka_unit_test_setup_teardown(version_2_not_given_to_us, set_up, tear_down),
        cmocka_unit_test_setup_teardown(systemd_at_a_login_session, set_up, tear_down),
        cmocka_unit_test_setup_teardown(groups_of_dead_runs_are_removed, set_up, tear_down),
        cmocka_unit_test(rows_have_names_and_help),
        cmocka_unit_test(enclosed_by_the_kernel),
        cmocka_unit_test(no_loop),
    };
    if (argc > 2 && strcmp(argv[1], "inside") == 0)
        return inside(argv);
    return cmocka_run_group_tests_name("enclose", tests, NULL, NULL);
}
