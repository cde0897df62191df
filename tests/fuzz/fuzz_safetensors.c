/*
 * Fuzz target: bytes become a folder as on the hub (config.json, an index or none, one file of weights), the
 * folder is opened, and all that a program does with an open model without reading its weights is done. The
 * input: lengths of config.json and of the index (u16 each, little-endian), then the two texts, then the
 * file. Seeds in corpus_safetensors/ (tests/fixtures/make_fuzz_hub.py).
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/fuzz/use_model.h"

#define PART "a.safetensors" /* what indexes of the seeds name */

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

static char folder[64];

static void clean_up(void)
{
    static const char *const names[] = {"config.json", "model.safetensors.index.json", "model.safetensors",
                                        PART};
    char path[128];
    for (unsigned i = 0; i < sizeof names / sizeof names[0]; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        unlink(path);
    }
    rmdir(folder);
}

static void write_file(const char *name, const uint8_t *bytes, size_t n)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    if (n == 0)
        return;
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0 || write(fd, bytes, n) != (ssize_t)n)
        abort();
    close(fd);
}

static size_t take_length(const uint8_t **bytes, size_t *n, size_t most)
{
    size_t v = (size_t)(*bytes)[0] | (size_t)(*bytes)[1] << 8;
    *bytes += 2;
    *n -= 2;
    return v < most ? v : most;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    struct brig_model *m;
    struct brig_fail fail;
    if (n < 4)
        return 0;
    snprintf(folder, sizeof folder, "/dev/shm/brigade-fuzz-XXXXXX");
    if (mkdtemp(folder) == NULL)
        abort();
    size_t config = take_length(&bytes, &n, n - 4), index = take_length(&bytes, &n, n - 2 - config);
    write_file("config.json", bytes, config);
    write_file("model.safetensors.index.json", bytes + config, index);
    write_file(index > 0 ? PART : "model.safetensors", bytes + config + index, n - config - index);
    int r = brig_model_open(&m, folder, &fail);
    clean_up(); /* now: the fuzzer ends without asking */
    use_result(r, m, &fail);
    return 0;
}
