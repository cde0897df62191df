/*
 * Errors: one table (err.def), one struct that says in one line what failed and where.
 *
 * Functions return 0 or -BRIG_E<NAME>; results come back through out-parameters that are written only on
 * success. A function at a boundary (a file, a peer, a process) also fills a struct brig_fail, so that the
 * program can print one line that names the file, tensor, shard or host. Libraries never print nor exit.
 */
#ifndef BRIG_PROTO_BASE_ERR_H
#define BRIG_PROTO_BASE_ERR_H

enum brig_err {
    BRIG_OK = 0,
#define BRIG_ERR(name, text, exit_code) BRIG_E##name,
#include "proto/base/err.def"
#undef BRIG_ERR
    BRIG_ERR_COUNT
};

struct brig_fail {
    enum brig_err code;
    char text[480]; /* one line, no newline; names what failed and why */
};

/* Fill *fail (NULL allowed) from a printf format; control characters are replaced by '?'. Returns -code. */
int brig_fail_set(struct brig_fail *fail, enum brig_err code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* As brig_fail_set, and ": strerror(errno)" is added. errno is kept. */
int brig_fail_errno(struct brig_fail *fail, enum brig_err code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* Put "prefix: " before the text that *fail already has (to name the stage or file one level up). Returns
 * -fail->code. */
int brig_fail_prefix(struct brig_fail *fail, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* All take the positive code; out of range gives the row of INTERNAL. */
const char *brig_err_name(int code); /* "TIMEOUT" */
const char *brig_err_text(int code);
int brig_err_exit(int code); /* exit code of the program: 1, or 2 for usage */

#endif
