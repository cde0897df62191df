/*
 * What people give as --ram: bytes, with K, M, G or T (binary, K = 1024), a percentage of the model's files,
 * or `auto`: what is free.
 *
 * Part of the launcher's public header (launcher/launcher.h), which the driver includes.
 */
#ifndef BRIG_LAUNCHER_RAM_H
#define BRIG_LAUNCHER_RAM_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/base/err.h"

struct brig_model;

enum brig_ram_kind { BRIG_RAM_NONE, BRIG_RAM_BYTES, BRIG_RAM_SHARE, BRIG_RAM_AUTO };

struct brig_ram {
    enum brig_ram_kind kind;
    uint64_t bytes; /* of BRIG_RAM_BYTES */
    double share;   /* of BRIG_RAM_SHARE: 0.5 for 50 % */
};

/* "4G", "1.5G", "3000000", "50%", "auto". A failure says what a right value is. */
int brig_ram_parse(const char *text, struct brig_ram *ret, struct brig_fail *fail);

/* As bytes, whole pages, rounded down; 0 for BRIG_RAM_NONE. m says how large its files are. */
int brig_ram_resolve(const struct brig_ram *ram, const struct brig_model *m, uint64_t *ret,
                     struct brig_fail *fail);

/* Bytes of the model's files together: what a percentage means. */
uint64_t brig_ram_model_bytes(const struct brig_model *m);

/* What this process may still allocate: MemAvailable of the machine, or less when a memory cgroup (v1 or v2,
 * any level of the path) has less left; page cache that a cgroup could give back counts as free. root is the
 * folder that /proc and /sys lie in, "" outside tests. 0 when nothing can be read. */
uint64_t brig_ram_free(const char *root);

/* "1.5 GiB", "412.3 MiB", "17 KiB", for people. */
#define BRIG_RAM_TEXT 24
const char *brig_ram_text(uint64_t bytes, char out[BRIG_RAM_TEXT]);

#endif
