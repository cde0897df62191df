/*
 * Fuzz target: a folder of a manifest and two GGUF files is opened as a model, then either file by itself.
 * The input is the three texts with a separator between them. clang -fsanitize=fuzzer,address,undefined;
 * seeds in corpus_bundle/.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "proto/base/mem.h"
#include "proto/model/slice.h"

#define SEPARATOR "\n====\n"
#define N_FILES   3

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

static const char *const names[N_FILES] = {"manifest.json", "model-00001-of-00002.gguf",
                                           "model-00002-of-00002.gguf"};
static char folder[64];

static void check(int good)
{
    if (!good)
        abort();
}

static void path_of(char *out, size_t n, const char *name)
{
    check(snprintf(out, n, "%s/%s", folder, name) < (int)n);
}

static void remove_folder(void)
{
    char path[128];
    for (int i = 0; i < N_FILES; i++) {
        path_of(path, sizeof path, names[i]);
        unlink(path);
    }
    rmdir(folder);
}

static void make_folder(void)
{
    if (folder[0] != '\0')
        return;
    snprintf(folder, sizeof folder, "%s/fuzz-bundle-XXXXXX",
             access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
    check(mkdtemp(folder) != NULL);
    atexit(remove_folder);
}

static void write_file(const char *name, const uint8_t *bytes, size_t n)
{
    char path[128];
    path_of(path, sizeof path, name);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    check(fd >= 0 && (n == 0 || write(fd, bytes, n) == (ssize_t)n));
    close(fd);
}

static void use(const struct brig_model *m)
{
    struct brig_slice s, back;
    struct brig_buf b = {0};
    struct brig_fail fail;
    const char *key, *value;
    for (unsigned i = 0; brig_model_meta(m, i, &key, &value); i++)
        check(key[0] != '\0' && value != NULL);
    for (unsigned i = 0; i < m->n_files; i++)
        check(m->files[i].sha256.len == 0 ||
              m->files[i].sha256_at + m->files[i].sha256.len <= m->files[i].bytes);
    for (unsigned i = 0; i < m->n_tensors; i++)
        check(m->tensors[i].file < m->n_files &&
              m->tensors[i].offset + m->tensors[i].bytes <= m->files[m->tensors[i].file].bytes);
    check(brig_slice_build(&s, m, (struct brig_cells){0, m->desc.n_layers + 1}, &fail) == 0);
    check(brig_slice_encode(&s, &b) == 0);
    check(brig_slice_decode(&back, b.data, b.len, &fail) == 0);
    brig_slice_release(&s);
    brig_slice_release(&back);
    brig_buf_release(&b);
}

static void try_open(const char *path)
{
    struct brig_model *m;
    struct brig_fail fail;
    if (brig_model_open(&m, path, &fail) == 0) {
        use(m);
        brig_model_close(m);
    } else {
        check(fail.text[0] != '\0' && fail.code != BRIG_EINTERNAL);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    char path[128];
    make_folder();
    for (int i = 0; i < N_FILES; i++) {
        const uint8_t *end = i + 1 < N_FILES ? memmem(bytes, n, SEPARATOR, strlen(SEPARATOR)) : NULL;
        size_t len = end != NULL ? (size_t)(end - bytes) : n;
        write_file(names[i], bytes, len);
        bytes += len;
        n -= len;
        if (end != NULL) {
            bytes += strlen(SEPARATOR);
            n -= strlen(SEPARATOR);
        }
    }
    try_open(folder);
    for (int i = 1; i < N_FILES; i++) {
        path_of(path, sizeof path, names[i]);
        try_open(path);
    }
    return 0;
}
