/* Lines from a person or a file: with editing and history on a terminal, plain otherwise. */
#ifndef BRIG_DRIVER_FRONT_LINES_H
#define BRIG_DRIVER_FRONT_LINES_H

#include <stdbool.h>

#include "proto/base/buf.h"
#include "proto/base/err.h"

struct brig_lines;

/* Reads standard input; prompt (borrowed) is shown on standard error before each line on a terminal. */
int brig_lines_open(struct brig_lines **ret, const char *prompt, struct brig_fail *fail);
void brig_lines_close(struct brig_lines *l); /* NULL allowed; gives the terminal back */
bool brig_lines_interactive(const struct brig_lines *l);

/* The next line without its newline into out (cleared first): *more is false at the end of input. A signal
 * fails with -BRIG_ECANCELLED. */
int brig_lines_next(struct brig_lines *l, struct brig_buf *out, bool *more, struct brig_fail *fail);

#endif
