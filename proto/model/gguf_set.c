/*
 * GGUF models in several files. Each part says its number (split.no, from 0), how many there are
 * (split.count) and how many tensors they have together (split.tensors.count); the names end in
 * "-00001-of-00003.gguf". The first part has the metadata of the model. Any part opens the set; nothing is
 * taken from a part before it has shown that it belongs to it.
 */
#include "proto/model/gguf.h"

#include <inttypes.h>
#include <string.h>

#include "proto/base/mem.h"
#include "proto/model/private.h"

#define TAIL_BYTES 40u

/* What one part says. */
struct split {
    uint64_t no, count;
    bool some_tensors; /* it says how many */
    uint64_t tensors;
};

const char *brig_gguf_file_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

static int read_count(const struct brig_meta *meta, const char *key, uint64_t *ret, struct brig_fail *fail)
{
    const char *kind = brig_meta_kind(meta, key);
    if (kind != NULL && !brig_meta_u64(meta, key, ret))
        return brig_fail_set(fail, BRIG_EFORMAT, "%s is %s, a whole number from 0 on is wanted", key, kind);
    return 0;
}

static int read_split(const struct brig_meta *meta, struct split *ret, struct brig_fail *fail)
{
    struct split s = {.no = 0, .count = 1};
    int r;
    if ((r = read_count(meta, "split.count", &s.count, fail)) < 0 ||
        (r = read_count(meta, "split.no", &s.no, fail)) < 0 ||
        (r = read_count(meta, "split.tensors.count", &s.tensors, fail)) < 0)
        return r;
    s.some_tensors = brig_meta_kind(meta, "split.tensors.count") != NULL;
    if (s.count < 1 || s.count > BRIG_MAX_FILES)
        return brig_fail_set(fail, BRIG_EFORMAT, "split.count is %" PRIu64 ", it must be from 1 to %u",
                             s.count, BRIG_MAX_FILES);
    if (s.no >= s.count)
        return brig_fail_set(fail, BRIG_EFORMAT,
                             "split.no is %" PRIu64 ", of %" PRIu64 " parts (the first is 0)", s.no, s.count);
    *ret = s;
    return 0;
}

/* The hash that a part of a bundle carries, and where it stands: the head is the file's beginning. */
static int read_hash(const struct brig_gguf *g, struct brig_model_file *f, struct brig_fail *fail)
{
    struct brig_str s;
    if (brig_meta_kind(&g->meta, "brigade.sha256") == NULL)
        return 0;
    bool good = brig_meta_str(&g->meta, "brigade.sha256", &s) && s.len == 64;
    for (size_t i = 0; good && i < s.len; i++)
        good = (s.ptr[i] >= '0' && s.ptr[i] <= '9') || (s.ptr[i] >= 'a' && s.ptr[i] <= 'f');
    if (!good)
        return brig_fail_set(fail, BRIG_EFORMAT,
                             "brigade.sha256 is no hash: 64 hexadecimal digits are wanted");
    f->sha256 = s;
    f->sha256_at = (uint64_t)(s.ptr - g->head.data);
    return 0;
}

/* One file up to its metadata. path is taken, also on failure; f->path is set once f->fd may be closed. */
static int open_part(struct brig_model_file *f, struct brig_gguf *g, char *path, struct brig_fail *fail)
{
    if (path == NULL)
        return brig_fail_set(fail, BRIG_ENOMEM, "no memory");
    *f = (struct brig_model_file){.path = path, .fd = -1};
    int r = brig_model_file_open(path, &f->fd, &f->bytes, fail);
    if (r < 0 || (r = brig_gguf_scan(g, f->fd, f->bytes, fail)) < 0)
        return r;
    struct brig_gguf_reader reader = {f->fd, f->bytes, &g->head, BRIG_GGUF_HEAD_START, {"the metadata", 12},
                                      fail};
    r = brig_gguf_read_meta(g, &reader);
    return r < 0 ? r : read_hash(g, f, fail);
}

static void part_tail(char tail[TAIL_BYTES], uint64_t no, uint64_t count)
{
    snprintf(tail, TAIL_BYTES, "-%05u-of-%05u.gguf", (unsigned)no + 1, (unsigned)count);
}

/* The path of part `no`, from that of part `known`. */
static char *part_path(const char *path, const struct split *known, uint64_t no)
{
    char tail[TAIL_BYTES];
    part_tail(tail, no, known->count);
    size_t n = strlen(path), n_tail = strlen(tail);
    char *s = brig_strndup(path, n);
    if (s != NULL)
        memcpy(s + n - n_tail, tail, n_tail); /* as long: check_name has seen the same kind of end */
    return s;
}

