/*
 * Fuzz target: a tokenizer.json, and behind a NUL byte a text for it. What is opened must encode, decode and
 * stream without a crash, every id being one of the vocabulary; what is refused says why in one line. Seeds
 * in corpus_tokenizer_json/.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "driver/token/folder.h"
#include "driver/token/tokenizer.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

static void check(int good)
{
    if (!good)
        abort();
}

/* The path of a file named tokenizer.json, in a folder of this process. */
static const char *path_of_file(void)
{
    static char path[64];
    if (path[0] == '\0') {
        char folder[] = "/tmp/brig_fuzz_XXXXXX";
        check(mkdtemp(folder) != NULL);
        snprintf(path, sizeof path, "%s/tokenizer.json", folder);
    }
    return path;
}

static void write_file(const uint8_t *bytes, size_t n)
{
    int fd = open(path_of_file(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    check(fd >= 0 && write(fd, bytes, n) == (ssize_t)n);
    close(fd);
}

static void try_text(struct brig_tokenizer *t, const char *text, size_t n, unsigned flags)
{
    struct brig_ids ids = {0};
    struct brig_buf out = {0};
    struct brig_fail fail = {0};
    int r = brig_tokenizer_encode(t, text, n, flags, &ids, &fail);
    check(r == 0 ? 1 : fail.text[0] != '\0' && strchr(fail.text, '\n') == NULL && ids.n == 0);
    for (size_t i = 0; i < ids.n; i++)
        check(ids.v[i] < brig_tokenizer_n_tokens(t));
    check(brig_tokenizer_decode(t, ids.v, ids.n, true, &out, &fail) == 0 || fail.text[0] != '\0');
    brig_buf_release(&out);
    brig_ids_release(&ids);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    const uint8_t *nul = n > 0 ? memchr(bytes, 0, n) : NULL;
    size_t n_json = nul != NULL ? (size_t)(nul - bytes) : n;
    const char *text =
        nul != NULL ? (const char *)nul + 1 : " It's 12 words.\n<s> \xe2\x96\x81\xf0\x9f\x98\x80";
    size_t n_text = nul != NULL ? n - n_json - 1 : strlen(text);
    struct brig_folder *f = NULL;
    struct brig_tokenizer *t = NULL;
    struct brig_fail fail = {0};
    write_file(bytes, n_json);
    int r = brig_folder_open(&f, path_of_file(), &fail);
    if (r == 0)
        r = brig_tokenizer_new(&t, brig_folder_vocab(f), NULL, &fail);
    check(r == 0 || (fail.text[0] != '\0' && strchr(fail.text, '\n') == NULL));
    if (r == 0) {
        try_text(t, text, n_text, BRIG_ENCODE_SPECIAL | BRIG_ENCODE_BOS);
        try_text(t, text, n_text, 0);
    }
    brig_tokenizer_free(t);
    brig_folder_close(f);
    return 0;
}
