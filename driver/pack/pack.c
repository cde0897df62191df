/*
 * A bundle's folder: who may write into it, what may lie there, its parts, and its manifest, which is written
 * last: a folder without one is not finished.
 */
#include "driver/pack/pack.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "driver/pack/beside.h"
#include "driver/pack/part.h"
#include "driver/run/json.h"
#include "proto/base/mem.h"

#define MANIFEST "manifest.json"

static int open_folder(const char *out, int *ret, struct brig_fail *fail)
{
    if (mkdir(out, 0777) != 0 && errno != EEXIST)
        return brig_fail_errno(fail, BRIG_EIO, "%s: the folder cannot be made", out);
    int fd = open(out, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return brig_fail_errno(fail, BRIG_EIO, "%s: a folder is wanted", out);
    if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
        int r = errno == EWOULDBLOCK ? brig_fail_set(fail, BRIG_EBUSY, "%s: another pack writes into it", out)
                                     : brig_fail_errno(fail, BRIG_EIO, "%s: cannot be locked", out);
        close(fd);
        return r;
    }
    *ret = fd;
    return 0;
}

/* A name that this pack, or an interrupted one of the same number of parts, may have left. */
static bool is_ours(const struct brig_pack_plan *p, const char *name)
{
    char want[40];
    if (brig_pack_beside_is(name))
        return true;
    if (strncmp(name, MANIFEST, strlen(MANIFEST)) == 0) /* and what it is called while it is written */
        return true;
    for (unsigned i = 0; i < p->n_parts; i++) {
        brig_pack_name(i, p->n_parts, want);
        size_t n = strlen(want);
        if (strncmp(name, want, n) == 0 && (name[n] == '\0' || strcmp(name + n, BRIG_PACK_TEMP) == 0))
            return true;
    }
    return false;
}

static int check_strangers(const struct brig_pack_plan *p, int dir, const char *out, struct brig_fail *fail)
{
    int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), r = 0;
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    if (d == NULL) {
        if (fd >= 0)
            close(fd);
        return brig_fail_errno(fail, BRIG_EIO, "%s: cannot be listed", out);
    }
    struct dirent *e;
    while (r == 0 && (e = readdir(d)) != NULL)
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0 && !is_ours(p, e->d_name))
            r = brig_fail_set(
                fail, BRIG_EMISMATCH,
                "%s holds %s, which is not of this pack: choose another folder, or empty this one", out,
                e->d_name);
    closedir(d);
    return r;
}

static json_t *part_json(const struct brig_pack_plan *p, unsigned i, const struct brig_pack_part *part)
{
    char name[40];
    json_t *o = json_object();
    brig_pack_name(i, p->n_parts, name);
    json_object_set_new(o, "file", json_string(name));
    json_object_set_new(o, "bytes", json_integer((json_int_t)part->bytes));
    json_object_set_new(o, "sha256", json_string(part->sha256));
    if (i > 0) {
        struct brig_cells c = p->cells[i - 1];
        json_object_set_new(o, "cells", json_pack("[i,i]", (int)c.first, (int)c.last));
    }
    return o;
}

static int write_manifest(const struct brig_pack_plan *p, const struct brig_pack_part *parts, const char *out,
                          json_t *beside, struct brig_fail *fail)
{
    const struct brig_model *m = p->request.model;
    char hex[2 * BRIG_IDENTITY_BYTES + 1];
    struct brig_buf words = {0}, path = {0};
    for (unsigned i = 0; i < BRIG_IDENTITY_BYTES; i++)
        snprintf(hex + 2 * i, 3, "%02x", m->identity[i]);
    if (brig_pack_words(&p->request, &words) < 0 || brig_buf_printf(&path, "%s/" MANIFEST, out) < 0) {
        brig_buf_release(&words);
        return brig_fail_set(fail, BRIG_ENOMEM, "no memory");
    }
    json_t *o = json_object(), *files = json_array();
    for (unsigned i = 0; i < p->n_parts; i++)
        json_array_append_new(files, part_json(p, i, &parts[i]));
    json_object_set_new(o, "brigade_bundle", json_integer(1));
    json_object_set_new(o, "architecture", json_string(m->desc.arch));
    json_object_set_new(o, "layers", json_integer(m->desc.n_layers));
    json_object_set_new(o, "source", json_string(hex));
    json_object_set_new(o, "pack", json_string(words.data));
    json_object_set_new(o, "files", files);
    if (json_array_size(beside) > 0)
        json_object_set(o, "tokenizer", beside);
    int r = brig_json_write(o, path.data, fail);
    json_decref(o);
    brig_buf_release(&words);
    brig_buf_release(&path);
    return r;
}

static int write_parts(const struct brig_pack_plan *p, int dir, const char *out,
                       const struct brig_pack_watch *watch, struct brig_pack_part *parts, uint64_t *bytes,
                       struct brig_fail *fail)
{
    uint64_t done = 0;
    int r = 0;
    for (unsigned i = 0; i < p->n_parts && r == 0; i++) {
        r = brig_pack_part(p, i, dir, out, watch, &done, &parts[i], fail);
        *bytes += parts[i].bytes;
        if (r == 0 && watch->part != NULL)
            watch->part(watch->arg, p, i, parts[i].bytes, parts[i].was_there);
    }
    if (r == 0 && fsync(dir) != 0) /* the new names */
        r = brig_fail_errno(fail, BRIG_EIO, "%s: cannot be written", out);
    return r;
}

int brig_pack(const struct brig_pack_plan *p, const char *out, const struct brig_pack_watch *watch,
              uint64_t *ret_file_bytes, struct brig_fail *fail)
{
    int dir = -1, r = open_folder(out, &dir, fail);
    if (r < 0)
        return r;
    uint64_t bytes = 0;
    struct brig_pack_part *parts = brig_alloc(p->n_parts, sizeof *parts);
    r = parts == NULL ? brig_fail_set(fail, BRIG_ENOMEM, "no memory for %u parts", p->n_parts)
                      : check_strangers(p, dir, out, fail);
    if (r == 0)
        r = write_parts(p, dir, out, watch, parts, &bytes, fail);
    json_t *beside = json_array();
    if (r == 0)
        r = brig_pack_beside(p->request.model, out, beside, fail);
    if (r == 0)
        r = write_manifest(p, parts, out, beside, fail);
    json_decref(beside);
    brig_free(parts);
    close(dir);
    if (r == 0)
        *ret_file_bytes = bytes;
    return r;
}
