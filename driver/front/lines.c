/* Lines by libedit on a terminal, by read otherwise. */
#include "driver/front/lines.h"

#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <wchar.h>

#include <histedit.h>

#include "driver/front/interrupt.h"
#include "proto/base/mem.h"

#define MAX_LINE_BYTES ((size_t)16 << 20)
#define HISTORY_LINES  1000

struct brig_lines {
    const char *prompt;
    EditLine *el; /* NULL: not a terminal */
    History *history;
    /* not a terminal: */
    char chunk[4096];
    size_t at, n;
    bool ended;
};

static char *show_prompt(EditLine *el)
{
    struct brig_lines *l;
    el_get(el, EL_CLIENTDATA, &l);
    return (char *)(uintptr_t)l->prompt;
}

/* One character. libedit's own reader goes on after a signal; this one ends the line. */
static int get_char(EditLine *el, wchar_t *ret)
{
    mbstate_t state;
    (void)el;
    memset(&state, 0, sizeof state);
    for (unsigned n = 0; n < MB_LEN_MAX;) {
        char byte;
        ssize_t r = *brig_interrupt_flag() != 0 ? -1 : read(STDIN_FILENO, &byte, 1);
        if (r == 0)
            return 0;
        if (r < 0 && errno == EINTR && *brig_interrupt_flag() == 0)
            continue;
        if (r < 0)
            return -1;
        n++;
        size_t len = mbrtowc(ret, &byte, 1, &state);
        if (len == (size_t)-2)
            continue;
        if (len == (size_t)-1)
            *ret = 0xfffd;
        return 1;
    }
    *ret = 0xfffd;
    return 1;
}

static int open_editor(struct brig_lines *l, struct brig_fail *fail)
{
    HistEvent event;
    l->el = el_init("brigade", stdin, stderr, stderr); /* standard output is for answers alone */
    l->history = history_init();
    if (l->el == NULL || l->history == NULL)
        return brig_fail_set(fail, BRIG_ENOMEM, "line editing could not be set up");
    history(l->history, &event, H_SETSIZE, HISTORY_LINES);
    history(l->history, &event, H_SETUNIQUE, 1);
    el_set(l->el, EL_CLIENTDATA, l);
    el_set(l->el, EL_PROMPT, show_prompt);
    el_set(l->el, EL_EDITOR, "emacs");
    el_set(l->el, EL_HIST, history, l->history);
    el_set(l->el, EL_SIGNAL, 0);
    el_set(l->el, EL_GETCFN, get_char);
    return 0;
}

int brig_lines_open(struct brig_lines **ret, const char *prompt, struct brig_fail *fail)
{
    struct brig_lines *l = brig_alloc(1, sizeof *l);
    if (l == NULL)
        return brig_fail_set(fail, BRIG_ENOMEM, "out of memory for reading lines");
    l->prompt = prompt;
    if (isatty(STDIN_FILENO) == 1) {
        int r = open_editor(l, fail);
        if (r < 0) {
            brig_lines_close(l);
            return r;
        }
    }
    *ret = l;
    return 0;
}

void brig_lines_close(struct brig_lines *l)
{
    if (l == NULL)
        return;
    if (l->el != NULL)
        el_end(l->el);
    if (l->history != NULL)
        history_end(l->history);
    brig_free(l);
}

bool brig_lines_interactive(const struct brig_lines *l)
{
    return l->el != NULL;
}

static int add(struct brig_buf *out, const char *bytes, size_t n, struct brig_fail *fail)
{
    return brig_buf_add(out, bytes, n) == 0
               ? 0
               : brig_fail_set(fail, BRIG_ELIMIT, "a line is longer than %zu bytes", MAX_LINE_BYTES);
}

static int next_edited(struct brig_lines *l, struct brig_buf *out, bool *more, struct brig_fail *fail)
{
    int n = 0;
    const char *line = el_gets(l->el, &n);
    if (*brig_interrupt_flag() != 0) {
        fputc('\n', stderr);
        return brig_fail_set(fail, BRIG_ECANCELLED, "cancelled");
    }
    *more = line != NULL && n > 0;
    if (!*more) {
        fputc('\n', stderr); /* after Ctrl-D */
        return 0;
    }
    size_t len = (size_t)n;
    if (line[len - 1] == '\n')
        len--;
    if (len > 0) {
        HistEvent event;
        history(l->history, &event, H_ENTER, line);
    }
    return add(out, line, len, fail);
}

/* More bytes into the chunk, or ended. */
static int refill(struct brig_lines *l, struct brig_fail *fail)
{
    while (l->at == l->n && !l->ended) {
        ssize_t r = *brig_interrupt_flag() != 0 ? -1 : read(STDIN_FILENO, l->chunk, sizeof l->chunk);
        if (*brig_interrupt_flag() != 0)
            return brig_fail_set(fail, BRIG_ECANCELLED, "cancelled");
        if (r < 0 && errno != EINTR)
            return brig_fail_errno(fail, BRIG_EIO, "standard input");
        l->at = 0;
        l->n = r > 0 ? (size_t)r : 0;
        l->ended = r == 0;
    }
    return 0;
}

static int next_plain(struct brig_lines *l, struct brig_buf *out, bool *more, struct brig_fail *fail)
{
    for (;;) {
        int r = refill(l, fail);
        if (r < 0)
            return r;
        *more = !l->ended || out->len > 0; /* a last line may lack its newline */
        if (l->ended)
            return 0;
        const char *from = l->chunk + l->at;
        const char *end = memchr(from, '\n', l->n - l->at);
        size_t len = end != NULL ? (size_t)(end - from) : l->n - l->at;
        l->at += len + (end != NULL);
        r = add(out, from, len, fail);
        if (r < 0 || end != NULL)
            return r;
    }
}

int brig_lines_next(struct brig_lines *l, struct brig_buf *out, bool *more, struct brig_fail *fail)
{
    brig_buf_clear(out);
    out->max = MAX_LINE_BYTES;
    return l->el != NULL ? next_edited(l, out, more, fail) : next_plain(l, out, more, fail);
}
