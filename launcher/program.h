/* Where the shard program is: as given, or beside this program, or in PATH. */
#ifndef BRIG_LAUNCHER_PROGRAM_H
#define BRIG_LAUNCHER_PROGRAM_H

#include <stddef.h>

#include "proto/base/err.h"

int brig_program_find(const char *given, char *out, size_t cap, struct brig_fail *fail);

#endif
