/* Files of a tokenizer that lies beside its model. */
#include "driver/pack/beside.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "driver/token/folder.h"
#include "proto/base/buf.h"
#include "proto/base/mem.h"
#include "proto/base/outfile.h"
#include "proto/model/json.h"
#include "proto/model/sha256.h"

#define STEP_BYTES         65536u
#define MANIFEST           "manifest.json"
#define MAX_MANIFEST_BYTES (4u << 20)

struct sum {
    uint64_t bytes;
    char hex[65];
};

bool brig_pack_beside_is(const char *name)
{
    const char *known;
    for (unsigned i = 0; (known = brig_folder_file(i)) != NULL; i++) {
        size_t n = strlen(known);
        if (strncmp(name, known, n) == 0 && (name[n] == '\0' || strncmp(name + n, ".tmp-", 5) == 0))
            return true;
    }
    return false;
}

/* Hash a file to its end, and copy it to `to` unless that is NULL. */
static int read_through(int fd, const char *path, FILE *to, struct sum *ret, struct brig_fail *fail)
{
    uint8_t *buffer = brig_alloc(STEP_BYTES, 1), digest[BRIG_SHA256_BYTES];
    struct brig_sha256 sha;
    struct sum s = {0};
    ssize_t got = 0;
    if (buffer == NULL)
        return brig_fail_set(fail, BRIG_ENOMEM, "%s: no memory to read into", path);
    brig_sha256_init(&sha);
    while ((got = read(fd, buffer, STEP_BYTES)) > 0 || (got < 0 && errno == EINTR)) {
        if (got < 0)
            continue;
        brig_sha256_add(&sha, buffer, (size_t)got);
        s.bytes += (uint64_t)got;
        if (to != NULL)
            fwrite(buffer, 1, (size_t)got, to); /* commit asks for its errors */
    }
    brig_free(buffer);
    if (got < 0)
        return brig_fail_errno(fail, BRIG_EIO, "%s: cannot be read", path);
    brig_sha256_finish(&sha, digest);
    for (unsigned i = 0; i < sizeof digest; i++)
        snprintf(s.hex + 2 * i, 3, "%02x", digest[i]);
    *ret = s;
    return 0;
}

/* A regular file, opened; 0 with *ret_fd -1: there is none. */
static int open_regular(const char *path, int *ret_fd, struct brig_fail *fail)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (fd < 0 && errno != ENOENT)
        return brig_fail_errno(fail, BRIG_EIO, "%s: cannot be opened", path);
    if (fd >= 0 && (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))) {
        close(fd);
        return brig_fail_set(fail, BRIG_EFORMAT, "%s: it is not a regular file", path);
    }
    *ret_fd = fd;
    return 0;
}

static int sum_of(const char *path, bool *ret_there, struct sum *ret, struct brig_fail *fail)
{
    int fd, r = open_regular(path, &fd, fail);
    if (r < 0)
        return r;
    *ret_there = fd >= 0;
    if (fd < 0)
        return 0;
    r = read_through(fd, path, NULL, ret, fail);
    close(fd);
    return r;
}

static int copy(const char *from, const char *to, struct sum *ret, struct brig_fail *fail)
{
    struct brig_outfile o = {0};
    int fd, r = open_regular(from, &fd, fail);
    if (r < 0)
        return r;
    r = brig_outfile_open(&o, to, fail);
    if (r == 0)
        r = read_through(fd, from, o.stream, ret, fail);
    if (r == 0)
        r = brig_outfile_commit(&o, fail);
    brig_outfile_abandon(&o);
    close(fd);
    return r;
}

/* One file, when it is there. */
static int take(const char *from, const char *to, const char *name, json_t *list, struct brig_fail *fail)
{
    bool there = false, done = false;
    struct sum have = {0}, want = {0};
    int r = sum_of(from, &there, &want, fail);
    if (r < 0 || !there)
        return r;
    if ((r = sum_of(to, &done, &have, fail)) == 0 && !done)
        r = copy(from, to, &have, fail);
    if (r == 0 && strcmp(have.hex, want.hex) != 0)
        r = brig_fail_set(fail, BRIG_EMISMATCH,
                          "%s is of another model or another pack: choose another folder, or remove this one",
                          to);
    if (r == 0)
        json_array_append_new(list, json_pack("{s:s, s:I, s:s}", "file", name, "bytes",
                                              (json_int_t)have.bytes, "sha256", have.hex));
    return r;
}

