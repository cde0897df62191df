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

#include "proto/base/mem.h"
#include "proto/model/slice.h"

#define MAX_CELLS 64u

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

static void check(int good)
{
    if (!good)
        abort();
}

static void try_cells(const struct brig_model *m, struct brig_cells cells)
{
    struct brig_slice s, back;
    struct brig_buf b = {0};
    struct brig_fail fail;
    struct brig_range *ranges;
    unsigned n;
    check(brig_slice_build(&s, m, cells, &fail) == 0);
    check(brig_slice_encode(&s, &b) == 0);
    check(brig_slice_decode(&back, b.data, b.len, &fail) == 0);
    check(brig_slice_ranges(&back, 4096, &ranges, &n) == 0);
    for (unsigned i = 0; i < n; i++)
        check(ranges[i].offset + ranges[i].bytes < m->files[0].bytes + 4096);
    brig_free(ranges);
    brig_slice_release(&s);
    brig_slice_release(&back);
    brig_buf_release(&b);
}

static void use(const struct brig_model *m)
{
    const char *key, *value;
    struct brig_cells cells[MAX_CELLS];
    unsigned n_cells = m->desc.n_layers + 1;
    for (unsigned i = 0; brig_model_meta(m, i, &key, &value); i++)
        check(key[0] != '\0' && value != NULL);
    for (uint32_t i = 0; i < m->vocab.n_tokens; i++) /* every byte that is lent out can be read */
        for (size_t j = 0; j < m->vocab.tokens[i].len; j++)
            (void)*(const volatile char *)&m->vocab.tokens[i].ptr[j];
    for (uint32_t c = 0; c < n_cells && c < MAX_CELLS; c++)
        try_cells(m, (struct brig_cells){c, c + 1});
    try_cells(m, (struct brig_cells){0, n_cells});
    for (unsigned k = 1; k <= n_cells && k <= MAX_CELLS; k++)
        check(brig_slice_cut(m, k, cells, NULL) == 0);
}

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
    if (r == 0) {
        use(m);
        brig_model_close(m);
    } else {
        check(fail.text[0] != '\0' && fail.code != BRIG_EINTERNAL);
    }
    return 0;
}
