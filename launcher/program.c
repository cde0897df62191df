/* Where the shard program is. */
#include "launcher/program.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define SHARD_NAME "brigade-shard"

static bool in_folder(const char *folder, size_t n, char *out, size_t cap)
{
    int len = snprintf(out, cap, "%.*s/" SHARD_NAME, (int)n, folder);
    return len > 0 && (size_t)len < cap && access(out, X_OK) == 0;
}

static bool beside_this_program(char *out, size_t cap)
{
    char self[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    if (n <= 0)
        return false;
    self[n] = '\0';
    const char *slash = strrchr(self, '/');
    return slash != NULL && in_folder(self, (size_t)(slash - self), out, cap);
}

static bool in_path(char *out, size_t cap)
{
    const char *path = getenv("PATH");
    while (path != NULL && *path != '\0') {
        size_t n = strcspn(path, ":");
        if (n > 0 && n < INT_MAX && in_folder(path, n, out, cap))
            return true;
        path += n;
        path += *path == ':';
    }
    return false;
}

int brig_program_find(const char *given, char *out, size_t cap, struct brig_fail *fail)
{
    if (given != NULL) {
        int len = snprintf(out, cap, "%s", given);
        if (len > 0 && (size_t)len < cap)
            return 0;
        return brig_fail_set(fail, BRIG_ELIMIT, "%.100s: the path of the shard program is too long", given);
    }
    if (beside_this_program(out, cap) || in_path(out, cap))
        return 0;
    return brig_fail_set(fail, BRIG_EIO,
                         "the program " SHARD_NAME " is neither beside this one nor in PATH: install both");
}