int brig_pack_beside(const struct brig_model *m, const char *out, json_t *list, struct brig_fail *fail)
{
    struct brig_buf from = {0}, to = {0};
    const char *name, *first = m->files[0].path, *slash = strrchr(first, '/');
    int folder = slash != NULL ? (int)(slash - first + 1) : 0, r = 0;
    if (m->vocab.n_tokens != 0)
        return 0;
    for (unsigned i = 0; (name = brig_folder_file(i)) != NULL && r == 0; i++) {
        brig_buf_clear(&from);
        brig_buf_clear(&to);
        if (brig_buf_printf(&from, "%.*s%s", folder, first, name) < 0 ||
            brig_buf_printf(&to, "%s/%s", out, name) < 0)
            r = brig_fail_set(fail, BRIG_ENOMEM, "no memory");
        else
            r = take(from.data, to.data, name, list, fail);
        if (i == 0 && json_array_size(list) == 0)
            break; /* without tokenizer.json the others say nothing */
    }
    brig_buf_release(&from);
    brig_buf_release(&to);
    return r;
}

static int verify_one(const struct brig_model *m, const json_t *entry, struct brig_fail *fail)
{
    struct brig_str file, sha256;
    struct brig_buf path = {0};
    struct sum have = {0};
    bool there = false;
    int r;
    if ((r = brig_json_as_str(json_object_get(entry, "file"), "file", &file, fail)) < 0 ||
        (r = brig_json_as_str(json_object_get(entry, "sha256"), "sha256", &sha256, fail)) < 0)
        return brig_fail_prefix(fail, "%s: " MANIFEST ": tokenizer", m->path);
    if (!brig_pack_beside_is(file.ptr) || strlen(file.ptr) != file.len || strchr(file.ptr, '/') != NULL)
        return brig_fail_set(fail, BRIG_EFORMAT, "%s: " MANIFEST ": tokenizer: %.60s is no file of one",
                             m->path, file.ptr);
    r = brig_buf_printf(&path, "%s/%s", m->path, file.ptr) < 0
            ? brig_fail_set(fail, BRIG_ENOMEM, "%s: no memory", m->path)
            : sum_of(path.data, &there, &have, fail);
    if (r == 0 && !there)
        r = brig_fail_set(fail, BRIG_EMISMATCH, "%s is not there", path.data);
    else if (r == 0 && !brig_str_eq(sha256, have.hex))
        r = brig_fail_set(fail, BRIG_EMISMATCH, "%s: its bytes are not those that were packed", path.data);
    brig_buf_release(&path);
    return r;
}

int brig_pack_beside_verify(const struct brig_model *m, unsigned *ret_n, struct brig_fail *fail)
{
    struct brig_buf path = {0};
    json_t *manifest = NULL;
    const json_t *list = NULL;
    *ret_n = 0;
    if (strcmp(m->format, "bundle") != 0)
        return 0;
    int r = brig_buf_printf(&path, "%s/" MANIFEST, m->path) < 0
                ? brig_fail_set(fail, BRIG_ENOMEM, "no memory")
                : brig_json_open(&manifest, path.data, MAX_MANIFEST_BYTES, fail);
    if (r == 0 && (r = brig_json_array(manifest, "tokenizer", &list, fail)) > 0)
        r = 0;
    if (r < 0)
        brig_fail_prefix(fail, "%s", path.data != NULL ? path.data : m->path);
    for (size_t i = 0; r == 0 && i < json_array_size(list); i++)
        if ((r = verify_one(m, json_array_get(list, i), fail)) == 0)
            (*ret_n)++;
    json_decref(manifest);
    brig_buf_release(&path);
    return r;
}
