/* The handler of SIGBUS. Only calls that are allowed in a signal handler, and memory that is there already.
 */
#include "shard/bus.h"

#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int words_fd = -1;
static const char *held = "";

/* ---- a line, put together without stdio ---- */

struct line {
    char text[1024];
    size_t n;
};

static void add(struct line *l, const char *s)
{
    while (*s != '\0' && l->n < sizeof l->text - 1)
        l->text[l->n++] = *s++;
}

static void add_number(struct line *l, uint64_t v)
{
    char digits[24];
    size_t at = sizeof digits - 1;
    digits[at] = '\0';
    do {
        digits[--at] = (char)('0' + v % 10);
        v /= 10;
    } while (v != 0);
    add(l, digits + at);
}

static bool say(int fd, const char *before, const char *what, const struct line *l)
{
    struct line all = {.n = 0};
    add(&all, before);
    add(&all, what);
    add(&all, *what != '\0' ? ": " : "");
    for (size_t i = 0; i < l->n && all.n < sizeof all.text - 1; i++)
        all.text[all.n++] = l->text[i];
    all.text[all.n++] = '\n';
    return write(fd, all.text, all.n) == (ssize_t)all.n;
}

/* ---- which file ---- */

static const char *hex(const char *s, uint64_t *ret)
{
    uint64_t v = 0;
    for (;; s++) {
        if (*s >= '0' && *s <= '9')
            v = v * 16 + (uint64_t)(*s - '0');
        else if (*s >= 'a' && *s <= 'f')
            v = v * 16 + (uint64_t)(*s - 'a') + 10;
        else
            break;
    }
    *ret = v;
    return s;
}

/* "start-end perms offset device inode     path": the path when the address lies in it, and where in the
 * file. */
static char *match(char *text, uint64_t address, uint64_t *offset)
{
    uint64_t start, end;
    const char *s = hex(text, &start);
    if (*s != '-')
        return NULL;
    s = hex(s + 1, &end);
    if (address < start || address >= end || strlen(s) < 7)
        return NULL;
    s = hex(s + 6, offset);
    *offset += address - start;
    for (unsigned blanks = 0; *s != '\0' && blanks < 3; s++)
        blanks += *s == ' ' && s[1] != ' ';
    return text + (s - text);
}

/* The path of the mapped file that holds the address, in memory of its own. */
static char *find_file(uint64_t address, uint64_t *offset)
{
    static char text[16384];
    size_t n = 0;
    ssize_t got;
    int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    while (fd >= 0 && (got = read(fd, text + n, sizeof text - 1 - n)) > 0) {
        char *line = text, *end;
        n += (size_t)got;
        text[n] = '\0';
        for (; (end = strchr(line, '\n')) != NULL; line = end + 1) {
            *end = '\0';
            char *path = match(line, address, offset);
            if (path != NULL) {
                close(fd);
                return path;
            }
        }
        n = (size_t)(text + n - line);
        memmove(text, line, n);
    }
    if (fd >= 0)
        close(fd);
    return NULL;
}

static void on_bus(int number, siginfo_t *info, void *context)
{
    static atomic_flag taken = ATOMIC_FLAG_INIT;
    static struct line l;
    struct stat st;
    uint64_t offset = 0;
    (void)number;
    (void)context;
    while (atomic_flag_test_and_set(&taken)) /* another thread met it first and ends the process */
        pause();
    char *path = find_file((uint64_t)(uintptr_t)info->si_addr, &offset);
    if (path == NULL || *path == '\0') {
        add(&l, "a page of memory cannot be read");
    } else {
        bool known = stat(path, &st) == 0;
        add(&l, path);
        if (known && offset >= (uint64_t)st.st_size) {
            add(&l, ": the file became shorter while it was in use: it has ");
            add_number(&l, (uint64_t)st.st_size);
            add(&l, " bytes, and byte ");
            add_number(&l, offset);
            add(&l, " was needed");
        } else {
            add(&l, ": byte ");
            add_number(&l, offset);
            add(&l, known ? " cannot be read from its disk"
                          : " of the file, which is no longer there, cannot be read");
        }
    }
    if (words_fd < 0 || !say(words_fd, "error ", "", &l))
        say(STDERR_FILENO, "brigade-shard: ", held, &l);
    _exit(1);
}

void brig_bus_install(void)
{
    struct sigaction bus = {.sa_sigaction = on_bus, .sa_flags = SA_SIGINFO};
    sigemptyset(&bus.sa_mask);
    sigaction(SIGBUS, &bus, NULL);
}

void brig_bus_tell(int fd)
{
    words_fd = fd;
}

void brig_bus_name(const char *what)
{
    held = what;
}
