/* Text in and out. */
#include "driver/front/input.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "driver/front/interrupt.h"

static int read_all(struct brig_buf *buf, int fd, const char *name, struct brig_fail *fail)
{
    size_t max = buf->max != 0 ? buf->max : BRIG_BUF_MAX;
    for (;;) {
        char chunk[65536];
        ssize_t n = *brig_interrupt_flag() != 0 ? -1 : read(fd, chunk, sizeof chunk);
        if (*brig_interrupt_flag() != 0)
            return brig_fail_set(fail, BRIG_ECANCELLED, "cancelled");
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return brig_fail_errno(fail, BRIG_EIO, "%s", name);
        if (n == 0)
            return 0;
        int r = brig_buf_add(buf, chunk, (size_t)n);
        if (r == -BRIG_ELIMIT)
            return brig_fail_set(fail, BRIG_ELIMIT, "%s: more than %zu bytes", name, max);
        if (r < 0)
            return brig_fail_set(fail, BRIG_ENOMEM, "%s: out of memory", name);
    }
}

int brig_input_read(struct brig_buf *buf, const char *path, struct brig_fail *fail)
{
    if (path == NULL)
        return read_all(buf, STDIN_FILENO, "standard input", fail);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return brig_fail_errno(fail, BRIG_EIO, "%s", path);
    int r = read_all(buf, fd, path, fail);
    close(fd);
    return r;
}

static bool space(char c)
{
    return c == ' ' || c == '\n' || c == '\t' || c == '\r';
}

/* One number at *p; false when there is none or it is no u32. */
static bool number(const char **p, const char *end, uint32_t *ret)
{
    uint64_t v = 0;
    const char *q = *p;
    for (; q < end && *q >= '0' && *q <= '9' && v <= UINT32_MAX; q++)
        v = v * 10 + (uint64_t)(*q - '0');
    if (q == *p || v > UINT32_MAX)
        return false;
    *p = q;
    *ret = (uint32_t)v;
    return true;
}

static int bad_list(const char *what, const char *text, const char *p, struct brig_fail *fail)
{
    return brig_fail_set(fail, BRIG_EUSAGE, "%s: no list of token ids (at byte %zu)", what,
                         (size_t)(p - text));
}

int brig_input_ids(struct brig_ids *ids, const char *text, size_t n, const char *what, struct brig_fail *fail)
{
    const char *p = text, *end = text + n;
    while (p < end && space(*p))
        p++;
    while (end > p && space(end[-1]))
        end--;
    if (p < end && *p == '[') {
        if (end - p < 2 || end[-1] != ']')
            return bad_list(what, text, end, fail);
        p++;
        end--;
    }
    bool comma = false; /* one was just passed: a number must follow */
    for (;;) {
        while (p < end && space(*p))
            p++;
        if (p == end)
            break;
        uint32_t id;
        if (!number(&p, end, &id))
            return bad_list(what, text, p, fail);
        if (brig_ids_add(ids, id) < 0)
            return brig_fail_set(fail, BRIG_ENOMEM, "%s: out of memory", what);
        const char *after = p;
        while (p < end && space(*p))
            p++;
        comma = p < end && *p == ',';
        p += comma;
        if (!comma && p < end && p == after)
            return bad_list(what, text, p, fail);
    }
    return comma ? bad_list(what, text, p, fail) : 0;
}

int brig_output_write(const char *bytes, size_t n, struct brig_fail *fail)
{
    while (n > 0) {
        ssize_t w = write(STDOUT_FILENO, bytes, n);
        if (w < 0 && errno == EINTR) {
            if (*brig_interrupt_flag() != 0)
                return brig_fail_set(fail, BRIG_ECANCELLED, "cancelled");
            continue;
        }
        if (w < 0 && errno == EPIPE)
            return brig_fail_set(fail, BRIG_EIO, "%s", "");
        if (w < 0)
            return brig_fail_errno(fail, BRIG_EIO, "standard output");
        bytes += w;
        n -= (size_t)w;
    }
    return 0;
}
