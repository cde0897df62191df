/* Opening and closing checkpoints: format, then family, then the index that finds tensors by role. */
#include "proto/model/model.h"

#include <stddef.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proto/base/mem.h"
#include "proto/base/size.h"
#include "proto/model/family.h"
#include "proto/model/private.h"

#define PROBE_BYTES 64u

/* What callers see, and what only this file knows. */
struct box {
    struct brig_model model; /* first: a pointer to it is a pointer to the box */
    char *path;
    const struct brig_format *format;
    const struct brig_meta *meta;        /* the format's */
    const struct brig_tensor **by_place; /* [n_layers][brig_desc_places], then the whole-model roles */
};

static size_t place_of(const struct brig_model *m, enum brig_role role, uint32_t layer, uint32_t expert)
{
    size_t per_layer = brig_desc_places(&m->desc);
    if (role < BRIG_ROLE_LAYER_COUNT)
        return layer * per_layer + brig_desc_place(&m->desc, role, expert);
    return m->desc.n_layers * per_layer + (role - BRIG_ROLE_LAYER_COUNT);
}

int brig_model_index(struct brig_model *m, struct brig_fail *fail)
{
    struct box *box = (struct box *)m;
    size_t n = place_of(m, BRIG_ROLE_COUNT, 0, 0);
    box->by_place = brig_alloc(n, sizeof *box->by_place);
    if (box->by_place == NULL)
        return brig_fail_set(fail, BRIG_ENOMEM, "no memory for the places of %zu tensors", n);
    for (unsigned i = 0; i < m->n_tensors; i++) {
        const struct brig_tensor *t = &m->tensors[i];
        if (t->role == BRIG_ROLE_COUNT)
            continue;
        const struct brig_tensor **place = &box->by_place[place_of(m, t->role, t->layer, t->expert)];
        if (*place != NULL)
            return brig_fail_set(fail, BRIG_EFORMAT, "tensors '%.*s' and '%.*s' have the same place",
                                 (int)(*place)->own_name.len, (*place)->own_name.ptr, (int)t->own_name.len,
                                 t->own_name.ptr);
        *place = t;
    }
    return 0;
}

const struct brig_tensor *brig_model_tensor(const struct brig_model *m, enum brig_role role, uint32_t layer)
{
    return brig_model_expert(m, role, layer, 0);
}

const struct brig_tensor *brig_model_expert(const struct brig_model *m, enum brig_role role, uint32_t layer,
                                            uint32_t expert)
{
    const struct box *box = (const struct box *)m;
    bool of_expert = role >= BRIG_ROLE_EXPERT_FIRST && role < BRIG_ROLE_LAYER_COUNT;
    if (box->by_place == NULL || (unsigned)role >= BRIG_ROLE_COUNT ||
        (role < BRIG_ROLE_LAYER_COUNT && layer >= m->desc.n_layers) ||
        (of_expert && expert >= m->desc.n_experts))
        return NULL;
    if (role == BRIG_ROLE_OUTPUT && m->desc.tied)
        role = BRIG_ROLE_TOKEN_TABLE;
    return box->by_place[place_of(m, role, layer, of_expert ? expert : 0)];
}

bool brig_model_meta(const struct brig_model *m, unsigned index, const char **key, const char **value)
{
    return ((const struct box *)m)->format->meta_at(m, index, key, value);
}

const char *brig_model_own_name(const struct brig_model *m, const char *name, char ret[BRIG_OWN_NAME_BYTES])
{
    const struct brig_format *format = ((const struct box *)m)->format;
    return format->own_name != NULL && format->own_name(m, name, ret, BRIG_OWN_NAME_BYTES) ? ret : name;
}

const struct brig_meta *brig_model_metadata(const struct brig_model *m)
{
    return ((const struct box *)m)->meta;
}

int brig_model_read(const struct brig_model *m, uint32_t file, void *dst, size_t n, uint64_t offset,
                    struct brig_fail *fail)
{
    int r = brig_model_file_read(m->files[file].fd, dst, n, offset, fail);
    return r < 0 ? brig_fail_prefix(fail, "%s", m->files[file].path) : 0;
}

/* The first bytes of a file; none of a folder. */
static int read_head(const char *path, uint8_t head[PROBE_BYTES], size_t *ret, bool *ret_folder,
                     struct brig_fail *fail)
{
    struct stat st;
    uint64_t bytes;
    *ret = 0;
    *ret_folder = stat(path, &st) == 0 && S_ISDIR(st.st_mode);
    if (*ret_folder)
        return 0;
    int fd, r = brig_model_file_open(path, &fd, &bytes, fail);
    if (r < 0)
        return r;
    *ret = bytes < PROBE_BYTES ? (size_t)bytes : PROBE_BYTES;
    r = brig_model_file_read(fd, head, *ret, 0, fail);
    close(fd);
    return r;
}

