/* Sizes as people write them, and what is free. */
#include "launcher/ram.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "proto/base/parse.h"
#include "proto/model/model.h"

#define PAGE     ((uint64_t)4096)
#define TEXT_MAX 8192

static int wrong(struct brig_fail *fail)
{
    return brig_fail_set(
        fail, BRIG_EUSAGE,
        "a size is needed: bytes, or with K, M, G, T (1024 each); or a share of the model's files as 50%%; "
        "or auto");
}

static int parse_share(const char *text, size_t n, struct brig_ram *ret, struct brig_fail *fail)
{
    char number[32];
    double v;
    if (n == 0 || n >= sizeof number || strspn(text, "0123456789.") < n)
        return wrong(fail);
    memcpy(number, text, n);
    number[n] = '\0';
    if (!brig_parse_f64(number, &v) || v <= 0)
        return wrong(fail);
    if (v > 1000)
        return brig_fail_set(fail, BRIG_EUSAGE, "at most 1000%% of the model's files can be asked for");
    *ret = (struct brig_ram){.kind = BRIG_RAM_SHARE, .share = v / 100};
    return 0;
}

int brig_ram_parse(const char *text, struct brig_ram *ret, struct brig_fail *fail)
{
    size_t n = strlen(text);
    uint64_t bytes;
    if (strcmp(text, "auto") == 0) {
        *ret = (struct brig_ram){.kind = BRIG_RAM_AUTO};
        return 0;
    }
    if (n > 0 && text[n - 1] == '%')
        return parse_share(text, n - 1, ret, fail);
    if (!brig_parse_size(text, &bytes) || bytes == 0)
        return wrong(fail);
    *ret = (struct brig_ram){.kind = BRIG_RAM_BYTES, .bytes = bytes};
    return 0;
}

uint64_t brig_ram_model_bytes(const struct brig_model *m)
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < m->n_files; i++)
        sum += m->files[i].bytes;
    return sum;
}

int brig_ram_resolve(const struct brig_ram *ram, const struct brig_model *m, uint64_t *ret,
                     struct brig_fail *fail)
{
    uint64_t bytes = 0;
    if (ram->kind == BRIG_RAM_BYTES)
        bytes = ram->bytes;
    if (ram->kind == BRIG_RAM_SHARE)
        bytes = (uint64_t)((double)brig_ram_model_bytes(m) * ram->share);
    if (ram->kind == BRIG_RAM_AUTO)
        bytes = brig_ram_free("");
    bytes &= ~(PAGE - 1);
    if (ram->kind == BRIG_RAM_AUTO && bytes == 0)
        return brig_fail_set(fail, BRIG_EIO, "--ram auto: this machine does not say what memory is free");
    *ret = ram->kind == BRIG_RAM_NONE ? 0 : bytes > 0 ? bytes : PAGE;
    return 0;
}

const char *brig_ram_text(uint64_t bytes, char out[BRIG_RAM_TEXT])
{
    static const char *const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    double v = (double)bytes;
    unsigned unit = 0;
    for (; v >= 1024; unit++)
        v /= 1024;
    snprintf(out, BRIG_RAM_TEXT, unit == 0 ? "%.0f %s" : "%.1f %s", v, units[unit]);
    return out;
}

/* ---- what is free ---- */

/* A small text file below root; false when there is none. */
static bool read_text(const char *root, const char *path, char out[TEXT_MAX])
{
    char whole[PATH_MAX];
    int n = snprintf(whole, sizeof whole, "%s%s", root, path);
    int fd = n > 0 && (size_t)n < sizeof whole ? open(whole, O_RDONLY | O_CLOEXEC) : -1;
    size_t len = 0;
    if (fd < 0)
        return false;
    while (len < TEXT_MAX - 1) {
        ssize_t r = read(fd, out + len, TEXT_MAX - 1 - len);
        if (r < 0 && errno == EINTR)
            continue;
        if (r <= 0)
            break;
        len += (size_t)r;
    }
    close(fd);
    out[len] = '\0';
    return true;
}

