/* The error table and the one-line failure text. */
#include "proto/base/err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const struct {
    const char *name;
    const char *text;
    int exit_code;
} rows[BRIG_ERR_COUNT] = {
    [BRIG_OK] = {"OK", "no error", 0},
#define BRIG_ERR(n, t, e) [BRIG_E##n] = {#n, t, e},
#include "proto/base/err.def"
#undef BRIG_ERR
};

static int row_of(int code)
{
    return code >= 0 && code < BRIG_ERR_COUNT ? code : BRIG_EINTERNAL;
}

const char *brig_err_name(int code)
{
    return rows[row_of(code)].name;
}

const char *brig_err_text(int code)
{
    return rows[row_of(code)].text;
}

int brig_err_exit(int code)
{
    return rows[row_of(code)].exit_code;
}

/* Names inside the text come from files and peers: nothing in them may move a terminal's cursor. */
static void make_printable(char *s)
{
    for (; *s != '\0'; s++)
        if ((unsigned char)*s < 0x20 || *s == 0x7f)
            *s = '?';
}

static int fill(struct brig_fail *fail, enum brig_err code, int err_no, const char *fmt, va_list ap)
{
    if (fail == NULL)
        return -(int)code;
    fail->code = code;
    int n = vsnprintf(fail->text, sizeof fail->text, fmt, ap);
    if (err_no != 0 && n >= 0 && (size_t)n < sizeof fail->text)
        snprintf(fail->text + n, sizeof fail->text - (size_t)n, ": %s", strerror(err_no));
    make_printable(fail->text);
    return -(int)code;
}

int brig_fail_set(struct brig_fail *fail, enum brig_err code, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    int r = fill(fail, code, 0, fmt, ap);
    va_end(ap);
    return r;
}

int brig_fail_errno(struct brig_fail *fail, enum brig_err code, const char *fmt, ...)
{
    int saved = errno;
    va_list ap;
    va_start(ap, fmt);
    int r = fill(fail, code, saved, fmt, ap);
    va_end(ap);
    errno = saved;
    return r;
}

int brig_fail_prefix(struct brig_fail *fail, const char *fmt, ...)
{
    char old[sizeof fail->text];
    va_list ap;
    va_start(ap, fmt);
    memcpy(old, fail->text, sizeof old);
    int n = vsnprintf(fail->text, sizeof fail->text, fmt, ap);
    va_end(ap);
    if (n >= 0 && (size_t)n < sizeof fail->text)
        snprintf(fail->text + n, sizeof fail->text - (size_t)n, ": %s", old);
    make_printable(fail->text);
    return -(int)fail->code;
}
