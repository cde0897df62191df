/* Where the memory group of this process is: /proc/self/cgroup and /proc/self/mountinfo, read as they are. */
#include "launcher/cgroup.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proto/base/buf.h"
#include "proto/base/proc.h"

/* A machine with many mounts has some hundred KiB of mountinfo; more is no mountinfo. */
#define MOUNTINFO_MAX ((size_t)8 << 20)

static int read_proc(const char *root, const char *path, struct brig_buf *out, struct brig_fail *fail)
{
    char whole[PATH_MAX], part[4096];
    int n = snprintf(whole, sizeof whole, "%s%s", root, path);
    FILE *f = n > 0 && (size_t)n < sizeof whole ? fopen(whole, "re") : NULL;
    if (f == NULL)
        return brig_fail_errno(fail, BRIG_EIO, "%s", path);
    int r = 0;
    size_t got;
    out->max = MOUNTINFO_MAX;
    while (r == 0 && (got = fread(part, 1, sizeof part, f)) > 0)
        r = brig_buf_add(out, part, got);
    bool bad = ferror(f) != 0;
    fclose(f);
    return r < 0 || bad || out->len == 0 ? brig_fail_set(fail, BRIG_EIO, "%s: cannot be read", path) : 0;
}

/* mountinfo writes blanks, tabs, newlines and backslashes as \ooo. */
static void unescape(char *s)
{
    char *out = s;
    for (; *s != '\0'; out++) {
        if (s[0] == '\\' && s[1] >= '0' && s[1] <= '3' && s[2] >= '0' && s[2] <= '7' && s[3] >= '0' &&
            s[3] <= '7') {
            *out = (char)((s[1] - '0') * 64 + (s[2] - '0') * 8 + (s[3] - '0'));
            s += 4;
        } else {
            *out = *s++;
        }
    }
    *out = '\0';
}

/* "36 35 98:0 /root /mount/point rw,noatime optional... - type source options" */
static bool mount_line(char *line, unsigned version, char **part, char **point)
{
    char *save = NULL, *words[6];
    char *rest = strstr(line, " - ");
    if (rest == NULL)
        return false;
    *rest = '\0';
    for (unsigned i = 0; i < 5; i++) {
        words[i] = strtok_r(i == 0 ? line : NULL, " ", &save);
        if (words[i] == NULL)
            return false;
    }
    *part = words[3];
    *point = words[4];
    char *type = strtok_r(rest + 3, " ", &save);
    char *source = strtok_r(NULL, " ", &save), *options = strtok_r(NULL, " ", &save);
    if (type == NULL || source == NULL)
        return false;
    if (version == 2)
        return strcmp(type, "cgroup2") == 0;
    return strcmp(type, "cgroup") == 0 && options != NULL &&
           brig_proc_listed(options, strlen(options), "memory");
}

/* The folder of the group `path`, in a mount that shows the hierarchy from `part` on. */
static bool folder_of(const char *root, const char *part, const char *point, const char *path,
                      struct brig_cgroup *ret)
{
    size_t n = strcmp(part, "/") == 0 ? 0 : strlen(part);
    struct stat st;
    if (strncmp(path, part, n) != 0 || (path[n] != '/' && path[n] != '\0'))
        return false; /* another part of the hierarchy: our group is not to be seen in it */
    const char *below = strcmp(path + n, "/") == 0 ? "" : path + n;
    int len = snprintf(ret->dir, sizeof ret->dir, "%s%s%s", root, point, below);
    ret->mount_len = strlen(root) + strlen(point);
    return len > 0 && (size_t)len < sizeof ret->dir && stat(ret->dir, &st) == 0 && S_ISDIR(st.st_mode);
}

static int find_mount(const char *root, unsigned version, const char *path, struct brig_cgroup *ret,
                      struct brig_fail *fail)
{
    struct brig_buf mounts = {0};
    char *save = NULL, *part, *point;
    bool any = false, found = false;
    int r = read_proc(root, "/proc/self/mountinfo", &mounts, fail);
    for (char *line = r < 0 ? NULL : strtok_r(mounts.data, "\n", &save); line != NULL && !found;
         line = strtok_r(NULL, "\n", &save)) {
        if (!mount_line(line, version, &part, &point))
            continue;
        any = true;
        unescape(part);
        unescape(point);
        found = folder_of(root, part, point, path, ret);
    }
    brig_buf_release(&mounts);
    if (r < 0 || found)
        return r;
    return brig_fail_set(fail, BRIG_EUNSUPPORTED,
                         any ? "the group %.200s of this process is not to be seen where groups are mounted"
                             : "no memory groups of this version are mounted",
                         path);
}

int brig_cgroup_find(const char *root, unsigned version, struct brig_cgroup *ret, struct brig_fail *fail)
{
    struct brig_buf text = {0};
    struct brig_cgroup g;
    char path[PATH_MAX];
    int r = read_proc(root, "/proc/self/cgroup", &text, fail);
    if (r == 0 &&
        (!brig_proc_group(text.data, version == 2 ? "" : "memory", path, sizeof path) || path[0] != '/'))
        r = brig_fail_set(fail, BRIG_EUNSUPPORTED, "the kernel has no memory groups of this version");
    if (r == 0)
        r = find_mount(root, version, path, &g, fail);
    brig_buf_release(&text);
    if (r == 0)
        *ret = g;
    return r;
}

bool brig_cgroup_parent(const struct brig_cgroup *g, struct brig_cgroup *ret)
{
    const char *slash = strrchr(g->dir, '/');
    if (strlen(g->dir) <= g->mount_len || slash == NULL || (size_t)(slash - g->dir) < g->mount_len)
        return false;
    struct brig_cgroup up = *g;
    up.dir[slash - g->dir] = '\0';
    *ret = up;
    return true;
}

bool brig_cgroup_confines(const char *dir)
{
    char text[64];
    uint64_t limit;
    if (brig_cgroup_number(dir, "memory.max", &limit) && limit != UINT64_MAX)
        return true;
    if (brig_cgroup_number(dir, "memory.high", &limit) && limit != UINT64_MAX)
        return true;
    return brig_cgroup_read(dir, "cpu.max", text, sizeof text) && strncmp(text, "max", 3) != 0;
}

uint64_t brig_cgroup_least(const struct brig_cgroup *g, const struct brig_cgroup_files *files,
                           char where[PATH_MAX])
{
    struct brig_cgroup at = *g;
    uint64_t least = UINT64_MAX, limit;
    do {
        if (brig_cgroup_number(at.dir, files->limit, &limit) && limit < least) {
            least = limit;
            memcpy(where, at.dir, sizeof at.dir);
        }
    } while (brig_cgroup_parent(&at, &at));
    return least;
}