/* The number after `key` at the beginning of a line; false when there is none. */
static bool number_after(const char *text, const char *key, uint64_t *ret)
{
    size_t n = strlen(key);
    for (const char *line = text; line != NULL && *line != '\0';) {
        if (strncmp(line, key, n) == 0) {
            errno = 0;
            unsigned long long v = strtoull(line + n, NULL, 10);
            *ret = v;
            return errno == 0;
        }
        line = strchr(line, '\n');
        line = line != NULL ? line + 1 : NULL;
    }
    return false;
}

static bool number_in(const char *root, const char *folder, const char *file, uint64_t *ret)
{
    char path[PATH_MAX], text[TEXT_MAX];
    int n = snprintf(path, sizeof path, "%s/%s", folder, file);
    return n > 0 && (size_t)n < sizeof path && read_text(root, path, text) && text[0] >= '0' &&
           text[0] <= '9' && number_after(text, "", ret);
}

struct version {
    const char *mount, *limit, *usage, *cache; /* cache: page cache that can be given back at once */
};

/* What is left in one cgroup; UINT64_MAX without a limit. */
static uint64_t left_in(const char *root, const char *folder, const struct version *v)
{
    char path[PATH_MAX], text[TEXT_MAX];
    uint64_t limit, usage, cache = 0;
    if (!number_in(root, folder, v->limit, &limit) || !number_in(root, folder, v->usage, &usage))
        return UINT64_MAX;
    int n = snprintf(path, sizeof path, "%s/memory.stat", folder);
    if (n > 0 && (size_t)n < sizeof path && read_text(root, path, text))
        number_after(text, v->cache, &cache);
    uint64_t busy = usage > cache ? usage - cache : 0;
    return limit > busy ? limit - busy : 0;
}

/* The least that is left in a cgroup and those above it. */
static uint64_t left_above(const char *root, const struct version *v, const char *group)
{
    char folder[PATH_MAX];
    uint64_t least = UINT64_MAX;
    size_t mount = strlen(v->mount);
    int n = snprintf(folder, sizeof folder, "%s%s", v->mount, group);
    if (n < 0 || (size_t)n >= sizeof folder)
        return least;
    for (;;) {
        uint64_t left = left_in(root, folder, v);
        char *slash = strrchr(folder, '/');
        least = left < least ? left : least;
        if (strlen(folder) <= mount || slash == NULL)
            return least;
        *slash = '\0';
    }
}

/* The rest of the line of /proc/self/cgroup that begins "<any number>:<controller>:". */
static bool group_of(const char *text, const char *controller, char out[PATH_MAX])
{
    size_t n = strlen(controller);
    for (const char *line = text; line != NULL && *line != '\0';) {
        const char *colon = strchr(line, ':');
        const char *end = strchrnul(line, '\n');
        if (colon != NULL && colon < end && strncmp(colon + 1, controller, n) == 0 && colon[1 + n] == ':') {
            size_t len = (size_t)(end - (colon + n + 2));
            if (len >= PATH_MAX)
                return false;
            memcpy(out, colon + n + 2, len);
            out[len] = '\0';
            return true;
        }
        line = *end == '\0' ? NULL : end + 1;
    }
    return false;
}

uint64_t brig_ram_free(const char *root)
{
    static const struct version v1 = {"/sys/fs/cgroup/memory", "memory.limit_in_bytes",
                                      "memory.usage_in_bytes", "total_inactive_file "};
    static const struct version v2 = {"/sys/fs/cgroup", "memory.max", "memory.current", "inactive_file "};
    char text[TEXT_MAX], group[PATH_MAX];
    uint64_t machine = 0, left;
    if (read_text(root, "/proc/meminfo", text) && number_after(text, "MemAvailable:", &machine))
        machine *= 1024;
    if (!read_text(root, "/proc/self/cgroup", text))
        return machine;
    /* Inside a container the path may be one of the outside: the mount's own root is then this group, and is
     * looked at in any case. */
    if (group_of(text, "memory", group) && (left = left_above(root, &v1, group)) < machine)
        machine = left;
    if (group_of(text, "", group) && (left = left_above(root, &v2, group)) < machine)
        machine = left;
    return machine;
}