static int check_name(const char *path, const struct split *s, struct brig_fail *fail)
{
    char tail[TAIL_BYTES];
    part_tail(tail, s->no, s->count);
    size_t n = strlen(path), n_tail = strlen(tail);
    if (n >= n_tail && strcmp(path + n - n_tail, tail) == 0)
        return 0;
    return brig_fail_set(fail, BRIG_EFORMAT,
                         "it says that it is part %" PRIu64 " of %" PRIu64
                         " of a split model: its name must end in %s, so that the others can be found",
                         s->no + 1, s->count, tail);
}

/* Words that all parts of one model say alike: a part that says another, or none where a bundle must say it,
 * is of something else. */
static int check_same(const struct brig_gguf *first, const struct brig_gguf *part, struct brig_fail *fail)
{
    static const struct {
        const char *key;
        bool in_all;
    } words[] = {{"general.architecture", false},
                 {"general.name", false},
                 {"brigade.source", true},
                 {"brigade.pack", true}};
    for (unsigned i = 0; i < sizeof words / sizeof words[0]; i++) {
        struct brig_str a = {"", 0}, b = {"", 0};
        bool has_a = brig_meta_str(&first->meta, words[i].key, &a);
        bool has_b = brig_meta_str(&part->meta, words[i].key, &b);
        bool differ = has_a && has_b && brig_str_order(a, b) != 0;
        if (differ || (words[i].in_all && has_a != has_b))
            return brig_fail_set(
                fail, BRIG_EMISMATCH, "a part of another model: %s is '%.*s', the first part has '%.*s'",
                words[i].key, (int)(b.len < 80 ? b.len : 80), b.ptr, (int)(a.len < 80 ? a.len : 80), a.ptr);
    }
    return 0;
}

static int check_part(const struct split *want, uint64_t no, const struct brig_gguf *g,
                      struct brig_fail *fail)
{
    struct split s;
    int r = read_split(&g->meta, &s, fail);
    if (r < 0)
        return r;
    if (s.count != want->count || s.no != no)
        return brig_fail_set(fail, BRIG_EMISMATCH,
                             "it says that it is part %" PRIu64 " of %" PRIu64 ", its name says %" PRIu64
                             " of %" PRIu64,
                             s.no + 1, s.count, no + 1, want->count);
    if (s.some_tensors && want->some_tensors && s.tensors != want->tensors)
        return brig_fail_set(fail, BRIG_EMISMATCH,
                             "a part of another model: its model has %" PRIu64
                             " tensors, that of the others %" PRIu64,
                             s.tensors, want->tensors);
    return 0;
}

static int open_others(struct brig_model *m, const char *path, const struct split *s, struct brig_fail *fail)
{
    struct brig_gguf *parts = m->priv;
    uint64_t n_tensors = 0;
    int r = 0;
    for (uint64_t i = 0; i < s->count && r == 0; i++) {
        if (i != s->no)
            r = open_part(&m->files[i], &parts[i], part_path(path, s, i), fail);
        if (r == 0 && (r = check_part(s, i, &parts[i], fail)) == 0 && i > 0)
            r = check_same(&parts[0], &parts[i], fail);
        if (r < 0)
            return m->files[i].path != NULL && i != s->no
                       ? brig_fail_prefix(fail, "%s", brig_gguf_file_name(m->files[i].path))
                       : r;
        n_tensors += parts[i].n_tensors;
    }
    if (s->some_tensors && n_tensors != s->tensors)
        return brig_fail_set(fail, BRIG_EMISMATCH,
                             "its %" PRIu64 " parts have %" PRIu64
                             " tensors together, split.tensors.count says %" PRIu64
                             " (is one of another model?)",
                             s->count, n_tensors, s->tensors);
    return r;
}

/* Room for n parts, of which the one that is there becomes number `no`. */
static int make_room(struct brig_model *m, uint64_t n, uint64_t no, struct brig_fail *fail)
{
    struct brig_gguf *parts = brig_alloc(n, sizeof *parts), *old = m->priv;
    struct brig_model_file *files = brig_alloc(n, sizeof *files);
    if (parts == NULL || files == NULL) {
        brig_free(parts);
        brig_free(files);
        return brig_fail_set(fail, BRIG_ENOMEM, "no memory");
    }
    if (m->n_files == 1) {
        parts[no] = old[0];
        files[no] = m->files[0];
    }
    brig_free(old);
    brig_free(m->files);
    m->priv = parts;
    m->files = files;
    m->n_files = (unsigned)n;
    return 0;
}

int brig_gguf_open_set(struct brig_model *m, const char *path, struct brig_fail *fail)
{
    struct split s;
    int r = make_room(m, 1, 0, fail);
    if (r < 0)
        return r;
    struct brig_gguf *g = m->priv;
    if ((r = open_part(&m->files[0], g, brig_strndup(path, strlen(path)), fail)) < 0 ||
        (r = read_split(&g->meta, &s, fail)) < 0)
        return r;
    if (s.count == 1)
        return 0;
    if ((r = check_name(path, &s, fail)) < 0 || (r = make_room(m, s.count, s.no, fail)) < 0)
        return r;
    return open_others(m, path, &s, fail);
}