static int find_format(const char *path, const struct brig_format **ret, struct brig_fail *fail)
{
    uint8_t head[PROBE_BYTES];
    bool folder;
    size_t n;
    int r = read_head(path, head, &n, &folder, fail);
    if (r < 0)
        return r;
    const struct brig_format *f;
    for (unsigned i = 0; (f = brig_format_at(i)) != NULL; i++)
        if (f->probe(path, head, n)) {
            *ret = f;
            return 0;
        }
    if (folder)
        return brig_fail_set(
            fail, BRIG_EFORMAT,
            "a folder that holds no model: neither config.json nor a bundle's manifest.json");
    return brig_fail_set(
        fail, BRIG_EFORMAT,
        "no model file: it begins like none of the formats that 'brigade list formats' shows");
}

static struct brig_str file_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash != NULL ? slash + 1 : path;
    return (struct brig_str){name, strlen(name)};
}

/* Sums over what is used: a tied table has one tensor and counts once. */
static int count(struct brig_model *m, struct brig_fail *fail)
{
    for (unsigned i = 0; i < m->n_tensors; i++) {
        const struct brig_tensor *t = &m->tensors[i];
        if (t->role == BRIG_ROLE_COUNT)
            continue;
        uint64_t elems = t->dims[0];
        if (!brig_mul_u64(elems, t->dims[1], &elems) || !brig_add_u64(m->n_params, elems, &m->n_params) ||
            !brig_add_u64(m->weights_bytes, t->bytes, &m->weights_bytes) ||
            !brig_add_u64(m->weights_bytes, brig_sides_bytes(&t->sides), &m->weights_bytes))
            return brig_fail_set(fail, BRIG_EFORMAT, "its tensors are larger than any file can be");
    }
    return 0;
}

static int fill(struct box *box, struct brig_fail *fail)
{
    struct brig_model *m = &box->model;
    struct brig_str arch;
    int r = box->format->open(m, &box->meta, &arch, fail);
    if (r < 0)
        return r;
    if (m->name.len == 0)
        m->name = file_name(m->path);
    const char *layout = "brigade.hub_layout";
    if (brig_meta_kind(box->meta, layout) != NULL && !brig_meta_bool(box->meta, layout, &m->hub_layout))
        return brig_fail_set(fail, BRIG_EFORMAT, "the metadata key %s is %s, true or false is wanted", layout,
                             brig_meta_kind(box->meta, layout));
    size_t prefix = strlen(BRIG_HUB_ARCH_PREFIX);
    if (m->hub_layout && arch.len > prefix && memcmp(arch.ptr, BRIG_HUB_ARCH_PREFIX, prefix) == 0)
        arch = (struct brig_str){arch.ptr + prefix, arch.len - prefix};
    const struct brig_family *family = brig_family_by_name(arch);
    if (family == NULL)
        return brig_fail_set(fail, BRIG_EUNSUPPORTED,
                             "the architecture '%.*s' is not supported ('brigade list families' shows those "
                             "that are)",
                             (int)(arch.len < 64 ? arch.len : 64), arch.ptr);
    snprintf(m->desc.arch, sizeof m->desc.arch, "%s", family->name);
    if ((r = family->describe(m, box->meta, fail)) < 0)
        return r;
    return count(m, fail);
}

int brig_model_open(struct brig_model **ret, const char *path, struct brig_fail *fail)
{
    struct brig_fail own = {0};
    const struct brig_format *format = NULL;
    struct box *box = NULL;
    int r = find_format(path, &format, &own);
    if (r == 0) {
        box = brig_alloc(1, sizeof *box);
        if (box == NULL || (box->path = brig_strndup(path, strlen(path))) == NULL) {
            brig_free(box);
            box = NULL;
            r = brig_fail_set(&own, BRIG_ENOMEM, "no memory");
        }
    }
    if (r == 0) {
        box->format = format;
        box->model.path = box->path;
        box->model.format = format->name;
        r = fill(box, &own);
    }
    if (r < 0) {
        if (box != NULL)
            brig_model_close(&box->model);
        size_t n = strlen(path), most = 200; /* of a long path its end: the reason must have room too */
        brig_fail_prefix(&own, "%s%s", n > most ? "..." : "", n > most ? path + n - most : path);
        if (fail != NULL)
            *fail = own;
        return r;
    }
    *ret = &box->model;
    return 0;
}

void brig_model_close(struct brig_model *m)
{
    if (m == NULL)
        return;
    struct box *box = (struct box *)m;
    box->format->close(m);
    brig_part_names_free(m->part_names);
    brig_free(box->by_place);
    brig_free(box->path);
    brig_free(box);
}
