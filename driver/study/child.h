/* A program that is run to its end, with a deadline: what it said and how it ended. */
#ifndef BRIG_DRIVER_STUDY_CHILD_H
#define BRIG_DRIVER_STUDY_CHILD_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "proto/base/buf.h"
#include "proto/base/err.h"

#define BRIG_CHILD_OUT_MAX ((size_t)64 << 20)
#define BRIG_CHILD_ERR_MAX ((size_t)64 << 10)

struct brig_child_opts {
    char *const *argv;                   /* argv[0]: a path, or a name in PATH; NULL at the end */
    const char *input;                   /* its standard input; NULL: nothing */
    uint32_t timeout_ms;                 /* then it is asked to end, and killed ten seconds later */
    const volatile sig_atomic_t *cancel; /* or NULL */
};

struct brig_child_end {
    int wait_status;
    bool late;           /* it was ended because its time was over */
    struct brig_buf out; /* at most BRIG_CHILD_OUT_MAX bytes; more is a failure */
    struct brig_buf err; /* the first BRIG_CHILD_ERR_MAX bytes of standard error */
};

/* Waits for the end whatever it is: only a program that cannot be run, says too much or is cancelled is a
 * failure here. Release ret->out and ret->err in every case. */
int brig_child_run(const struct brig_child_opts *o, struct brig_child_end *ret, struct brig_fail *fail);
void brig_child_release(struct brig_child_end *e);

/* The last line of its standard error, without the prefix "brigade VERB: "; empty when it said nothing. */
void brig_child_last_words(const struct brig_child_end *e, char *out, size_t n);

#endif
