/* A file that appears whole or not at all: written beside its final name, renamed on commit. */
#ifndef BRIG_PROTO_BASE_OUTFILE_H
#define BRIG_PROTO_BASE_OUTFILE_H

#include <stdio.h>

#include "proto/base/err.h"

struct brig_outfile {
    FILE *stream; /* write here */
    char *path;
    char *temp;
};

/* Opens PATH.tmp-PID-N for writing. /dev/stdout and other files that are not regular are opened as they are.
 */
int brig_outfile_open(struct brig_outfile *o, const char *path, struct brig_fail *fail);

/* Flush, check every write, rename over path. After commit or abandon the struct is empty; abandon of an
 * empty one does nothing. */
int brig_outfile_commit(struct brig_outfile *o, struct brig_fail *fail);
void brig_outfile_abandon(struct brig_outfile *o);

#endif
