/* Small text files of the kernel. Called from everywhere; the stack only. */
#include "proto/base/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define START_FIELD 22 /* of /proc/PID/stat, counted from 1 */

ssize_t brig_proc_read(char *out, size_t cap, const char *path, ...)
{
    char whole[PATH_MAX + 64];
    va_list args;
    va_start(args, path);
    int n = vsnprintf(whole, sizeof whole, path, args);
    va_end(args);
    int fd = n >= 0 && (size_t)n < sizeof whole ? open(whole, O_RDONLY | O_CLOEXEC) : -1;
    size_t len = 0;
    ssize_t r = fd < 0 ? -1 : 1;
    while (r > 0 && len < cap - 1) {
        r = read(fd, out + len, cap - 1 - len);
        if (r > 0)
            len += (size_t)r;
        else if (r < 0 && errno == EINTR)
            r = 1;
    }
    if (fd >= 0)
        close(fd);
    if (r < 0)
        len = 0;
    out[len] = '\0';
    return r < 0 ? -1 : (ssize_t)len;
}

/* The line after the one that s points into; NULL when that is the last. */
static const char *next_line(const char *s)
{
    const char *end = strchr(s, '\n');
    return end != NULL && end[1] != '\0' ? end + 1 : NULL;
}

bool brig_proc_number(const char *text, const char *key, uint64_t *ret)
{
    size_t n = strlen(key);
    const char *line = text;
    while (line != NULL && strncmp(line, key, n) != 0)
        line = next_line(line);
    if (line == NULL)
        return false;
    line += n + strspn(line + n, " \t");
    if (*line < '0' || *line > '9')
        return false;
    errno = 0;
    unsigned long long v = strtoull(line, NULL, 10);
    if (errno != 0)
        return false;
    *ret = v;
    return true;
}

bool brig_proc_listed(const char *list, size_t n, const char *word)
{
    size_t len = strlen(word);
    for (size_t at = 0; at <= n;) {
        const char *comma = memchr(list + at, ',', n - at);
        size_t end = comma != NULL ? (size_t)(comma - list) : n;
        if (end - at == len && memcmp(list + at, word, len) == 0)
            return true;
        at = end + 1;
    }
    return false;
}

bool brig_proc_group(const char *text, const char *controller, char *out, size_t cap)
{
    for (const char *line = text; line != NULL; line = next_line(line)) {
        const char *end = strchrnul(line, '\n');
        const char *list = memchr(line, ':', (size_t)(end - line));
        const char *path = list == NULL ? NULL : memchr(list + 1, ':', (size_t)(end - list - 1));
        if (path == NULL || !brig_proc_listed(list + 1, (size_t)(path - list - 1), controller))
            continue;
        size_t n = (size_t)(end - path - 1);
        if (n >= cap)
            return false;
        memcpy(out, path + 1, n);
        out[n] = '\0';
        return true;
    }
    return false;
}

bool brig_proc_start_ticks(const char *root, pid_t pid, uint64_t *ret)
{
    char text[2048];
    if (brig_proc_read(text, sizeof text, "%s/proc/%ld/stat", root, (long)pid) < 0)
        return false;
    const char *at = strrchr(text, ')'); /* the second field is a name in brackets that may hold anything */
    for (unsigned field = 2; at != NULL && field < START_FIELD; field++)
        at = strchr(at + 1, ' ');
    return at != NULL && brig_proc_number(at + 1, "", ret);
}
