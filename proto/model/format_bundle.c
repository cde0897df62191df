/*
 * The bundle row of the table of formats: a folder that `brigade pack` has made. It holds a split set of GGUF
 * files, one a slice, and manifest.json, which names them with their sizes and hashes. Opening compares what
 * the manifest says with what the files say; the hashes themselves are computed by `brigade verify`, for that
 * reads everything.
 */
#include "proto/model/format.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "proto/base/buf.h"
#include "proto/model/gguf.h"
#include "proto/model/json.h"

#define MANIFEST           "manifest.json"
#define MAX_MANIFEST_BYTES (4u << 20)
#define VERSION            1u

static int path_in(struct brig_buf *b, const char *folder, const char *name)
{
    brig_buf_clear(b);
    return brig_buf_printf(b, "%s/%s", folder, name);
}

static bool probe(const char *path, const uint8_t *head, size_t n)
{
    struct brig_buf b = {0};
    (void)head;
    bool yes = n == 0 && path_in(&b, path, MANIFEST) == 0 && access(b.data, F_OK) == 0;
    brig_buf_release(&b);
    return yes;
}

/* One of the manifest's files. Borrowed from it. */
struct entry {
    struct brig_str file, sha256;
    uint64_t bytes;
};

static int read_entry(const json_t *o, struct entry *e, struct brig_fail *fail)
{
    int r;
    if (!json_is_object(o))
        return brig_fail_set(fail, BRIG_EFORMAT, "it is %s, an object is wanted", brig_json_kind(o));
    if ((r = brig_json_as_str(json_object_get(o, "file"), "file", &e->file, fail)) < 0 ||
        (r = brig_json_as_u64(json_object_get(o, "bytes"), "bytes", &e->bytes, fail)) < 0 ||
        (r = brig_json_as_str(json_object_get(o, "sha256"), "sha256", &e->sha256, fail)) < 0)
        return r;
    bool bad = e->file.len == 0 || memchr(e->file.ptr, '/', e->file.len) != NULL ||
               memchr(e->file.ptr, '\0', e->file.len) != NULL;
    return bad ? brig_fail_set(fail, BRIG_EFORMAT, "its file is no name of a file in this folder") : 0;
}

static int check_file(const struct brig_model_file *f, const struct entry *e, struct brig_fail *fail)
{
    const char *name = brig_gguf_file_name(f->path);
    if (!brig_str_eq(e->file, name))
        return brig_fail_set(fail, BRIG_EMISMATCH, MANIFEST " has %.*s where the set has %s",
                             (int)e->file.len, e->file.ptr, name);
    if (e->bytes != f->bytes)
        return brig_fail_set(fail, BRIG_EMISMATCH,
                             "%s has %" PRIu64 " bytes, " MANIFEST " says %" PRIu64
                             " (cut short, or of another pack?)",
                             name, f->bytes, e->bytes);
    if (e->sha256.len != f->sha256.len || memcmp(e->sha256.ptr, f->sha256.ptr, f->sha256.len) != 0)
        return brig_fail_set(fail, BRIG_EMISMATCH, "%s does not have the hash that " MANIFEST " gives it",
                             name);
    return 0;
}

static int check_source(const json_t *manifest, const struct brig_meta *meta, struct brig_fail *fail)
{
    struct brig_str said = {"", 0}, own = {"", 0};
    int r = brig_json_as_str(json_object_get(manifest, "source"), MANIFEST ": source", &said, fail);
    if (r < 0)
        return r;
    brig_meta_str(meta, "brigade.source", &own);
    if (brig_str_order(said, own) != 0)
        return brig_fail_set(fail, BRIG_EMISMATCH,
                             "its files are packed from another model than " MANIFEST " says");
    return 0;
}

static int check_files(const struct brig_model *m, const json_t *files, struct brig_fail *fail)
{
    struct entry e;
    int r = 0;
    if (json_array_size(files) != m->n_files)
        return brig_fail_set(fail, BRIG_EMISMATCH, MANIFEST " has %zu files, the set has %u",
                             json_array_size(files), m->n_files);
    for (unsigned i = 0; i < m->n_files && r == 0; i++) {
        if ((r = read_entry(json_array_get(files, i), &e, fail)) < 0)
            return brig_fail_prefix(fail, MANIFEST ": files[%u]", i);
        r = check_file(&m->files[i], &e, fail);
    }
    return r;
}

/* Version, and the files; *ret is borrowed. */
static int read_manifest(const json_t *manifest, const json_t **ret, struct brig_fail *fail)
{
    uint64_t version = 0;
    int r = brig_json_as_u64(json_object_get(manifest, "brigade_bundle"), "brigade_bundle", &version, fail);
    if (r < 0)
        return r;
    if (version != VERSION)
        return brig_fail_set(fail, BRIG_EVERSION, "a bundle of version %" PRIu64 ", this program reads %u",
                             version, VERSION);
    r = brig_json_array(manifest, "files", ret, fail);
    if (r == 0 || (r == 1 && json_array_size(*ret) == 0))
        return brig_fail_set(fail, BRIG_EFORMAT, "it names no files");
    return r < 0 ? r : 0;
}

static int open_files(struct brig_model *m, const json_t *manifest, const struct brig_meta **meta,
                      struct brig_str *arch, struct brig_fail *fail)
{
    const json_t *files = NULL;
    struct entry first;
    struct brig_buf path = {0};
    int r = read_manifest(manifest, &files, fail);
    if (r == 0)
        r = read_entry(json_array_get(files, 0), &first, fail);
    if (r < 0)
        return brig_fail_prefix(fail, MANIFEST);
    r = path_in(&path, m->path, first.file.ptr);
    if (r < 0)
        r = brig_fail_set(fail, BRIG_ENOMEM, "no memory");
    else if ((r = brig_gguf_open(m, path.data, meta, arch, fail)) < 0)
        brig_fail_prefix(fail, "%s", brig_gguf_file_name(path.data));
    brig_buf_release(&path);
    if (r == 0)
        r = check_files(m, files, fail);
    return r < 0 ? r : check_source(manifest, *meta, fail);
}

static int open_bundle(struct brig_model *m, const struct brig_meta **meta, struct brig_str *arch,
                       struct brig_fail *fail)
{
    struct brig_buf b = {0};
    json_t *manifest = NULL;
    int r = path_in(&b, m->path, MANIFEST);
    if (r < 0)
        r = brig_fail_set(fail, BRIG_ENOMEM, "no memory");
    else if ((r = brig_json_open(&manifest, b.data, MAX_MANIFEST_BYTES, fail)) < 0)
        brig_fail_prefix(fail, MANIFEST);
    brig_buf_release(&b);
    if (r == 0)
        r = open_files(m, manifest, meta, arch, fail);
    json_decref(manifest);
    return r;
}

const struct brig_format brig_format_bundle = {
    .name = "bundle",
    .help = "folders that `brigade pack` makes: a GGUF file a slice, with hashes",
    .probe = probe,
    .open = open_bundle,
    .close = brig_gguf_close,
    .meta_at = brig_gguf_meta_at,
};
