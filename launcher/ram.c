/* Sizes as people write them, and what is free. */
#include "launcher/ram.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "proto/base/parse.h"
#include "proto/base/proc.h"
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

static bool number_in(const char *root, const char *folder, const char *file, uint64_t *ret)
{
    char text[64];
    return brig_proc_read(text, sizeof text, "%s%s/%s", root, folder, file) > 0 &&
           brig_proc_number(text, "", ret);
}

struct version {
    const char *mount, *limit, *usage, *cache; /* cache: page cache that can be given back at once */
};

/* What is left in one cgroup; UINT64_MAX without a limit. */
static uint64_t left_in(const char *root, const char *folder, const struct version *v)
{
    char text[TEXT_MAX];
    uint64_t limit, usage, cache = 0;
    if (!number_in(root, folder, v->limit, &limit) || !number_in(root, folder, v->usage, &usage))
        return UINT64_MAX;
    if (brig_proc_read(text, sizeof text, "%s%s/memory.stat", root, folder) > 0)
        brig_proc_number(text, v->cache, &cache);
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

uint64_t brig_ram_free(const char *root)
{
    static const struct version v1 = {"/sys/fs/cgroup/memory", "memory.limit_in_bytes",
                                      "memory.usage_in_bytes", "total_inactive_file "};
    static const struct version v2 = {"/sys/fs/cgroup", "memory.max", "memory.current", "inactive_file "};
    char text[TEXT_MAX], group[PATH_MAX];
    uint64_t machine = 0, left;
    if (brig_proc_read(text, sizeof text, "%s/proc/meminfo", root) > 0 &&
        brig_proc_number(text, "MemAvailable:", &machine))
        machine *= 1024;
    if (brig_proc_read(text, sizeof text, "%s/proc/self/cgroup", root) <= 0)
        return machine;
    /* Inside a container the path may be one of the outside: the mount's own root is then this group, and is
     * looked at in any case. */
    if (brig_proc_group(text, "memory", group, sizeof group) &&
        (left = left_above(root, &v1, group)) < machine)
        machine = left;
    if (brig_proc_group(text, "", group, sizeof group) && (left = left_above(root, &v2, group)) < machine)
        machine = left;
    return machine;
}
