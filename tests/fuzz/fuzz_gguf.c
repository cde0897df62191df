/*
 * Fuzz target: bytes become a file, the file is opened as a model, and all that a program does with an open
 * model without reading its weights is done. clang -fsanitize=fuzzer,address,undefined; seeds in
 * corpus_gguf/.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/fuzz/use_model.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    struct brig_model *m;
    struct brig_fail fail;
    char path[40];
    int fd = memfd_create("fuzz", MFD_CLOEXEC);
    if (fd < 0 || (n > 0 && write(fd, bytes, n) != (ssize_t)n))
        abort();
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    int r = brig_model_open(&m, path, &fail);
    close(fd);
    use_result(r, m, &fail);
    return 0;
}
